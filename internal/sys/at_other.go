//go:build !linux

package sys

import (
	"fmt"
	"runtime"

	"github.com/paddock-sandbox/paddock"
)

func noAt() error {
	return fmt.Errorf("files by descriptor on %s: %w", runtime.GOOS, paddock.Unsupported)
}

// OpenDirAt is Unsupported here.
func OpenDirAt(int, string) (int, error) { return -1, noAt() }

// OpenAt is Unsupported here.
func OpenAt(int, string, int, uint32) (int, error) { return -1, noAt() }

// StatAt is Unsupported here.
func StatAt(int, string) (FileStat, error) { return FileStat{}, noAt() }

// TargetAt is Unsupported here.
func TargetAt(int, string) (FileStat, error) { return FileStat{}, noAt() }

// BornAt is Unsupported here.
func BornAt(int, string) (int64, error) { return 0, noAt() }

// ReadLinkAt is Unsupported here.
func ReadLinkAt(int, string) (string, error) { return "", noAt() }

// MkdirAt is Unsupported here.
func MkdirAt(int, string, uint32) error { return noAt() }

// SymlinkAt is Unsupported here.
func SymlinkAt(string, int, string) error { return noAt() }

// RenameAt is Unsupported here.
func RenameAt(int, string, int, string) error { return noAt() }

// UnlinkAt is Unsupported here.
func UnlinkAt(int, string) error { return noAt() }

// RmdirAt is Unsupported here.
func RmdirAt(int, string) error { return noAt() }

// ChmodAt is Unsupported here.
func ChmodAt(int, string, uint32) error { return noAt() }

// PathOf is Unsupported here.
func PathOf(int) (string, error) { return "", noAt() }
