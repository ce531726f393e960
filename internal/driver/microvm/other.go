//go:build !linux

package microvm

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// Emulated says that there are no machines: they need Linux.
func Emulated() string { return "this system is not Linux" }

// Runtime has no part on this system.
func Runtime() *box.Runtime { return &box.Runtime{} }

// New returns a driver that says that this system is not Linux.
func New(Options) (*box.Driver, error) { return box.Elsewhere(paddock.MicroVM), nil }

// nowhere is a supplier of nothing.
type nowhere struct{}

func newSupplier(Options) nowhere { return nowhere{} }

// Lack says that.
func (nowhere) Lack() *paddock.Finding {
	return &paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Absent, Cause: Emulated(), Remedy: "run paddock on Linux"}
}
