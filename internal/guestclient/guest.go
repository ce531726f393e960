// Package guestclient calls the agent inside a sandbox from the host: it turns a net.Conn into
// processes, files and ports with the types of package paddock. A driver embeds [*Guest] in its
// sandbox and adds the methods that only the driver can implement.
//
// Every byte from the guest is hostile. Messages have a maximum size and answers have a deadline.
// Names and numbers are checked before use. No text from the guest is ever used as a path on the host.
package guestclient

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// Options are what a driver knows and the guest cannot be asked.
type Options struct {
	// Amend may improve an exit that the guest reported, or that its end was,
	// with what the host measured (out of memory, killed by the driver). It is called once for
	// each process and attached output, before Wait answers. May be nil.
	Amend func(start Start, exit *paddock.Exit)

	// Gone says in words why the guest is no longer there, when its
	// connection has ended. It may wait a little to find out. May be nil.
	Gone func() string

	// Stuck is called when the guest did not report the end of a process
	// that must have been killed by its timeout: the guest is broken or
	// hostile. The driver may end the sandbox. May be nil.
	Stuck func()

	// Paused tells that the sandbox is paused, so that a guest that does not
	// answer is not taken for stuck. May be nil.
	Paused func() bool

	// Again is asked for another way to the guest when this one has ended under
	// a process that is followed. It waits while the sandbox is paused; nil is
	// that there is none any more. May be nil.
	Again func(ctx context.Context) *Guest

	// Aside makes another connection to the same guest, over which the content of a
	// large file goes past the calls. May be nil: then it goes by the calls.
	Aside func(ctx context.Context) (net.Conn, error)

	// Lifetime is paddock.Limits.Lifetime: the bound of every command.
	Lifetime time.Duration
}

// A Start is what is known of how a process began.
type Start struct {
	At time.Time // when it was asked for, or attached to

	// Killed is how many processes the guest says were killed for lack of memory
	// before; -1 is that it does not count them.
	Killed int64
}

const (
	// answerTime bounds every call that has no reason to take long.
	answerTime = 30 * time.Second
	// exitGrace is how long after its timeout a process's exit must be here.
	exitGrace = 10 * time.Second
	// startsAtOnce is how many processes a guest is asked to start at a time.
	startsAtOnce = 32
	// protocol is the version that this package speaks.
	protocol = 1
)

// A Guest is the agent inside one sandbox, at the other end of a connection.
// Its methods are those of [paddock.Sandbox] with the same promises, and safe
// for many goroutines at once. After the connection has ended every call
// answers Unavailable with the driver's reason.
type Guest struct {
	o     Options
	rpc   guestpb.GuestClient
	wire  *wire
	grace time.Duration // exitGrace, shorter in tests

	starts chan struct{} // has a place for each process that is being started

	goneOnce sync.Once
	gone     string // written under goneOnce
}

// New takes over conn, whose other end is served by a guest. It makes no
// call: the guest may still be starting. Close ends the connection, and so does
// that nobody holds the Guest any more, nor anything that is under way by it.
func New(conn net.Conn, o Options) (*Guest, error) {
	w, err := dial(conn)
	if err != nil {
		return nil, fmt.Errorf("connect to guest: %w", err)
	}
	g := &Guest{o: o, wire: w, grace: exitGrace, starts: make(chan struct{}, startsAtOnce)}
	g.rpc = guestpb.NewGuestClient(holder{g}, "http://guest",
		connect.WithReadMaxBytes(maxMessage),
		connect.WithAcceptCompression("gzip", nil, nil),
	)
	// A sandbox that is opened for one call is dropped after it, and HTTP/2 keeps
	// the connection, with a goroutine and its buffers, for as long as it stands.
	runtime.AddCleanup(g, func(w *wire) { _ = w.Close() }, w)
	return g, nil
}

// Close ends the connection. Calls under way end with Unavailable, waits with
// an exit of cause SandboxGone. Processes inside are not touched.
func (g *Guest) Close() error { return g.wire.Close() }

// Done is closed when the connection has ended.
func (g *Guest) Done() <-chan struct{} { return g.wire.done }

// Hello is what the guest tells about itself. It is data: it comes from inside.
type Hello struct {
	User string
	Home string
	Dir  string // working directory of commands that name none
}

// Hello answers when a command has run inside.
func (g *Guest) Hello(ctx context.Context) (Hello, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	res, err := g.rpc.Hello(ctx, connect.NewRequest(&guestpb.HelloRequest{}))
	if err != nil {
		return Hello{}, fmt.Errorf("greet guest: %w", g.failure(ctx, err))
	}
	m := res.Msg
	if m.Protocol != protocol {
		return Hello{}, fmt.Errorf("greet guest: it speaks version %d, not %d: %w", m.Protocol, protocol, paddock.Unsupported)
	}
	return Hello{User: m.User, Home: m.Home, Dir: m.Dir}, nil
}

// Refusals lists what was tried inside and may not be done, newest last, at
// most 1,000.
func (g *Guest) Refusals(ctx context.Context) ([]paddock.Refusal, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	res, err := g.rpc.Refusals(ctx, connect.NewRequest(&guestpb.RefusalsRequest{}))
	if err != nil {
		return nil, fmt.Errorf("list refusals: %w", g.failure(ctx, err))
	}
	list := res.Msg.Refusals
	if len(list) > maxRefusals {
		list = list[len(list)-maxRefusals:]
	}
	out := make([]paddock.Refusal, 0, len(list))
	for _, r := range list {
		out = append(out, paddock.Refusal{
			Time:   time.Unix(0, r.GetTime()),
			What:   text(r.GetWhat()),
			Target: cut(string(r.GetTarget()), maxText),
			Rule:   text(r.GetRule()),
			Remedy: text(r.GetRemedy()),
			Count:  int(min(max(r.GetCount(), 1), 1<<31-1)),
		})
	}
	return out, nil
}

// bound gives the context of a call that has no reason to take long.
func (g *Guest) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTime)
}

// goneReason says why the connection has ended. It may wait a little.
func (g *Guest) goneReason() string {
	g.goneOnce.Do(func() {
		if g.o.Gone != nil {
			g.gone = g.o.Gone()
		}
		if g.gone == "" {
			g.gone = "the connection to the sandbox has ended"
		}
	})
	return g.gone
}

// Prepare does what the first call of this process would do once, without a call.
func Prepare() { guestpb.Warm() }

// Warm makes a first call, of the sort that Start is, about a process that is
// not there. It is answered when the guest answers calls, and the next call is
// faster for it.
func (g *Guest) Warm(ctx context.Context) {
	Prepare()
	if p, err := g.Attach(ctx, 1, paddock.Output{Detached: true}); err == nil {
		p.Release() // a guest that says its init is a command's process lies
	}
}
