package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A driver belongs to one tenant. It has no Unwrap, because a tenant must not reach the
// shared driver.
type driver struct {
	ts     *Set
	tenant string
	maker  string // owner of its ephemeral sandboxes

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	making sync.WaitGroup // Creates in progress; Add only with mu held, before closed

	sweeping sweeping

	mu     sync.Mutex
	closed bool // guarded by mu
}

// Info returns the shared driver's Info.
func (d *driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if err := d.alive(); err != nil {
		return paddock.Info{}, err
	}
	return d.ts.d.Info(ctx, tier)
}

func (d *driver) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("the driver of tenant %s is closed: %w", d.tenant, paddock.Unavailable)
	}
	return nil
}

// begin keeps the driver open during a Create.
func (d *driver) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("the driver of tenant %s is closed: %w", d.tenant, paddock.Unavailable)
	}
	d.making.Add(1)
	return nil
}

// A tenantKey is the key of a tenant's ID in a context.
type tenantKey struct{}

// Of returns the ID of the tenant that a Create of the shared driver is for, from the context
// of that call. Otherwise it returns an empty text.
func Of(ctx context.Context) string {
	id, _ := ctx.Value(tenantKey{}).(string)
	return id
}

// An imageKey is the key of an image's digest in a context.
type imageKey struct{}

// ImageOf returns the digest of the image that a Create of the shared driver may take, from the context of that call. It is
// empty if the sandbox begins with none.
func ImageOf(ctx context.Context) string {
	digest, _ := ctx.Value(imageKey{}).(string)
	return digest
}

// Create implements paddock.Driver.
func (d *driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.create(ctx, spec, d.ts.d.Create)
}

// create makes a sandbox with a call of the shared driver.
func (d *driver) create(ctx context.Context, spec paddock.Spec, create func(context.Context, paddock.Spec) (paddock.Sandbox, error)) (paddock.Sandbox, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.making.Done()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, tenantKey{}, d.tenant))
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()

	b, err := d.plan(ctx, &spec)
	if err != nil {
		return nil, err
	}
	leave, err := d.ts.name(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := d.ts.needing(ctx, d.tenant, b.Image, func() error { return d.admit(ctx, b) }); err != nil {
		return nil, err
	}
	b.Limits, b.Spec = spec.Limits, paddock.Spec{} // the sandbox may stay open for long, and its spec may be large
	spec.Labels = d.ts.owned(spec.Labels, b.Token)
	sb, err := create(context.WithValue(ctx, imageKey{}, b.Image), spec)
	ctx, done := after(ctx)
	defer done()
	if err == nil {
		var made store.Sandbox
		var st paddock.Status
		if made, st, err = d.welcome(ctx, b, sb); err == nil {
			st = plain(made.Since(st))
			return &sandbox{sb, d, made, &st}, nil
		}
		if gone := sb.Remove(ctx); gone != nil && !errors.Is(gone, paddock.NotFound) {
			err = errors.Join(err, lifetime.ErrLeft, gone)
		}
	}
	if errors.Is(err, lifetime.ErrLeft) { // it still exists and counts, until its tenant or the next Adopt removes it
		return nil, errors.Join(err, d.ts.o.Store.MarkSandbox(ctx, b.Token, store.Removing))
	}
	return nil, errors.Join(err, d.ts.forget(ctx, b))
}

// welcome stores the result of a creation. The driver has chosen tier and limits, because a
// snapshot has its own limits and each tier its defaults. An amount beyond the request must
// also fit into the quota.
func (d *driver) welcome(ctx context.Context, b store.Sandbox, sb paddock.Sandbox) (store.Sandbox, paddock.Status, error) {
	st, err := paddock.FirstStatus(ctx, sb)
	if err != nil {
		return b, st, fmt.Errorf("sandbox %s was made, but its status cannot be read: %w", sb.ID(), err)
	}
	most := larger(b.Reserved, d.ts.counted(st.Tier, st.Limits))
	if most != b.Reserved {
		_, err := d.ts.o.Store.ReserveSandbox(ctx, b.Token, func(store.Reserved) store.Reserved { return most },
			func(have *store.Total) error { return d.fits(have, most) })
		if err != nil {
			return b, st, fmt.Errorf("sandbox %s got more than was requested: %w", sb.ID(), err)
		}
	}
	b.ID, b.State, b.Tier, b.Reserved = sb.ID(), store.Ready, cmp.Or(st.Tier, b.Tier), most
	if err := d.ts.o.Store.ReadySandbox(ctx, b.Token, b.ID, b.Tier); err != nil {
		return b, st, fmt.Errorf("sandbox %s was made, but could not be stored: %w", b.ID, err)
	}
	return b, st, nil
}

