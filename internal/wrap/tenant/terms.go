package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A lessor is a tenant's driver if the shared driver has terms. The shared driver knows
// sandboxes by name, and a name may soon belong to another tenant. So each call locks the
// name against a new sandbox.
type lessor struct {
	*driver
	k lifetime.Lessor
}

var _ lifetime.Lessor = lessor{}

// CreateWith is Create with these terms.
func (k lessor) CreateWith(ctx context.Context, spec paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	return k.create(ctx, spec, func(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
		return k.k.CreateWith(ctx, spec, t)
	})
}

func (k lessor) Terms(ctx context.Context, id paddock.ID) (l lifetime.Lease, err error) {
	err = k.with(ctx, id, func(ctx context.Context) error {
		l, err = k.k.Terms(ctx, id)
		return err
	})
	return l, err
}

func (k lessor) Change(ctx context.Context, id paddock.ID, t lifetime.Terms) error {
	return k.with(ctx, id, func(ctx context.Context) error {
		if k.ts.o.Whole {
			if _, err := k.ts.o.Store.Sandbox(ctx, k.tenant, id); errors.Is(err, paddock.NotFound) {
				return fmt.Errorf("sandbox %s was made by another server, which keeps its terms: %w", id, paddock.Conflict)
			}
		}
		return k.k.Change(ctx, id, t)
	})
}

func (k lessor) Extend(ctx context.Context, id paddock.ID, by time.Duration) error {
	return k.with(ctx, id, func(ctx context.Context) error { return k.k.Extend(ctx, id, by) })
}

func (k lessor) Renew(ctx context.Context, id paddock.ID) error {
	return k.with(ctx, id, func(ctx context.Context) error { return k.k.Renew(ctx, id) })
}

func (k lessor) Raise(ctx context.Context, id paddock.ID, by allowance.Raise) error {
	return k.with(ctx, id, func(ctx context.Context) error { return k.k.Raise(ctx, id, by) })
}

// with calls a function with the name of the tenant's sandbox while the name is locked.
func (k lessor) with(ctx context.Context, id paddock.ID, call func(context.Context) error) error {
	leave, err := k.ts.name(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	sb, err := k.Open(ctx, id)
	if err != nil {
		return err
	}
	if l, ok := sb.(*lost); ok {
		return l.gone()
	}
	if err := call(ctx); err != nil {
		return err
	}
	if own, ok := sb.(*sandbox); ok { // it may have been resumed
		k.ts.note(ctx, own.b, own.Sandbox)
	}
	return nil
}
