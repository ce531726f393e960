package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A sandbox belongs to a tenant. Methods that are not here are the shared driver's.
type sandbox struct {
	paddock.Sandbox
	d *driver
	b store.Sandbox // as found; its state and labels may have changed

	born *paddock.Status // status from Create; nil for an opened sandbox
}

func (s *sandbox) Born() (paddock.Status, bool) {
	if s.born == nil {
		return paddock.Status{}, false
	}
	return s.born.Clone(), true
}

func (s *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	if err == nil && !s.d.ts.is(st, s.b) {
		return paddock.Status{}, missing("sandbox", string(s.b.ID))
	}
	return plain(s.b.Since(st)), err
}

// there returns an error if the sandbox was removed since it was opened, because another
// may have its name.
func (s *sandbox) there(ctx context.Context) error {
	now, err := s.d.ts.o.Store.Sandbox(ctx, s.b.Tenant, s.b.ID)
	if err == nil && now.Token != s.b.Token {
		return missing("sandbox", string(s.b.ID))
	}
	return err
}

func (s *sandbox) Pause(ctx context.Context) error {
	if err := s.there(ctx); err != nil {
		return err
	}
	err := s.Sandbox.Pause(ctx)
	if err == nil {
		s.d.ts.note(ctx, s.b, s.Sandbox)
	}
	return err
}

func (s *sandbox) Resume(ctx context.Context) error {
	if err := s.there(ctx); err != nil {
		return err
	}
	err := s.Sandbox.Resume(ctx)
	if err == nil {
		s.d.ts.note(ctx, s.b, s.Sandbox)
	}
	return err
}

// Update reserves new limits before they apply. The reservation covers the old and the new
// limits until the driver's result is known. If it never is, because nobody answers, it
// covers both until the next change that succeeds. Changes of limits are serialised by locks.
func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	labels := u.Labels
	if labels != nil {
		if err := ordinary(labels); err != nil {
			return err
		}
		u.Labels = s.d.ts.owned(labels, s.b.Token)
	}
	leave, err := s.d.ts.enter(ctx, s.b.Token)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.there(ctx); err != nil {
		return err
	}
	before, err := s.reserve(ctx, u.Limits)
	if err != nil {
		return err
	}
	changed := s.Sandbox.Update(ctx, u)
	late, done := after(ctx) // the result must be stored even if the caller has gone
	defer done()
	settled := s.settle(late, u.Limits, before, changed)
	if changed != nil {
		return errors.Join(changed, settled)
	}
	if labels != nil {
		if err := s.d.ts.o.Store.LabelSandbox(late, s.b.Token, labels); err != nil {
			return errors.Join(fmt.Errorf("store the labels: %w", err), settled)
		}
	}
	s.d.ts.note(late, s.b, s.Sandbox)
	return settled
}

// reserve reserves new limits, and returns the earlier reservation. A limit of zero keeps the present one.
func (s *sandbox) reserve(ctx context.Context, l *paddock.Limits) (before store.Reserved, err error) {
	if l == nil {
		return before, nil
	}
	st, err := s.Sandbox.Status(ctx)
	if err != nil {
		return before, fmt.Errorf("read the present limits: %w", err)
	}
	info, err := s.d.ts.info(ctx, s.b.Tier)
	if err != nil {
		return before, err
	}
	asked, err := s.d.ts.reserve(s.b.Tier, *l, filled(st.Limits, info.Defaults))
	if err != nil {
		return before, err
	}
	return s.d.ts.o.Store.ReserveSandbox(ctx, s.b.Token, func(r store.Reserved) store.Reserved {
		return larger(r, asked)
	}, func(have *store.Total) error { return s.d.fits(have, asked) })
}

// settle reserves the limits that the sandbox has now. After a failed change it may have
// some of the new ones, and the earlier reservation is kept too. After the error Unavailable
// of a sandbox that lives, the change may still be made: the whole reservation is kept.
func (s *sandbox) settle(ctx context.Context, l *paddock.Limits, before store.Reserved, changed error) error {
	if l == nil {
		return nil
	}
	st, err := s.Sandbox.Status(ctx)
	if err != nil { // the whole reservation is kept
		return fmt.Errorf("read the new limits: %w", err)
	}
	has := s.d.ts.counted(s.b.Tier, st.Limits)
	switch {
	case changed == nil:
	case errors.Is(changed, paddock.Unavailable) && st.State != paddock.Dead:
		return nil
	default:
		has = larger(has, before)
	}
	return s.set(ctx, has)
}

// set stores a reservation without a check.
func (s *sandbox) set(ctx context.Context, r store.Reserved) error {
	_, err := s.d.ts.o.Store.ReserveSandbox(ctx, s.b.Token, func(store.Reserved) store.Reserved { return r }, func(*store.Total) error { return nil })
	return err
}

// larger returns the maximum of each field, because a driver may keep a higher limit.
func larger(a, b store.Reserved) store.Reserved {
	return store.Reserved{CPU: max(a.CPU, b.CPU), Memory: max(a.Memory, b.Memory), PIDs: max(a.PIDs, b.PIDs), Disk: max(a.Disk, b.Disk)}
}

func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	if err := s.there(ctx); err != nil {
		return "", err
	}
	st := s.d.ts.o.Store
	have, err := st.Total(ctx, s.d.tenant)
	if err != nil {
		return "", err
	}
	if err := s.d.keep(&have); err != nil { // an early check; the one below counts
		return "", err
	}
	id, err := s.Sandbox.Snapshot(ctx, o)
	if err != nil {
		return "", err
	}
	ctx, done := after(ctx)
	defer done()
	err = s.d.ts.needing(ctx, s.b.Tenant, s.b.Image, func() error {
		return st.AddSnapshot(ctx, store.Snapshot{
			ID: id, Place: s.b.Place, Tenant: s.b.Tenant, Sandbox: s.b.ID, Name: o.Name, Image: s.b.Image, Created: s.d.ts.o.Now().Round(0),
		}, s.d.keep)
	})
	if err != nil {
		return "", errors.Join(fmt.Errorf("store the snapshot: %w", err), s.d.ts.d.RemoveSnapshot(ctx, id))
	}
	return id, nil
}

// Remove also removes the sandbox if the store cannot be written, because that frees space.
func (s *sandbox) Remove(ctx context.Context) error { return s.d.ts.remove(ctx, s.b, s.Sandbox) }

// remove destroys a sandbox, and deletes its record when it is gone. A later sandbox of the
// same name stays.
func (ts *Set) remove(ctx context.Context, b store.Sandbox, sb paddock.Sandbox) error {
	if err := ts.o.Store.MarkSandbox(ctx, b.Token, store.Removing); errors.Is(err, paddock.NotFound) {
		return nil // it is already gone
	}
	asked, cancel := context.WithTimeout(ctx, noteTime)
	st, err := sb.Status(asked)
	gone := errors.Is(err, paddock.NotFound) || (err == nil && !ts.is(st, b))
	if err == nil { // otherwise the meter notices it by itself
		ts.noteThat(asked, b, st)
	}
	cancel()
	if !gone { // also if its state is unknown
		if err := sb.Remove(ctx); err != nil {
			return err
		}
	}
	ctx, done := after(ctx)
	defer done()
	return ts.forget(ctx, b)
}

// drop removes the sandbox of a record.
func (ts *Set) drop(ctx context.Context, b store.Sandbox) error {
	sb, err := ts.open(ctx, b)
	if errors.Is(err, paddock.NotFound) {
		return ts.forget(ctx, b)
	}
	if err != nil {
		return err
	}
	return ts.remove(ctx, b, sb)
}
