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
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
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

// A box is the processes of one sandbox, as their owner has them.
type box struct {
	created time.Time
	id      identity
	control *kernel.Channel // to the box's init; its end is the box's end
	pid     int
	first   int                                 // the limit of processes that it was made with
	nested  bool                                // commands run on a kernel of its own
	machine bool                                // and that in a machine of its own
	hosted  func(paddock.Limits) paddock.Limits // limits as the host has to bound them
	made    int64                               // memory that it was made with, bytes
	group   *cgroup.Group                       // nil where the meter is a watchdog
	meter   meter
	stood   atomic.Bool    // it was ready once
	ended   chan struct{}  // closed when init was waited for
	events  *os.File       // what the kernel of its own tells; nil without one
	heard   chan struct{}  // closed when all that it told was recorded
	gateway *owner.Gateway // its way out; nil is none
	wg      sync.WaitGroup

	mu     sync.Mutex
	why    string         // guarded by mu: how init ended
	paused bool           // guarded by mu
	limits paddock.Limits // guarded by mu

	mostCPUs float64 // guarded by mu: the highest limit of those before, if any
}

// newBox makes a box and answers when a command has run in it, with the first
// connection to its agent. After an error nothing is left.
func newBox(ctx context.Context, s start) (b *box, conn net.Conn, err error) {
	b = &box{created: time.Now(), id: s.layout.id, limits: s.limits, first: s.limits.PIDs, nested: s.layout.nested, hosted: s.layout.hosted, ended: make(chan struct{})}
	b.machine = s.kernel != nil && s.kernel.Machine != nil
	b.made = asMade(s.layout.config.Kernel, s.limits).Memory
	if s.gateway != nil { // at the same time as the box
		if err := s.gateway.Start(ctx, s.out); err != nil {
			return nil, nil, err
		}
		b.gateway = s.gateway
	}
	var own closers
	defer own.close()
	if s.groups {
		paths := s.layout.paths
		if s.limits.IO > 0 && len(paths) == 0 {
			paths = []string{"/"}
		}
		if b.group, err = s.host.Create(s.name, s.layout.hosted(s.limits), paths...); err != nil {
			return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
		}
		b.meter = b.group
	}
	control, theirs, err := kernel.NewChannelPair()
	if err != nil {
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	own.add(theirs)
	b.control = control
	mine, link, err := kernel.Pair()
	if err != nil {
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	own.add(mine, link)
	fail := func(err error) (*box, net.Conn, error) {
		if conn != nil {
			conn.Close()
		}
		own.close() // or the box's end of the events would stay open
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	if err := b.launch(s, theirs, link); err != nil {
		return fail(impossible(fmt.Errorf("start the box: %w", err), b.nested))
	}
	if s.made != nil {
		s.made(b)
	}
	if s.unrecorded != nil {
		b.wg.Go(func() {
			select {
			case <-s.unrecorded:
				b.unheard(nil)
			case <-b.ended:
			}
		})
	}
	// Only the box has its ends now: when it dies, ours tell.
	theirs.Close()
	link.Close()
	if !s.groups {
		if b.meter, err = cgroup.Watch(b.pid, s.layout.hosted(s.limits).Memory); err != nil {
			return fail(err)
		}
	}
	if conn, err = net.FileConn(mine); err != nil {
		return fail(err)
	}
	if s.connected != nil {
		s.connected(conn)
	}
	if s.finish != nil {
		if err := s.finish(); err != nil {
			return fail(err)
		}
	}
	// A start may be used again, with another box saved meanwhile.
	l := s.layout.clone()
	fds, err := openForeign(l, &own)
	if err != nil {
		return fail(impossible(err, b.nested))
	}
	if l.config.Link && !l.nested && l.id.root {
		// Its init is nobody, who may not be let to open it.
		tun, err := kernel.OpenTUNOf(b.pid)
		if err != nil {
			return fail(fmt.Errorf("make the link: %w", err))
		}
		own.add(tun)
		fds = append(fds, tun)
		l.config.TUN = len(fds)
	}
	if k := l.config.Kernel; k != nil {
		show := l.showKernel(s.exe, &fds, &own)
		if k.Machine == nil { // which brings the agent itself
			show = errors.Join(show, l.showAgent(s.agent, &fds, &own))
		}
		if err := show; err != nil {
			return fail(impossible(err, b.nested))
		}
		if s.kernel.Receive != nil {
			events, err := b.listen(s)
			if err != nil {
				return fail(err)
			}
			own.add(events)
			fds = append(fds, events)
			k.Events = len(fds)
		}
		if s.audit == nil {
			k.Audit = nil
		}
		if k.Supplies = 0; k.Supplied > 0 {
			k.Supplies = len(fds) + 1
			fds = append(fds, s.supplies...)
		}
		if k.Template = 0; len(s.template) == boxinit.TemplateFiles {
			k.Template, k.Room = len(fds)+1, b.room(true)
			fds = append(fds, s.template...)
		}
		k.Memory = len(s.image) == len(memoryParts)
		k.Layered = k.Layered || len(s.image) == len(fileParts)
		if k.Image = 0; len(s.image) > 0 {
			k.Image = len(fds) + 1
			fds = append(fds, s.image...)
		}
	}
	config, err := json.Marshal(l.config)
	if err != nil {
		return fail(err)
	}
	if len(config) > kernel.PacketMax {
		return fail(fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(config)>>10, kernel.PacketMax>>10, paddock.Invalid))
	}
	if err := b.control.Send(config, fds...); err != nil {
		return fail(fmt.Errorf("configure the box: %w", b.explain(err)))
	}
	if err := b.ready(ctx); err != nil {
		return fail(b.starved(impossible(err, b.nested)))
	}
	if s.gateway != nil {
		if err := s.gateway.Ready(ctx); err != nil {
			return fail(err)
		}
	}
	return b, conn, nil
}

// hostPIDs is how many processes and threads of the host's make a box whose
// commands may have n. A kernel of the box's own has threads of its own, and
// would end if it could not have one; it bounds commands itself.
func hostPIDs(n int, nested bool) int {
	if nested {
		return 3*n + 512
	}
	return n + boxinit.AgentThreads + boxinit.SpareThreads
}

// closers are files that go when a function ends, however it ends.
type closers struct{ files []*os.File }

func (c *closers) add(f ...*os.File) { c.files = append(c.files, f...) }

func (c *closers) close() {
	for _, f := range c.files {
		f.Close()
	}
}

func kindOf(err error) paddock.Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return paddock.Timeout
	}
	return paddock.Canceled
}

