package kernel

import (
	"math/bits"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

func bit(sig linux.Signal) uint64 { return 1 << uint(sig) }

// maxSignal is the greatest signal number.
const maxSignal = 64

// Signal sends a signal. To a task that has ended it does nothing.
func (t *Task) Signal(sig linux.Signal) {
	if sig <= 0 || sig > maxSignal-1 {
		return
	}
	t.pending.Or(bit(sig))
	for ; t != nil; t = t.inner.Load() {
		t.wakeUp()
	}
}

// dieOf ends t if one of the signals in p kills it; the others stay pending.
func (t *Task) dieOf(p uint64) {
	for p != 0 {
		n := bits.TrailingZeros64(p)
		p &^= 1 << n
		switch sig := linux.Signal(n); sig {
		case linux.SIGKILL:
			t.Die(sig)
		case linux.SIGCHLD, linux.SIGURG, linux.SIGWINCH, linux.SIGCONT, linux.SIGSTOP, linux.SIGTSTP,
			linux.SIGTTIN, linux.SIGTTOU:
		default:
			if t.action[n] == Default {
				t.Die(sig)
			}
		}
	}
}

func (t *Task) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// On says what a signal does from now on. KILL and STOP cannot be changed.
func (t *Task) On(sig linux.Signal, a Action) {
	if sig > 0 && sig < maxSignal && sig != linux.SIGKILL && sig != linux.SIGSTOP {
		t.action[sig] = a
	}
}

// Action returns what a signal does.
func (t *Task) Action(sig linux.Signal) Action {
	if sig <= 0 || sig >= maxSignal {
		return Default
	}
	return t.action[sig]
}

// Caught takes one caught signal that arrived, lowest number first, or 0.
func (t *Task) Caught() linux.Signal {
	if t.pending.Load() != 0 {
		t.deliver()
	}
	if t.caught == 0 {
		return 0
	}
	n := bits.TrailingZeros64(t.caught)
	t.caught &^= 1 << n
	return linux.Signal(n)
}

// Waits reports whether a caught signal waits to be taken.
func (t *Task) Waits(sig linux.Signal) bool {
	if t.pending.Load() != 0 {
		t.deliver()
	}
	return t.caught&bit(sig) != 0
}

// deliver takes in pending signals. It does not return if one kills.
func (t *Task) deliver() {
	for {
		p := t.pending.Swap(0)
		if p == 0 {
			return
		}
		if p&bit(linux.SIGKILL) != 0 {
			t.Die(linux.SIGKILL)
		}
		stop := false
		for p != 0 {
			n := bits.TrailingZeros64(p)
			p &^= 1 << n
			sig := linux.Signal(n)
			switch {
			case t.action[n] == Catch:
				t.caught |= bit(sig)
			case t.action[n] == Ignore && sig != linux.SIGSTOP:
			default:
				switch sig {
				case linux.SIGCHLD, linux.SIGURG, linux.SIGWINCH, linux.SIGCONT:
				case linux.SIGSTOP, linux.SIGTSTP, linux.SIGTTIN, linux.SIGTTOU:
					stop = true
				default:
					t.Die(sig)
				}
			}
		}
		if stop {
			t.stopped()
		}
	}
}

// Kill signals as kill(2) does: one task, those of a group by its negated
// number, those of the own group by 0, all but this one by -1. Signal 0 only
// asks whether there is anyone.
func (t *Task) Kill(pid int, sig linux.Signal) error {
	switch {
	case pid > 0:
		other, ok := t.K.Task(pid)
		if !ok {
			return linux.ESRCH
		}
		other.Signal(sig)
	case pid == 0:
		return t.K.SignalGroup(t.PGID(), sig)
	case pid == -1:
		t.K.signalAll(sig, func(other *Task) bool { return other != t })
	default:
		return t.K.SignalGroup(-pid, sig)
	}
	return nil
}

// signalAll signals every task that is meant, also those that appear
// meanwhile: nobody outruns a signal by forking. It tells whether there was any.
func (k *Kernel) signalAll(sig linux.Signal, meant func(*Task) bool) bool {
	last, ever := 0, false
	for {
		found := false
		for _, t := range k.Tasks() {
			if t.PID > last && meant(t) {
				found = true
				t.Signal(sig)
			}
			last = max(last, t.PID)
		}
		if ever = ever || found; !found {
			return ever
		}
	}
}

// Stopped reports whether a signal has stopped the task.
func (t *Task) Stopped() bool { return t.halted.Load() }

// stopped waits for CONT or KILL.
func (t *Task) stopped() {
	t.halted.Store(true)
	t.clock.stop(t.Run)
	defer func() {
		t.clock.start()
		t.halted.Store(false)
	}()
	for t.pending.Load()&(bit(linux.SIGCONT)|bit(linux.SIGKILL)) == 0 && t.Run.cause.Load() == nil {
		<-t.wake
	}
	if t.Run.cause.Load() != nil {
		t.Die(linux.SIGKILL)
	}
}

// sleep waits until somebody wakes the task, and is a checkpoint. EINTR is
// that a caught signal has arrived.
func (t *Task) sleep() error {
	if t.caught == 0 && t.pending.Load() == 0 {
		t.clock.stop(t.Run)
		<-t.wake
		t.clock.start()
	}
	t.Check()
	if t.caught != 0 {
		return linux.EINTR
	}
	return nil
}

// Await waits until ready is closed, or the deadline if there is one (then it
// is ETIMEDOUT), or a caught signal (EINTR). Buffered output is flushed first.
func (t *Task) Await(ready <-chan struct{}, deadline time.Time) error {
	if err := t.Flush(); err != nil {
		return err
	}
	return t.await(ready, deadline)
}

// AwaitIO is Await without a deadline, for a File's own use: it flushes
// nothing.
func (t *Task) AwaitIO(ready <-chan struct{}) error { return t.await(ready, time.Time{}) }

func (t *Task) await(ready <-chan struct{}, deadline time.Time) error {
	t.clock.stop(t.Run)
	defer t.clock.start()
	var timer <-chan time.Time
	if !deadline.IsZero() {
		x := time.NewTimer(time.Until(deadline))
		defer x.Stop()
		timer = x.C
	}
	for {
		t.Check()
		if t.caught != 0 {
			return linux.EINTR
		}
		if over, err := t.doze(ready, timer); over {
			return err
		}
	}
}

// doze waits for one of those, or until somebody wakes the task, which is not over then.
func (t *Task) doze(ready <-chan struct{}, timer <-chan time.Time) (over bool, err error) {
	if !t.waits.CompareAndSwap(false, true) {
		t.stray()
		return true, linux.EIO
	}
	defer t.waits.Store(false)
	select {
	case <-ready:
		return true, nil
	case <-timer:
		return true, linux.ETIMEDOUT
	case <-t.wake:
		return false, nil
	}
}

// Until waits until ok says so. It is asked whenever a signal arrives, which
// the end of a child is. EINTR is that a caught signal has arrived.
func (t *Task) Until(ok func() bool) error {
	if err := t.Flush(); err != nil {
		return err
	}
	for {
		t.Check()
		if ok() {
			return nil
		}
		if t.caught != 0 {
			return linux.EINTR
		}
		t.clock.stop(t.Run)
		<-t.wake
		t.clock.start()
	}
}

// Sleep waits for a time to pass. EINTR is that a caught signal arrived.
func (t *Task) Sleep(d time.Duration) error {
	err := t.Await(nil, time.Now().Add(d))
	if err == linux.ETIMEDOUT {
		return nil
	}
	return err
}

// Wait waits for another task to end.
func (t *Task) Wait(other *Task) (Status, error) {
	if err := t.Await(other.done, time.Time{}); err != nil {
		return Status{}, err
	}
	s, _ := other.Status()
	return s, nil
}

// WaitAny waits for the first of some tasks to end, and gives its place among
// them. Where the deadline, if there is one, passes before, it is ETIMEDOUT.
func (t *Task) WaitAny(deadline time.Time, others ...*Task) (int, error) {
	if !deadline.IsZero() {
		timer := time.AfterFunc(time.Until(deadline), t.wakeUp)
		defer timer.Stop()
	}
	first, late := -1, false
	err := t.Until(func() bool {
		for i, o := range others {
			if _, ok := o.Status(); ok {
				first = i
				return true
			}
		}
		late = !deadline.IsZero() && !time.Now().Before(deadline)
		return late
	})
	if err == nil && first < 0 && late {
		err = linux.ETIMEDOUT
	}
	return first, err
}
