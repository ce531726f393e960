package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// process is a paddock.Process. One goroutine copies its output; it ends with
// the process, with Release, and with the connection, as soon as the writer
// that it may be in returns.
type process struct {
	out     paddock.Output
	timeout time.Duration // zero is none, or not known
	started Start         // Killed is guarded by mu
	fresh   bool          // made by Start, so timeout is its own

	pid paddock.PID
	in  input

	released chan struct{} // closed by Release
	release  sync.Once
	done     chan struct{} // closed when exit or err is set
	finished sync.Once
	exit     paddock.Exit // before done is closed: of whoever runs finished
	err      error        // likewise

	mu     sync.Mutex
	g      *Guest             // guarded by mu; another one after the sandbox was paused
	cancel context.CancelFunc // guarded by mu; ends the stream
	asked  bool               // guarded by mu; a stream will tell the exit

	watch patience
}

func (g *Guest) process(out paddock.Output, timeout time.Duration) *process {
	return &process{
		g: g, out: out, timeout: timeout, started: Start{At: time.Now(), Killed: -1}, asked: !out.Detached,
		released: make(chan struct{}), done: make(chan struct{}),
	}
}

func (p *process) guest() *Guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.g
}

func (p *process) start() Start {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// begin notes what the guest said of the process that has started.
func (p *process) begin(pid int32, m *guestpb.Started, cancel context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	if m.Killed != nil {
		p.started.Killed = m.GetKilled()
	}
	if p.pid == 0 {
		p.pid = paddock.PID(pid)
		p.in.init(p, m.GetInput() || m.GetTerminal())
	}
}

// follow copies output until the exit is known.
func (p *process) follow(s *stream, check events) {
	p.watch.start(p)
	go func() {
		exit, err := p.receive(s, &check)
		for errors.Is(err, errLost) {
			if next := p.rejoin(&check); next != nil {
				_ = s.Close()
				s = next
				exit, err = p.receive(s, &check)
				continue
			}
			exit, err = p.gone()
		}
		if errors.Is(err, errDetached) {
			p.stop()
		} else {
			p.finish(exit, err)
		}
		_ = s.Close() // waits for the end of what the guest sends, unless the stream was stopped
		if errors.Is(err, errDetached) {
			p.await()
		}
	}()
}

// errLost is that the connection ended before the process.
var errLost = errors.New("the connection has ended")

// rejoin follows the process again where the sandbox was paused meanwhile, in a
// way that ended the connection. It is nil where the sandbox does not come back.
func (p *process) rejoin(check *events) *stream {
	again := p.guest().o.Again
	if again == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-p.released:
			cancel()
		case <-ctx.Done():
		}
	}()
	g := again(ctx)
	if g == nil {
		cancel()
		return nil
	}
	p.mu.Lock()
	p.g = g
	p.mu.Unlock()
	req := &guestpb.AttachRequest{Pid: int32(p.pid), From: check.next, Detached: check.silent}
	o := opening{
		check: events{pid: req.Pid, next: check.next, dropped: check.dropped, silent: check.silent},
		call: func(ctx context.Context) (*stream, error) {
			return g.attach(ctx, req)
		},
	}
	s, err := o.begin(ctx, cancel)
	if err != nil {
		cancel()
		return nil
	}
	p.begin(req.Pid, s.Msg().GetStarted(), cancel)
	*check = o.check
	return s
}

// errDetached is that a writer did not want more.
var errDetached = fmt.Errorf("output is detached: %w", paddock.Canceled)

// receive takes events until the last one.
func (p *process) receive(s *stream, check *events) (paddock.Exit, error) {
	for {
		p.watch.begin()
		more := s.Receive()
		p.watch.end()
		if !more {
			return p.lost(s.Err())
		}
		ev := s.Msg()
		if err := check.check(ev); err != nil {
			return paddock.Exit{}, err
		}
		if o := ev.GetOutput(); o != nil {
			if p.watch.late(len(o.GetData())) {
				p.watch.giveUp()
				return paddock.Exit{}, broken("output without end after the timeout")
			}
			if err := p.write(o); err != nil {
				return paddock.Exit{}, errDetached
			}
		}
		if e := ev.GetExited(); e != nil {
			timeout := p.timeout
			if !p.fresh {
				timeout = 0 // not known: it is Start's
			}
			exit := exitOf(e, timeout)
			exit.Dropped = max(exit.Dropped, check.dropped)
			if p.guest().o.Amend != nil {
				p.guest().o.Amend(p.start(), &exit)
			}
			return exit, nil
		}
	}
}

