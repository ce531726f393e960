package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options say what holds for all sandboxes.
type Options struct {
	// Store keeps lifetimes over restarts; nil keeps them in memory.
	Store Store

	// Default is the terms of a plain Create, and of sandboxes without a record.
	Default Terms

	// Of tells which of the driver's sandboxes are those that were made by way of
	// this one; of others, whatever was written down of their names, nothing is
	// ended or paused. nil is all.
	Of func(paddock.Status) bool

	// Longest is how long a sandbox stays at the most, whatever its terms: then it
	// is removed, also one that is paused. Zero is no bound.
	Longest time.Duration

	// Grace is how long nothing is ended after a start, and by the wall clock
	// after it jumped; zero is a minute.
	Grace time.Duration

	// Wall is what a person's clock says; nil is time.Now.
	Wall func() time.Time

	// Log is told what was removed, and what goes wrong; nil is no one.
	Log *slog.Logger

	// Ended is told that a sandbox was removed because its time was over, and by
	// which one. It must not block. nil is no one.
	Ended func(Why)
}

// A Driver gives the sandboxes of another lifetimes. Make one with [New].
type Driver struct {
	inner paddock.Driver
	store Store
	o     Options
	log   *slog.Logger
	clock *clock
	rung  chan struct{} // has one where the worker is to look again
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
	end   func() error // what Close does, once

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	entries map[paddock.ID]*entry // guarded by mu
	queue   queue                 // guarded by mu
	graves  graves                // guarded by mu
}

// New goes on with the sandboxes that d has, by their records. The driver is the
// new one's from here on, and is closed with it. Of an error it stays the
// caller's.
func New(ctx context.Context, d paddock.Driver, o Options) (*Driver, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	l := &Driver{inner: d, store: o.Store, log: o.Log, rung: make(chan struct{}, 1), entries: make(map[paddock.ID]*entry)}
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	if l.store == nil {
		l.store = &Memory{}
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.o, l.clock = o, newClock(o.Wall)
	if err := l.can(ctx, o.Default, paddock.Auto); err != nil {
		return nil, fmt.Errorf("default %w", err)
	}
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.end = sync.OnceValue(l.shut)
	l.wg.Go(func() { l.work(l.ctx) })
	return l, nil
}

// Check refuses what New would, whatever there is.
func (o Options) Check() error {
	if o.Longest < 0 || o.Grace < 0 {
		return fmt.Errorf("a longest lifetime of %v, a grace of %v: %w", o.Longest, o.Grace, paddock.Invalid)
	}
	if err := o.Default.check(); err != nil {
		return fmt.Errorf("default %w", err)
	}
	return nil
}

// load joins records and sandboxes.
func (d *Driver) load(ctx context.Context) error {
	records, err := d.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read lifetimes: %w", err)
	}
	all, err := d.inner.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	there := make(map[paddock.ID]*paddock.Status, len(all))
	for i := range all {
		there[all[i].ID] = &all[i]
	}
	slices.SortStableFunc(records, func(a, b Record) int { return a.Ended.Compare(b.Ended) }) // as they are buried
	for _, rec := range records {
		switch st := there[rec.ID]; {
		case st != nil && rec.Ended.IsZero() && d.ours(*st):
			e := newEntry(d, rec)
			e.found()
			d.entries[rec.ID] = e
		case st != nil: // another one has its name
			e := d.without(ctx, *st)
			e.rec.Version = rec.Version
			d.entries[rec.ID] = e
		case rec.Ending != "": // it was removed, and the end of that not written down
			if rec.Ended.IsZero() {
				rec.Ended = d.clock.now()
			}
			d.bury(ctx, rec)
		default: // it went by itself, as an ephemeral one does
			if err := d.store.Delete(ctx, rec.ID, rec.Version); err != nil && !errors.Is(err, paddock.Conflict) {
				return fmt.Errorf("remove the record of sandbox %s, which is gone: %w", rec.ID, err)
			}
		}
	}
	for _, st := range all {
		if d.entries[st.ID] == nil {
			d.entries[st.ID] = d.without(ctx, st)
		}
	}
	for _, e := range d.entries {
		d.schedule(e)
	}
	return nil
}

func (d *Driver) ours(st paddock.Status) bool { return d.o.Of == nil || d.o.Of(st) }

