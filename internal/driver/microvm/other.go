//go:build !linux

package microvm

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// Emulated returns why there are no machines: they need Linux.
func Emulated() string { return "this system is not Linux" }

// Runtime does nothing on this system.
func Runtime() *box.Runtime { return &box.Runtime{} }

// New returns a driver that reports that this system is not Linux.
func New(Options) (*box.Driver, error) { return box.Elsewhere(paddock.MicroVM), nil }

// nowhere is the supplier of an unsupported system.
type nowhere struct{}

func newSupplier(Options) nowhere { return nowhere{} }

// Lack reports that.
func (nowhere) Lack() *paddock.Finding {
	return &paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Absent, Cause: Emulated(), Remedy: "run paddock on Linux"}
}
