package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/qemu"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// A port is one of the machine's, as the monitor reaches it.
type port struct {
	name string
	path string
}

// newPorts makes the sockets of the machine's ports. The files are QEMU's.
func newPorts() (ports map[string]port, theirs []qemu.Port, err error) {
	ports = map[string]port{}
	for _, name := range []string{protocol.ControlPort, protocol.FilesPort, protocol.AgentPort} {
		p := port{name, filepath.Join(boxinit.State, name)}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.path, Net: "unix"})
		if err != nil {
			return nil, theirs, err
		}
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		l.Close()
		if err != nil {
			return nil, theirs, err
		}
		ports[name] = p
		theirs = append(theirs, qemu.Port{Name: name, Listener: f})
	}
	return ports, theirs, nil
}

// dial connects to the port. Inside, it is open from then on.
func (p port) dial(ctx context.Context) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", p.path)
	if err != nil {
		return nil, fmt.Errorf("the machine's port %s: %w", p.name, err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("the machine's port %s is a %T: %w", p.name, c, paddock.Internal)
	}
	return conn, nil
}

// A control asks the machine's init, one thing after another.
type control struct {
	mu   sync.Mutex
	conn net.Conn // guarded by mu; nil before it is open, and when an answer was not understood
	rest bool     // guarded by mu: the machine is saved, and does not run any more

	last atomic.Pointer[protocol.Answer] // what was measured
}

// open connects it.
func (c *control) open(ctx context.Context, p port) error {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return nil
}

// ask asks, for so long at most. Send and then may be nil: they are called after
// the request, and after an answer that is no error.
func (c *control) ask(r protocol.Request, most time.Duration, send func(io.Writer) error, then func(io.Reader) error) (protocol.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest {
		return protocol.Answer{}, fmt.Errorf("the machine is saved, and does not run: %w", paddock.Conflict)
	}
	return c.locked(r, most, send, then)
}

// locked is ask with c.mu held.
func (c *control) locked(r protocol.Request, most time.Duration, send func(io.Writer) error, then func(io.Reader) error) (protocol.Answer, error) {
	var a protocol.Answer
	if c.conn == nil {
		return a, fmt.Errorf("the machine's init does not answer any more: %w", paddock.Unavailable)
	}
	broken := func(err error) (protocol.Answer, error) {
		c.conn.Close()
		c.conn = nil
		kind := paddock.Unavailable
		if errors.Is(err, os.ErrDeadlineExceeded) {
			kind = paddock.Timeout
		}
		return protocol.Answer{}, fmt.Errorf("ask the machine's init: %w: %w", err, kind)
	}
	if err := c.conn.SetDeadline(time.Now().Add(most)); err != nil {
		return broken(err)
	}
	err := protocol.Write(c.conn, &r)
	if err == nil && send != nil {
		err = send(c.conn)
	}
	if err == nil {
		err = protocol.Read(c.conn, &a)
	}
	if err != nil {
		return broken(err)
	}
	if err := a.Err(); err != nil {
		return a, fmt.Errorf("the machine: %w", err)
	}
	if then != nil {
		if err := then(c.conn); err != nil {
			return broken(err)
		}
	}
	return a, nil
}

// measure asks for what is used, if nothing else is being asked: that may take long.
func (c *control) measure() (protocol.Answer, error) {
	if last := c.last.Load(); last != nil {
		if !c.mu.TryLock() {
			return *last, nil
		}
		rest := c.rest
		c.mu.Unlock()
		if rest {
			return *last, nil
		}
	}
	a, err := c.ask(protocol.Request{Inspect: true}, askTime, nil, nil)
	if err == nil {
		c.last.Store(&a)
	}
	return a, err
}

// A link is the way to the agent: a session on its port, of which each stream is a
// connection.
type link struct {
	port   port
	gate   gate
	broken func(what string) // is told of an agent that was taken over

	once    sync.Once
	turn    chan struct{}  // holds one while somebody looks after the session
	opening chan struct{}  // holds one for each stream that is being opened
	session *yamux.Session // guarded by turn; nil before it is there
}

