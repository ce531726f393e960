//go:build !linux

package agentlogin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// lockDir fails, because there are no boxes with a gateway here.
func lockDir(context.Context, string) (io.Closer, error) {
	return nil, fmt.Errorf("logins are kept outside of a box on Linux only: %w", paddock.Unsupported)
}

// tryLockDir fails as lockDir does.
func tryLockDir(path string) (io.Closer, error) { return lockDir(context.Background(), path) }

// keepOwner does nothing here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// allocate is for Linux.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
