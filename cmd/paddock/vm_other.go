//go:build !linux

package main

import (
	"fmt"
	"path/filepath"

	"github.com/paddock-sandbox/paddock"
)

// vmData is nowhere: the tier needs Linux.
func (a *app) vmData() (string, error) {
	return "", withHint(fmt.Errorf("the tier microvm runs on Linux only: %w", paddock.Unsupported), "on this system there is the tier sim")
}

// dataDir is where what outlives a sandbox is.
func dataDir(lookup func(string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock"), nil
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "paddock"), nil
	}
	return "", withHint(fmt.Errorf("there is no data directory: %w", paddock.Unsupported), "set HOME or XDG_DATA_HOME")
}
