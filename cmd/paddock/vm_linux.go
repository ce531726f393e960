package main

import (
	"path/filepath"

	"github.com/paddock-sandbox/paddock/internal/container"
)

// vmData is where kernels for machines are set up: where the tier looks.
func (a *app) vmData() (string, error) {
	var environ []string
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		if value, ok := a.lookup(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return filepath.Join(container.DefaultData(environ), "vm"), nil
}
