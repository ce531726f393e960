// Package guestclient calls the agent inside a sandbox from the host: it turns a net.Conn into
// processes, files and ports with the types of package paddock. A driver's sandbox has a [*Guest] for
// these, and implements the other methods of paddock.Sandbox itself.
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

// Options hold the facts and callbacks of the driver that the guest cannot provide.
type Options struct {
	// Amend may improve an exit that the guest reported, or that its end was,
	// with what the host measured (out of memory, killed by the driver). It is called once for
	// each process and attached output, before Wait answers. May be nil.
	Amend func(start Start, exit *paddock.Exit)

	// Gone returns the reason for the guest's absence after its connection has ended. It may wait
	// briefly to find out. May be nil.
	Gone func() string

	// Stuck is called when the guest did not report the end of a process
	// that must have been killed by its timeout: the guest is broken or
	// hostile. The driver may end the sandbox. May be nil.
	Stuck func()

	// Paused reports whether the sandbox is paused in place, so that a paused guest does not count as
	// stuck. It returns within seconds. It must not refer to what holds the Guest, because the connection
	// holds it: nothing would ever be dropped. May be nil.
	Paused func() bool

	// Refuse returns the error of a new call while the guest stands still and cannot answer, and nil
	// otherwise. May be nil.
	Refuse func() error

	// Again returns another connection to the guest if this one has ended under a process that is
	// followed. It waits while the sandbox is paused; a nil result means that no connection is left.
	// May be nil.
	Again func(ctx context.Context) *Guest

	// Aside opens another connection to the same guest, which carries the content of a large file
	// beside the calls. May be nil: then the calls carry it.
	Aside func(ctx context.Context) (net.Conn, error)

	// Lifetime is paddock.Limits.Lifetime: the bound of every command.
	Lifetime time.Duration
}

// A Start records how a process began.
type Start struct {
	At time.Time // when it was asked for, or attached to

	// Killed is the number of processes that were killed for lack of memory before the start, as the
	// guest reports it; -1 means that the guest does not count them.
	Killed int64
}

const (
	// answerTime bounds every call that has no reason to take long.
	answerTime = 30 * time.Second
	// exitGrace is how long after its timeout a process's exit must be here.
	exitGrace = 10 * time.Second
	// startsAtOnce is how many processes a guest is asked to start at a time.
	startsAtOnce = 32
	// listsAtOnce is how many lists of processes or refusals are received from a guest at a time,
	// because their messages may be large.
	listsAtOnce = 2
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
	waits time.Duration // answerTime, shorter in tests

	starts chan struct{} // has a place for each process that is being started
	lists  chan struct{} // has a place for each list that is being received

	goneOnce sync.Once
	gone     string // written under goneOnce

	mu   sync.Mutex
	runs context.Context // guarded by mu; ends when the driver has paused the sandbox
	rest func()          // guarded by mu; ends runs
}

// New takes over conn, whose other end a guest serves. It makes no call, because the guest may still
// be starting. The connection ends by Close, or when nothing holds the Guest and no call of it is
// under way.
func New(conn net.Conn, o Options) (*Guest, error) {
	w, err := dial(conn, o.Paused)
	if err != nil {
		return nil, fmt.Errorf("connect to guest: %w", err)
	}
	g := &Guest{o: o, wire: w, grace: exitGrace, waits: answerTime, starts: make(chan struct{}, startsAtOnce), lists: make(chan struct{}, listsAtOnce)}
	g.runs, g.rest = context.WithCancel(context.Background())
	g.rpc = guestpb.NewClient(holder{g}, "http://guest",
		connect.WithReadMaxBytes(maxMessage),
		connect.WithCodec(meteredCodec{}),
		connect.WithAcceptCompression("gzip", nil, nil),
		connect.WithInterceptors(hearing{}),
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

// Hello holds the guest's description of itself. It comes from inside and is hostile data.
type Hello struct {
	User string
	Home string
	Dir  string // working directory of commands that name none
}

// Hello returns after a command has run inside.
func (g *Guest) Hello(ctx context.Context) (Hello, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	m, err := ask(ctx, g.rpc.Hello, &guestpb.HelloRequest{})
	if err != nil {
		return Hello{}, fmt.Errorf("greet guest: %w", g.failure(ctx, err))
	}
	if m.Protocol != protocol {
		return Hello{}, fmt.Errorf("greet guest: it speaks version %d, not %d: %w", m.Protocol, protocol, paddock.Unsupported)
	}
	return Hello{User: m.User, Home: m.Home, Dir: m.Dir}, nil
}

// Refusals lists the refused actions inside, newest last, at most 1,000.
func (g *Guest) Refusals(ctx context.Context) ([]paddock.Refusal, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	leave, err := g.enter(ctx, g.lists)
	if err != nil {
		return nil, fmt.Errorf("list refusals: %w", err)
	}
	defer leave()
	m, err := ask(ctx, g.rpc.Refusals, &guestpb.RefusalsRequest{})
	if err != nil {
		return nil, fmt.Errorf("list refusals: %w", g.failure(ctx, err))
	}
	list := m.GetRefusals()
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
	return context.WithTimeout(ctx, g.waits)
}

// Rest ends the calls about files that wait for the guest, because its driver has paused the sandbox
// in place: they answer Conflict. Output, input and connections to ports go on when it is resumed.
func (g *Guest) Rest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rest()
}

// awake returns a context that ends with Rest. After a Rest it asks whether the sandbox is still paused.
func (g *Guest) awake() context.Context {
	g.mu.Lock()
	runs := g.runs
	g.mu.Unlock()
	if runs.Err() == nil || g.paused() {
		return runs
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs == runs { // nobody else has found out
		g.runs, g.rest = context.WithCancel(context.Background())
	}
	return g.runs
}

// paused reports whether the sandbox is paused.
func (g *Guest) paused() bool { return g.o.Paused != nil && g.o.Paused() }

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

// Prepare does the one-time work of this process's first call, without a call.
func Prepare() { guestpb.Warm() }

// Warm makes a first call, of the same kind as Start, about a process that does not exist. It returns
// when the guest answers calls, and makes the next call faster.
func (g *Guest) Warm(ctx context.Context) {
	Prepare()
	if p, err := g.Attach(ctx, 1, paddock.Output{Detached: true}); err == nil {
		p.Release() // a guest that says its init is a command's process lies
	}
}
