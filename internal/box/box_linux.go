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
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A meter bounds and measures a box. It is a control group or, if there is none, a
// watchdog.
type meter interface {
	Usage() (paddock.Usage, error)
	OOM() (kills, peak int64, err error)
	PIDsHit() (int64, error)
	Update(l paddock.Limits, paths ...string) error
	Remove(ctx context.Context) error
}

// A Box is the process tree of one sandbox on the host, as its owner sees it.
type Box struct {
	created time.Time
	plan    Plan         // its layout may be completed while the box is made
	control *sys.Channel // to the box's init; when it ends, the box ends
	pid     int
	Group   *cgroup.Group // nil if the meter is a watchdog
	meter   meter
	stood   atomic.Bool   // it was ready once
	ended   chan struct{} // closed when init was waited for
	events  *os.File      // reports of its runtime; nil without events
	heard   chan struct{} // closed when all reports were recorded
	ledger  *os.File      // of refusals, for the time after the end; nil before the configuration
	private *os.File      // guarded by mu: the private file system; nil on a guest kernel, before it came and after the end
	wg      sync.WaitGroup

	mu     sync.Mutex
	why    string            // guarded by mu: how init ended
	last   []paddock.Refusal // guarded by mu: what was refused until then
	paused bool              // guarded by mu
	limits paddock.Limits    // guarded by mu
	sizes  *os.File          // guarded by mu: shows the limits to the box's init; nil before the configuration and after the end

	mostCPUs float64 // guarded by mu: the highest earlier limit, if any
}

// Plan returns the plan of the box. The caller must not change it.
func (b *Box) Plan() *Plan { return &b.plan }

// Ended is closed when the box's init has ended.
func (b *Box) Ended() <-chan struct{} { return b.ended }

// A making is the state that the stages of making a box share.
type making struct {
	p    *Plan
	b    *Box
	own  closers
	conn net.Conn // the first connection to the agent; nil until there is one

	theirs, link *os.File // the box's ends of its control channel and of conn
	mine         *os.File // the owner's end of conn
}

// Make makes a box. When a command has run in the box, it returns the box and the first
// connection to the agent. After an error nothing is left.
func Make(ctx context.Context, p Plan) (*Box, net.Conn, error) {
	b := &Box{created: time.Now(), plan: p, limits: p.Limits, ended: make(chan struct{})}
	m := &making{p: &b.plan, b: b}
	defer m.own.close()
	for _, stage := range []func(context.Context) error{m.open, m.startGateway, m.bound, m.channels, m.start, m.watch, m.configure, m.connect, m.await, m.forward} {
		if err := stage(ctx); err != nil {
			if m.conn != nil {
				m.conn.Close()
			}
			m.own.close() // otherwise the box's end of the events would stay open
			return nil, nil, errors.Join(err, b.Remove(context.WithoutCancel(ctx)))
		}
	}
	b.plan.Programs = p.Programs // the others are closed now
	return b, m.conn, nil
}

// open opens the programs that are executed.
func (m *making) open(context.Context) error {
	programs, opened, err := withExecuted(m.p.executed, &m.p.Programs)
	m.p.Programs = programs
	m.own.add(opened...)
	return err
}

// startGateway starts the gateway while the box starts.
func (m *making) startGateway(ctx context.Context) error {
	if m.p.Gateway == nil {
		return nil
	}
	f := m.p.Programs.One(fileGateway)
	if err := program.Intact(f); err != nil {
		return err
	}
	return m.p.Gateway.Start(ctx, f)
}

// bound makes the box's control group.
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
	if m.b.control, m.theirs, err = sys.NewChannelPair(); err != nil {
		return err
	}
	m.own.add(m.theirs)
	if m.mine, m.link, err = sys.Pair(); err != nil {
		return err
	}
	m.own.add(m.mine, m.link)
	return nil
}

// start starts the box's init, which waits for its configuration.
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
	// Only the box has its ends now, so the owner's ends report its death.
	m.theirs.Close()
	m.link.Close()
	return nil
}

// watch starts a watchdog if there is no control group.
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

