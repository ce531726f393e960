package lifetime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Create makes a sandbox with the default terms. On a tier that cannot pause, the default
// idle pause is left out.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.make(ctx, spec, d.o.Default, true)
}

// CreateWith makes a sandbox with exactly these terms, or, if they are nothing but a budget, with the default terms and
// that. Terms with a pause are Unsupported if the tier of the sandbox cannot pause, and a budget if it does not measure.
func (d *Driver) CreateWith(ctx context.Context, spec paddock.Spec, t Terms) (paddock.Sandbox, error) {
	if b := t.Budget; b.Bounds() && t == (Terms{Budget: b}) {
		t = d.o.Default
		t.Budget = b
		return d.make(ctx, spec, t, true)
	}
	return d.make(ctx, spec, t, false)
}

func (d *Driver) make(ctx context.Context, spec paddock.Spec, t Terms, usual bool) (paddock.Sandbox, error) {
	if err := d.allow(t); err != nil {
		return nil, err
	}
	if spec.Tier != paddock.Auto { // otherwise the tier is known after the creation
		var err error
		if t, err = d.fit(ctx, t, spec.Tier, usual); err != nil {
			return nil, err
		}
	} else if err := d.can(ctx, t, paddock.Auto); err != nil && !usual {
		return nil, err
	}
	sb, err := d.inner.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if t.pauses() && (spec.Tier == paddock.Auto || t.Budget.Bounds()) { // the tier may not be the usual one
		var st paddock.Status
		if st, err = sb.Status(ctx); err == nil {
			t, err = d.fit(ctx, t, st.Tier, usual)
		}
		if err == nil {
			err = measurable(t.Budget, &st)
		}
	}
	var e *entry
	if err == nil {
		e, err = d.born(ctx, sb.ID(), t, spec)
	}
	if err != nil { // the sandbox would never end
		if gone := sb.Remove(context.WithoutCancel(ctx)); gone != nil && !errors.Is(gone, paddock.NotFound) {
			return nil, errors.Join(err, ErrLeft, gone)
		}
		return nil, err
	}
	return &sandbox{Sandbox: sb, e: e}, nil
}

// ErrLeft reports that a creation failed and its sandbox could not be removed. The caller
// must keep its record of the sandbox.
var ErrLeft = errors.New("the sandbox was made, and could not be removed")

// allow refuses invalid terms.
func (d *Driver) allow(t Terms) error {
	if err := t.check(); err != nil {
		return err
	}
	if now := d.clock.now(); !t.Deadline.IsZero() && !t.Deadline.After(now) {
		return fmt.Errorf("terms: the deadline of %s has passed; now is %s: %w", t.Deadline.UTC().Format(time.RFC3339), now.Format(time.RFC3339), paddock.Invalid)
	}
	return nil
}

// fit returns the terms for a sandbox of a tier, or refuses them. With usual, it leaves out
// an idle pause that the tier does not support.
func (d *Driver) fit(ctx context.Context, t Terms, tier paddock.Tier, usual bool) (Terms, error) {
	err := d.can(ctx, t, tier)
	if usual && errors.Is(err, paddock.Unsupported) {
		t = t.unpaused()
		err = d.can(ctx, t, tier)
	}
	return t, err
}

// can refuses terms with a pause if the tier cannot pause.
func (d *Driver) can(ctx context.Context, t Terms, tier paddock.Tier) error {
	if !t.pauses() {
		return nil
	}
	info, err := d.inner.Info(ctx, tier)
	if err != nil {
		return err
	}
	if !info.Can(paddock.CanPause) && t.Budget.Bounds() {
		return fmt.Errorf("terms: the tier %s cannot pause here, which a budget needs; leave the budget out: %w", info.Tier, paddock.Unsupported)
	}
	if !info.Can(paddock.CanPause) {
		return fmt.Errorf("terms: the tier %s cannot pause here; use terms that only remove: %w", info.Tier, paddock.Unsupported)
	}
	return nil
}

// born stores a sandbox's terms. An existing record belongs to an earlier sandbox of the
// same name.
func (d *Driver) born(ctx context.Context, id paddock.ID, t Terms, spec paddock.Spec) (*entry, error) {
	now := d.clock.now()
	rec := Record{ID: id, Terms: t, Created: now, Written: now}
	if d.o.Key != nil {
		rec.Key = d.o.Key(ctx, spec)
	}
	rec.Deadline, rec.Wall = t.deadline(now, now, d.o.Longest)
	var err error
	for range 3 {
		var version int64
		if version, err = d.store.Save(ctx, rec); err == nil {
			rec.Version = version
			break
		}
		if !errors.Is(err, paddock.Conflict) {
			break
		}
		var old Record
		if old, err = d.store.Get(ctx, id); err == nil {
			rec.Version = old.Version
		} else if errors.Is(err, paddock.NotFound) {
			rec.Version = 0
		}
	}
	if err != nil || rec.Version == 0 {
		return nil, fmt.Errorf("store the lifetime of sandbox %s: %w", id, err)
	}
	e := newEntry(d, rec)
	e.reckon()
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, errClosed()
	}
	d.entries[id] = e
	d.graves.remove(id)
	d.mu.Unlock()
	d.schedule(e)
	return e, nil
}
