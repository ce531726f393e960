package lease_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// A plenty is a machine that is never full.
type plenty struct{}

func (plenty) Memory() (total, available int64, err error) { return 1 << 40, 1 << 40, nil }
func (plenty) Disk(string) (int64, error)                  { return 1 << 40, nil }

// A named driver gives sandboxes the IDs that are asked for, above a stack that
// has chosen others: the suite names every sandbox, and a ready one has a name.
type named struct {
	*lease.Driver

	mu    sync.Mutex
	inner map[paddock.ID]paddock.ID // guarded by mu; what the stack calls it; empty while it is made
	outer map[paddock.ID]paddock.ID // guarded by mu
}

func (d *named) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	id := spec.ID
	if !id.Valid() {
		return d.Driver.Create(ctx, spec) // it chooses, or refuses
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
	sb, err := d.Driver.Create(ctx, spec)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.inner, id)
		return nil, err
	}
	d.inner[id], d.outer[sb.ID()] = sb.ID(), id
	return &namedSandbox{sb, d, id}, nil
}

func (d *named) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	d.mu.Lock()
	inner := d.inner[id]
	d.mu.Unlock()
	if inner == "" {
		return d.Driver.Open(ctx, id)
	}
	sb, err := d.Driver.Open(ctx, inner)
	if err != nil {
		return nil, err
	}
	return &namedSandbox{sb, d, id}, nil
}

func (d *named) List(ctx context.Context) ([]paddock.Status, error) {
	all, err := d.Driver.List(ctx)
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

// stack is a server's: lifetimes over admission over a pool.
func stack(taken func(uint64)) (_ *named, err error) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	p, err := pool.New(d, pool.Options{Shelves: []pool.Shelf{{Spec: paddock.Spec{Ephemeral: true}, Size: 2, Most: 2, TTL: 100 * time.Hour}}})
	if err != nil {
		return nil, err
	}
	// The suite counts what is held: at rest, the pool is full.
	if err := p.Wait(ctx); err != nil {
		return nil, err
	}
	a, err := admission.New(ctx, closing{p, func() { taken(p.Counts()[0].Hits) }}, admission.Options{Machine: plenty{}, Besides: p.Ready})
	if err != nil {
		return nil, err
	}
	terms := lease.Terms{Lifetime: 100 * time.Hour, IdlePause: 80 * time.Hour, Wake: true}
	l, err := lease.New(ctx, a, lease.Options{Default: terms})
	if err != nil {
		return nil, err
	}
	return &named{Driver: l, inner: make(map[paddock.ID]paddock.ID), outer: make(map[paddock.ID]paddock.ID)}, nil
}

// A closing driver is told of its end.
type closing struct {
	*pool.Pool
	end func()
}

func (c closing) Close() error {
	c.end()
	return c.Pool.Close()
}

func TestPromisesOfAServersStack(t *testing.T) {
	var taken atomic.Uint64
	t.Run("all", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{Memory: true, Base: paddock.Spec{Ephemeral: true}, Skip: unmeasured(), New: func(string) (paddock.Driver, error) {
			return stack(func(n uint64) { taken.Add(n) })
		}})
	})
	t.Logf("%d sandboxes were ready", taken.Load())
	if taken.Load() < 20 {
		t.Error("the promises were hardly kept by sandboxes that were ready")
	}
}
