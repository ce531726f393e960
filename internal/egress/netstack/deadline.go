package netstack

import (
	"sync"
	"time"
)

// A deadline is a time after which waits end. It can be moved while they wait.
type deadline struct {
	*deadlineState
}

type deadlineState struct {
	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu
	passed chan struct{} // guarded by mu; closed at the time
}

func newDeadline() deadline {
	return deadline{&deadlineState{passed: make(chan struct{})}}
}

func (d deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// set moves the deadline; the zero time is never.
func (d deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer is about to close it, or has
	}
	d.timer = nil
	select {
	case <-d.passed:
		d.passed = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	passed := d.passed
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(passed) })
	} else {
		close(passed)
	}
}
