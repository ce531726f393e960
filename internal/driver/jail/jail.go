// Package jail is the tier of namespaces, Landlock, seccomp and control groups
// on the host's own kernel: a container whose commands run at native speed.
package jail

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/container"
)

// Options configure a driver.
type Options struct {
	State   string   // see container.Options
	Environ []string // likewise
	Cache   string   // likewise

	// Guest is the guest program (cmd/paddock-guest). Without it the calling
	// program itself is executed as the guest: it must call container.Main
	// first.
	Guest []byte

	// Gateway is the program of the way out (cmd/paddock-gateway), compressed by
	// gzip. Without it the calling program itself is executed as one: it must
	// call gateway.Main first.
	Gateway []byte

	Audit audit.Sink // see container.Options
}

// New gives a driver. It changes nothing on the host, and does not fail where
// no sandbox can be made: Info and Create tell.
func New(o Options) (*container.Driver, error) {
	return container.New(container.Options{
		Tier: paddock.Jail, State: o.State, Environ: o.Environ, Cache: o.Cache, Guest: container.Program{Name: "guest", Data: o.Guest},
		Gateway: container.Program{Name: "gateway", Data: o.Gateway, Gzip: o.Gateway != nil}, Audit: o.Audit,
	})
}
