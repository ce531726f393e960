//go:build unix

package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// full distinguishes a full disk from other errors of files.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("the disk of the state is full: %w: %w", paddock.Exhausted, err)
	}
	return fmt.Errorf("%w: %w", paddock.Internal, err)
}
