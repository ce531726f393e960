// Package agent is the host's side of the agent inside a sandbox: it turns a
// net.Conn into processes, files and ports in the shape of package paddock.
// A driver embeds [*Guest] in its sandbox and adds what only it can do.
//
// Every byte that comes from the guest is hostile. Messages are capped, every
// answer has a deadline, names and numbers are checked before they are used,
// and nothing that the guest says is ever used as a path on the host.
package agent

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options are what a driver knows and the guest cannot be asked.
type Options struct {
	// Amend may improve an exit that the guest reported, with what the host
	// measured (out of memory, killed by the driver). It is called once for
	// each process and attached output, before Wait answers. May be nil.
	Amend func(started time.Time, exit *paddock.Exit)

	// Gone says in words why the guest is no longer there, when its
	// connection has ended. It may wait a little to find out. May be nil.
	Gone func() string

	// Lifetime is paddock.Limits.Lifetime: the bound of every command.
	Lifetime time.Duration
}
