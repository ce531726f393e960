//go:build !linux

package box

import (
	"context"
	"net/netip"
	"os"
	"runtime"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Options configure a [Driver].
type Options struct {
	Tier    paddock.Tier
	State   string
	Environ []string
	Cache   string
	Data    string
	Guest   program.Program
	Kernel  *Kernel
	Gateway program.Program
	Keeper  program.Program
	Ask     func(context.Context, owner.Question) owner.Answer
	Hosts   map[string][]netip.Addr
	Roots   []byte
	Spares  int
	Audit   audit.Sink
}

// A Kernel is one in software, which runs on Linux only.
type Kernel struct {
	Name    string
	Argv0   string
	Program program.Program
	Receive func(events *os.File, sandbox string, sink audit.Sink) error
	Machine Machine
}

// A Machine is for a kernel of a box's own, which runs on Linux only.
type Machine any

// Main is where a program that uses this package begins; here it has no part.
func Main(...*Kernel) bool { return false }

// A Driver makes nothing here: the tier needs Linux.
type Driver struct{ tier paddock.Tier }

// New gives a driver that says that this system is not Linux.
func New(o Options) (*Driver, error) { return &Driver{o.Tier}, nil }

func missing() error {
	return &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlUserNS, Strength: paddock.Absent,
		Cause: "this system is " + runtime.GOOS + ", not Linux", Remedy: "run paddock on Linux, or in a Linux virtual machine"}}
}

func (d *Driver) Info(context.Context) (paddock.Info, error) {
	return paddock.Info{Tier: d.tier, Version: runtime.GOOS}, nil
}
func (*Driver) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) { return nil, missing() }
func (*Driver) Open(context.Context, paddock.ID) (paddock.Sandbox, error)     { return nil, missing() }
func (*Driver) List(context.Context) ([]paddock.Status, error)                { return nil, nil }
func (*Driver) RemoveSnapshot(context.Context, paddock.SnapshotID) error      { return missing() }
func (*Driver) Close() error                                                  { return nil }
