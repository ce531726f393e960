package protocol

import (
	"fmt"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Stamp returns, as text, a file's size, which file it is, and when it was changed last. Nobody can choose that time.
func Stamp(f *os.File) (string, error) {
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("attributes of %s: %w", f.Name(), paddock.Internal)
	}
	return fmt.Sprintf("%d %d %d.%09d", st.Size(), sys.Ino, sys.Ctim.Sec, sys.Ctim.Nsec), nil
}
