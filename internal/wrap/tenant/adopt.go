package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// An Adoption is what a server found when it began.
type Adoption struct {
	Kept    []paddock.ID // whole, and known to both sides
	Removed []paddock.ID // halfway, or forgotten by the store
	Lost    []paddock.ID // not known to the driver any more
	Left    []paddock.ID // of the driver, and not made for a tenant, or at another place
}

// Adopt brings store and driver to agree, after whatever befell the server. It is
// called when the server begins, before anything is made at this place. What cannot
// be removed is told, and the rest is done.
func (ts *Set) Adopt(ctx context.Context) (Adoption, error) {
	var a Adoption
	list, err := ts.d.List(ctx)
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	// After List: what is written down is written before it is made. Of every
	// place, since a server with another name may have made what is here.
	rows, err := ts.o.Store.Sandboxes(ctx, "", "")
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	var errs []error
	type record struct {
		here bool       // at this place
		id   paddock.ID // of the sandbox that it is of, if that is there
	}
	known := make(map[string]record, len(rows))
	for _, b := range rows {
		mark := ts.mark(b.Token)
		if b.Place != ts.o.Place {
			known[mark] = record{}
			continue
		}
		// By its mark: before it was made its name is not known where the driver
		// chose it.
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
		case rec.here, ours(st) && !known: // the first was given up for another of the same mark
			a.Removed = append(a.Removed, st.ID)
			errs = append(errs, ts.destroy(ctx, st))
		default:
			a.Left = append(a.Left, st.ID)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	return a, nil
}

// adopt brings one record and the driver to agree.
func (ts *Set) adopt(ctx context.Context, b store.Sandbox, there bool, a *Adoption) error {
	switch {
	case b.State == store.Making, b.State == store.Removing, b.Maker != "" && !there:
		a.Removed = append(a.Removed, b.ID)
		if !there { // what has its name now is another
			return ts.o.Store.ForgetSandbox(ctx, b.Token)
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
	return ts.o.Store.MarkSandbox(ctx, b.Token, store.Lost)
}

// destroy removes a sandbox that no record is of.
func (ts *Set) destroy(ctx context.Context, found paddock.Status) error {
	sb, err := ts.d.Open(ctx, found.ID)
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, err := sb.Status(ctx); err != nil || st.Labels[Label] != found.Labels[Label] {
		return err // what has its name by now is another
	}
	return sb.Remove(ctx)
}
