package verdict

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A fake has sandboxes whose monitors have verdicts.
type fake struct {
	paddock.Driver // nil: what is not below is not used

	mu     sync.Mutex
	boxes  map[paddock.ID]*box // guarded by mu
	closed bool                // guarded by mu
}

type box struct {
	paddock.Sandbox // nil
	id              paddock.ID
	f               *fake
	first           int64         // guarded by f.mu: number of the last one that somebody had
	list            []audit.Event // guarded by f.mu
	more            chan struct{} // guarded by f.mu
	asleep          bool          // guarded by f.mu
}

func newFake() *fake { return &fake{boxes: map[paddock.ID]*box{}} }

func (f *fake) add(id paddock.ID) *box {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &box{id: id, f: f, more: make(chan struct{})}
	f.boxes[id] = b
	return b
}

func (f *fake) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return f.add(spec.ID), nil
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.boxes[id]; b != nil {
		return b, nil
	}
	return nil, paddock.NotFound
}

func (f *fake) List(context.Context) (list []paddock.Status, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.boxes {
		list = append(list, paddock.Status{ID: id, Monitor: &paddock.Monitoring{}})
	}
	return list, nil
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (b *box) ID() paddock.ID { return b.id }

func (b *box) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{ID: b.id, Monitor: &paddock.Monitoring{}}, nil
}

// says adds a verdict, or changes the box.
func (b *box) says(rule string, change func()) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	if change != nil {
		change()
	}
	if rule != "" {
		b.list = append(b.list, audit.Event{Sandbox: string(b.id), Kind: audit.Judged, Judgement: &audit.Judgement{Rule: rule}})
	}
	close(b.more)
	b.more = make(chan struct{})
}

func (b *box) FollowMonitor(ctx context.Context, after int64) ([]audit.Event, int64, error) {
	for {
		b.f.mu.Lock()
		if after > b.first {
			b.list, b.first = b.list[after-b.first:], after
		}
		list, last, more := slices.Clone(b.list), b.first+int64(len(b.list)), b.more
		gone, asleep := b.f.boxes[b.id] != b, b.asleep
		b.f.mu.Unlock()
		switch {
		case gone:
			return nil, 0, paddock.NotFound
		case asleep:
			return nil, 0, paddock.Unavailable
		case len(list) > 0:
			return list, last, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, 0, paddock.Canceled
		}
	}
}

// told notes what it is told.
type told struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (l *told) tell(e audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e.Sandbox+" "+e.Judgement.Rule)
}

// is promises what was told so far, in any order of sandboxes.
func (l *told) is(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := slices.Sorted(slices.Values(l.list))
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("told %q, not %q", got, want)
	}
}

// ours reports whether a sandbox was made by the server whose driver it is.
func ours(st paddock.Status) bool { return st.ID != "theirs" }

func open(t *testing.T, f *fake, l *told) paddock.Driver {
	t.Helper()
	d, err := New(t.Context(), f, Options{Of: ours, Tell: l.tell, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachVerdictIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), &told{}
		old := f.add("old")
		f.add("theirs").says("another server's", nil)
		old.says("before", nil)
		d := open(t, f, l)
		l.is(t, "old before")
		sb, err := d.Create(t.Context(), paddock.Spec{ID: "new", Monitor: &paddock.Monitor{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Create(t.Context(), paddock.Spec{ID: "plain"}); err != nil {
			t.Fatal(err)
		}
		sb.(*box).says("one", nil)
		sb.(*box).says("two", nil)
		f.boxes["plain"].says("unheard", nil)
		l.is(t, "old before", "new one", "new two")
		if err := d.Close(); err != nil || !f.closed {
			t.Error(err)
		}
		// What comes while nobody follows is told to who follows next.
		old.says("meanwhile", nil)
		again := &told{}
		d = open(t, f, again)
		again.is(t, "old meanwhile", "plain unheard")
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestASandboxIsFollowedThroughAPauseAndUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), &told{}
		b := f.add("a")
		d := open(t, f, l)
		b.says("", func() { b.asleep = true })
		synctest.Wait()
		b.says("late", func() { b.asleep = false })
		time.Sleep(2 * retryTime) // of the bubble
		l.is(t, "a late")
		next := f.add("a") // another one has the name
		b.says("", nil)
		next.says("next", nil)
		l.is(t, "a late", "a next")
		f.mu.Lock()
		delete(f.boxes, "a")
		f.mu.Unlock()
		next.says("", nil)
		synctest.Wait()
		if n := len(d.(*driver).followed); n != 0 {
			t.Errorf("%d sandboxes that are gone are followed", n)
		}
		if _, err := d.Create(t.Context(), paddock.Spec{ID: "a", Monitor: &paddock.Monitor{}}); err != nil {
			t.Fatal(err)
		}
		f.boxes["a"].says("again", nil)
		l.is(t, "a late", "a next", "a again")
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
