package actionlog

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A lessor records changes of terms.
type lessor struct {
	*driver
	k lifetime.Lessor
}

var _ lifetime.Lessor = lessor{}

func (k lessor) CreateWith(ctx context.Context, spec paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	return k.create(ctx, spec, func(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
		return k.k.CreateWith(ctx, spec, t)
	})
}

// Terms is not recorded, because it only reads.
func (k lessor) Terms(ctx context.Context, id paddock.ID) (lifetime.Lease, error) {
	return k.k.Terms(ctx, id)
}

func (k lessor) Change(ctx context.Context, id paddock.ID, t lifetime.Terms) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.terms"}, func() error { return k.k.Change(ctx, id, t) })
}

func (k lessor) Extend(ctx context.Context, id paddock.ID, by time.Duration) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.extend", target: by.String()}, func() error { return k.k.Extend(ctx, id, by) })
}

func (k lessor) Renew(ctx context.Context, id paddock.ID) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.renew"}, func() error { return k.k.Renew(ctx, id) })
}

func (k lessor) Raise(ctx context.Context, id paddock.ID, by allowance.Raise) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.budget", target: by.Words()}, func() error { return k.k.Raise(ctx, id, by) })
}
