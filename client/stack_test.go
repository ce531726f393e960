package client_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/infocache"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A plenty reports a host that is never full.
type plenty struct{}

func (plenty) Memory() (total, available int64, err error) { return 1 << 40, 1 << 40, nil }
func (plenty) Disk(string) (int64, error)                  { return 1 << 40, nil }

// A named driver gives sandboxes the requested IDs, above a stack that chooses other IDs:
// the suite names every sandbox, but a sandbox of the pool already has a name.
type named struct {
	*lifetime.Driver

	mu    sync.Mutex
	inner map[paddock.ID]paddock.ID // guarded by mu; the ID in the stack; empty during creation
	outer map[paddock.ID]paddock.ID // guarded by mu
}

func (d *named) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	id := spec.ID
	if !id.Valid() {
		return d.Driver.Create(ctx, spec) // the stack chooses an ID, or refuses
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

// A stack is the wrappers between a caller and the tier on a server, in the order of
// cmd/paddock: a kept Info, observers, pool, admission, lifetimes, a tenant's quota and its action log.
type stack struct {
	store *store.Store
	place string        // the file of the store
	taken atomic.Uint64 // number of sandboxes that the pool had ready
	made  atomic.Int64  // gives each simulated driver a directory of its own, because it holds its sandboxes itself
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{place: filepath.Join(t.TempDir(), "state", "paddock.db")}
	s.store = storetest.Open(t, s.place)
	unbounded := store.Quota{Sandboxes: -1, CPU: -1, Memory: -1, PIDs: -1, Disk: -1, Snapshots: -1, Rate: -1}
	if err := s.store.AddTenant(t.Context(), store.Tenant{ID: "acme", Quota: unbounded}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stack) open(string) (paddock.Driver, error) {
	d, err := simulated("")
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	seen := func(ctx context.Context, _ observe.Op, _ paddock.Tier) (context.Context, func(error)) {
		return ctx, func(error) {}
	}
	p, err := pool.New(observe.New(infocache.New(d, paddock.Sim), paddock.Sim, seen), pool.Options{Mark: "stack", Shelves: []pool.Shelf{{Size: 2, Most: 2, TTL: 100 * time.Hour}}})
	if err != nil {
		return nil, err
	}
	// The suite counts what is held, so wait until the pool is full.
	if err := p.Wait(ctx); err != nil {
		return nil, err
	}
	a, err := admission.New(ctx, closing{p, func() { s.taken.Add(p.Counts()[0].Hits) }}, admission.Options{Machine: plenty{}, Besides: p.Ready})
	if err != nil {
		return nil, err
	}
	terms := lifetime.Terms{Lifetime: 100 * time.Hour, IdlePause: 80 * time.Hour, Wake: true}
	l, err := lifetime.New(ctx, a, lifetime.Options{Default: terms})
	if err != nil {
		return nil, err
	}
	tenants, err := tenant.New(&named{Driver: l, inner: make(map[paddock.ID]paddock.ID), outer: make(map[paddock.ID]paddock.ID)},
		tenant.Options{Store: s.store, Place: fmt.Sprint("place-", s.made.Add(1))})
	if err != nil {
		return nil, err
	}
	return actionlog.New(tenancy{tenants.Driver("acme"), tenants}, actionlog.Options{Sink: nowhere{}})
}

// A tenancy is a tenant's driver that closes the set of tenants when it is closed.
type tenancy struct {
	paddock.Driver
	tenants *tenant.Set
}

func (t tenancy) Close() error { return t.tenants.Close() }

// A nowhere discards everything.
type nowhere struct{}

func (nowhere) Record(audit.Event) {}

// A closing driver calls a function when it is closed.
type closing struct {
	*pool.Pool
	end func()
}

func (c closing) Close() error {
	c.end()
	return c.Pool.Close()
}

// TestPromisesOfAServersStack is the one full run of the promises over every wrapper, a
// server and a client. It uses TLS, and so HTTP/2.
func TestPromisesOfAServersStack(t *testing.T) {
	stack := newStack(t)
	h := overHTTP2(t, stack.open)
	t.Run("all", func(t *testing.T) {
		harness := h.harness(t)
		harness.Memory, harness.Skip = true, unmeasured()
		held := harness.Leaks
		// Do not count the store: it opens its file again for concurrent readers.
		harness.Leaks = func(t testing.TB, state, name string) drivertest.Counts {
			c := held(t, state, name)
			c["descriptor"] = slices.DeleteFunc(c["descriptor"], func(held string) bool { return strings.HasPrefix(held, stack.place) })
			return c
		}
		if testing.Short() { // under the race detector, which is slow
			harness.Sample = sample.Seed("client over TCP")
		}
		drivertest.Run(t, harness)
	})
	t.Logf("%d sandboxes were ready", stack.taken.Load())
	if stack.taken.Load() < 20 && !testing.Short() {
		t.Error("the promises were hardly kept by sandboxes that were ready")
	}
}
