//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/container"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall"
)

// inside is true where this process was started as a part of a jail, which
// then has run and ended.
func inside() bool { return container.Main() || wall.Main() }

// openJail opens the driver with the guest that `make build` made.
func openJail(o options) (paddock.Driver, error) {
	guest, err := os.ReadFile(o.guest)
	if err != nil {
		return nil, fmt.Errorf("read the guest that make build made: %w", err)
	}
	return jail.New(jail.Options{Guest: guest, Environ: os.Environ()})
}
