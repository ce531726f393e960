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
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// Options is what a set needs.
type Options struct {
	Store *store.Store

	// Place names the driver among all whose servers share the store. It stays
	// the same for as long as the driver's sandboxes do. It must be given.
	Place string

	// Now is the clock; nil is the machine's.
	Now func() time.Time

	// Meter is told of moments in the life of sandboxes; nil is no one.
	Meter Meter
}

// A Meter counts what sandboxes use.
type Meter interface {
	// Note is told how a sandbox is, at the moment that it was paused, resumed or
	// changed, and before it is removed.
	Note(ctx context.Context, b store.Sandbox, st paddock.Status)
}

// A Set is the tenants of one driver, which they share. Make one with [New].
type Set struct {
	d paddock.Driver
	o Options

	mu      sync.Mutex
	closed  bool                          // guarded by mu
	drivers map[string]*driver            // guarded by mu; by tenant
	infos   map[paddock.Tier]paddock.Info // guarded by mu; what was asked for
	locks   map[string]*lock              // guarded by mu; by token, while somebody is in one
}

// New returns a set that owns the driver, and closes it. After an error the driver stays
// the caller's. Call [Set.Adopt] before anything else.
func New(d paddock.Driver, o Options) (*Set, error) {
	if o.Store == nil || o.Place == "" {
		return nil, fmt.Errorf("a set of tenants without a store or a place: %w", paddock.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Set{d: d, o: o, drivers: make(map[string]*driver), infos: make(map[paddock.Tier]paddock.Info), locks: make(map[string]*lock)}, nil
}

// Driver relocks a tenant's driver: the same one each time, until it is closed. A
// tenant that is not in the store has nothing and can make nothing. Where the shared
// driver is a [lease.Lessor], the tenant's is one for its own sandboxes.
func (ts *Set) Driver(tenant string) paddock.Driver {
	d := ts.driver(tenant)
	if k, ok := paddock.As[lease.Lessor](ts.d); ok {
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
	d := &driver{ts: ts, tenant: tenant, maker: token(), closed: ts.closed}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if ts.closed {
		d.cancel()
	} else {
		ts.drivers[tenant] = d
	}
	return d
}

// Close closes the drivers of all tenants, and the driver that they share.
// Closing twice is fine.
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

// leave forgets a driver that was closed.
func (ts *Set) leave(d *driver) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.drivers[d.tenant] == d {
		delete(ts.drivers, d.tenant)
	}
}

// info gives what the driver said first of a tier: which one it is and its defaults
// do not change.
func (ts *Set) info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
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

// noteTime bounds what a meter waits for: it never holds up a removal.
const noteTime = 10 * time.Second

// note tells the meter how a sandbox is.
func (ts *Set) note(ctx context.Context, b store.Sandbox, sb paddock.Sandbox) {
	if ts.o.Meter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if st, err := sb.Status(ctx); err == nil { // else the meter finds out by itself
		ts.noteThat(ctx, b, st)
	}
}

// noteThat tells the meter that a sandbox is so.
func (ts *Set) noteThat(ctx context.Context, b store.Sandbox, st paddock.Status) {
	if ts.o.Meter == nil {
		return
	}
	// Labels and limits may have changed since it was found.
	if now, err := ts.o.Store.Sandbox(ctx, b.Tenant, b.ID); err == nil && now.Token == b.Token {
		b = now
	}
	ts.o.Meter.Note(ctx, b, plain(b.Since(st)))
}

// afterTime bounds what has to be done though its caller has gone.
const afterTime = time.Minute

// after gives a context for that.
func after(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterTime)
}

// token gives a name that nobody can guess, and that a sandbox can have.
func token() string { return strings.ToLower(rand.Text()) }

// missing is the one answer for what does not exist and what is another's.
func missing(what, id string) error { return fmt.Errorf("%s %s: %w", what, id, paddock.NotFound) }