func (p *process) write(o *guestpb.Output) error {
	w := p.out.Stdout
	if o.GetStderr() {
		w = p.out.Stderr
	}
	if w == nil {
		return nil
	}
	n, err := w.Write(o.GetData())
	if err == nil && n < len(o.GetData()) {
		err = io.ErrShortWrite
	}
	return err
}

// lost says how a stream ended that told no exit.
func (p *process) lost(err error) (paddock.Exit, error) {
	select {
	case <-p.released:
		return paddock.Exit{}, fmt.Errorf("process %d was released: %w", p.pid, paddock.Canceled)
	default:
	}
	select {
	case <-p.guest().Done():
		return paddock.Exit{}, errLost
	default:
	}
	if err == nil {
		return paddock.Exit{}, broken("process %d has no exit", p.pid)
	}
	return paddock.Exit{}, fmt.Errorf("follow process %d: %w", p.pid, answered(err))
}

// gone is the exit of a process whose sandbox went away.
func (p *process) gone() (paddock.Exit, error) {
	select {
	case <-p.released:
		return paddock.Exit{}, fmt.Errorf("process %d was released: %w", p.pid, paddock.Canceled)
	default:
	}
	g := p.guest()
	exit := paddock.Exit{Code: 255, Cause: paddock.SandboxGone, Reason: g.goneReason(), Usage: unknownUsage(p.started.At)}
	if g.o.Amend != nil {
		g.o.Amend(p.start(), &exit)
	}
	return exit, nil
}

// finish makes the end known. Only the first one counts.
func (p *process) finish(exit paddock.Exit, err error) {
	p.finished.Do(func() {
		p.exit, p.err = exit, err
		p.watch.stop()
		p.stop()
		close(p.done)
		p.in.finish(p.guest().grace)
	})
}

// stop ends the stream.
func (p *process) stop() {
	p.mu.Lock()
	cancel := p.cancel
	p.mu.Unlock()
	cancel()
}

// await asks for the exit of a process whose output nobody takes.
func (p *process) await() {
	if err := p.attach(context.Background(), p.pid, true); err != nil {
		select {
		case <-p.guest().Done():
			p.finish(p.gone())
		default:
			p.finish(paddock.Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, err))
		}
		return
	}
	select {
	case <-p.released: // before the new stream was known
		p.stop()
	default:
	}
}

func (p *process) ID() paddock.PID { return p.pid }

func (p *process) Input() io.WriteCloser { return &p.in }

func (p *process) Wait(ctx context.Context) (paddock.Exit, error) {
	p.mu.Lock()
	ask := !p.asked
	p.asked = true
	p.mu.Unlock()
	if ask {
		go p.await()
	}
	select {
	case <-p.done:
		return p.exit, p.err
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.err
	case <-p.released:
		return paddock.Exit{}, fmt.Errorf("wait for process %d: it was released: %w", p.pid, paddock.Canceled)
	case <-ctx.Done():
		return paddock.Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, stopped(ctx))
	}
}

func (p *process) Release() {
	p.release.Do(func() {
		close(p.released)
		p.in.end()
		p.stop()
	})
}

func (p *process) Signal(ctx context.Context, sig syscall.Signal) error {
	if sig < 1 || sig > maxSignal {
		return fmt.Errorf("signal process %d: signal %d: %w", p.pid, int(sig), paddock.Invalid)
	}
	ctx, cancel := p.guest().bound(ctx)
	defer cancel()
	_, err := ask(ctx, p.guest().rpc.Signal, &guestpb.SignalRequest{Pid: int32(p.pid), Signal: int32(sig)})
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.pid, p.guest().failure(ctx, err))
	}
	return nil
}

func (p *process) Resize(ctx context.Context, size paddock.Size) error {
	ctx, cancel := p.guest().bound(ctx)
	defer cancel()
	_, err := ask(ctx, p.guest().rpc.Resize, &guestpb.ResizeRequest{
		Pid: int32(p.pid), Size: &guestpb.Size{Rows: uint32(size.Rows), Cols: uint32(size.Cols)},
	})
	if err != nil {
		return fmt.Errorf("resize process %d: %w", p.pid, p.guest().failure(ctx, err))
	}
	return nil
}
