package actionlog

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// A keeper records what is done with the terms of sandboxes.
type keeper struct {
	*driver
	k lease.Keeper
}

var _ lease.Keeper = keeper{}

func (k keeper) CreateWith(ctx context.Context, spec paddock.Spec, t lease.Terms) (paddock.Sandbox, error) {
	return k.create(ctx, spec, func(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
		return k.k.CreateWith(ctx, spec, t)
	})
}

// Terms only looks, so it is not recorded.
func (k keeper) Terms(ctx context.Context, id paddock.ID) (lease.Lease, error) {
	return k.k.Terms(ctx, id)
}

func (k keeper) Change(ctx context.Context, id paddock.ID, t lease.Terms) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.terms"}, func() error { return k.k.Change(ctx, id, t) })
}

func (k keeper) Extend(ctx context.Context, id paddock.ID, by time.Duration) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.extend", target: by.String()}, func() error { return k.k.Extend(ctx, id, by) })
}

func (k keeper) Renew(ctx context.Context, id paddock.ID) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.renew"}, func() error { return k.k.Renew(ctx, id) })
}
