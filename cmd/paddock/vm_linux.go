package main

import (
	"path/filepath"

	"github.com/paddock-sandbox/paddock/internal/box"
)

// vmData is where kernels for machines are set up: where the tier looks.
func (a *app) vmData() (string, error) {
	dir, err := dataDir(a.lookup)
	return filepath.Join(dir, "vm"), err
}

// dataDir is where what outlives a sandbox is, which no sandbox sees.
func dataDir(lookup func(string) (string, bool)) (string, error) {
	var environ []string
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		if value, ok := lookup(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return box.DefaultData(environ), nil
}
