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
	Left    []paddock.ID // of the driver, and not made for a tenant
}

// Adopt brings store and driver to agree, after whatever befell the server. It is
// called when the server begins, before anything is made at this place. What cannot
// be removed is told, and the rest is done.
func (h *House) Adopt(ctx context.Context) (Adoption, error) {
	var a Adoption
	rows, err := h.o.Store.Sandboxes(ctx, "", h.o.Place)
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	list, err := h.d.List(ctx)
	if err != nil {
		return a, fmt.Errorf("adopt sandboxes: %w", err)
	}
	var errs []error
	known := make(map[string]bool, len(rows))
	for _, b := range rows {
		known[h.mark(b.Token)] = true
		// By its mark, since its name may have been chosen by the driver.
		i := slices.IndexFunc(list, func(st paddock.Status) bool { return st.Labels[Label] == h.mark(b.Token) })
		if i >= 0 {
			b.ID = list[i].ID
		}
		errs = append(errs, h.adopt(ctx, b, i >= 0, &a))
	}
	for _, st := range list {
		switch {
		case known[st.Labels[Label]]:
		case h.ours(st):
			a.Removed = append(a.Removed, st.ID)
			errs = append(errs, h.destroy(ctx, st.ID))
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
func (h *House) adopt(ctx context.Context, b store.Sandbox, there bool, a *Adoption) error {
	switch {
	case b.State == store.Making, b.State == store.Removing, b.Maker != "" && !there:
		a.Removed = append(a.Removed, b.ID)
		if !there { // what has its name now is another
			return h.o.Store.ForgetSandbox(ctx, b.Token)
		}
		return h.drop(ctx, b)
	case there:
		a.Kept = append(a.Kept, b.ID)
		if b.State == store.Lost { // it was found again
			return h.o.Store.MarkSandbox(ctx, b.Token, store.Ready)
		}
		return nil
	}
	a.Lost = append(a.Lost, b.ID)
	return h.o.Store.MarkSandbox(ctx, b.Token, store.Lost)
}

// destroy removes a sandbox that no record is of.
func (h *House) destroy(ctx context.Context, id paddock.ID) error {
	sb, err := h.d.Open(ctx, id)
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return sb.Remove(ctx)
}
