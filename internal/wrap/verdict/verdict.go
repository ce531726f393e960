package verdict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// retryTime is how long a sandbox is left alone of which nothing can be followed now, such as one that is paused.
const retryTime = 5 * time.Second

// Options configure a driver.
type Options struct {
	Of   func(paddock.Status) bool // reports whether a sandbox is followed: others may share the driver
	Tell func(audit.Event)         // of each verdict, and of answers; events of one sandbox come one after the other
	Log  *slog.Logger
}

// A follower is a sandbox whose monitor can be followed.
type follower interface {
	FollowMonitor(ctx context.Context, after int64) (list []audit.Event, last int64, err error)
}

// New returns a driver that owns d and closes it. After an error, d is the caller's.
func New(ctx context.Context, d paddock.Driver, o Options) (paddock.Driver, error) {
	list, err := d.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("follow the monitors of sandboxes: %w", err)
	}
	v := &driver{Driver: d, o: o, followed: map[paddock.ID]bool{}}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	for _, st := range list {
		if v.follows(st) {
			v.follow(st.ID)
		}
	}
	return v, nil
}

type driver struct {
	paddock.Driver
	o Options

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // Add only with mu held, before closed

	mu       sync.Mutex
	closed   bool                // guarded by mu
	followed map[paddock.ID]bool // guarded by mu
}

// Unwrap returns the driver that is followed.
func (d *driver) Unwrap() paddock.Driver { return d.Driver }

// Create implements paddock.Driver.
func (d *driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := d.Driver.Create(ctx, spec)
	if err == nil && spec.Monitor != nil {
		d.follow(sb.ID())
	}
	return sb, err
}

// Close implements paddock.Driver.
func (d *driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
	return d.Driver.Close()
}

// follow follows a sandbox until it is gone. The sandbox of the same name that comes next is followed by the same goroutine.
func (d *driver) follow(id paddock.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.followed[id] {
		return
	}
	d.followed[id] = true
	d.wg.Go(func() {
		for {
			err := d.tell(id)
			if d.ctx.Err() != nil {
				return
			}
			if errors.Is(err, paddock.NotFound) {
				if d.over(id) {
					return
				}
				continue // at once: another one has the name
			}
			if !errors.Is(err, paddock.Unavailable) { // it is paused or dead, or its owner ends
				d.o.Log.Warn("the verdicts of a monitor could not be followed", "id", id, "err", err)
			}
			select {
			case <-time.After(retryTime):
			case <-d.ctx.Done():
				return
			}
		}
	})
}

// follows reports whether the monitor of a sandbox is followed.
func (d *driver) follows(st paddock.Status) bool { return st.Monitor != nil && d.o.Of(st) }

// find returns a sandbox whose monitor is followed. If there is none of that name, the error is NotFound.
func (d *driver) find(id paddock.ID) (follower, error) {
	sb, err := d.Open(d.ctx, id)
	if err != nil {
		return nil, err
	}
	f, can := paddock.As[follower](sb)
	if !can {
		return nil, fmt.Errorf("follow the monitor of sandbox %s: %w", id, paddock.NotFound)
	}
	st, err := sb.Status(d.ctx)
	if err == nil && !d.follows(st) {
		err = fmt.Errorf("sandbox %s is another one now: %w", id, paddock.NotFound)
	}
	return f, err
}

// over ends the following of a sandbox that is gone, unless another one has its name already.
func (d *driver) over(id paddock.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.find(id); !errors.Is(err, paddock.NotFound) {
		return false
	}
	delete(d.followed, id)
	return true
}

// tell tells the verdicts of a sandbox until it cannot be followed any more.
func (d *driver) tell(id paddock.ID) error {
	f, err := d.find(id)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		list, last, err := f.FollowMonitor(d.ctx, after)
		if err != nil {
			return err
		}
		for _, e := range list {
			d.o.Tell(e)
		}
		after = last
	}
}
