package guestclient

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// maxLate is how much output may still come after a process must have been
// killed: more than any guest keeps and the connection holds.
const maxLate = 64 << 20

// patience watches that the guest reports the end of a process that its
// timeout has ended. Only the time counts in which the host waits for the
// guest, not that in which the host's own writers do not take output, nor that
// in which the sandbox is paused.
type patience struct {
	p *process

	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu; nil where nothing is watched
	due    time.Time     // guarded by mu; when the process must have been killed
	since  time.Time     // guarded by mu; when the host began to wait, or zero
	waited time.Duration // guarded by mu; since due
	excuse time.Duration // guarded by mu; the part of waited that does not count
	extra  int           // guarded by mu; bytes that came late
}

// start watches p, if it has a timeout.
func (w *patience) start(p *process) {
	if p.timeout <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		return
	}
	w.p = p
	w.due = p.started.At.Add(p.timeout)
	w.timer = time.AfterFunc(p.timeout+p.guest().grace/4, w.look)
}

func (w *patience) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// begin and end stand around each wait for the guest.
func (w *patience) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.since = time.Now()
	}
}

func (w *patience) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.waited += w.waiting(time.Now())
		w.since = time.Time{}
	}
}

// waiting gives how long the present wait lasts. w.mu must be held.
func (w *patience) waiting(now time.Time) time.Duration {
	if w.since.IsZero() {
		return 0
	}
	from := w.since
	if from.Before(w.due) {
		from = w.due
	}
	return max(now.Sub(from), 0)
}

// late counts output that comes after the end was due, and tells whether it is
// too much.
func (w *patience) late(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil || time.Since(w.due) < w.p.guest().grace {
		return false
	}
	w.extra += n
	return w.extra > maxLate
}

// look is where patience ends.
func (w *patience) look() {
	select {
	case <-w.p.done:
		return
	default:
	}
	paused := w.p.guest().o.Paused != nil && w.p.guest().o.Paused()
	grace := w.p.guest().grace
	w.mu.Lock()
	waited := w.waited + w.waiting(time.Now())
	if paused {
		w.excuse = waited
	}
	if waited-w.excuse < grace {
		w.timer.Reset(grace / 4)
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	w.giveUp()
}

// giveUp ends the process for its callers, and tells the driver.
func (w *patience) giveUp() {
	w.p.finish(paddock.Exit{
		Code:   128 + int(syscall.SIGKILL),
		Signal: syscall.SIGKILL,
		Cause:  paddock.TimedOut,
		Reason: fmt.Sprintf("its timeout of %v has passed, and the agent inside did not say how it ended", w.p.timeout),
		Usage:  unknownUsage(w.p.started.At),
	}, nil)
	if w.p.guest().o.Stuck != nil {
		w.p.guest().o.Stuck()
	}
}
