package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// An Adoption is what a server found at its start.
type Adoption struct {
	Kept    []paddock.ID // complete in both store and driver
	Removed []paddock.ID // incomplete, or without a record
	Lost    []paddock.ID // the driver does not know them any more
	Left    []paddock.ID // sandboxes of the driver that belong to no tenant or to another place
}

// Adopt makes store and driver consistent after a crash. Call it at the start of the
// server, before anything is made at this place. It continues after an error and returns
// the errors.
func (ts *Set) Adopt(ctx context.Context) (Adoption, error) {
	var a Adoption
	list, err := ts.d.List(ctx)
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	// Read the records after List, because a record is stored before the creation. Read
	// those of every place, because a server with another name may have made a sandbox
	// here.
	rows, err := ts.o.Store.Sandboxes(ctx, "", "")
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	var errs []error
	type record struct {
		here bool       // at this place
		id   paddock.ID // ID of its sandbox, if that exists
	}
	known := make(map[string]record, len(rows))
	for _, b := range rows {
		mark := ts.mark(b.Token)
		if b.Place != ts.o.Place {
			known[mark] = record{}
			continue
		}
		// Match by the mark, because before the creation the name is unknown if the driver
		// chooses it.
		i := slices.IndexFunc(list, func(st paddock.Status) bool {
			return st.Labels[Label] == mark && (st.ID == b.ID || b.State == store.Making)
		})
		known[mark] = record{here: true}
		if i >= 0 {
			b.ID = list[i].ID
			known[mark] = record{true, b.ID}
		}
		errs = append(errs, ts.adopt(ctx, b, i >= 0, &a))
	}
	ours := Marked(ts.o.Store.ID())
	for _, st := range list {
		switch rec, known := known[st.Labels[Label]]; {
		case rec.here && rec.id == st.ID:
		case rec.here, ours(st) && !known: // the first was replaced by another with the same mark
			a.Removed = append(a.Removed, st.ID)
			errs = append(errs, ts.destroy(ctx, st))
		default:
			a.Left = append(a.Left, st.ID)
		}
	}
	errs = append(errs, ts.settle(ctx))
	if err := errors.Join(errs...); err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	return a, nil
}

// adopt makes one record and the driver consistent.
func (ts *Set) adopt(ctx context.Context, b store.Sandbox, there bool, a *Adoption) error {
	switch {
	case b.State == store.Making, b.State == store.Removing, b.Maker != "" && !there:
		a.Removed = append(a.Removed, b.ID)
		if !there { // another sandbox has its name
			return ts.forget(ctx, b)
		}
		return ts.drop(ctx, b)
	case there:
		a.Kept = append(a.Kept, b.ID)
		if b.State == store.Lost { // it was found again
			return ts.o.Store.MarkSandbox(ctx, b.Token, store.Ready)
		}
		return nil
	}
	a.Lost = append(a.Lost, b.ID)
	if ts.o.Whole { // its user may have removed it without this driver
		return ts.forget(ctx, b)
	}
	return ts.o.Store.MarkSandbox(ctx, b.Token, store.Lost)
}

// destroy removes a sandbox without a record.
func (ts *Set) destroy(ctx context.Context, found paddock.Status) error {
	sb, err := ts.d.Open(ctx, found.ID)
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, err := sb.Status(ctx); err != nil || st.Labels[Label] != found.Labels[Label] {
		return err // another sandbox has its name
	}
	return sb.Remove(ctx)
}
