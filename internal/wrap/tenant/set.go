package tenant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// Options are the dependencies of a set.
type Options struct {
	Store *store.Store

	// Place names the driver among all drivers of servers that share the store. It must
	// stay the same as long as the driver's sandboxes exist. It is required.
	Place string

	// Now is the clock. Nil is time.Now.
	Now func() time.Time

	// Meter is notified of changes of sandboxes. It may be nil.
	Meter Meter

	// Images are the images of tenants. Nil refuses all.
	Images Images

	// Whole is set if the only tenant is the user who owns the driver. It opens, lists and removes
	// every sandbox of the driver. Only those that it made have a record, and are metered.
	Whole bool
}

// A Meter measures the usage of sandboxes.
type Meter interface {
	// Note is called with the status of a sandbox after it was paused, resumed or changed,
	// and before it is removed.
	Note(ctx context.Context, b store.Sandbox, st paddock.Status)
}

// A Set is the tenants of one shared driver.
type Set struct {
	d paddock.Driver
	o Options

	mu      sync.Mutex
	closed  bool                          // guarded by mu
	drivers map[string]*driver            // guarded by mu; by tenant
	infos   map[paddock.Tier]paddock.Info // guarded by mu; the first Info of each tier
	locks   map[string]*lock              // guarded by mu; by token, while in use
	needs   map[string]*need              // guarded by mu; by tenant and image, while records are stored
}

// New returns a set that owns the driver and closes it. After an error, the driver still
// belongs to the caller. Call [Set.Adopt] before anything else.
func New(d paddock.Driver, o Options) (*Set, error) {
	if o.Store == nil || o.Place == "" {
		return nil, fmt.Errorf("a set of tenants needs a store and a place: %w", paddock.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Set{d: d, o: o, drivers: make(map[string]*driver), infos: make(map[paddock.Tier]paddock.Info), locks: make(map[string]*lock), needs: make(map[string]*need)}, nil
}

// Driver returns the driver of a tenant: the same one at each call, until it is closed. A
// tenant that is not in the store has no sandboxes and cannot make any. If the shared
// driver is a [lifetime.Lessor], the tenant's driver is one for its own sandboxes.
func (ts *Set) Driver(tenant string) paddock.Driver {
	d := ts.driver(tenant)
	if k, ok := paddock.As[lifetime.Lessor](ts.d); ok {
		return lessor{d, k}
	}
	return d
}

func (ts *Set) driver(tenant string) *driver {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if d := ts.drivers[tenant]; d != nil {
		return d
	}
	d := &driver{ts: ts, tenant: tenant, maker: token(), closed: ts.closed, sweeping: sweeping{turn: make(chan struct{}, 1)}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if ts.closed {
		d.cancel()
	} else {
		ts.drivers[tenant] = d
	}
	return d
}

// Close closes the drivers of all tenants, and the shared driver. A second Close does
// nothing.
func (ts *Set) Close() error {
	ts.mu.Lock()
	ts.closed = true
	var all []*driver
	for _, d := range ts.drivers {
		all = append(all, d)
	}
	ts.mu.Unlock()
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Close())
	}
	return errors.Join(append(errs, ts.d.Close())...)
}

// leave drops a closed driver.
func (ts *Set) leave(d *driver) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.drivers[d.tenant] == d {
		delete(ts.drivers, d.tenant)
	}
}

// info returns the driver's first Info of a tier, because tier and defaults do not change. For the
// owner of the whole driver nothing has to be reserved before it is made, and Info may try a sandbox.
func (ts *Set) info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if ts.o.Whole {
		return paddock.Info{Tier: tier}, nil
	}
	ts.mu.Lock()
	known, ok := ts.infos[tier]
	ts.mu.Unlock()
	if ok {
		return known, nil
	}
	info, err := ts.d.Info(ctx, tier)
	if err != nil {
		return info, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.infos[tier] = info
	return info, nil
}

// noteTime bounds a call of the meter, so that it never delays a removal for long.
const noteTime = 10 * time.Second

// note passes the status of a sandbox to the meter.
func (ts *Set) note(ctx context.Context, b store.Sandbox, sb paddock.Sandbox) {
	if ts.o.Meter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if st, err := sb.Status(ctx); err == nil { // otherwise the meter notices it by itself
		ts.noteThat(ctx, b, st)
	}
}

// noteThat passes a given status to the meter.
func (ts *Set) noteThat(ctx context.Context, b store.Sandbox, st paddock.Status) {
	if ts.o.Meter == nil {
		return
	}
	// Labels and limits may have changed since it was read.
	if now, err := ts.o.Store.Sandbox(ctx, b.Tenant, b.ID); err == nil && now.Token == b.Token {
		b = now
	}
	ts.o.Meter.Note(ctx, b, plain(b.Since(st)))
}

// afterTime bounds work that must be done even if the caller has gone.
const afterTime = time.Minute

// after returns a context for such work.
func after(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterTime)
}

// token returns an unguessable name that is valid as an ID.
func token() string { return strings.ToLower(rand.Text()) }

// missing is the error for what does not exist or belongs to another tenant.
func missing(what, id string) error { return fmt.Errorf("%s %s: %w", what, id, paddock.NotFound) }
