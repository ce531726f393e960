// Package microvm is the tier of a machine for each sandbox: a box in which
// QEMU runs a guest kernel, with KVM where the host has one that
// works, and in emulation where it has not.
//
// What runs in the box is a program of its own (package supervisor,
// cmd/paddock-microvm), which is executed as a box's init; what runs in the
// machine is the guest program (package vminit).
package microvm

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Options configure a driver.
type Options struct {
	State   string   // see box.Options
	Environ []string // likewise
	Cache   string   // likewise
	Data    string   // likewise

	// Engine is the path of QEMU; empty is
	// qemu-system-x86_64 where systems have it; PATH is not asked.
	Engine string

	// Kernels is where `paddock vm setup` puts kernels; empty is vm in the
	// directory where by default Data of all tiers is.
	Kernels string

	// Kernel and Modules are a kernel by path, and the directory of its modules;
	// empty is the one of Kernels, or else the system's own.
	Kernel, Modules string

	// Guest is the guest program (cmd/paddock-guest), and Init the one that
	// runs QEMU as a box's init (cmd/paddock-microvm). Without them
	// the calling program itself is executed as either: it must call box.Main,
	// supervisor.Main and vminit.Main first.
	Guest, Init program.Program

	// Gateway is the program of the way out (cmd/paddock-gateway). Without it the calling program itself is executed as one: it must
	// call gateway.Main first.
	Gateway program.Program

	// Keeper is the program that owns a sandbox which outlives its maker
	// (cmd/paddock-keeper). Without it the calling program itself
	// is executed as one: it must call box.Main first.
	Keeper program.Program

	Ask   func(context.Context, owner.Question) owner.Answer // see box.Options
	Hosts map[string][]netip.Addr                            // likewise
	Roots []byte                                             // likewise
	Audit audit.Sink                                         // likewise

	Spares int // likewise
}

// driver are the options as package box has them.
func (o *Options) driver() box.Options {
	return box.Options{
		State: o.State, Environ: o.Environ, Cache: o.Cache, Data: o.Data, Ask: o.Ask, Hosts: o.Hosts, Roots: o.Roots, Spares: o.Spares, Audit: o.Audit,
		Guest: o.Guest, Gateway: o.Gateway, Keeper: o.Keeper,
	}
}

// Lack tells what is missing on this host for any machine; nil is nothing.
func Lack(o Options) *paddock.Finding { return newSupplier(o).Lack() }
