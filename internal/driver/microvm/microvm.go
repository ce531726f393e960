// Package microvm is the tier microvm: a virtual machine for each sandbox. QEMU runs it in
// a box, with KVM if the host has it, and otherwise in emulation.
//
// The box's init process is a program of its own (package supervisor, cmd/paddock-microvm).
// The machine runs the guest program (package vminit).
package microvm

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Options configure a driver.
type Options struct {
	State   string        // see box.Options
	Environ []string      // see box.Options
	Cache   string        // see box.Options
	Private private.Files // see box.Options
	Data    string        // see box.Options

	Snapshots string // see box.Options

	// Engine is the path of QEMU. Empty selects qemu-system-x86_64 in the system's
	// directories, without PATH.
	Engine string

	// Kernels is where `paddock vm setup` puts kernels. Empty is the directory vm beside
	// the default Data of all tiers.
	Kernels string

	// Kernel and Modules are the path of a kernel and the directory of its modules. Empty
	// selects the one in Kernels, or else the system's.
	Kernel, Modules string

	// Guest is the guest program (cmd/paddock-guest). Init is the program that runs QEMU as
	// the init process of a box (cmd/paddock-microvm). If they are not set, the calling
	// program itself is executed in their place. It must then call box.Main,
	// supervisor.Main and vminit.Main first.
	Guest, Init program.Program

	// Gateway is the program of the gateway (cmd/paddock-gateway). If it is not set, the
	// calling program itself is executed in its place. It must then call gateway.Main
	// first.
	Gateway program.Program

	// Keeper is the program that owns a sandbox which outlives its maker
	// (cmd/paddock-keeper). If it is not set, the calling program itself is executed in its
	// place. It must then call box.Main first.
	Keeper program.Program

	Ask      func(context.Context, gatewayclient.Question) gatewayclient.Answer // see box.Options
	Judge    gatewayclient.Judge                                                // see [gatewayclient.Options]
	Login    gatewayclient.Login                                                // see [gatewayclient.Options]; of ephemeral sandboxes
	Watch    step.Watcher                                                       // see box.Options
	Hosts    map[string][]netip.Addr                                            // see box.Options
	Roots    []byte                                                             // see box.Options
	Audit    audit.Sink                                                         // see box.Options
	Steps    string                                                             // see box.Options
	Layers   map[string]string                                                  // see box.Options
	Images   image.Source                                                       // see box.Options
	Changing func(source, path string)                                          // see box.Options

	Spares int // see box.Options

	Scope func() error // see box.Options
}

// driver converts the options to those of package box.
func (o *Options) driver() box.Options {
	return box.Options{
		State: o.State, Environ: o.Environ, Cache: o.Cache, Private: o.Private, Data: o.Data, Snapshots: o.Snapshots, Ask: o.Ask, Judge: o.Judge, Login: o.Login, Watch: o.Watch, Hosts: o.Hosts, Roots: o.Roots, Spares: o.Spares, Scope: o.Scope, Audit: o.Audit, Steps: o.Steps, Layers: o.Layers, Images: o.Images, Changing: o.Changing,
		Guest: o.Guest, Gateway: o.Gateway, Keeper: o.Keeper,
	}
}

// Lack returns what this host lacks for any machine, or nil.
func Lack(o Options) *paddock.Finding { return newSupplier(o).Lack() }
