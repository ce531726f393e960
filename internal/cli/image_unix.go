//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// holdImage takes the lock that keeps an image. It is nil if the image was removed meanwhile.
func holdImage(root ImageRoot) (*os.File, error) {
	hold, err := os.Open(root.Hold)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w: %w", root.Tree.Digest, err, paddock.Denied)
	}
	there, err := stillThere(hold, root)
	if there && err == nil {
		return hold, nil
	}
	return nil, errors.Join(err, hold.Close())
}

// stillThere locks the file, and reports whether it and the tree are still where they were: who removes them takes the lock
// first.
func stillThere(hold *os.File, root ImageRoot) (bool, error) {
	err := syscall.Flock(int(hold.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil // it is being removed
	}
	if err != nil {
		return false, fmt.Errorf("image %s: lock: %w: %w", root.Tree.Digest, err, paddock.Unsupported)
	}
	mine, err := hold.Stat()
	if err != nil {
		return false, fmt.Errorf("image %s: %w: %w", root.Tree.Digest, err, paddock.Internal)
	}
	now, gone := os.Lstat(root.Hold)
	_, away := os.Lstat(root.Tree.Path)
	return gone == nil && away == nil && os.SameFile(mine, now), nil
}
