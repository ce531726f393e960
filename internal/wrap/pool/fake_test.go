package pool_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// A fake is a driver whose sandboxes are only entries in a table. The tests
// run in bubbles of synctest, so its time is theirs.
type fake struct {
	slow  time.Duration // how long a Create takes
	stuck bool          // Create does not mind its context

	mu     sync.Mutex
	fail   error                       // guarded by mu; of Create
	fix    func(sb *fakeSandbox)       // guarded by mu; of each new sandbox
	calls  []call                      // guarded by mu; every Create
	now    int                         // guarded by mu; how many of the pool's Creates are under way
	most   int                         // guarded by mu; the largest that was
	boxes  map[paddock.ID]*fakeSandbox // guarded by mu; in a List from when their making begins
	seen   func()                      // guarded by mu; called once a List has seen all
	closed int                         // guarded by mu
}

// A call is a Create, and when it came.
type call struct {
	spec paddock.Spec
	at   time.Time
	own  bool // the pool's own
}

func (f *fake) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	return paddock.Info{Tier: "fake", Version: "1"}, nil
}

func (f *fake) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb := &fakeSandbox{f: f, spec: spec, made: time.Now(), state: paddock.Ready, labels: maps.Clone(spec.Labels)}
	own := strings.HasPrefix(string(spec.ID), "pool-")
	f.mu.Lock()
	if spec.ID == "" {
		sb.spec.ID = paddock.ID(fmt.Sprintf("fake-%d", len(f.calls)))
	}
	f.calls = append(f.calls, call{spec, time.Now(), own})
	if own {
		f.now++
		f.most = max(f.most, f.now)
	}
	fail, closed := f.fail, f.closed > 0
	f.boxes[sb.spec.ID] = sb
	fix := f.fix
	f.mu.Unlock()
	if fix != nil {
		fix(sb)
	}
	err := f.pass(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if own {
		f.now--
	}
	if closed {
		err = paddock.Unavailable
	}
	if err = errors.Join(err, fail); err != nil {
		delete(f.boxes, sb.spec.ID)
		return nil, err
	}
	return sb, nil
}

// pass is the time that a Create takes.
func (f *fake) pass(ctx context.Context) error {
	if f.stuck {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(f.slow):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("create: %w", paddock.Canceled)
	}
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sb := f.boxes[id]; sb != nil {
		return sb, nil
	}
	return nil, paddock.NotFound
}

func (f *fake) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return nil }

func (f *fake) List(ctx context.Context) ([]paddock.Status, error) {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.boxes))
	f.mu.Unlock()
	var list []paddock.Status
	for _, sb := range all {
		st, _ := sb.Status(ctx)
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b paddock.Status) int { return a.Created.Compare(b.Created) })
	f.mu.Lock()
	seen := f.seen
	f.mu.Unlock()
	if seen != nil {
		seen()
	}
	return list, nil
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// set changes what the next calls do.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// own gives when the pool began to make sandboxes, since start.
func (f *fake) own(start time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []time.Duration
	for _, c := range f.calls {
		if c.own {
			list = append(list, c.at.Sub(start))
		}
	}
	return list
}

// left gives the IDs of the sandboxes that are there.
func (f *fake) left() []paddock.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.boxes))
}

type fakeSandbox struct {
	paddock.Sandbox // nil: the pool uses what is below
	f               *fake
	spec            paddock.Spec
	made            time.Time

	mu     sync.Mutex
	state  paddock.State     // guarded by mu
	hang   bool              // guarded by mu; of Status
	asked  int               // guarded by mu; calls of Status
	deaf   error             // guarded by mu; of Update
	keep   error             // guarded by mu; of Remove
	ran    []string          // guarded by mu; what was started
	code   int               // guarded by mu; with which it ends
	cause  paddock.Cause     // guarded by mu; why; empty is by itself
	labels map[string]string // guarded by mu
}

func (s *fakeSandbox) ID() paddock.ID { return s.spec.ID }

func (s *fakeSandbox) Status(ctx context.Context) (paddock.Status, error) {
	s.mu.Lock()
	s.asked++
	hang := s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return paddock.Status{}, fmt.Errorf("status: %w", paddock.Timeout)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return paddock.Status{
		ID: s.ID(), State: s.state, Created: s.made, Labels: maps.Clone(s.labels),
		Usage: paddock.Usage{Wall: time.Since(s.made), CPU: -1},
	}, nil
}

func (s *fakeSandbox) Update(_ context.Context, u paddock.Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf != nil {
		return s.deaf
	}
	if u.Labels != nil {
		s.labels = maps.Clone(u.Labels)
	}
	return nil
}

func (s *fakeSandbox) Start(_ context.Context, c paddock.Cmd) (paddock.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, strings.Join(c.Args, " "))
	return &fakeProcess{code: s.code, cause: cmp.Or(s.cause, paddock.Exited)}, nil
}

type fakeProcess struct {
	paddock.Process // nil: the pool uses what is below
	code            int
	cause           paddock.Cause
}

func (p *fakeProcess) Wait(context.Context) (paddock.Exit, error) {
	return paddock.Exit{Code: p.code, Cause: p.cause}, nil
}

func (s *fakeSandbox) Remove(context.Context) error {
	s.mu.Lock()
	err := s.keep
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.boxes[s.ID()] == s {
		delete(s.f.boxes, s.ID())
	}
	return nil
}

// set changes what a sandbox does.
func (s *fakeSandbox) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// A rig is a pool around a fake, closed with the test.
type rig struct {
	*pool.Pool
	f   *fake
	log *bytes.Buffer // what was logged; read it at rest
}

// shelf is of the spec that most tests keep.
func shelf(size int) pool.Shelf {
	return pool.Shelf{Spec: paddock.Spec{Ephemeral: true, Dir: "/work"}, Size: size}
}

func set(t *testing.T, f *fake, shelves ...pool.Shelf) rig {
	t.Helper()
	r := unowned(t, f, shelves...)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// unowned is set for a test that closes the pool itself.
func unowned(t *testing.T, f *fake, shelves ...pool.Shelf) rig {
	t.Helper()
	f.boxes = make(map[paddock.ID]*fakeSandbox)
	r := rig{f: f, log: &bytes.Buffer{}}
	var err error
	r.Pool, err = pool.New(f, pool.Options{Shelves: shelves, Log: slog.New(slog.NewTextHandler(r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rig) wait(t *testing.T) {
	t.Helper()
	if err := r.Wait(t.Context()); err != nil {
		t.Fatalf("wait: %v", err)
	}
}

func (r rig) create(t *testing.T, spec paddock.Spec) paddock.Sandbox {
	t.Helper()
	sb, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return sb
}

// ready tells whether a sandbox was made ahead of time.
func ready(sb paddock.Sandbox) bool { return strings.HasPrefix(string(sb.ID()), "pool-") }

func labels(t *testing.T, sb paddock.Sandbox) map[string]string {
	t.Helper()
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Labels
}