// connect makes the first connection to the agent. The box does not answer on it yet,
// because it builds its tree meanwhile. The configuration was sent before.
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

// A Configuration is what the owner sends to the box's init: a layout, and files by name.
type Configuration struct {
	Layout *Layout // a copy, which belongs to this box
	Files  boxinit.Files

	b   *Box
	own *closers
}

// Own makes the configuration close a file after it is sent.
func (c *Configuration) Own(f *os.File) { c.own.add(f) }

// PID returns the PID of the box's init on the host.
func (c *Configuration) PID() int { return c.b.pid }

// configure sends the configuration to the box's init.
func (m *making) configure(context.Context) error {
	if m.p.finish != nil {
		if err := m.p.finish(); err != nil {
			return err
		}
	}
	// A plan may be used again for another box.
	c := &Configuration{Layout: m.p.Layout.clone(), b: m.b, own: &m.own}
	if err := openForeign(c); err != nil {
		return m.b.Impossible(err)
	}
	if err := m.p.Runtime.Configure(m.b, c); err != nil {
		return err
	}
	ledger, err := sys.SizedMemory("ledger", boxinit.LedgerSize)
	if err != nil {
		return err
	}
	defer ledger.Close()
	c.Files.Add(boxinit.FileLedger, ledger)
	if err := m.b.keepLedger(ledger); err != nil {
		return err
	}
	if err := m.b.showSizes(c); err != nil {
		return err
	}
	if err := m.witness(c); err != nil {
		return err
	}
	c.Layout.Config.Names = c.Files.Names()
	config, err := json.Marshal(c.Layout.Config)
	if err != nil {
		return err
	}
	if len(config) > sys.PacketMax {
		return fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(config)>>10, sys.PacketMax>>10, paddock.Invalid)
	}
	if err := m.b.control.Send(config, c.Files.All()...); err != nil {
		return fmt.Errorf("configure the box: %w", m.b.explain(err))
	}
	return nil
}

// await waits until a command has run and the gateway is ready.
func (m *making) await(ctx context.Context) error {
	if err := m.b.ready(ctx); err != nil {
		return m.b.starved(m.b.Impossible(err))
	}
	if m.p.Gateway == nil {
		return nil
	}
	return m.p.Gateway.Ready(ctx)
}

// closers are files that are closed when a function returns.
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

// explain adds the cause of init's end to an error that may follow from it.
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

// kill ends every process in the box, because the kernel kills them all with the init.
func (b *Box) kill() {
	if b.pid > 0 {
		select {
		case <-b.ended:
		default:
			_ = syscall.Kill(b.pid, syscall.SIGKILL) // not reaped yet, so the PID is still its own
		}
	}
}

// connect returns a new connection to the agent.
func (b *Box) connect() (*os.File, error) {
	return b.Ask(boxinit.OpConnect, nil)
}

// Ask sends a request to the box. The answer arrives on the returned file.
func (b *Box) Ask(op boxinit.Op, arg []byte, files ...*os.File) (*os.File, error) {
	mine, theirs, err := sys.Pair()
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

// Remove ends the box. It may be called again.
func (b *Box) Remove(ctx context.Context) error {
	b.mu.Lock()
	if b.why == "" {
		b.why = "the sandbox was removed"
	}
	b.mu.Unlock()
	b.kill()
	if b.Group != nil {
		_ = b.Group.Thaw() // frozen processes do not die with cgroup version 1
	}
	if b.pid > 0 {
		select {
		case <-b.ended:
		case <-ctx.Done():
			return fmt.Errorf("remove: the box's init does not end: %w", EndKind(ctx.Err()))
		}
	}
	if b.control != nil {
		_ = b.control.Close() // only its end matters
	}
	if b.events != nil {
		select { // reports from before the end must still be recorded
		case <-b.heard:
		case <-time.After(endTime):
		case <-ctx.Done():
		}
		_ = b.events.Close() // only its end matters
	}
	b.wg.Wait()
	if b.plan.Gateway != nil { // of a box that never started
		b.plan.Gateway.Stop()
	}
	if b.meter != nil {
		if err := b.meter.Remove(ctx); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
