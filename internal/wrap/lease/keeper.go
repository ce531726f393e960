package lease

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Keeper is a driver whose sandboxes have terms: a [Driver], or a wrapper around
// one that passes terms on. Its methods are the Driver's. [Of] finds it.
type Keeper interface {
	paddock.Driver
	CreateWith(ctx context.Context, spec paddock.Spec, t Terms) (paddock.Sandbox, error)
	Terms(ctx context.Context, id paddock.ID) (Lease, error)
	Change(ctx context.Context, id paddock.ID, t Terms) error
	Extend(ctx context.Context, id paddock.ID, by time.Duration) error
	Renew(ctx context.Context, id paddock.ID) error
}

var _ Keeper = (*Driver)(nil)

// A Newborn is a sandbox that may know how it was when Create gave it. Each layer that
// has to know asks once; whoever made it need not ask again. Born is false for one
// that was opened.
type Newborn interface {
	Born() (paddock.Status, bool)
}

// Born gives the status of a sandbox that Create has just given, without asking it
// where it is known.
func Born(ctx context.Context, sb paddock.Sandbox) (paddock.Status, error) {
	if n, ok := sb.(Newborn); ok {
		if st, ok := n.Born(); ok {
			return st, nil
		}
	}
	return sb.Status(ctx)
}

// A Passer is a wrapper that passes terms on where there is a Keeper below it. It
// has none of a Keeper's methods itself, so that nothing takes it for what it may
// not be. Keeper gives one that does what the wrapper does, and false where there
// is none below.
type Passer interface {
	Keeper() (Keeper, bool)
}

// Of finds the Keeper that a driver is, or that a wrapper passes on. Whoever has
// it makes and changes sandboxes with all the checks of that driver; it is closed
// with the driver.
func Of(d paddock.Driver) (Keeper, bool) {
	if p, ok := d.(Passer); ok {
		return p.Keeper()
	}
	k, ok := d.(Keeper)
	return k, ok
}
