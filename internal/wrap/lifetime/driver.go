package lifetime

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

// Options apply to all sandboxes.
type Options struct {
	// Store keeps records across restarts. Nil keeps them in memory.
	Store Store

	// Default is the terms of Create, and of sandboxes without a record.
	Default Terms

	// Of reports whether a sandbox was made through this driver. Others are never ended or
	// paused, even if a record has their name. Nil means all.
	Of func(paddock.Status) bool

	// Longest is the maximum lifetime of a sandbox, whatever its terms. Then it is removed,
	// even if it is paused. Zero sets no bound.
	Longest time.Duration

	// Grace is the time after a start in which nothing is ended, and after a jump of the
	// wall clock nothing by that clock. Zero is a minute.
	Grace time.Duration

	// Key returns the key of a Create. The sandboxes of a key share the places in which
	// sandboxes are asked, paused and ended, and keys take turns. Nil gives all the same key.
	Key func(ctx context.Context, spec paddock.Spec) string

	// Wall returns the wall-clock time. Nil is time.Now.
	Wall func() time.Time

	// Log gets removals and errors. Nil discards them.
	Log *slog.Logger

	// Ended is called after a sandbox was removed at the end of its time, with the cause.
	// It must not block. It may be nil.
	Ended func(Why)
}

// A Driver gives lifetimes to the sandboxes of another driver.
type Driver struct {
	inner paddock.Driver
	store Store
	o     Options
	log   *slog.Logger
	clock *clock
	rung  chan struct{} // has an element if the worker must look again

	spenders chan struct{} // has an element if the weigher must look again

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	end  func() error // implements Close, once

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	entries map[paddock.ID]*entry // guarded by mu
	queue   queue                 // guarded by mu
	graves  graves                // guarded by mu
}

// New returns a Driver around d, and continues with d's sandboxes by their records. The
// result owns d and closes it. After an error, d still belongs to the caller.
func New(ctx context.Context, d paddock.Driver, o Options) (*Driver, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	l := &Driver{inner: d, store: o.Store, log: o.Log, rung: make(chan struct{}, 1), spenders: make(chan struct{}, 1), entries: make(map[paddock.ID]*entry)}
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
	l.wg.Go(func() { l.weigher(l.ctx) })
	return l, nil
}

// HostMemory implements [paddock.MemoryPlanner].
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return paddock.HostMemory(d.inner, tier, l)
}

// PastJournal implements [paddock.Historian].
func (d *Driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	return paddock.PastJournal(ctx, d.inner, id)
}

// Check returns the error that New would return for these options.
func (o Options) Check() error {
	if o.Longest < 0 || o.Grace < 0 {
		return fmt.Errorf("a longest lifetime of %v, a grace of %v: %w", o.Longest, o.Grace, paddock.Invalid)
	}
	if err := o.Default.check(); err != nil {
		return fmt.Errorf("default %w", err)
	}
	return nil
}

// load matches records and sandboxes.
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
	slices.SortStableFunc(records, func(a, b Record) int { return a.Ended.Compare(b.Ended) }) // order of graves
	for _, rec := range records {
		switch st := there[rec.ID]; {
		case st != nil && rec.Ended.IsZero() && d.ours(*st):
			e := newEntry(d, rec)
			e.found()
			d.entries[rec.ID] = e
		case st != nil: // another sandbox has its name
			e := d.without(ctx, *st)
			e.rec.Version = rec.Version
			d.entries[rec.ID] = e
		case rec.Ending != "": // it was removed, but that was not stored
			if rec.Ended.IsZero() {
				rec.Ended = d.clock.now()
			}
			d.bury(ctx, rec)
		default: // it ended by itself, as an ephemeral one does
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

// without returns an entry for a sandbox without a record. From now on it has the default
// terms, or none if it is not ours. They are stored with the first change.
func (d *Driver) without(ctx context.Context, st paddock.Status) *entry {
	now := d.clock.now()
	rec := Record{ID: st.ID, Created: now, Written: now}
	if d.ours(st) {
		// If the tier cannot be asked, the pause is tried when it is due.
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

// spawn runs a function that Close cancels and waits for. It reports false after Close.
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

// forget drops the entry of a removed sandbox. Its name may already belong to another.
func (d *Driver) forget(e *entry) {
	d.mu.Lock()
	if d.entries[e.id] == e {
		delete(d.entries, e.id)
	}
	d.mu.Unlock()
	d.schedule(e)
}

// bury keeps the record of a removed sandbox.
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

// Info returns the wrapped driver's Info.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

// Open implements paddock.Driver. For a sandbox that was removed by its terms, the error
// has the cause.
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

// entry returns the entry of an existing sandbox, including one that another driver on the
// same store made.
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
		e.rec.Version = rec.Version // of an earlier sandbox of this name, or 0
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

// Close ends the actions in progress and closes the wrapped driver. The next driver on the
// same store continues with the lifetimes.
func (d *Driver) Close() error { return d.end() }

func (d *Driver) shut() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.wg.Wait()
	return d.inner.Close()
}
