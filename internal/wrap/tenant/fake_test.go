package tenant_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A fake is a driver whose sandboxes are only entries in a table, and outlive
// whoever made them.
type fake struct {
	mu    sync.Mutex
	boxes map[paddock.ID]*fakeSandbox   // guarded by mu
	snaps map[paddock.SnapshotID]bool   // guarded by mu
	fail  error                         // guarded by mu; of Create
	named func(paddock.ID) paddock.ID   // guarded by mu; the ID that a sandbox gets
	each  func(context.Context, string) // guarded by mu; called before each call, with its name
	born  func(*fakeSandbox)            // guarded by mu; called with what is made
	gives *paddock.Status               // guarded by mu; tier and limits that a sandbox gets, whatever was asked for
	plans bool                          // guarded by mu; files are memory beside the limit
}

// HostMemory implements paddock.MemoryPlanner.
func (f *fake) HostMemory(_ paddock.Tier, l paddock.Limits) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.Memory + l.Disk, f.plans
}

func (f *fake) before(ctx context.Context, call string) {
	f.mu.Lock()
	each := f.each
	f.mu.Unlock()
	if each != nil {
		each(ctx, call)
	}
}

// set changes what the next calls do.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	return paddock.Info{Tier: "fake", Defaults: paddock.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 100, Disk: 1 << 30}}, nil
}

func (f *fake) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	f.before(ctx, "create")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	if f.named != nil {
		spec.ID = f.named(spec.ID)
	}
	if spec.ID == "" {
		spec.ID = paddock.ID("fake-" + strings.ToLower(rand.Text()))
	}
	if f.boxes[spec.ID] != nil {
		return nil, fmt.Errorf("sandbox %s: %w", spec.ID, paddock.Exists)
	}
	sb := &fakeSandbox{f: f, st: paddock.Status{ID: spec.ID, State: paddock.Ready, Labels: spec.Labels, Limits: spec.Limits, Created: time.Now()}}
	if f.gives != nil {
		sb.st.Tier, sb.st.Limits = f.gives.Tier, f.gives.Limits
	}
	f.boxes[spec.ID] = sb
	if f.born != nil {
		f.born(sb)
	}
	return sb, nil
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sb := f.boxes[id]; sb != nil {
		return sb, nil
	}
	return nil, fmt.Errorf("sandbox %s: it is not here: %w", id, paddock.NotFound)
}

func (f *fake) List(ctx context.Context) ([]paddock.Status, error) {
	f.before(ctx, "list")
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []paddock.Status
	for _, id := range slices.Sorted(maps.Keys(f.boxes)) {
		list = append(list, f.boxes[id].st)
	}
	return list, nil
}

func (f *fake) RemoveSnapshot(_ context.Context, id paddock.SnapshotID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.snaps, id)
	return nil
}

func (f *fake) Close() error { return nil }

type fakeSandbox struct {
	paddock.Sandbox // nil: what is used is below
	f               *fake
	st              paddock.Status // guarded by f.mu
	deaf            error          // guarded by f.mu; of Update and Remove
	half            error          // guarded by f.mu; of Update, which makes the change all the same
	asked           func()         // guarded by f.mu; called when it is asked how it is
}

func (s *fakeSandbox) ID() paddock.ID { return s.st.ID }

func (*fakeSandbox) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (s *fakeSandbox) Status(context.Context) (paddock.Status, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.asked != nil {
		s.asked()
	}
	return s.st, nil
}

func (s *fakeSandbox) Update(ctx context.Context, u paddock.Update) error {
	s.f.before(ctx, "update")
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.deaf != nil {
		return s.deaf
	}
	if u.Limits != nil {
		has, l := s.st.Limits, *u.Limits
		s.st.Limits = paddock.Limits{
			CPUs: cmp.Or(l.CPUs, has.CPUs), Memory: cmp.Or(l.Memory, has.Memory), PIDs: cmp.Or(l.PIDs, has.PIDs), Disk: cmp.Or(l.Disk, has.Disk),
		}
	}
	if u.Labels != nil {
		s.st.Labels = u.Labels
	}
	return s.half
}

func (s *fakeSandbox) Snapshot(context.Context, paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	id := paddock.SnapshotID(fmt.Sprintf("snap-%d", len(s.f.snaps)))
	s.f.snaps[id] = true
	return id, nil
}

func (s *fakeSandbox) Pause(context.Context) error  { return s.state(paddock.Paused) }
func (s *fakeSandbox) Resume(context.Context) error { return s.state(paddock.Ready) }

func (s *fakeSandbox) state(to paddock.State) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.st.State = to
	return nil
}

func (s *fakeSandbox) Remove(context.Context) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.deaf != nil {
		return s.deaf
	}
	if s.f.boxes[s.st.ID] == s {
		delete(s.f.boxes, s.st.ID)
	}
	return nil
}

// A rig is a set of tenants around a fake, with the tenants acme and other.
type rig struct {
	*tenant.Set
	f *fake
	s *store.Store
	c *clock
	m *meter
}

// A clock stands still until it is set.
type clock struct {
	mu sync.Mutex
	at time.Time // guarded by mu
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A meter remembers what it was told.
type meter struct {
	mu   sync.Mutex
	told []string // guarded by mu
}

func (m *meter) Note(_ context.Context, b store.Sandbox, st paddock.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, fmt.Sprintf("%s %s %s", b.Tenant, st.ID, st.State))
}

func build(t *testing.T, e storetest.Engine, quota store.Quota) rig {
	t.Helper()
	r := rig{
		f: &fake{boxes: make(map[paddock.ID]*fakeSandbox), snaps: make(map[paddock.SnapshotID]bool)},
		s: e.New(t), c: &clock{at: time.Unix(1_900_000_000, 0)}, m: &meter{},
	}
	for _, id := range []string{"acme", "other"} {
		if err := r.s.AddTenant(t.Context(), store.Tenant{ID: id, Quota: quota}); err != nil {
			t.Fatal(err)
		}
	}
	return r.again(t)
}

// again is the next server on the same store and driver.
func (r rig) again(t *testing.T) rig {
	t.Helper()
	h, err := tenant.New(r.f, tenant.Options{Store: r.s, Place: "here", Now: r.c.now, Meter: r.m})
	if err != nil {
		t.Fatal(err)
	}
	r.Set = h
	return r
}

func (r rig) create(t *testing.T, who string, spec paddock.Spec) paddock.Sandbox {
	t.Helper()
	sb, err := r.Driver(who).Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func (r rig) ids(t *testing.T, who string) string {
	t.Helper()
	list, err := r.Driver(who).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, st := range list {
		all += fmt.Sprintf("%s:%s ", st.ID, st.State)
	}
	return all
}
