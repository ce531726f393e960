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

// Options is what a house needs.
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

// A House is a driver that tenants share. Make one with [New].
type House struct {
	d paddock.Driver
	o Options

	mu      sync.Mutex
	closed  bool                          // guarded by mu
	drivers map[string]*driver            // guarded by mu; by tenant
	infos   map[paddock.Tier]paddock.Info // guarded by mu; what was asked for
	turns   map[string]*turn              // guarded by mu; by token, while somebody is in one
}

// New gives a house. The driver is the house's from here on, and is closed with
// it; of an error it stays the caller's. Call [House.Adopt] before anything else.
func New(d paddock.Driver, o Options) (*House, error) {
	if o.Store == nil || o.Place == "" {
		return nil, fmt.Errorf("a house of tenants without a store or a place: %w", paddock.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &House{d: d, o: o, drivers: make(map[string]*driver), infos: make(map[paddock.Tier]paddock.Info), turns: make(map[string]*turn)}, nil
}

// Driver returns a tenant's driver: the same one each time, until it is closed. A
// tenant that is not in the store has nothing and can make nothing. Where the shared
// driver is a [lease.Keeper], the tenant's is one for its own sandboxes.
func (h *House) Driver(tenant string) paddock.Driver {
	d := h.driver(tenant)
	if k, ok := paddock.As[lease.Keeper](h.d); ok {
		return keeper{d, k}
	}
	return d
}

func (h *House) driver(tenant string) *driver {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.drivers[tenant]; d != nil {
		return d
	}
	d := &driver{h: h, tenant: tenant, maker: token(), closed: h.closed}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if h.closed {
		d.cancel()
	} else {
		h.drivers[tenant] = d
	}
	return d
}

// Close closes the drivers of all tenants, and the driver that they share.
// Closing twice is fine.
func (h *House) Close() error {
	h.mu.Lock()
	h.closed = true
	var all []*driver
	for _, d := range h.drivers {
		all = append(all, d)
	}
	h.mu.Unlock()
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Close())
	}
	return errors.Join(append(errs, h.d.Close())...)
}

// leave forgets a driver that was closed.
func (h *House) leave(d *driver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drivers[d.tenant] == d {
		delete(h.drivers, d.tenant)
	}
}

// info gives what the driver said first of a tier: which one it is and its defaults
// do not change.
func (h *House) info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	h.mu.Lock()
	known, ok := h.infos[tier]
	h.mu.Unlock()
	if ok {
		return known, nil
	}
	info, err := h.d.Info(ctx, tier)
	if err != nil {
		return info, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.infos[tier] = info
	return info, nil
}

// noteTime bounds what a meter waits for: it never holds up a removal.
const noteTime = 10 * time.Second

// note tells the meter how a sandbox is.
func (h *House) note(ctx context.Context, b store.Sandbox, sb paddock.Sandbox) {
	if h.o.Meter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if st, err := sb.Status(ctx); err == nil { // else the meter finds out by itself
		h.noteThat(ctx, b, st)
	}
}

// noteThat tells the meter that a sandbox is so.
func (h *House) noteThat(ctx context.Context, b store.Sandbox, st paddock.Status) {
	if h.o.Meter == nil {
		return
	}
	// Labels and limits may have changed since it was found.
	if now, err := h.o.Store.Sandbox(ctx, b.Tenant, b.ID); err == nil && now.Token == b.Token {
		b = now
	}
	h.o.Meter.Note(ctx, b, plain(b.Since(st)))
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
