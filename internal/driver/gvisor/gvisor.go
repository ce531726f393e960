// Package gvisor is the tier of a second kernel in software: a box whose
// commands run on gVisor, which answers their system calls in a process of its
// own behind the walls of the box.
//
// This package does not import gVisor. What does is a program of its own
// (package sentry, cmd/paddock-gvisor), which is executed as a box's init.
package gvisor

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Version is the release of gVisor that the tier is made for.
const Version = "20260905"

// Options configure a driver.
type Options struct {
	State   string   // see box.Options
	Environ []string // likewise
	Cache   string   // likewise
	Data    string   // likewise

	// Guest is the guest program (cmd/paddock-guest), and Init the one that
	// starts gVisor as a box's init (cmd/paddock-gvisor). Without
	// them the calling program itself is executed as either: it must call
	// box.Main and sentry.Main first.
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
