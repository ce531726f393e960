//go:build !linux

package microvm

import "github.com/paddock-sandbox/paddock"

// Emulated says that there are no machines: they need Linux.
func Emulated() string { return "this system is not Linux" }

// nowhere is a supplier of nothing.
type nowhere struct{}

func newSupplier(Options) nowhere { return nowhere{} }

// Lack says that.
func (nowhere) Lack() *paddock.Finding {
	return &paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Absent, Cause: Emulated(), Remedy: "run paddock on Linux"}
}
