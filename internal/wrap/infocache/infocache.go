package infocache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// keepTime is how long the answer of an available tier is kept, and retryTime any other.
	keepTime  = 30 * time.Second
	retryTime = time.Second

	// askTime bounds a question to a tier that hangs.
	askTime = 5 * time.Minute
)

// New returns a driver that asks d, which has one tier, for its Info at most once at a time.
// The result owns d and closes it. It has no Unwrap, because a caller that reached d could
// ask it as often as it likes.
func New(d paddock.Driver, tier paddock.Tier) paddock.Driver {
	c := &driver{Driver: d, tier: tier}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// A driver is a driver with a kept Info. All other calls are those of the wrapped driver.
type driver struct {
	paddock.Driver
	tier paddock.Tier

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	asking sync.WaitGroup // questions in progress; Add only with mu held, before closed

	mu     sync.Mutex
	closed bool      // guarded by mu
	last   *question // guarded by mu; nil before the first
}

// A question is a call of the wrapped driver's Info.
type question struct {
	done chan struct{} // closed after the fields below are set
	info paddock.Info
	err  error
	ends time.Time // until then it answers further calls
}

// PastJournal implements paddock.Historian.
func (d *driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	return paddock.PastJournal(ctx, d.Driver, id)
}

// Info returns an answer that is at most keepTime old. It waits for the wrapped driver only as
// long as ctx allows.
func (d *driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Auto && tier != d.tier {
		return d.Driver.Info(ctx, tier) // it refuses
	}
	q, err := d.question()
	if err != nil {
		return paddock.Info{}, err
	}
	select {
	case <-q.done:
		info := q.info
		info.Capabilities, info.Controls = slices.Clone(info.Capabilities), slices.Clone(info.Controls)
		return info, q.err
	case <-ctx.Done():
		kind := paddock.Canceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return paddock.Info{}, fmt.Errorf("wait for what the tier %s can do: %w: %w", d.tier, kind, ctx.Err())
	}
}

// HostMemory implements paddock.MemoryPlanner.
func (d *driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return paddock.HostMemory(d.Driver, tier, l)
}

// question returns the question in progress, the last one if its answer is still kept, or a
// new one.
func (d *driver) question() (*question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("the driver of the tier %s is closed: %w", d.tier, paddock.Unavailable)
	}
	if d.last != nil && d.last.counts() {
		return d.last, nil
	}
	q := &question{done: make(chan struct{})}
	d.last = q
	d.asking.Go(func() { d.ask(q) })
	return q, nil
}

// counts reports whether a question is in progress, or has an answer that is still kept.
func (q *question) counts() bool {
	select {
	case <-q.done:
		return time.Now().Before(q.ends)
	default:
		return true
	}
}

// ask asks the wrapped driver.
func (d *driver) ask(q *question) {
	defer close(q.done)
	ctx, cancel := context.WithTimeout(d.ctx, askTime)
	defer cancel()
	q.info, q.err = d.Driver.Info(ctx, d.tier)
	keep := retryTime
	if q.err == nil && q.info.Available {
		keep = keepTime
	}
	q.ends = time.Now().Add(keep)
}

// Close ends the question in progress and closes the wrapped driver.
func (d *driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.asking.Wait()
	return d.Driver.Close()
}
