//go:build !linux

package parent

import (
	"context"
	"net/netip"
	"os"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// Options say how children are made.
type Options struct {
	// Limits bound each computer, as [sim.Options] has them.
	Limits budget.Limits

	// Python is the directory of the Python interpreter, as [sim.Options] has it.
	Python string

	// Snapshots is a directory for snapshots, as [sim.Options] has it.
	Snapshots string

	// Private lists the caller's files that no sandbox may see.
	Private private.Files

	// Gateway, Ask, Hosts, Roots and Audit are of the way out, which there is
	// not here: a spec that asks for one is refused.
	Gateway func() (*os.File, error)
	Ask     func(context.Context, gatewayclient.Question) gatewayclient.Answer
	Judge   gatewayclient.Judge // see [gatewayclient.Options]
	Login   gatewayclient.Login // see [gatewayclient.Options]
	Hosts   map[string][]netip.Addr
	Roots   []byte
	Audit   audit.Sink

	// Program is of the processes of computers, which there are not here.
	Program program.Program
}

// New makes a driver. Away from Linux there is no wall around the process: it
// is the plain driver, whose Info lists none.
func New(o Options) (*sim.Driver, error) {
	return sim.New(sim.Options{Limits: o.Limits, Python: o.Python, Snapshots: o.Snapshots, Private: o.Private})
}
