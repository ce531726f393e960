package lifetime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A fake is a driver whose sandboxes are entries in a table. The tests run in
// bubbles of synctest, so its time is theirs.
type fake struct {
	cannot bool                  // pause
	uses   func(*paddock.Status) // what new sandboxes have used

	mu      sync.Mutex
	boxes   map[paddock.ID]*box // guarded by mu
	paused  int                 // guarded by mu; how often Pause was called
	resumed int                 // guarded by mu
	removed int                 // guarded by mu
	slow    time.Duration       // guarded by mu; how long these take
	fail    error               // guarded by mu; of these
	shut    error               // guarded by mu; of Open
	closed  bool                // guarded by mu
}

type box struct {
	paddock.Sandbox // nil: what is not below is not used
	f               *fake
	id              paddock.ID
	created         time.Time
	state           paddock.State         // guarded by f.mu
	procs           []paddock.ProcessInfo // guarded by f.mu
	mute            bool                  // guarded by f.mu; its guest answers nothing
	late            time.Duration         // guarded by f.mu; how long its guest takes to answer
	begins          time.Duration         // guarded by f.mu; how long it takes to start a command
	drag            time.Duration         // guarded by f.mu; how long it takes to pause
	sticky          time.Duration         // guarded by f.mu; how long it takes to resume
	uses            func(*paddock.Status) // guarded by f.mu; what it has used
	restless        bool                  // guarded by f.mu; its guest lets every pause fail
	says            error                 // guarded by f.mu; what its guest answers to every question, and to a pause
}

func newFake() *fake { return &fake{boxes: make(map[paddock.ID]*box)} }

func (f *fake) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	info := paddock.Info{Tier: "fake", Version: "1"}
	if !f.cannot {
		info.Capabilities = []paddock.Capability{paddock.CanPause}
	}
	return info, nil
}

func (f *fake) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if spec.ID == "" {
		spec.ID = paddock.ID(fmt.Sprintf("fake-%d", len(f.boxes)))
	}
	if f.boxes[spec.ID] != nil {
		return nil, paddock.Exists
	}
	b := &box{f: f, id: spec.ID, created: time.Now(), state: paddock.Ready, uses: f.uses}
	f.boxes[spec.ID] = b
	return b, nil
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut != nil {
		return nil, f.shut
	}
	if b := f.boxes[id]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
}

func (f *fake) List(ctx context.Context) ([]paddock.Status, error) {
	f.mu.Lock()
	all := slices.SortedFunc(maps.Values(f.boxes), func(a, b *box) int { return a.created.Compare(b.created) })
	f.mu.Unlock()
	var list []paddock.Status
	for _, b := range all {
		st, _ := b.Status(ctx)
		list = append(list, st)
	}
	return list, nil
}

func (f *fake) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return nil }

func (f *fake) Close() error {
	f.set(func() { f.closed = true })
	return nil
}

// set changes or reads what mu guards.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// does is what Pause, Resume and Remove have in common.
func (f *fake) does(ctx context.Context, count *int, change func()) error {
	f.mu.Lock()
	*count++
	slow, fail := f.slow, f.fail
	f.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return paddock.Canceled
		}
	}
	if fail != nil {
		return fail
	}
	f.set(change)
	return nil
}

func (b *box) ID() paddock.ID { return b.id }

func (*box) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (b *box) Status(context.Context) (paddock.Status, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	st := paddock.Status{ID: b.id, State: b.state, Created: b.created}
	if b.uses != nil {
		b.uses(&st)
	}
	return st, nil
}

func (b *box) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	if err := b.answers(ctx); err != nil {
		return nil, err
	}
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	return slices.Clone(b.procs), nil
}

// answers waits for the guest, which may answer nothing.
func (b *box) answers(ctx context.Context) error {
	var late time.Duration
	var says error
	b.f.set(func() {
		if late, says = b.late, b.says; b.mute {
			late = 100 * 365 * 24 * time.Hour
		}
	})
	return errors.Join(wait(ctx, late), says)
}

// wait waits as long as a guest takes.
func wait(ctx context.Context, late time.Duration) error {
	if late == 0 {
		return nil
	}
	select {
	case <-time.After(late):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no answer in time: %w", paddock.Timeout)
	}
}

// runs is a Conflict, or an Unavailable, of what does not run.
func (b *box) runs() error {
	if b.f.boxes[b.id] != b {
		return fmt.Errorf("sandbox %s is gone: %w", b.id, paddock.Unavailable)
	}
	if b.state != paddock.Ready {
		return fmt.Errorf("sandbox %s is %s: %w", b.id, b.state, paddock.Conflict)
	}
	return nil
}

func (b *box) Start(_ context.Context, _ paddock.Cmd) (paddock.Process, error) {
	var begins time.Duration
	b.f.set(func() { begins = b.begins })
	time.Sleep(begins)
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	if begins > 0 && b.state == paddock.Paused {
		return nil, fmt.Errorf("the sandbox is paused: %w", paddock.Unavailable)
	}
	if err := b.runs(); err != nil {
		return nil, err
	}
	pid := paddock.PID(len(b.procs) + 1)
	b.procs = append(b.procs, paddock.ProcessInfo{PID: pid, Started: time.Now()})
	return &proc{b: b, pid: pid}, nil
}

