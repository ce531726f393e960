package gatewayclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// closeTime is the time for a gateway to report its last events.
const closeTime = time.Second

// A Process is a gateway process as its owner sees it. It is safe for concurrent use.
type Process struct {
	config  Config // without parts that only the gateway needs
	owner   Callbacks
	channel *sys.Channel
	process *os.Process
	ctx     context.Context
	cancel  context.CancelFunc
	out     chan outgoing
	begun   chan struct{} // closed when ready or failure is set
	heard   chan struct{} // closed when nothing more is read
	done    chan struct{} // closed when the process has ended
	wg      sync.WaitGroup

	mu      sync.Mutex
	ready   Ready                         // guarded by mu
	failure error                         // guarded by mu; why it ended, or did not start
	closing bool                          // guarded by mu
	last    uint64                        // guarded by mu; last ID
	calls   map[uint64]*call              // guarded by mu
	asked   map[uint64]context.CancelFunc // guarded by mu; pending questions

	counters *sys.Counters   // guarded by mu; its counters; nil after its end
	carried  paddock.Traffic // guarded by mu; the highest counts read
}

// An outgoing is a message with a file of its own.
type outgoing struct {
	message Message
	file    *os.File
}

// A call waits for its replies.
type call struct {
	names []string
	file  *os.File
	err   error
	done  chan struct{}
}

// StartProcess starts a gateway and does not wait for it; calls to it wait until it is ready. exe is the program, which
// the caller may close afterwards. The gateway lives until Close or the owner's end, and not only until ctx ends.
func StartProcess(ctx context.Context, exe *os.File, c Config, o Callbacks) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start the gateway: %w: %w", err, paddock.Canceled)
	}
	c.Ask, c.Judge, c.Login = o.Ask != nil, o.Judge != nil, nil
	if o.Login != nil {
		c.Login = o.Login.Hosts()
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	content, err := sys.SealedData("config", data)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	g := &Process{
		config: Config{Sandbox: c.Sandbox, UID: c.UID, GID: c.GID}, owner: o,
		out: make(chan outgoing, 16), begun: make(chan struct{}), heard: make(chan struct{}), done: make(chan struct{}),
		calls: map[uint64]*call{}, asked: map[uint64]context.CancelFunc{},
	}
	g.out <- outgoing{Message{Op: OpConfig}, content}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.start(exe); err != nil {
		g.cancel()
		content.Close()
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	g.wg.Go(g.write)
	g.wg.Go(g.read)
	return g, nil
}

// Ready waits until the gateway has started, or failed to.
func (g *Process) Ready(ctx context.Context) (Ready, error) {
	select {
	case <-g.begun:
	case <-ctx.Done():
		return Ready{}, fmt.Errorf("wait for the gateway: %w: %w", ctx.Err(), paddock.Canceled)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ready, g.failure
}

// Link passes the host's end of the sandbox's network link: a TUN device or a packet socket. The caller may close f
// afterwards. A new link replaces an earlier one. Link does not wait until the gateway has it.
func (g *Process) Link(f *os.File) error { return g.give(Message{Op: OpLink}, f) }

// Dial connects to a host by the sandbox's rules, as if the sandbox had dialled. A connection that is not allowed is
// Denied, with the reason.
func (g *Process) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	c, err := g.call(ctx, Message{Op: OpDial, Host: host, Port: port}, nil)
	if err != nil {
		return nil, err
	}
	return connOf(c.file)
}

// Channel returns a file for another process, which may dial through it with a Dialer and do nothing else.
func (g *Process) Channel() (*os.File, error) {
	fd, theirs, err := sys.PacketPair(sys.PacketMax)
	if err != nil {
		return nil, fmt.Errorf("make a channel: %w", err)
	}
	defer theirs.Close()
	ours := os.NewFile(uintptr(fd), "dial")
	if err := g.give(Message{Op: OpChannel}, theirs); err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

// Update replaces the rules at once and as a whole. Connections that the new rules do not allow are cut when it
// returns.
func (g *Process) Update(ctx context.Context, p paddock.NetworkPolicy) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("update the gateway: %w", err)
	}
	f, err := sys.SealedData("policy", data)
	if err != nil {
		return fmt.Errorf("update the gateway: %w", err)
	}
	defer f.Close()
	_, err = g.call(ctx, Message{Op: OpUpdate}, f)
	return err
}

// Names returns the names that have addresses in the sandbox, for the Config of its next gateway.
func (g *Process) Names(ctx context.Context) ([]string, error) {
	c, err := g.call(ctx, Message{Op: OpNames}, nil)
	if err != nil {
		return nil, err
	}
	return c.names, nil
}

// Done returns a channel that is closed when the gateway has ended.
func (g *Process) Done() <-chan struct{} { return g.done }

// PID returns the process ID of the gateway.
func (g *Process) PID() int { return g.process.Pid }

// Close ends the gateway and its connections, and waits until the process is gone. A second call does nothing.
func (g *Process) Close() error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	select {
	case g.out <- outgoing{message: Message{Op: OpClose}}:
	default: // it does not read its messages
	}
	patience := time.NewTimer(closeTime)
	defer patience.Stop()
	select {
	case <-g.done:
	case <-patience.C:
		_ = g.process.Kill() // waited for below in any case
	}
	g.wg.Wait()
	return nil
}

// give sends a message with a copy of f.
func (g *Process) give(m Message, f *os.File) error {
	held, err := sys.Duplicate(f)
	if err != nil {
		return fmt.Errorf("tell the gateway: %w", err)
	}
	return g.send(outgoing{m, held})
}

// send queues a message. It closes the file in any case.
func (g *Process) send(o outgoing) error {
	select {
	case g.out <- o:
		return nil
	case <-g.ctx.Done():
		o.close()
		return g.gone()
	}
}

func (o outgoing) close() {
	if o.file != nil {
		o.file.Close()
	}
}

// gone returns the error of every call after the gateway's end.
func (g *Process) gone() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure != nil && !g.closing {
		return fmt.Errorf("the gateway has gone: %w: %w", g.failure, paddock.Unavailable)
	}
	return fmt.Errorf("the gateway has gone: %w", paddock.Unavailable)
}

// call sends a message and waits for the last of its replies.
func (g *Process) call(ctx context.Context, m Message, f *os.File) (*call, error) {
	c := &call{done: make(chan struct{})}
	g.mu.Lock()
	g.last++
	m.ID = g.last
	g.calls[m.ID] = c
	g.mu.Unlock()
	var err error
	if f != nil {
		err = g.give(m, f)
	} else {
		err = g.send(outgoing{message: m})
	}
	if err != nil {
		g.abandon(m.ID, c)
		return nil, err
	}
	select {
	case <-c.done:
		return c, c.err
	case <-ctx.Done():
		g.abandon(m.ID, c)
		select {
		case g.out <- outgoing{message: Message{Op: OpCancel, ID: m.ID}}:
		default: // its answer is discarded too
		}
		return nil, fmt.Errorf("ask the gateway: %w: %w", ctx.Err(), paddock.Canceled)
	case <-g.ctx.Done():
		g.abandon(m.ID, c)
		return nil, g.gone()
	}
}

// abandon ends a call without a waiting caller, and closes its socket, even one that
// arrives later.
func (g *Process) abandon(id uint64, c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, id)
	if c.file != nil {
		c.file.Close()
	}
}
