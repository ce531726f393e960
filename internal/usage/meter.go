package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// Options configure a Meter.
type Options struct {
	Driver Lister
	Store  *store.Store
	Place  string // the driver's, as in package tenant

	// Every is the time between samples. The default is ten seconds.
	Every time.Duration

	// Keep is the time that records are kept. Zero is for ever. No record is deleted in the first hour, nor in an hour
	// in which the wall clock jumped.
	Keep time.Duration

	// Hours is the time that records stay separate for each sandbox and hour, at least two days; older ones are merged
	// by day. Zero is for ever. No record is merged in the first hour, nor in an hour in which the wall clock jumped.
	Hours time.Duration

	// Log receives errors of the background work. It may be nil.
	Log *slog.Logger

	// Clock is for tests. The default is the machine's.
	Clock Clock
}

// A Lister lists the status of sandboxes. A paddock.Driver is one.
type Lister interface {
	List(ctx context.Context) ([]paddock.Status, error)
}

// A Clock provides wall time, monotonic time and ticks.
type Clock interface {
	Now() time.Time         // by the wall
	Elapsed() time.Duration // since some moment, by a clock that never jumps
	Tick(every time.Duration) (c <-chan time.Time, stop func())
}

// machine is the host's clock.
type machine struct{ start time.Time }

func (m machine) Now() time.Time         { return time.Now().Round(0) }
func (m machine) Elapsed() time.Duration { return time.Since(m.start) }

func (m machine) Tick(every time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// A Meter measures what the sandboxes of a driver use. Make one with [New].
type Meter struct {
	o      Options
	stop   context.CancelFunc
	worker sync.WaitGroup
	end    func() error // implements Close, once

	mu     sync.Mutex
	counts map[string]*count // guarded by mu, with their contents; by token
	late   []store.Record    // guarded by mu; unsaved records of finished hours
}

// leastHours is the minimum of [Options.Hours], because a meter may still write to recent
// records.
const leastHours = 48 * time.Hour

// New starts a Meter.
func New(o Options) (*Meter, error) {
	if o.Driver == nil || o.Store == nil || o.Place == "" {
		return nil, fmt.Errorf("a meter needs a driver, a store and a place: %w", paddock.Invalid)
	}
	if o.Hours > 0 && o.Hours < leastHours {
		return nil, fmt.Errorf("usage would be kept by the hour for %s, but the minimum is %s: %w", o.Hours, leastHours, paddock.Invalid)
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	if o.Clock == nil {
		o.Clock = machine{time.Now()}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Meter{o: o, counts: make(map[string]*count)}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.end = sync.OnceValue(m.shut)
	old := oldness{wall: o.Clock.Now(), mono: o.Clock.Elapsed()}
	m.worker.Go(func() { m.work(ctx, old) })
	return m, nil
}

// patience bounds one sample.
const patience = time.Minute

// work samples until the end.
func (m *Meter) work(ctx context.Context, old oldness) {
	tick, stop := m.o.Clock.Tick(m.o.Every)
	defer stop()
	var until time.Time // time whose old records are being processed; zero if none
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		bounded, cancel := context.WithTimeout(ctx, patience)
		if err := m.Sample(bounded); err != nil && ctx.Err() == nil {
			m.o.Log.Warn("usage could not be counted; retrying", "err", err)
		}
		cancel()
		if now, ok := old.due(m.o.Clock); ok {
			until = now
		}
		if !until.IsZero() && m.age(ctx, until) {
			until = time.Time{}
		}
	}
}

// Close measures up to now and ends. A second call does nothing.
func (m *Meter) Close() error { return m.end() }

func (m *Meter) shut() error {
	m.stop()
	m.worker.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.Sample(ctx)
}

// Sample measures up to now. The meter samples by itself; call Sample before a sum that must include this moment.
func (m *Meter) Sample(ctx context.Context) error {
	at := m.moment() // before the statuses are read, so that the next sample includes the time in between
	list, err := m.o.Driver.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	rows, err := m.o.Store.Sandboxes(ctx, "", m.o.Place)
	if err != nil {
		return err
	}
	states := make(map[paddock.ID]paddock.Status, len(list))
	for _, st := range list {
		states[st.ID] = st
	}
	seen := make(map[string]bool, len(rows))
	var errs []error
	for _, b := range rows {
		st, there := states[b.ID]
		if !there || (b.State != store.Ready && b.State != store.Removing) {
			continue
		}
		seen[b.Token] = true
		errs = append(errs, m.count(ctx, at, b, st))
	}
	m.forget(seen)
	return errors.Join(append(errs, m.flush(ctx))...)
}

// Note implements the Meter of package tenant: it measures up to now, and records the sandbox's new state.
func (m *Meter) Note(ctx context.Context, b store.Sandbox, st paddock.Status) {
	err := m.count(ctx, m.moment(), b, st)
	if err == nil {
		err = m.flush(ctx)
	}
	if err != nil { // the next sample includes it
		m.o.Log.Warn("usage could not be written; retrying", "sandbox", b.ID, "err", err)
	}
}

// A moment is a time by both clocks.
type moment struct {
	wall time.Time
	mono time.Duration
}

func (m *Meter) moment() moment { return moment{m.o.Clock.Now(), m.o.Clock.Elapsed()} }

// count measures a sandbox up to the moment of its status.
func (m *Meter) count(ctx context.Context, at moment, b store.Sandbox, st paddock.Status) error {
	st = b.Since(st)
	m.mu.Lock()
	c := m.counts[b.Token]
	m.mu.Unlock()
	if c == nil {
		last, err := m.o.Store.LastRecord(ctx, b.Token)
		if err != nil && !errors.Is(err, paddock.NotFound) {
			return err
		}
		c = resume(at, b, st, last, err == nil)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.counts[b.Token]; known != nil {
		c = known
	}
	m.counts[b.Token] = c
	m.late = append(m.late, c.advance(at, b, st)...)
	return nil
}

// forget drops removed sandboxes whose records are saved.
func (m *Meter) forget(seen map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for token, c := range m.counts {
		if !seen[token] {
			if c.dirty {
				m.late = append(m.late, c.rec)
			}
			delete(m.counts, token)
		}
	}
}

// batch is how many records are written at once, so that other writers are not blocked for
// long.
const batch = 500

// flush writes changed records.
func (m *Meter) flush(ctx context.Context) error {
	m.mu.Lock()
	records := m.late
	m.late = nil
	var open []*count
	for _, c := range m.counts {
		if c.dirty {
			c.dirty = false
			open = append(open, c)
			records = append(records, c.rec)
		}
	}
	m.mu.Unlock()
	// Write all records of a sandbox together, because the end of an hour's record and the
	// mark of the next one belong together.
	slices.SortStableFunc(records, func(a, b store.Record) int { return strings.Compare(a.Token, b.Token) })
	for len(records) > 0 {
		n := min(batch, len(records))
		for n < len(records) && records[n].Token == records[n-1].Token {
			n++
		}
		if err := m.o.Store.PutRecords(ctx, records[:n]); err != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.late = append(records, m.late...)
			for _, c := range open {
				c.dirty = true
			}
			return fmt.Errorf("store usage: %w", err)
		}
		records = records[n:]
	}
	return nil
}