func (b *box) FS() paddock.FS { return fakeFiles{b: b} }

func (b *box) Pause(ctx context.Context) error {
	var drag time.Duration
	var fails error
	b.f.set(func() {
		if drag, fails = b.drag, b.says; b.restless {
			fails = errRestless
		}
	})
	if err := wait(ctx, drag); err != nil {
		return err
	}
	if fails != nil {
		b.f.set(func() { b.f.paused++ })
		return fails
	}
	return b.f.does(ctx, &b.f.paused, func() { b.state = paddock.Paused })
}

func (b *box) Resume(ctx context.Context) error {
	var sticky time.Duration
	b.f.set(func() { sticky = b.sticky })
	if err := wait(ctx, sticky); err != nil {
		return err
	}
	return b.f.does(ctx, &b.f.resumed, func() { b.state = paddock.Ready })
}

func (b *box) Remove(ctx context.Context) error {
	return b.f.does(ctx, &b.f.removed, func() {
		if b.f.boxes[b.id] == b {
			delete(b.f.boxes, b.id)
		}
	})
}

var errRestless = errors.New("the guest does not hold still")

type proc struct {
	paddock.Process // nil: what is not below is not used
	b               *box
	pid             paddock.PID
}

func (p *proc) ID() paddock.PID { return p.pid }
func (p *proc) Release()        {}

// Wait waits for as long as it may: its command does not end.
func (*proc) Wait(ctx context.Context) (paddock.Exit, error) {
	<-ctx.Done()
	return paddock.Exit{}, fmt.Errorf("no end: %w", paddock.Canceled)
}

func (p *proc) Input() io.WriteCloser { return nothing{io.Discard} }

type nothing struct{ io.Writer }

func (nothing) Close() error { return nil }

// end is of a process that a test ends.
func (f *fake) end(id paddock.ID, i int) {
	f.set(func() {
		p := &f.boxes[id].procs[i]
		p.Exit = &paddock.Exit{Cause: paddock.Exited, Usage: paddock.Usage{Wall: time.Since(p.Started)}}
	})
}

type fakeFiles struct {
	paddock.FS // nil: what is not below is not used
	b          *box
}

func (f fakeFiles) Open(context.Context, string, paddock.OpenOptions) (io.ReadCloser, error) {
	f.b.f.mu.Lock()
	defer f.b.f.mu.Unlock()
	return io.NopCloser(bytes.NewReader(nil)), f.b.runs()
}

func (f fakeFiles) Stat(context.Context, string) (paddock.FileInfo, error) {
	f.b.f.mu.Lock()
	defer f.b.f.mu.Unlock()
	return paddock.FileInfo{}, f.b.runs()
}

// A wall is a clock that a test sets.
type wall struct {
	mu  sync.Mutex
	off time.Duration // guarded by mu
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.off)
}

func (w *wall) jump(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off += by
}

// A rig is a driver over a fake, closed with the test.
type rig struct {
	*lifetime.Driver
	f     *fake
	store *lifetime.Memory
	wall  *wall
	log   *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func set(t *testing.T, o lifetime.Options) *rig {
	t.Helper()
	r := &rig{f: newFake(), store: &lifetime.Memory{}, wall: &wall{}, log: &syncBuffer{}}
	r.start(t, o)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// start makes the driver, as a server that starts does.
func (r *rig) start(t *testing.T, o lifetime.Options) {
	t.Helper()
	if o.Store == nil {
		o.Store = r.store
	}
	o.Wall, o.Log = r.wall.now, slog.New(slog.NewTextHandler(r.log, nil))
	var err error
	if r.Driver, err = lifetime.New(t.Context(), r.f, o); err != nil {
		t.Fatal(err)
	}
}

// restart ends the driver, and starts it when the server was away for a while.
func (r *rig) restart(t *testing.T, away time.Duration, o lifetime.Options) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	pass(away)
	r.start(t, o)
}

func (r *rig) create(t *testing.T, id paddock.ID, terms lifetime.Terms) paddock.Sandbox {
	t.Helper()
	sb, err := r.CreateWith(t.Context(), paddock.Spec{ID: id}, terms)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// state tells what a sandbox does: empty is gone.
func (r *rig) state(id paddock.ID) (state paddock.State) {
	r.f.set(func() {
		if b := r.f.boxes[id]; b != nil {
			state = b.state
		}
	})
	return state
}

func (r *rig) want(t *testing.T, id paddock.ID, want paddock.State) {
	t.Helper()
	if got := r.state(id); got != want {
		t.Errorf("sandbox %s is %q, want %q; log: %s", id, got, want, r.log)
	}
}

// pass lets a bubble's time pass, and what is to be done then be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// inBubble runs each case with a time of its own.
func inBubble(t *testing.T, cases map[string]func(t *testing.T)) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}