// plan returns the record for a spec, if the tenant may ask for it. It resolves the spec's image.
func (d *driver) plan(ctx context.Context, spec *paddock.Spec) (store.Sandbox, error) {
	var none store.Sandbox
	if spec.ID != "" && !spec.ID.Valid() {
		return none, fmt.Errorf("sandbox %.64q: 1 to 63 lower-case letters, digits and dashes: %w", spec.ID, paddock.Invalid)
	}
	if err := ordinary(spec.Labels); err != nil {
		return none, err
	}
	image, err := d.root(ctx, spec)
	if err != nil {
		return none, err
	}
	info, err := d.ts.info(ctx, spec.Tier)
	if err != nil {
		return none, err
	}
	reserved, err := d.ts.reserve(spec.Tier, spec.Limits, info.Defaults)
	if err != nil {
		return none, err
	}
	b := store.Sandbox{
		ID: spec.ID, Tenant: d.tenant, Token: token(), Place: d.ts.o.Place, Tier: spec.Tier, Spec: *spec, Image: image,
		Labels: maps.Clone(spec.Labels), State: store.Making, Created: d.ts.o.Now().Round(0), Reserved: reserved,
	}
	if b.ID == "" { // the driver chooses the name, because a ready sandbox has one
		b.ID = paddock.ID(token())
	}
	if b.Tier == paddock.Auto {
		b.Tier = info.Tier
	}
	if spec.Ephemeral {
		b.Maker = d.maker
	}
	return b, nil
}

// admit stores a sandbox if the quota has room. If not, it first looks for sandboxes that
// ended by themselves.
func (d *driver) admit(ctx context.Context, b store.Sandbox) error {
	add := func() error {
		err := d.ts.o.Store.AddSandbox(ctx, b, func(have *store.Total) error { return d.room(have, b.Reserved, b.Created) })
		if kind := paddock.KindOf(err); err != nil && (kind == paddock.Canceled || kind == paddock.Timeout || kind == paddock.Unavailable) {
			late, done := after(ctx) // it may have been stored all the same
			defer done()
			return errors.Join(err, d.ts.o.Store.ForgetSandbox(late, b.Token))
		}
		return err
	}
	err := add()
	found := false
	switch {
	case errors.Is(err, errQuota):
		var failed error
		if found, failed = d.sweep(ctx); failed != nil {
			return errors.Join(err, failed)
		}
	case d.ts.o.Whole && errors.Is(err, paddock.Exists): // a sandbox of the whole driver can end without a call of this one
		have, failed := d.ts.o.Store.Sandbox(ctx, d.tenant, b.ID)
		if failed == nil && d.ended(ctx, have) {
			found, failed = true, d.ts.forget(ctx, have)
		}
		found = found || errors.Is(failed, paddock.NotFound) // forgotten meanwhile
		if failed != nil && !errors.Is(failed, paddock.NotFound) {
			return errors.Join(err, failed)
		}
	}
	if found {
		err = add()
	}
	if errors.Is(err, paddock.Exists) { // without the words of the database
		return fmt.Errorf("sandbox %s: %w", b.ID, paddock.Exists)
	}
	return err
}

const (
	// sweepEach is the minimum time between two sweeps of a tenant, because a refused Create
	// costs the tenant nothing.
	sweepEach = time.Second

	// sweepTime bounds a sweep. Sandboxes that do not answer in time keep their records.
	sweepTime = 10 * time.Second
)

// A sweeping is what the sweeps of a tenant share. Only the sweep in progress, which has its
// turn, reads and writes the other fields.
type sweeping struct {
	turn  chan struct{} // has one value during a sweep
	over  time.Time     // end of the last sweep
	found bool          // the last sweep deleted a record
}

// sweep deletes records of the tenant's sandboxes that ended by themselves, and reports
// whether there were any. It asks for no sandbox of another tenant. One sweep is in progress
// at a time, and within sweepEach after it the answer is that of the last one.
func (d *driver) sweep(ctx context.Context) (found bool, err error) {
	s := &d.sweeping
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait for a look at the sandboxes that count: %w", stopped(ctx))
	}
	if ago := d.ts.o.Now().Sub(s.over); ago >= 0 && ago < sweepEach {
		return s.found, nil
	}
	// The caller may give up, and others wait for the result.
	ctx, done := after(ctx)
	defer done()
	defer context.AfterFunc(d.ctx, done)()
	defer func() { s.over, s.found = d.ts.o.Now(), found }()
	rows, err := d.ts.o.Store.Sandboxes(ctx, d.tenant, d.ts.o.Place)
	if err != nil {
		return false, err
	}
	bound, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	gone := make([]bool, len(rows))
	several(len(rows), func(i int) { gone[i] = d.ended(bound, rows[i]) })
	for i, b := range rows {
		if !gone[i] {
			continue
		}
		if err := d.ts.forget(ctx, b); err != nil {
			return found, err
		}
		found = true
	}
	return found, nil
}

