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

// A port is the supervisor's end of a port of the machine.
type port struct {
	name string
	path string
}

// newPorts makes the sockets of the machine's ports. The files are for QEMU.
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

// dial connects to the port, which opens it inside.
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

// A control makes requests to the machine's init, one at a time.
type control struct {
	mu   sync.Mutex
	conn net.Conn // guarded by mu; nil before open, and after an invalid answer
	rest bool     // guarded by mu; the machine is saved and stopped

	last atomic.Pointer[protocol.Answer] // last measurement
}

// open connects to the port.
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

// ask makes a request with a timeout. send and then may be nil. send is called after the
// request, and then after a successful answer.
func (c *control) ask(r protocol.Request, most time.Duration, send func(io.Writer) error, then func(io.Reader) error) (protocol.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest {
		return protocol.Answer{}, fmt.Errorf("the machine is saved, and does not run: %w", paddock.Conflict)
	}
	return c.locked(r, most, send, then)
}

// locked is ask while c.mu is held.
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

// measure asks for the usage, unless another request is in progress, because that may take
// long.
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

// A link is a session on the agent's port. Each of its streams is a connection to the
// agent.
type link struct {
	port   port
	gate   gate
	broken func(what string) // called for a compromised agent

	once    sync.Once
	turn    chan struct{}  // holds one element while a goroutine uses session
	opening chan struct{}  // holds one element for each stream being opened
	session *yamux.Session // owned by the holder of turn; nil at first
	closed  bool           // likewise
	openers sync.WaitGroup // open streams; Add only by the holder of turn, before closed
}

// init makes the channels of a zero link.
func (l *link) init() {
	l.once.Do(func() { l.turn, l.opening = make(chan struct{}, 1), make(chan struct{}, openings) })
}

// close ends the session, and waits for what opens streams of it.
func (l *link) close() {
	l.init()
	l.turn <- struct{}{}
	l.closed = true
	if l.session != nil {
		_ = l.session.Close()
	}
	<-l.turn
	l.openers.Wait()
}

// openings is the maximum number of streams that wait for the agent.
const openings = 64

// enter adds an element to c.
func enter(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return silent(ctx)
	}
}

// silent returns the error for an agent that accepts no connection.
func silent(ctx context.Context) error {
	kind := paddock.Timeout
	if errors.Is(ctx.Err(), context.Canceled) {
		kind = paddock.Canceled
	}
	return fmt.Errorf("the machine's agent accepts no connection: %w: %w", context.Cause(ctx), kind)
}

// connect returns a new connection. If the agent does not answer, it waits until ctx ends.
func (l *link) connect(ctx context.Context) (net.Conn, error) {
	l.init()
	if err := enter(ctx, l.opening); err != nil {
		return nil, err
	}
	type opened struct {
		stream *yamux.Stream
		err    error
	}
	done := make(chan opened)
	session, err := l.open(ctx, func(session *yamux.Session) { // until the agent accepts the stream, or the session ends
		defer func() { <-l.opening }()
		stream, err := session.OpenStream()
		select {
		case done <- opened{stream, err}:
		case <-ctx.Done(): // the caller has given up
			if err == nil {
				_ = stream.Close()
			}
		}
	})
	if err != nil {
		<-l.opening
		return nil, err
	}
	select {
	case o := <-done:
		if o.err != nil {
			_ = session.Close() // a session whose other end accepts no streams is useless
			return nil, fmt.Errorf("the agent's session: %w", o.err)
		}
		return o.stream, nil
	case <-ctx.Done():
		return nil, silent(ctx)
	}
}

// open has an opener use the session, which is started if needed.
func (l *link) open(ctx context.Context, opener func(*yamux.Session)) (*yamux.Session, error) {
	if err := enter(ctx, l.turn); err != nil {
		return nil, err
	}
	defer func() { <-l.turn }()
	if l.closed {
		return nil, fmt.Errorf("the machine ended: %w", paddock.Unavailable)
	}
	session, err := l.now(ctx)
	if err == nil {
		l.openers.Go(func() { opener(session) })
	}
	return session, err
}

// now returns the session, and starts one if needed. The caller has the turn.
func (l *link) now(ctx context.Context) (*yamux.Session, error) {
	if l.session != nil && !l.session.IsClosed() {
		return l.session, nil
	}
	if l.session != nil { // let the agent see the end of the old session
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

// pauseTime is the delay of a new session after a broken one.
const pauseTime = 200 * time.Millisecond

// sessions returns the settings of a session, equal to those of the other end. There is no
// network between the ends, so nothing is late. An end that does not answer was stopped and
// will continue.
func sessions() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = time.Hour
	c.StreamOpenTimeout = 0
	c.StreamCloseTimeout = 5 * time.Minute // a stream closed here is forgotten after that
	c.MaxStreamWindowSize = 1 << 20
	c.LogOutput = io.Discard
	return c
}

// A gate keeps a port quiet while a machine is saved.
type gate struct {
	once sync.Once
	turn chan struct{} // holds one element during a write
}

// take waits for the turn to write.
func (g *gate) take(ctx context.Context) error {
	g.once.Do(func() { g.turn = make(chan struct{}, 1) })
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the machine does not read what was written to it: %w: %w", context.Cause(ctx), paddock.Unavailable)
	}
}

func (g *gate) leave() { <-g.turn }

// A gated connection writes whole frames, each while it has the turn.
type gated struct {
	net.Conn
	gate  *gate
	whole guestinit.Whole

	open context.Context // ends with Close, and with it a wait for the gate
	end  context.CancelFunc
}

func newGated(conn net.Conn, g *gate) *gated {
	c := &gated{Conn: conn, gate: g, whole: guestinit.Whole{Writer: conn}}
	c.open, c.end = context.WithCancel(context.Background())
	return c
}

// Write implements net.Conn.
func (c *gated) Write(p []byte) (int, error) {
	if err := c.gate.take(c.open); err != nil {
		return 0, err
	}
	defer c.gate.leave()
	return c.whole.Write(p)
}

// Close implements net.Conn.
func (c *gated) Close() error {
	c.end()
	return c.Conn.Close()
}
