package netstack

import (
	"sync"
	"time"
)

// A deadline ends waits at a time. It can be moved during a wait.
type deadline struct {
	*deadlineState
}

type deadlineState struct {
	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu
	passed chan struct{} // guarded by mu; closed at the deadline
}

func newDeadline() deadline {
	return deadline{&deadlineState{passed: make(chan struct{})}}
}

func (d deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// set moves the deadline. The zero time means never.
func (d deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer closes it soon, or has closed it
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
