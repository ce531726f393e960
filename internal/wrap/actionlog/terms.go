package actionlog

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// A lessor records changes of terms.
type lessor struct {
	*driver
	k lease.Lessor
}

var _ lease.Lessor = lessor{}

func (k lessor) CreateWith(ctx context.Context, spec paddock.Spec, t lease.Terms) (paddock.Sandbox, error) {
	return k.create(ctx, spec, func(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
		return k.k.CreateWith(ctx, spec, t)
	})
}

// Terms is not recorded, because it only reads.
func (k lessor) Terms(ctx context.Context, id paddock.ID) (lease.Lease, error) {
	return k.k.Terms(ctx, id)
}

func (k lessor) Change(ctx context.Context, id paddock.ID, t lease.Terms) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.terms"}, func() error { return k.k.Change(ctx, id, t) })
}

func (k lessor) Extend(ctx context.Context, id paddock.ID, by time.Duration) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.extend", target: by.String()}, func() error { return k.k.Extend(ctx, id, by) })
}

func (k lessor) Renew(ctx context.Context, id paddock.ID) error {
	return k.do(ctx, deed{sandbox: id, what: "sandbox.renew"}, func() error { return k.k.Renew(ctx, id) })
}
