// Package jail implements the tier that runs commands at native speed on the host's own
// kernel, in a container made of namespaces, Landlock, seccomp and control groups.
package jail

import (
	"context"
	"net/netip"

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

	Data, Snapshots string // see box.Options

	// Guest is the guest program (cmd/paddock-guest). If it is unset, the calling program
	// itself is executed as the guest. It must then call box.Main first.
	Guest program.Program

	// Gateway is the gateway program (cmd/paddock-gateway). If it is unset, the calling
	// program itself is executed as the gateway. It must then call gateway.Main first.
	Gateway program.Program

	// Keeper is the program that owns a sandbox which outlives the process that made it
	// (cmd/paddock-keeper). If it is unset, the calling program itself is executed as the
	// keeper. It must then call box.Main first.
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