// without gives the entry of a sandbox that nobody wrote anything down of: from
// now on it has the default's terms, or none if it is not one of ours.
// They are written with the first change.
func (d *Driver) without(ctx context.Context, st paddock.Status) *entry {
	now := d.clock.now()
	rec := Record{ID: st.ID, Created: now, Written: now}
	if d.ours(st) {
		// Where the tier cannot be asked, the pause is tried when it is due.
		if rec.Terms = d.o.Default; errors.Is(d.can(ctx, rec.Terms, st.Tier), paddock.Unsupported) {
			rec.Terms = rec.Terms.unpaused()
		}
		rec.Deadline, rec.Wall = rec.Terms.deadline(now, now, d.o.Longest)
	}
	e := newEntry(d, rec)
	e.found()
	return e
}

func errClosed() error { return fmt.Errorf("the driver is closed: %w", paddock.Unavailable) }

// spawn runs something that Close ends and waits for, unless it was called.
func (d *Driver) spawn(f func(ctx context.Context)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wg.Go(func() { f(d.ctx) })
	return true
}

func (d *Driver) all() []*entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]*entry, 0, len(d.entries))
	for _, e := range d.entries {
		all = append(all, e)
	}
	return all
}

// forget takes out a sandbox that is gone; its name may be another's by now.
func (d *Driver) forget(e *entry) {
	d.mu.Lock()
	if d.entries[e.id] == e {
		delete(d.entries, e.id)
	}
	d.mu.Unlock()
	d.schedule(e)
}

// bury keeps what can be told of a sandbox that was removed.
func (d *Driver) bury(ctx context.Context, rec Record) {
	d.mu.Lock()
	old := d.graves.add(rec, d.clock.now())
	d.mu.Unlock()
	for _, rec := range old {
		if err := d.store.Delete(ctx, rec.ID, rec.Version); err != nil && !errors.Is(err, paddock.Conflict) {
			d.log.Warn("an old record could not be removed", "id", rec.ID, "err", err)
		}
	}
}

// Info is the driver's.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

// Open implements paddock.Driver. Of a sandbox that was removed for its terms
// the error says why.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.inner.Open(ctx, id)
	if errors.Is(err, paddock.NotFound) {
		d.mu.Lock()
		rec, ok := d.graves.find(id, d.clock.now())
		d.mu.Unlock()
		if ok {
			return nil, fmt.Errorf("sandbox %s was removed %s: %w", id, rec.words(rec.Ending), paddock.NotFound)
		}
	}
	if err != nil {
		return nil, err
	}
	e, err := d.entry(ctx, sb)
	if err != nil {
		return nil, err
	}
	return &sandbox{Sandbox: sb, e: e}, nil
}

// entry finds what is known of a sandbox that is there, also of one that another
// driver on the same store has made.
func (d *Driver) entry(ctx context.Context, sb paddock.Sandbox) (*entry, error) {
	id := sb.ID()
	d.mu.Lock()
	e := d.entries[id]
	d.mu.Unlock()
	if e != nil {
		return e, nil
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return nil, fmt.Errorf("read the lifetime of sandbox %s: %w", id, err)
	}
	st := paddock.Status{ID: id}
	if d.o.Of != nil || d.o.Default.pauses() {
		var unknown error
		if st, unknown = sb.Status(ctx); unknown != nil && !d.ours(st) {
			return nil, unknown
		}
	}
	if err == nil && rec.Ended.IsZero() && d.ours(st) {
		e = newEntry(d, rec)
		e.found()
	} else {
		e = d.without(ctx, st)
		e.rec.Version = rec.Version // of one that had the name before, or 0
	}
	d.mu.Lock()
	if have := d.entries[id]; have != nil || d.closed {
		d.mu.Unlock()
		if have == nil {
			return nil, errClosed()
		}
		return have, nil
	}
	d.entries[id] = e
	d.mu.Unlock()
	d.schedule(e)
	return e, nil
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) {
	all, err := d.inner.List(ctx)
	for i := range all {
		d.mu.Lock()
		e := d.entries[all[i].ID]
		d.mu.Unlock()
		if e != nil {
			e.amend(&all[i])
		}
	}
	return all, err
}

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return d.inner.RemoveSnapshot(ctx, id)
}

// Close ends what is being done for lifetimes, and closes the driver. Who uses
// the same store later goes on with them.
func (d *Driver) Close() error { return d.end() }

func (d *Driver) shut() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.wg.Wait()
	return d.inner.Close()
}
