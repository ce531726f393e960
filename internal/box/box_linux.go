package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A meter bounds and measures a box: a control group, or where there is none
// a watchdog.
type meter interface {
	Usage() (paddock.Usage, error)
	OOM() (kills, peak int64, err error)
	PIDsHit() (int64, error)
	Update(l paddock.Limits, paths ...string) error
	Remove(ctx context.Context) error
}

// A Box is the process tree of one sandbox on the host, as its owner has it.
type Box struct {
	created time.Time
	plan    Plan            // its layout may be completed while the box is made
	control *kernel.Channel // to the box's init; its end is the box's end
	pid     int
	Group   *cgroup.Group // nil where the meter is a watchdog
	meter   meter
	stood   atomic.Bool   // it was ready once
	ended   chan struct{} // closed when init was waited for
	events  *os.File      // what its runtime reports; nil without events
	heard   chan struct{} // closed when all that it reported was recorded
	wg      sync.WaitGroup

	mu     sync.Mutex
	why    string         // guarded by mu: how init ended
	paused bool           // guarded by mu
	limits paddock.Limits // guarded by mu

	mostCPUs float64 // guarded by mu: the highest limit of those before, if any
}

// Plan returns what the box was made with. The caller changes nothing in it.
func (b *Box) Plan() *Plan { return &b.plan }

// Ended is closed when the box's init has ended.
func (b *Box) Ended() <-chan struct{} { return b.ended }

// A making is what the stages of making a box pass on.
type making struct {
	p    *Plan
	b    *Box
	own  closers
	conn net.Conn // the first connection to the agent; nil until there is one

	theirs, link *os.File // the box's ends of its control channel and of conn
	mine         *os.File // the owner's end of conn
}

// Make makes a box and returns, when a command has run in it, the box and the first connection to
// its agent. After an error nothing is left.
func Make(ctx context.Context, p Plan) (*Box, net.Conn, error) {
	b := &Box{created: time.Now(), plan: p, limits: p.Limits, ended: make(chan struct{})}
	m := &making{p: &b.plan, b: b}
	defer m.own.close()
	for _, stage := range []func(context.Context) error{m.startGateway, m.bound, m.channels, m.start, m.watch, m.configure, m.connect, m.await} {
		if err := stage(ctx); err != nil {
			if m.conn != nil {
				m.conn.Close()
			}
			m.own.close() // or the box's end of the events would stay open
			return nil, nil, errors.Join(err, b.Remove(context.WithoutCancel(ctx)))
		}
	}
	return b, m.conn, nil
}

// startGateway starts the way out, at the same time as the box.
func (m *making) startGateway(ctx context.Context) error {
	if m.p.Gateway == nil {
		return nil
	}
	return m.p.Gateway.Start(ctx, m.p.Programs.One(fileGateway))
}

// bound makes the control group that the box starts in.
func (m *making) bound(context.Context) error {
	if !m.p.Groups {
		return nil
	}
	paths := m.p.Layout.paths
	if m.p.Limits.IO > 0 && len(paths) == 0 {
		paths = []string{"/"}
	}
	g, err := m.p.host.Create(m.p.Name, m.hostLimits(), paths...)
	if err == nil {
		m.b.Group, m.b.meter = g, g
	}
	return err
}

func (m *making) hostLimits() paddock.Limits {
	return m.p.Runtime.Limiter.HostLimits(m.p.Layout, m.p.Limits)
}

// channels makes the sockets between the box and its owner.
func (m *making) channels(context.Context) (err error) {
	if m.b.control, m.theirs, err = kernel.NewChannelPair(); err != nil {
		return err
	}
	m.own.add(m.theirs)
	if m.mine, m.link, err = kernel.Pair(); err != nil {
		return err
	}
	m.own.add(m.mine, m.link)
	return nil
}

// start starts the box's init, which then waits for its configuration.
func (m *making) start(context.Context) error {
	if err := m.b.launch(m.theirs, m.link); err != nil {
		return m.b.Impossible(fmt.Errorf("start the box: %w", err))
	}
	if m.p.made != nil {
		m.p.made(m.b)
	}
	if m.p.unrecorded != nil {
		m.b.wg.Go(func() {
			select {
			case <-m.p.unrecorded:
				m.b.unheard(nil)
			case <-m.b.ended:
			}
		})
	}
	// Only the box has its ends now: when it dies, the owner's ends report it.
	m.theirs.Close()
	m.link.Close()
	return nil
}

// watch bounds the box by a watchdog where there is no control group.
func (m *making) watch(context.Context) error {
	if m.p.Groups {
		return nil
	}
	w, err := cgroup.Watch(m.b.pid, m.hostLimits().Memory)
	if err == nil {
		m.b.meter = w
	}
	return err
}

