package guest

import (
	"context"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	maxQueue      = 4096     // events that wait to be sent
	maxQueueBytes = 1 << 20  // of their names
	maxEvents     = 256      // in one message
	maxEventBytes = 64 << 10 // of their names
)

// An eventQueue holds events between the kernel and a host that may be slow.
// It is bounded: what does not fit is dropped, and that is told.
type eventQueue struct {
	wake chan struct{} // holds one value when there is something to take

	mu     sync.Mutex
	events []*guestpb.FileEvent // guarded by mu
	bytes  int                  // guarded by mu
	lost   bool                 // guarded by mu: after the last of events
	err    error                // guarded by mu: why there will be no more
}

func newEventQueue() *eventQueue { return &eventQueue{wake: make(chan struct{}, 1)} }

func (q *eventQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put adds an event, unless it repeats the one before, which nobody has seen.
func (q *eventQueue) put(op guestpb.FileOp, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.events); n > 0 && q.events[n-1].Op == op && string(q.events[n-1].Name) == name {
		return
	}
	if q.lost || len(q.events) == maxQueue || q.bytes+len(name) > maxQueueBytes {
		q.lost = true
		return
	}
	q.events = append(q.events, &guestpb.FileEvent{Op: op, Name: []byte(name)})
	q.bytes += len(name)
	q.signal()
}

// lose says that events were lost before they came here.
func (q *eventQueue) lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = true
	q.signal()
}

// end says that there will be no more, and why.
func (q *eventQueue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	q.signal()
}

// take waits for events and gives some of them, oldest first. lost tells that
// others were dropped after these.
func (q *eventQueue) take(ctx context.Context) (events []*guestpb.FileEvent, lost bool, err error) {
	for {
		q.mu.Lock()
		n, bytes := 0, 0
		for n < len(q.events) && n < maxEvents && bytes < maxEventBytes {
			bytes += len(q.events[n].Name)
			n++
		}
		events, q.events = q.events[:n:n], q.events[n:]
		q.bytes -= bytes
		if len(q.events) == 0 {
			lost, q.lost, err = q.lost, false, q.err
		} else {
			q.signal()
		}
		q.mu.Unlock()
		if len(events) > 0 || lost {
			if err != nil {
				q.signal()
			}
			return events, lost, nil
		}
		if err != nil {
			return nil, false, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}
