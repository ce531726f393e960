//go:build !linux

package cli

import (
	"fmt"
	"path/filepath"

	"github.com/paddock-sandbox/paddock"
)

// DataDir returns the caller's directory for data that outlive a sandbox.
func DataDir(lookup func(string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock"), nil
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "paddock"), nil
	}
	return "", WithHint(fmt.Errorf("there is no data directory: %w", paddock.Unsupported), "set HOME or XDG_DATA_HOME")
}
