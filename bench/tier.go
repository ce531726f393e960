//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// inside is true where this process was started as a part of a sandbox, which
// then has run and ended.
func inside() bool { return box.Main(jail.Runtime(), gvisor.Runtime()) || child.Main() || client() }

// A tier is one whose sandboxes are measured in process.
type tier struct {
	name paddock.Tier
	box  string // what the table calls one of its sandboxes
	many string // and several
	open func(o options, state string) (paddock.Driver, error)
	kept bool // its sandboxes stay when who made them goes
}

// tiers are measured with the same code.
func tiers() []tier {
	return []tier{
		{name: paddock.Jail, box: "jail", many: "jails", open: openJail},
		{name: paddock.GVisor, box: "gvisor box", many: "gvisor boxes", open: openGVisor},
	}
}

// spec is of one for a short job. A machine has the memory that its promises are
// about, others have what is usual.
func (t tier) spec() paddock.Spec {
	s := paddock.Spec{Tier: t.name, Ephemeral: !t.kept}
	if t.name == paddock.MicroVM {
		s.Limits.Memory = 256 << 20
	}
	return s
}

// openJail opens the driver with the guest that `make build` made. An empty
// state is the usual directory.
func openJail(o options, state string) (paddock.Driver, error) {
	guest, err := os.ReadFile(o.guest)
	if err != nil {
		return nil, fmt.Errorf("read the guest that make build made: %w", err)
	}
	gateway, err := o.wayOut()
	if err != nil {
		return nil, err
	}
	return jail.New(jail.Options{Guest: program.Embedded("guest", guest), Gateway: gateway, State: state, Environ: os.Environ(), Hosts: o.hosts, Roots: o.roots, Steps: o.steps})
}

// openGVisor opens the driver with both programs that `make build` made.
func openGVisor(o options, state string) (paddock.Driver, error) {
	guest, err := os.ReadFile(o.guest)
	if err != nil {
		return nil, fmt.Errorf("read the guest that make build made: %w", err)
	}
	kernel, err := os.ReadFile(o.kernel)
	if err != nil {
		return nil, fmt.Errorf("read the kernel that make build made: %w", err)
	}
	gateway, err := o.wayOut()
	if err != nil {
		return nil, err
	}
	return gvisor.New(gvisor.Options{Guest: program.Embedded("guest", guest), Init: program.Embedded("gvisor", kernel), Gateway: gateway, State: state, Environ: os.Environ(), Hosts: o.hosts, Roots: o.roots, Steps: o.steps})
}

// wayOut reads the program of gateways where sandboxes are to have one.
func (o options) wayOut() (program.Program, error) {
	if o.hosts == nil {
		return program.Program{}, nil
	}
	data, err := os.ReadFile(o.gateway)
	if err != nil {
		return program.Program{}, fmt.Errorf("read the gateway that make build made: %w", err)
	}
	return program.Embedded("gateway", data), nil
}
