package lifetime

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

// A Lessor is a driver whose sandboxes have terms: a [Driver], or a wrapper around one that
// forwards terms with its own checks. [Driver] documents the methods. [paddock.As] finds
// the Lessor of a driver.
type Lessor interface {
	paddock.Driver
	CreateWith(ctx context.Context, spec paddock.Spec, t Terms) (paddock.Sandbox, error)
	Terms(ctx context.Context, id paddock.ID) (Lease, error)
	Change(ctx context.Context, id paddock.ID, t Terms) error
	Extend(ctx context.Context, id paddock.ID, by time.Duration) error
	Renew(ctx context.Context, id paddock.ID) error
	Raise(ctx context.Context, id paddock.ID, by allowance.Raise) error
}

var _ Lessor = (*Driver)(nil)
