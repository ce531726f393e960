// Package sim makes simulated computers in a Go program: each has a shell that
// is compatible with bash, the tools that scripts use, and a file system, all
// of them Go values in this process. No process is started, no file of the host
// is opened but for mounts, and there is no network but the one that a program
// gives ([Options.Dial]). A computer takes less than
// a millisecond to make, and its files are forked in constant time.
//
// [New] gives a [paddock.Driver] as every other tier has it: [paddock.Sandbox]
// starts commands, holds files, takes snapshots. [Run] runs one script, and a
// [Session] runs one after another in a shell that keeps its state. The list
// of commands, the differences from bash and the GNU tools, and all limits are
// in docs/use/sim.md.
//
// # How strong it is
//
// What a script can reach is what the tools were written to give it; there is
// nothing else to call. All that it can make grow is counted: see [Limits].
// Loops, recursion, memory, output and expressions that explode end with a
// named limit, and the sandbox stays usable.
//
// The boundary is the Go language, and the correctness of the interpreter and
// of each tool. A bug in one of them happens in your process, with its memory,
// its secrets and its rights. The command line (paddock run --tier sim)
// therefore puts each sandbox into a child process of its own, behind rlimits,
// Landlock and a system-call filter; this package does not.
// It is for programs whose scripts come from a model or a colleague rather
// than from an attacker with time, where a process per sandbox is too much, or
// which are confined themselves. For hostile scripts use the child process, or
// another tier.
//
// Memory is counted where values are made. The garbage of the interpreter and
// what libraries hold is bounded, but by less exact means; a program that runs
// many sandboxes sets GOMEMLIMIT.
package sim

import (
	"context"
	"crypto/x509"
	"net"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/tool"
)

// Options say how a driver's computers are made. The zero Options are good:
// default limits, no tools, snapshots in memory.
type Options struct {
	// Limits bound each computer and each run on it. A zero field is its
	// default. The limits of a [paddock.Spec] (memory, processes, disk, open
	// files) win over them.
	Limits Limits

	// Tools are functions of yours that scripts may call: as commands, and
	// from JavaScript. What they may do is bounded by the set's grants; nil is
	// none. See package tool.
	Tools *tool.Set

	// Snapshots is the directory that keeps snapshots, in the form that
	// other tiers open too. Empty keeps them in memory until the driver is
	// closed.
	Snapshots string

	// Python is the directory of the interpreter that python3 runs: the one that
	// the command paddock sim setup names, and fills. Empty is no Python.
	Python string

	// Dial connects to what the rules of a spec allow, by the name or the
	// address that a script wrote; nil is no network, and a spec that wants one
	// is Unsupported. It is called for what [paddock.NetworkPolicy] allows
	// alone, as far as hosts and ports of connections go: rules about requests,
	// limits and secrets are Unsupported here. Where a name leads to is Dial's
	// own care: it must lead to no address that scripts shall not reach, such as
	// those of this machine and of private networks.
	Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)

	// Roots are the authorities that curl and wget believe; nil is none, so
	// that they reach a server by https only if they are told to believe all.
	Roots *x509.CertPool
}

// New makes a driver. Its Close removes every sandbox that it made: none of
// them outlives this process.
func New(o Options) (paddock.Driver, error) {
	inner := sim.Options{Limits: budget.Limits(o.Limits), Tools: o.Tools, Snapshots: o.Snapshots, Python: o.Python, Dial: o.Dial}
	if o.Roots != nil {
		inner.Roots = func() *x509.CertPool { return o.Roots }
	}
	return sim.New(inner)
}
