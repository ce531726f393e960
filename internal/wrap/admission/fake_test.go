package admission_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
)

// A fake is a driver whose sandboxes are entries in a table. The tests run in
// bubbles of synctest, so its time is theirs.
type fake struct {
	slow time.Duration // how long a Create takes
	late time.Duration // how long a List takes

	mu    sync.Mutex
	boxes map[paddock.ID]*box // guarded by mu
	made  []string            // guarded by mu; the label "who", in the order of the Creates
	now   int                 // guarded by mu; how many Creates are under way
	most  int                 // guarded by mu
	lists int                 // guarded by mu
	fail  error               // guarded by mu; of Create and Update
	half  error               // guarded by mu; of Update, which makes the change all the same
	dead  bool                // guarded by mu; what a status says
	least int64               // guarded by mu; memory that a sandbox gets, whatever was asked for

	leaves func() // guarded by mu; called during an Update; may be nil

	tells time.Duration // of Status, after it has looked

	files int64 // if not zero, files are memory beside the limit, and this is the default limit of the disk
}

// besideFiles is what a sandbox of a fake with files takes beside its limits.
const besideFiles = 50 << 20

// HostMemory implements paddock.MemoryPlanner.
func (f *fake) HostMemory(_ paddock.Tier, l paddock.Limits) (int64, bool) {
	if f.files == 0 {
		return 0, false
	}
	return cmp.Or(l.Memory, 100<<20) + cmp.Or(l.Disk, f.files) + besideFiles, true
}

type box struct {
	paddock.Sandbox // nil: what is not below is not used
	f               *fake
	id              paddock.ID
	memory, disk    int64
}

func (f *fake) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	return paddock.Info{Tier: "fake", Defaults: paddock.Limits{Memory: 100 << 20}}, nil
}

func (f *fake) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	f.made = append(f.made, spec.Labels["who"])
	id := paddock.ID(fmt.Sprintf("fake-%d", len(f.made)))
	f.mu.Unlock()
	var err error
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
		err = paddock.Canceled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	if err = errors.Join(err, f.fail); err != nil {
		return nil, err
	}
	b := &box{f: f, id: id, memory: max(spec.Limits.Memory, f.least), disk: cmp.Or(spec.Limits.Disk, f.files)}
	if b.memory == 0 {
		b.memory = 100 << 20
	}
	if f.boxes == nil {
		f.boxes = make(map[paddock.ID]*box)
	}
	f.boxes[b.id] = b
	return b, nil
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.boxes[id]; b != nil {
		return b, nil
	}
	return nil, paddock.NotFound
}

func (f *fake) List(context.Context) ([]paddock.Status, error) {
	if f.late > 0 {
		<-time.After(f.late)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	var all []paddock.Status
	for _, b := range f.boxes {
		all = append(all, paddock.Status{ID: b.id, Limits: paddock.Limits{Memory: b.memory, Disk: b.disk}})
	}
	return all, nil
}

func (f *fake) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return nil }
func (f *fake) Close() error                                             { return nil }

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (b *box) ID() paddock.ID { return b.id }

func (*box) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (b *box) Status(context.Context) (paddock.Status, error) {
	b.f.mu.Lock()
	st := paddock.Status{ID: b.id, State: paddock.Ready, Limits: paddock.Limits{Memory: b.memory, Disk: b.disk}}
	if b.f.dead {
		st.State = paddock.Dead
	}
	late := b.f.tells
	b.f.mu.Unlock()
	<-time.After(late)
	return st, nil
}

func (b *box) Update(_ context.Context, u paddock.Update) error {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	if b.f.leaves != nil {
		b.f.leaves()
	}
	if b.f.fail == nil && u.Limits != nil {
		b.memory, b.disk = cmp.Or(u.Limits.Memory, b.memory), cmp.Or(u.Limits.Disk, b.disk)
	}
	return cmp.Or(b.f.fail, b.f.half)
}

func (b *box) Remove(context.Context) error {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	delete(b.f.boxes, b.id)
	return nil
}

// A machine is one that a test makes full.
type machine struct {
	mu              sync.Mutex
	available, free int64 // guarded by mu
	err             error // guarded by mu
}

func (m *machine) Memory() (total, available int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 1 << 30, m.available, m.err
}

func (m *machine) Disk(string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free, m.err
}

func (m *machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

type rig struct {
	*admission.Driver
	f *fake
	m *machine
}

func set(t *testing.T, f *fake, o admission.Options) rig {
	t.Helper()
	r := rig{f: f, m: &machine{available: 1 << 30, free: 1 << 40}}
	o.Machine = r.m
	var err error
	if r.Driver, err = admission.New(t.Context(), f, o); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rig) create(t *testing.T, memory int64) paddock.Sandbox {
	t.Helper()
	sb, err := r.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: memory}})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// full fails where a Create is not refused in these words.
func (r rig) full(t *testing.T, memory int64, words ...string) {
	t.Helper()
	before := len(r.f.made)
	_, err := r.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: memory}})
	wantKind(t, "create", err, paddock.Exhausted, words...)
	if len(r.f.made) != before {
		t.Error("the driver was asked for it")
	}
}

func wantKind(t *testing.T, what string, err error, kind paddock.Kind, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// inBubble runs each case with a time of its own.
func inBubble(t *testing.T, cases map[string]func(t *testing.T)) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}
