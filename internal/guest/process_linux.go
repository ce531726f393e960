package guest

import (
	"os"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/outputring"
)

// A process that has ended while something that it left behind still holds
// its output open has its exit reported when that output has been quiet for
// settleQuiet, and after settleLimit in any case. What it wrote itself before
// it ended is always part of its output.
const (
	settleQuiet = 250 * time.Millisecond
	settleLimit = 2 * time.Second
)

// A process is a command that was started.
type process struct {
	s       *Server
	pid     int
	cmd     command
	started time.Time
	killed  *int64 // processes for lack of memory before: Options.Killed; nil is not known
	hidden  bool   // the agent's own: not listed, not kept

	out     *outputring.Ring
	in      *input // nil without one
	outlets outlets
	ended   chan struct{} // closed when exit is set
	size    int           // guarded by table.mu; memory of the output, once ended

	mu       sync.Mutex
	timer    *time.Timer     // guarded by mu; nil without a timeout
	reaped   bool            // guarded by mu; the number may be another's
	timedOut bool            // guarded by mu
	drained  bool            // guarded by mu; no more output comes
	exit     *guestpb.Exited // guarded by mu; nil until everything is known
	status   *guestpb.Exited // guarded by mu; what wait told
	settled  time.Time       // guarded by mu; when its own output was all here
	last     time.Time       // guarded by mu; of the last output after its end
	settling *time.Timer     // guarded by mu
}

// reap takes note of the end of the process, whose number is free from now on.
// wait collects it.
func (p *process) reap(wait func() (syscall.WaitStatus, *syscall.Rusage)) {
	p.mu.Lock()
	status, usage := wait()
	p.reaped = true
	p.status = p.result(status, usage)
	if p.timer != nil && p.timer.Stop() {
		p.s.wg.Done()
	}
	done := p.drained
	if !done {
		p.outlets.expectRest()
		p.last = time.Now()
		p.s.wg.Add(1)
		p.settling = time.AfterFunc(settleQuiet, p.settle)
	}
	p.mu.Unlock()
	if p.in != nil {
		p.in.end()
	}
	if done {
		p.finish()
	}
}

// result says how the process ended. p.mu must be held.
func (p *process) result(status syscall.WaitStatus, usage *syscall.Rusage) *guestpb.Exited {
	e := &guestpb.Exited{
		Cause:      guestpb.Cause_CAUSE_EXITED,
		Code:       int32(status.ExitStatus()),
		Wall:       time.Since(p.started).Nanoseconds(),
		Cpu:        usage.Utime.Nano() + usage.Stime.Nano(),
		MemoryPeak: usage.Maxrss * 1024,
	}
	if status.Signaled() {
		sig := status.Signal()
		e.Cause, e.Signal, e.Code = guestpb.Cause_CAUSE_SIGNALED, int32(sig), 128+int32(sig)
		if sig == syscall.SIGSYS {
			e.Cause = guestpb.Cause_CAUSE_KILLED_BY_POLICY
		}
	}
	if p.timedOut && status.Signaled() {
		e.Cause = guestpb.Cause_CAUSE_TIMED_OUT
	}
	return e
}

// settle looks whether the output that others hold open has become quiet.
func (p *process) settle() {
	defer p.s.wg.Done()
	p.mu.Lock()
	now := time.Now()
	own := p.outlets.haveRest()
	if own && p.settled.IsZero() {
		p.settled = now
	}
	done := p.exit == nil && own && (now.Sub(p.last) >= settleQuiet || now.Sub(p.settled) >= settleLimit)
	if !done && p.exit == nil {
		p.s.wg.Add(1)
		p.settling = time.AfterFunc(max(settleQuiet-now.Sub(p.last), settleQuiet/10), p.settle)
	}
	p.mu.Unlock()
	if done {
		p.finish()
	}
}

// drain keeps all output until there is no more.
func (p *process) drain() {
	p.outlets.copy(p.s.processes.buffer, &p.s.processes.buffers, func(stderr bool, b []byte) {
		p.out.Write(stderr, b)
		p.mu.Lock()
		if p.reaped {
			p.last = time.Now()
		}
		p.mu.Unlock()
	})
	p.mu.Lock()
	p.drained = true
	done := p.reaped
	if done && p.settling != nil && p.settling.Stop() {
		p.s.wg.Done()
	}
	p.mu.Unlock()
	if done {
		p.finish()
	}
}

// finish makes the exit known. It may be called again.
func (p *process) finish() {
	p.mu.Lock()
	again := p.exit != nil
	p.exit = p.status
	p.mu.Unlock()
	if again {
		return
	}
	p.out.End()
	close(p.ended)
	p.s.processes.retire(p)
}

// exited gives how the process has ended, or nil.
func (p *process) exited(dropped int64) *guestpb.Exited {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil {
		return nil
	}
	e := proto.CloneOf(p.exit)
	e.Dropped = dropped
	return e
}

// hasEnded tells whether the process is reaped; its exit may come later.
func (p *process) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// send sends a signal as who the process belongs to: nobody in it is another user,
// for want of any right to become one.
func (p *process) send(pid int, sig syscall.Signal) error {
	if p.cmd.user != nil {
		return p.s.o.Signal(p.cmd.user, pid, sig)
	}
	return syscall.Kill(pid, sig)
}

// owner names who it runs as.
func (p *process) owner() string {
	if p.cmd.user != nil {
		return p.cmd.user.Name
	}
	return p.s.o.User.Name
}

// signal sends a signal to the process group.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return alreadyEnded(p.pid)
	}
	return os.NewSyscallError("kill", p.send(-p.pid, sig))
}

// expire kills everything of the process when its time is over.
func (p *process) expire() {
	defer p.s.wg.Done()
	p.mu.Lock()
	if p.reaped {
		p.mu.Unlock()
		return
	}
	p.timedOut = true
	p.mu.Unlock()
	p.killAll()
}

// kill kills everything of the process, if it has not ended.
func (p *process) kill() {
	if !p.hasEnded() {
		p.killAll()
	}
}

func (p *process) killAll() {
	p.s.processes.killing.Lock()
	defer p.s.processes.killing.Unlock()
	killAll(p.pid, p.send)
}
