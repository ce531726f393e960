//go:build !linux

package jail

import (
	"context"
	"runtime"

	"github.com/paddock-sandbox/paddock"
)

// Options configure a [Driver].
type Options struct {
	State   string
	Environ []string
	Cache   string
	Guest   []byte
}

// Main is where a program that uses this package begins; here it has no part.
func Main() bool { return false }

// A Driver makes nothing here: the tier needs Linux.
type Driver struct{}

// New gives a driver that says that this system is not Linux.
func New(Options) (*Driver, error) { return &Driver{}, nil }

func missing() error {
	return &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlUserNS, Strength: paddock.Absent,
		Cause: "this system is " + runtime.GOOS + ", not Linux", Remedy: "run paddock on Linux, or in a Linux virtual machine"}}
}

func (*Driver) Info(context.Context) (paddock.Info, error) {
	return paddock.Info{Tier: paddock.Jail, Version: runtime.GOOS}, nil
}
func (*Driver) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) { return nil, missing() }
func (*Driver) Open(context.Context, paddock.ID) (paddock.Sandbox, error)     { return nil, missing() }
func (*Driver) List(context.Context) ([]paddock.Status, error)                { return nil, nil }
func (*Driver) Close() error                                                  { return nil }