// ended reports whether a record counts a sandbox that no longer exists. A sandbox that does
// not answer counts, because what is forgotten runs on without a quota.
func (d *driver) ended(ctx context.Context, b store.Sandbox) bool {
	if b.State != store.Ready || b.Place != d.ts.o.Place || b.Maker != "" && b.Maker != d.maker {
		return false
	}
	_, err := d.ts.open(ctx, b)
	return errors.Is(err, paddock.NotFound)
}

// Open implements paddock.Driver.
func (d *driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	b, err := d.ts.o.Store.Sandbox(ctx, d.tenant, id)
	switch {
	case d.ts.o.Whole && errors.Is(err, paddock.NotFound):
		return d.openForeign(ctx, id)
	case err != nil:
		return nil, err
	case b.State == store.Making:
		return nil, missing("sandbox", string(id))
	case b.Place != d.ts.o.Place:
		return nil, fmt.Errorf("sandbox %s is at %s, but this server is for %s: %w", id, b.Place, d.ts.o.Place, paddock.NotFound)
	case b.State == store.Lost:
		return &lost{d.ts, b}, nil
	}
	sb, err := d.ts.open(ctx, b)
	if errors.Is(err, paddock.NotFound) && (b.Maker == "" || b.Maker == d.maker) {
		// It ended by itself, at the end of its time or with its process. Another sandbox
		// may have its name.
		if forgotten := d.ts.forget(ctx, b); forgotten != nil || !d.ts.o.Whole {
			return nil, errors.Join(err, forgotten)
		}
		return d.openForeign(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d, b, nil}, nil
}

// listAtOnce is how many sandboxes of a tenant are asked for their status at the same time.
const listAtOnce = 16

// several calls a function for each index of a list, listAtOnce at the same time.
func several(n int, ask func(i int)) {
	var asking sync.WaitGroup
	places := make(chan struct{}, listAtOnce)
	for i := range n {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			ask(i)
		})
	}
	asking.Wait()
}

// List implements paddock.Driver.
func (d *driver) List(ctx context.Context) ([]paddock.Status, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	rows, err := d.ts.o.Store.Sandboxes(ctx, d.tenant, d.ts.o.Place)
	if err != nil {
		return nil, err
	}
	if d.ts.o.Whole {
		return d.ts.listWhole(ctx, rows)
	}
	// Ask for each sandbox separately, so that the list does not ask for those of all tenants, and
	// for several at once, because some may not answer.
	states, errs := make([]paddock.Status, len(rows)), make([]error, len(rows))
	several(len(rows), func(i int) {
		switch b := rows[i]; b.State {
		case store.Lost:
			states[i] = told(b)
		case store.Ready, store.Removing:
			if states[i], errs[i] = d.ts.look(ctx, b); errs[i] == nil {
				states[i] = plain(b.Since(states[i]))
			}
		case store.Making: // its creator does not have it yet
			errs[i] = paddock.NotFound
		}
	})
	var list []paddock.Status
	for i, err := range errs {
		switch {
		case err == nil:
			list = append(list, states[i])
		case errors.Is(err, paddock.NotFound) || errors.Is(err, paddock.Unavailable): // it ends, or has ended
		default:
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b paddock.Status) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// RemoveSnapshot implements paddock.Driver. A snapshot of another tenant appears as
// missing, and stays.
func (d *driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	if err := d.alive(); err != nil {
		return err
	}
	if name := string(id); name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("snapshot %.64q is not a valid name: %w", id, paddock.Invalid)
	}
	n, err := d.ts.o.Store.Snapshot(ctx, d.tenant, d.ts.o.Place, id)
	if errors.Is(err, paddock.NotFound) && !d.ts.o.Whole {
		return nil
	}
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	if err := d.ts.d.RemoveSnapshot(ctx, id); err != nil {
		return err
	}
	return d.ts.released(ctx, d.tenant, n.Image, func() error { return d.ts.o.Store.ForgetSnapshot(ctx, d.tenant, d.ts.o.Place, id) })
}

// Close releases this tenant's driver, not the shared one, and removes its ephemeral
// sandboxes.
func (d *driver) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	d.mu.Unlock()
	if again {
		return nil
	}
	d.cancel()
	d.making.Wait()
	d.ts.leave(d)
	ctx := context.Background()
	rows, err := d.ts.o.Store.Sandboxes(ctx, d.tenant, d.ts.o.Place)
	errs := []error{err}
	for _, b := range rows {
		if b.Maker == d.maker {
			errs = append(errs, d.ts.drop(ctx, b))
		}
	}
	return errors.Join(errs...)
}
