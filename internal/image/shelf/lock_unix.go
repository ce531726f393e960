//go:build unix

package shelf

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

func tryLock(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		default:
			return fmt.Errorf("lock %s: %w: %w", f.Name(), err, paddock.Unsupported)
		}
	}
}
