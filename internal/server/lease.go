package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// leaseGrace is how long ephemeral sandboxes stay after the connection of their client was
// cut without a new one.
const leaseGrace = 5 * time.Second

// A lease represents a client that is alive: the client holds a stream open. Ephemeral
// sandboxes belong to a lease and are removed at its end.
type lease struct {
	token string

	// account.mu guards all of these.
	streams int // open streams of the client
	left    time.Time
	boxes   []ephemeral
	ended   bool          // it accepts no more sandboxes
	ending  *ending       // nil if no removal is in progress
	over    bool          // gone is closed
	gone    chan struct{} // closed when the sandboxes are removed
}

// An ending is one attempt to remove the sandboxes of a lease.
type ending struct {
	done chan struct{}
	err  error // set before done is closed
}

type ephemeral struct {
	driver paddock.Driver
	sb     paddock.Sandbox
}

// late reports whether to end the lease, or to try again.
func (l *lease) late(now time.Time) bool {
	return l.ending == nil && (l.ended || l.streams == 0) && now.Sub(l.left) > leaseGrace
}

// lease handles GET /v1/leases/{token}. It holds a lease open.
func (q *request) lease() error {
	token := q.PathValue("token")
	if !api.Token(token) {
		return fmt.Errorf("lease: not a token: %w", paddock.Invalid)
	}
	a := q.account
	a.mu.Lock()
	l := a.leases[token]
	if l == nil && len(a.leases) < maxLeases {
		l = &lease{token: token, gone: make(chan struct{})}
		a.leases[token] = l
	}
	if l == nil || l.ended {
		a.mu.Unlock()
		return fmt.Errorf("lease: it has ended, or there are too many leases: %w", paddock.Exhausted)
	}
	l.streams++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		l.streams--
		l.left = time.Now()
	}()
	lines := q.lines()
	for {
		if err := lines.send(api.Line{Alive: true}); err != nil {
			return nil // the client has gone
		}
		select {
		case <-time.After(aliveEvery):
		case <-l.gone:
			return lines.send(api.Line{End: true})
		case <-q.Context().Done():
			return nil
		case <-q.s.ctx.Done():
			return nil
		}
	}
}

// endLease handles DELETE /v1/leases/{token}. It removes the sandboxes of a lease.
func (q *request) endLease() error {
	a := q.account
	a.mu.Lock()
	l := a.leases[q.PathValue("token")]
	a.mu.Unlock()
	if l != nil {
		if err := a.endLease(context.WithoutCancel(q.Context()), l); err != nil {
			return err
		}
	}
	return q.none()
}

// endLease ends a lease. A second call waits for the first. If a sandbox cannot be removed,
// the lease stays, accepts no more sandboxes, and sweep tries again.
func (a *account) endLease(ctx context.Context, l *lease) error {
	a.mu.Lock()
	if e := l.ending; e != nil {
		a.mu.Unlock()
		<-e.done
		return e.err
	}
	if l.over {
		a.mu.Unlock()
		return nil
	}
	e := &ending{done: make(chan struct{})}
	l.ended, l.ending = true, e
	boxes := slices.Clone(l.boxes)
	a.mu.Unlock()
	var errs []error
	for _, box := range boxes {
		if err := box.sb.Remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("remove sandbox %s: %w", box.sb.ID(), err))
			continue
		}
		a.removed(box.driver, box.sb.ID())
	}
	e.err = errors.Join(errs...)
	a.mu.Lock()
	l.ending, l.left = nil, time.Now()
	if e.err == nil {
		delete(a.leases, l.token)
		l.over = true
		close(l.gone)
	}
	a.mu.Unlock()
	close(e.done)
	return e.err
}

// own adds an ephemeral sandbox to the client's lease.
func (a *account) own(token string, d paddock.Driver, sb paddock.Sandbox) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.leases[token]
	if l == nil || l.ended {
		return fmt.Errorf("the lease has ended: %w", paddock.Conflict)
	}
	l.boxes = append(l.boxes, ephemeral{d, sb})
	a.owners[sb.ID()] = l
	return nil
}

// leased reports whether the client holds its lease open.
func (a *account) leased(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.leases[token]
	return l != nil && !l.ended
}

// removed forgets a removed sandbox and publishes its removal.
func (a *account) removed(d paddock.Driver, id paddock.ID) {
	a.lost(d, id)
	a.news.tell(api.Removed, id)
}

// lost forgets the state kept for a removed sandbox.
func (a *account) lost(d paddock.Driver, id paddock.ID) {
	a.boxes.forget(d, id)
	a.mu.Lock()
	if l := a.owners[id]; l != nil {
		l.boxes = slices.DeleteFunc(l.boxes, func(e ephemeral) bool { return e.sb.ID() == id })
		delete(a.owners, id)
	}
	var mute []*input
	for key, in := range a.inputs {
		if key.box == (handleKey{d, id}) {
			in.lose()
			mute = append(mute, in)
			delete(a.inputs, key)
		}
	}
	for _, c := range a.creations {
		if c.sb != nil && c.sb.ID() == id {
			c.sb = nil
		}
	}
	a.mu.Unlock()
	for _, in := range mute {
		in.release()
	}
}

// visible reports whether the client may see a sandbox. Only its own client sees an
// ephemeral sandbox.
func (q *request) visible(id paddock.ID) bool {
	q.account.mu.Lock()
	defer q.account.mu.Unlock()
	l := q.account.owners[id]
	return l == nil || l.token == q.Header.Get(api.LeaseHeader)
}