// connect makes the first connection to the agent. Nothing is answered on it yet: the box builds its
// tree meanwhile, for which it was sent what it needs before.
func (m *making) connect(context.Context) error {
	conn, err := net.FileConn(m.mine)
	if err != nil {
		return err
	}
	if m.conn = conn; m.p.connected != nil {
		m.p.connected(conn)
	}
	return nil
}

// A Configuration is what the box's init is sent: a layout, and files by name.
type Configuration struct {
	Layout *Layout // a copy, which belongs to this box
	Files  boxinit.Files

	b   *Box
	own *closers
}

// Own has a file closed when the configuration was sent.
func (c *Configuration) Own(f *os.File) { c.own.add(f) }

// PID is the number of the box's init on the host.
func (c *Configuration) PID() int { return c.b.pid }

// configure sends the box's init what it is to build.
func (m *making) configure(context.Context) error {
	if m.p.finish != nil {
		if err := m.p.finish(); err != nil {
			return err
		}
	}
	// A plan may be used again, for another box.
	c := &Configuration{Layout: m.p.Layout.clone(), b: m.b, own: &m.own}
	if err := openForeign(c); err != nil {
		return m.b.Impossible(err)
	}
	if err := m.p.Runtime.Configure(m.b, c); err != nil {
		return err
	}
	c.Layout.Config.Names = c.Files.Names()
	config, err := json.Marshal(c.Layout.Config)
	if err != nil {
		return err
	}
	if len(config) > kernel.PacketMax {
		return fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(config)>>10, kernel.PacketMax>>10, paddock.Invalid)
	}
	if err := m.b.control.Send(config, c.Files.All()...); err != nil {
		return fmt.Errorf("configure the box: %w", m.b.explain(err))
	}
	return nil
}

// await waits until a command has run, and the way out is open.
func (m *making) await(ctx context.Context) error {
	if err := m.b.ready(ctx); err != nil {
		return m.b.starved(m.b.Impossible(err))
	}
	if m.p.Gateway == nil {
		return nil
	}
	return m.p.Gateway.Ready(ctx)
}

// closers are files that go when a function ends, however it ends.
type closers struct{ files []*os.File }

func (c *closers) add(f ...*os.File) { c.files = append(c.files, f...) }

func (c *closers) close() {
	for _, f := range c.files {
		f.Close()
	}
}

// EndKind returns Timeout for the end of a deadline, else Canceled.
func EndKind(err error) paddock.Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return paddock.Timeout
	}
	return paddock.Canceled
}

// explain adds how init ended to an error about it.
func (b *Box) explain(err error) error {
	b.kill()
	<-b.ended
	return fmt.Errorf("%w: %s: %w", err, b.Reason(), paddock.Unavailable)
}

// Reason returns why the box ended; it is empty while the box lives.
func (b *Box) Reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// kill ends every process in the box: the kernel takes all with the init.
func (b *Box) kill() {
	if b.pid > 0 {
		select {
		case <-b.ended:
		default:
			_ = syscall.Kill(b.pid, syscall.SIGKILL) // not reaped yet, so the number is its own
		}
	}
}

// connect gives a new connection to the agent.
func (b *Box) connect() (*os.File, error) {
	return b.Ask(boxinit.OpConnect, nil)
}

// Ask asks the box for something; the answer comes on the file.
func (b *Box) Ask(op boxinit.Op, arg []byte, files ...*os.File) (*os.File, error) {
	mine, theirs, err := kernel.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := b.control.Send(append([]byte{byte(op)}, arg...), append([]*os.File{theirs}, files...)...); err != nil {
		mine.Close()
		return nil, fmt.Errorf("connect to the box: %w: %w", err, paddock.Unavailable)
	}
	return mine, nil
}

// Remove ends the box. Twice is fine.
func (b *Box) Remove(ctx context.Context) error {
	b.mu.Lock()
	if b.why == "" {
		b.why = "the sandbox was removed"
	}
	b.mu.Unlock()
	b.kill()
	if b.Group != nil {
		_ = b.Group.Thaw() // what is frozen does not die on version 1
	}
	if b.pid > 0 {
		select {
		case <-b.ended:
		case <-ctx.Done():
			return fmt.Errorf("remove: the box's init does not end: %w", EndKind(ctx.Err()))
		}
	}
	if b.control != nil {
		_ = b.control.Close() // its end is what matters
	}
	if b.events != nil {
		select { // what was told before the end is still to be recorded
		case <-b.heard:
		case <-time.After(endTime):
		case <-ctx.Done():
		}
		_ = b.events.Close() // its end is what matters
	}
	b.wg.Wait()
	if b.plan.Gateway != nil { // of a box that never began
		b.plan.Gateway.Stop()
	}
	if b.meter != nil {
		if err := b.meter.Remove(ctx); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
