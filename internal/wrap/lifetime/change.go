package lifetime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// known returns the entry of an existing sandbox.
func (d *Driver) known(ctx context.Context, id paddock.ID) (*entry, error) {
	d.mu.Lock()
	e := d.entries[id]
	d.mu.Unlock()
	if e != nil {
		return e, nil
	}
	sb, err := d.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.entry(ctx, sb)
}

// Terms implements [Lessor]. It returns the state of a sandbox's terms.
func (d *Driver) Terms(ctx context.Context, id paddock.ID) (Lease, error) {
	e, err := d.known(ctx, id)
	if err != nil {
		return Lease{}, err
	}
	now, wall := time.Now(), d.clock.now()
	at := func(t time.Time) time.Time { return wall.Add(t.Sub(now)) }
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Lease{Terms: e.rec.Terms, Created: e.rec.Created, Paused: e.rec.Paused}
	if !e.end.IsZero() {
		l.Ends = at(e.end)
		if e.rec.Wall {
			l.Ends = e.rec.Deadline
		}
		if e.unsure && at(e.settled).After(l.Ends) { // it has a grace period
			l.Ends = at(e.settled)
		}
	}
	if l.Terms.KeepAlive > 0 {
		l.Renew = at(e.renewed.Add(l.Terms.KeepAlive))
	}
	if e.calls == 0 {
		l.Idle = at(e.active)
	}
	if l.Terms.Budget.Bounds() {
		l.Use, l.Over = e.account.meter.Use, e.exceeded().Name
	}
	if a := e.trouble(); a.failure != nil {
		l.Failure = a.failure.Error()
	}
	return l, nil
}

// alter changes a sandbox's record while it holds its turn. It resumes the sandbox if one
// of undo has paused it.
func (d *Driver) alter(ctx context.Context, id paddock.ID, undo []Why, change func(e *entry, r *Record) error) error {
	e, err := d.known(ctx, id)
	if err != nil {
		return err
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.leave()
	for range 3 {
		e.mu.Lock()
		rec, gone := e.rec, e.over()
		if gone == nil && e.gone {
			gone = fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
		}
		e.restate(&rec)
		if gone == nil {
			gone = change(e, &rec)
		}
		e.mu.Unlock()
		if gone != nil {
			return gone
		}
		err = e.save(ctx, func(r *Record) { r.Terms, r.Deadline, r.Wall = rec.Terms, rec.Deadline, rec.Wall })
		if !errors.Is(err, paddock.Conflict) {
			break
		}
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.unsure, e.renewed = false, time.Now()
	e.reckon()
	paused := e.rec.Paused
	e.mu.Unlock()
	defer d.schedule(e)
	for _, why := range undo {
		if why == paused {
			return e.revive(ctx)
		}
	}
	return nil
}

// revive resumes a sandbox. The turn is held.
func (e *entry) revive(ctx context.Context) error {
	if err := e.settleBudget(ctx); err != nil {
		return fmt.Errorf("it was changed, and stays paused: %w", err)
	}
	wished, done := e.wished(ctx)
	defer done()
	bound, cancel := context.WithTimeout(wished, actTime)
	defer cancel()
	sb, err := e.d.inner.Open(bound, e.id)
	if err == nil {
		err = wake(bound, sb)
	}
	if err != nil {
		return fmt.Errorf("resume sandbox %s: %w", e.id, e.cutShort(bound, err))
	}
	e.runs(ctx)
	return nil
}

// Change replaces all terms of a sandbox. The lifetime counts from the creation, and the
// timeout from now. The lease starts again.
func (d *Driver) Change(ctx context.Context, id paddock.ID, t Terms) error {
	if err := d.allow(t); err != nil {
		return err
	}
	if t.pauses() {
		sb, err := d.Open(ctx, id)
		if err != nil {
			return err
		}
		st, err := sb.Status(ctx)
		if err != nil {
			return err
		}
		if err := d.can(ctx, t, st.Tier); err != nil {
			return err
		}
		if st.State == paddock.Ready { // a paused one is not measured
			if err := measurable(t.Budget, &st); err != nil {
				return err
			}
		}
	}
	return d.alter(ctx, id, nil, func(e *entry, r *Record) error {
		r.Terms = t
		now := d.clock.now()
		r.Deadline, r.Wall = t.deadline(now.Add(-time.Since(e.made)), now, d.o.Longest)
		return nil
	})
}

// Extend moves the deadline of a sandbox by a positive duration: from the present deadline,
// or from now if it has passed. A sandbox that was paused at its deadline resumes. Without
// a deadline, Extend returns Conflict.
func (d *Driver) Extend(ctx context.Context, id paddock.ID, by time.Duration) error {
	if by <= 0 {
		return fmt.Errorf("extend sandbox %s by %v: %w", id, by, paddock.Invalid)
	}
	return d.alter(ctx, id, []Why{ByDeadline}, func(e *entry, r *Record) error {
		if r.Deadline.IsZero() {
			return fmt.Errorf("sandbox %s has no deadline to extend: %w", id, paddock.Conflict)
		}
		now := d.clock.now()
		from := r.Deadline
		if from.Before(now) {
			from = now
		}
		if latest := now.Add(d.o.Longest - time.Since(e.made)); d.o.Longest > 0 && from.Add(by).After(latest) {
			return fmt.Errorf("sandbox %s may live at most %v, until %s: %w", id, d.o.Longest, latest.Format(time.RFC3339), paddock.Denied)
		}
		r.Deadline = from.Add(by)
		return nil
	})
}

// Renew extends the lease of a sandbox by its KeepAlive. A sandbox that was paused after a
// missed renewal resumes. Without a lease, Renew returns Conflict. A renewal is stored only
// if it resumes the sandbox, because a lease starts again after a restart anyway.
func (d *Driver) Renew(ctx context.Context, id paddock.ID) error {
	e, err := d.known(ctx, id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	keep, paused, err := e.rec.Terms.KeepAlive, e.rec.Paused, e.over()
	if err == nil && keep > 0 && paused != ByLease {
		e.renewed = time.Now()
	}
	e.mu.Unlock()
	switch {
	case err != nil:
		return err
	case keep == 0:
		return fmt.Errorf("sandbox %s has no lease to renew: %w", id, paddock.Conflict)
	case paused != ByLease:
		return nil
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.leave()
	e.mu.Lock()
	paused, err = e.rec.Paused, e.over()
	e.renewed = time.Now()
	e.mu.Unlock()
	if err != nil || paused != ByLease {
		return err
	}
	return e.revive(ctx)
}
