//go:build !linux

package jail

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// Runtime does nothing on this system.
func Runtime() *box.Runtime { return &box.Runtime{} }

// New returns a driver that reports that this system is not Linux.
func New(Options) (*box.Driver, error) { return box.Elsewhere(paddock.Jail), nil }
