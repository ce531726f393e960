// Package jail is the tier of namespaces, Landlock, seccomp and control groups
// on the host's own kernel: a container whose commands run at native speed.
package jail

import (
	"context"
	"net/netip"

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

	// Guest is the guest program (cmd/paddock-guest). Without it the calling
	// program itself is executed as the guest: it must call box.Main
	// first.
	Guest program.Program

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
		State: o.State, Environ: o.Environ, Cache: o.Cache, Ask: o.Ask, Hosts: o.Hosts, Roots: o.Roots, Spares: o.Spares, Audit: o.Audit,
		Guest: o.Guest, Gateway: o.Gateway, Keeper: o.Keeper,
	}
}
