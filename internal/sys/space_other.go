//go:build !linux

package sys

import (
	"fmt"
	"runtime"

	"github.com/paddock-sandbox/paddock"
)

// Space is Unsupported here.
func Space(string) (free, total int64, err error) {
	return 0, 0, fmt.Errorf("free space of a disk on %s: %w", runtime.GOOS, paddock.Unsupported)
}