// openings is how many streams may wait for the agent at a time.
const openings = 64

// enter takes a place in c.
func enter(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return silent(ctx)
	}
}

// silent is the error about an agent that takes no connection.
func silent(ctx context.Context) error {
	kind := paddock.Timeout
	if errors.Is(ctx.Err(), context.Canceled) {
		kind = paddock.Canceled
	}
	return fmt.Errorf("the machine's agent takes no connection: %w: %w", context.Cause(ctx), kind)
}

// connect gives a new connection. The agent may answer nothing: then it waits until
// ctx ends.
func (l *link) connect(ctx context.Context) (net.Conn, error) {
	l.once.Do(func() { l.turn, l.opening = make(chan struct{}, 1), make(chan struct{}, openings) })
	if err := enter(ctx, l.turn); err != nil {
		return nil, err
	}
	session, err := l.now(ctx)
	<-l.turn
	if err != nil {
		return nil, err
	}
	if err := enter(ctx, l.opening); err != nil {
		return nil, err
	}
	type opened struct {
		stream *yamux.Stream
		err    error
	}
	done := make(chan opened, 1)
	go func() { // until the agent makes room, or the session ends
		defer func() { <-l.opening }()
		stream, err := session.OpenStream()
		done <- opened{stream, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			_ = session.Close() // one whose other end takes no more streams is of no use
			return nil, fmt.Errorf("the agent's session: %w", o.err)
		}
		return o.stream, nil
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				_ = o.stream.Close() // nobody waits for it any more
			}
		}()
		return nil, silent(ctx)
	}
}

// now gives the session, which begins where there is none. The caller has the turn.
func (l *link) now(ctx context.Context) (*yamux.Session, error) {
	if l.session != nil && !l.session.IsClosed() {
		return l.session, nil
	}
	if l.session != nil { // the agent is to see that it is over
		select {
		case <-time.After(pauseTime):
		case <-ctx.Done():
			return nil, silent(ctx)
		}
	}
	conn, err := l.port.dial(ctx)
	if err != nil {
		return nil, err
	}
	session, err := yamux.Client(newGated(&strict{Conn: conn, broken: l.broken}, &l.gate), sessions())
	if err != nil {
		conn.Close()
		return nil, err
	}
	l.session = session
	return session, nil
}

// pauseTime is between two sessions of one machine, of which the first broke.
const pauseTime = 200 * time.Millisecond

// sessions says how sessions are, as at the other end. There is no network between
// the two, so nothing is ever late: who does not answer was stopped, and will go
// on.
func sessions() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = time.Hour
	c.StreamOpenTimeout = 0
	c.StreamCloseTimeout = 5 * time.Minute // of a stream that is closed here: it is forgotten then
	c.MaxStreamWindowSize = 1 << 20
	c.LogOutput = io.Discard
	return c
}

// A gate keeps a port quiet while a machine is saved.
type gate struct {
	once sync.Once
	turn chan struct{} // holds one while somebody writes
}

// take waits for the turn to write.
func (g *gate) take(ctx context.Context) error {
	g.once.Do(func() { g.turn = make(chan struct{}, 1) })
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the machine does not take what was written to it: %w: %w", context.Cause(ctx), paddock.Unavailable)
	}
}

func (g *gate) leave() { <-g.turn }

// gated is a connection that is written to while nobody else has the turn, in whole
// frames.
type gated struct {
	net.Conn
	gate  *gate
	whole guestinit.Whole
}

func newGated(conn net.Conn, g *gate) *gated {
	return &gated{Conn: conn, gate: g, whole: guestinit.Whole{Writer: conn}}
}

// Write implements net.Conn.
func (c *gated) Write(p []byte) (int, error) {
	if err := c.gate.take(context.Background()); err != nil {
		return 0, err
	}
	defer c.gate.leave()
	return c.whole.Write(p)
}
