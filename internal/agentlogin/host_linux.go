package agentlogin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// lockDir locks a directory among all processes.
func lockDir(ctx context.Context, path string) (io.Closer, error) { return sys.LockDir(ctx, path) }

// tryLockDir locks a directory, or fails at once with Conflict.
func tryLockDir(path string) (io.Closer, error) {
	lock, err := sys.TryLockDir(path)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("a box that runs uses the login with the same files: %w", paddock.Conflict)
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// keepOwner gives a file the owner of the one that it replaces, where this process is not that owner.
func keepOwner(f *os.File, before fs.FileInfo) error {
	s, ok := before.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(s.Uid), int(s.Gid))
}

// allocate has the file system keep blocks for the first bytes of a file, which it has then.
func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}