// explain adds how init ended to an error about it.
func (b *box) explain(err error) error {
	b.kill()
	<-b.ended
	return fmt.Errorf("%w: %s: %w", err, b.reason(), paddock.Unavailable)
}

func (b *box) reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// kill ends every process in the box: the kernel takes all with the init.
func (b *box) kill() {
	if b.pid > 0 {
		select {
		case <-b.ended:
		default:
			_ = syscall.Kill(b.pid, syscall.SIGKILL) // not reaped yet, so the number is its own
		}
	}
}

// connect gives a new connection to the agent.
func (b *box) connect() (*os.File, error) {
	return b.ask(boxinit.OpConnect, nil)
}

// ask asks the box for something; the answer comes on the file.
func (b *box) ask(op boxinit.Op, arg []byte, files ...*os.File) (*os.File, error) {
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

// remove ends the box. Twice is fine.
func (b *box) remove(ctx context.Context) error {
	b.mu.Lock()
	if b.why == "" {
		b.why = "the sandbox was removed"
	}
	b.mu.Unlock()
	b.kill()
	if b.group != nil {
		_ = b.group.Thaw() // what is frozen does not die on version 1
	}
	if b.pid > 0 {
		select {
		case <-b.ended:
		case <-ctx.Done():
			return fmt.Errorf("remove: the box's init does not end: %w", kindOf(ctx.Err()))
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
	if b.gateway != nil { // of a box that never began
		b.gateway.Stop()
	}
	if b.meter != nil {
		if err := b.meter.Remove(ctx); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
