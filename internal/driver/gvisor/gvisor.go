// Package gvisor is the tier of a second kernel in software: a container whose
// commands run on gVisor, which answers their system calls in a process of its
// own behind the walls of the container.
//
// This package does not import gVisor. What does is a program of its own
// (package sentry, cmd/paddock-gvisor), which is executed as a box's init.
package gvisor

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Version is the release of gVisor that the tier is made for.
const Version = "20260905"

// argv0 is sentry.Argv0, which this package may not import.
const argv0 = "paddock-guest-gvisor"

// Options configure a driver.
type Options struct {
	State   string   // see box.Options
	Environ []string // likewise
	Cache   string   // likewise
	Data    string   // likewise

	// Guest is the guest program (cmd/paddock-guest), and Kernel the one that
	// starts gVisor (cmd/paddock-gvisor). Without them the
	// calling program itself is executed as either: it must call
	// box.Main and sentry.Main first.
	Guest, Kernel program.Program

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

// Kernel is gVisor, for box.Main.
func Kernel() *box.Kernel {
	return &box.Kernel{Name: "gVisor " + Version, Argv0: argv0, Receive: receive}
}

// New gives a driver. It changes nothing on the host, and does not fail where
// no sandbox can be made: Info and Create tell.
func New(o Options) (*box.Driver, error) {
	k := Kernel()
	k.Program = o.Kernel
	return box.New(box.Options{
		Tier: paddock.GVisor, State: o.State, Environ: o.Environ, Cache: o.Cache, Data: o.Data,
		Guest: o.Guest, Kernel: k, Audit: o.Audit,
		Gateway: o.Gateway,
		Keeper:  o.Keeper, Ask: o.Ask, Hosts: o.Hosts, Roots: o.Roots, Spares: o.Spares,
	})
}
