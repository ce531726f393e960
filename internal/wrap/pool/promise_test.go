package pool_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// A count is of sandboxes.
type count struct {
	made   atomic.Int64 // that the pool's callers got
	passed atomic.Int64 // of these, that the pool had its driver make
}

// A counted driver tells the Creates that are passed on: they have the caller's
// ID, which here is none, and the pool's own have one.
type counted struct {
	paddock.Driver
	n *count
}

func (d counted) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := d.Driver.Create(ctx, spec)
	if err == nil && spec.ID == "" {
		d.n.passed.Add(1)
	}
	return sb, err
}

// A named driver gives sandboxes the IDs that are asked for, above a pool that
// has chosen others: the suite names every sandbox, and a ready one has a name
// already.
type named struct {
	*pool.Pool
	n *count

	mu    sync.Mutex
	inner map[paddock.ID]paddock.ID // guarded by mu; what the pool calls it; empty while it is made
	outer map[paddock.ID]paddock.ID // guarded by mu
}

func (d *named) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	id := spec.ID
	if !id.Valid() {
		return d.Pool.Create(ctx, spec) // it chooses, or refuses
	}
	d.mu.Lock()
	_, taken := d.inner[id]
	if !taken {
		d.inner[id] = ""
	}
	d.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("sandbox %s: %w", id, paddock.Exists)
	}
	spec.ID = ""
	sb, err := d.Pool.Create(ctx, spec)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.inner, id)
		return nil, err
	}
	d.n.made.Add(1)
	d.inner[id], d.outer[sb.ID()] = sb.ID(), id
	return &namedSandbox{sb, d, id}, nil
}

func (d *named) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	d.mu.Lock()
	inner := d.inner[id]
	d.mu.Unlock()
	if inner == "" {
		return d.Pool.Open(ctx, id)
	}
	sb, err := d.Pool.Open(ctx, inner)
	if err != nil {
		return nil, err
	}
	return &namedSandbox{sb, d, id}, nil
}

func (d *named) List(ctx context.Context) ([]paddock.Status, error) {
	all, err := d.Pool.List(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		if id, ok := d.outer[all[i].ID]; ok {
			all[i].ID = id
		}
	}
	return all, err
}

type namedSandbox struct {
	paddock.Sandbox
	d  *named
	id paddock.ID
}

func (s *namedSandbox) ID() paddock.ID { return s.id }

func (s *namedSandbox) Born() (paddock.Status, bool) {
	st, ok := s.Sandbox.Born()
	st.ID = s.id
	return st, ok
}

func (s *namedSandbox) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	st.ID = s.id
	return st, err
}

func (s *namedSandbox) Remove(ctx context.Context) error {
	if err := s.Sandbox.Remove(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.inner[s.id] == s.Sandbox.ID() {
		delete(s.d.inner, s.id)
		delete(s.d.outer, s.Sandbox.ID())
	}
	return nil
}

// base is the spec of the suite's sandboxes, and of the shelf.
func base() paddock.Spec { return paddock.Spec{Ephemeral: true} }

func harness(n *count) drivertest.Harness {
	return drivertest.Harness{Memory: true, Base: base(), Skip: unmeasured(), Subjects: overridden(), New: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		p, err := pool.New(counted{d, n}, pool.Options{Shelves: []pool.Shelf{{Spec: base(), Size: 2}}})
		if err != nil {
			return nil, err
		}
		// The suite counts what is held: at rest, the pool is full.
		if err := p.Wait(context.Background()); err != nil {
			return nil, err
		}
		return &named{Pool: p, n: n, inner: make(map[paddock.ID]paddock.ID), outer: make(map[paddock.ID]paddock.ID)}, nil
	}}
}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("pool", "leak", "concurrent", "remove", "lifecycle", "spec", "status")
}

func TestPromises(t *testing.T) {
	var n count
	drivertest.Run(t, harness(&n))
	taken := n.made.Load() - n.passed.Load()
	t.Logf("of %d sandboxes %d were ready", n.made.Load(), taken)
	least := int64(20)
	if overridden() != nil { // a sample makes fewer
		least = 5
	}
	if taken < least {
		t.Errorf("the promises were hardly kept by sandboxes that were ready: %d", taken)
	}
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness(&count{})) }

func TestMain(m *testing.M) {
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}
