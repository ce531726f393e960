// Package microvm is the tier of a machine for each sandbox: a container in which
// QEMU runs a kernel of the box's own, with KVM where the host has one that
// works, and in emulation where it has not.
//
// What runs in the container is a program of its own (package monitor,
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

// argv0 is monitor.Argv0, which this package does not import.
const argv0 = "paddock-guest-microvm"

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

	// Guest is the guest program (cmd/paddock-guest), and Monitor the one that
	// runs QEMU (cmd/paddock-microvm). Without them the calling
	// program itself is executed as either: it must call box.Main,
	// monitor.Main and vminit.Main first.
	Guest, Monitor program.Program

	// Gateway is the program of the way out (cmd/paddock-gateway). Without it the
	// calling program itself is executed as one: it must call gateway.Main first.
	Gateway program.Program

	// Keeper is the program that owns a sandbox which outlives its maker
	// (cmd/paddock-keeper). Without it the calling program itself is executed as one:
	// it must call box.Main first.
	Keeper program.Program

	Ask   func(context.Context, owner.Question) owner.Answer // see box.Options
	Hosts map[string][]netip.Addr                            // likewise
	Roots []byte                                             // likewise
	Audit audit.Sink                                         // likewise

	Spares int // likewise
}

// Kernel is a machine's, for box.Main.
func Kernel() *box.Kernel { return kernelOf(Options{}) }

// New gives a driver. It changes nothing on the host, and does not fail where
// no sandbox can be made: Info and Create tell.
func New(o Options) (*box.Driver, error) {
	k := kernelOf(o)
	k.Program = o.Monitor
	return box.New(box.Options{
		Tier: paddock.MicroVM, State: o.State, Environ: o.Environ, Cache: o.Cache, Data: o.Data,
		Guest: o.Guest, Kernel: k, Audit: o.Audit,
		Gateway: o.Gateway,
		Keeper:  o.Keeper, Ask: o.Ask, Hosts: o.Hosts, Roots: o.Roots, Spares: o.Spares,
	})
}

// Lack tells what is missing on this host for any machine; nil is nothing.
func Lack(o Options) *paddock.Finding { return newSupplier(o).Lack() }

func kernelOf(o Options) *box.Kernel {
	return &box.Kernel{Name: "QEMU", Argv0: argv0, Machine: newSupplier(o)}
}
