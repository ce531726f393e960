//go:build !linux

package agentlogin

import (
	"context"
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
func keepOwner(*os.Root, string, fs.FileInfo) error { return nil }
