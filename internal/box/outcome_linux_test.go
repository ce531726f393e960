package box

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A stubborn tier does what a test says, whatever its caller does meanwhile.
type stubborn struct {
	update func(ctx context.Context) error // nil succeeds

	mu        sync.Mutex
	snapshot  func(ctx context.Context) error // guarded by mu; nil succeeds
	discarded []paddock.SnapshotID            // guarded by mu
}

func (s *stubborn) HostLimits(_ *Layout, l paddock.Limits) paddock.Limits { return l }
func (s *stubborn) Measure(context.Context, *Box, *Measure)               {}
func (s *stubborn) Pause(context.Context, *Life) error                    { return nil }
func (s *stubborn) Resume(context.Context, *Life) error                   { return nil }

func (s *stubborn) Update(ctx context.Context, _ *Box, _ paddock.Limits) error {
	if s.update == nil {
		return nil
	}
	return s.update(ctx)
}

func (s *stubborn) Snapshot(ctx context.Context, _ *Life, _ paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	s.mu.Lock()
	write := s.snapshot
	s.mu.Unlock()
	if write == nil {
		return "im-x", nil
	}
	return "im-x", write(ctx)
}

// writes changes what a snapshot does.
func (s *stubborn) writes(write func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = write
}

func (s *stubborn) Discard(_ *Life, id paddock.SnapshotID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discarded = append(s.discarded, id)
	return nil
}

// kept is a sandbox with a keeper.
type kept struct {
	remoteOwner
	life *Life
	tier *stubborn
	stop func() // ends the keeper, when all its requests are answered
}

// keptBy makes a sandbox of a tier, whose memory limit is 100.
func keptBy(t *testing.T, tier *stubborn) kept {
	t.Helper()
	dir := t.TempDir()
	k := keeperAt(t, dir, about{Created: time.Now()})
	mine, shown, err := newBoard()
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Runtime: &Runtime{Limiter: tier, Pauser: tier}}
	k.board, k.shown, k.gone = mine, shown, make(chan struct{})
	k.box = &Box{plan: plan, ended: make(chan struct{}), Group: &cgroup.Group{}, limits: paddock.Limits{Memory: 100}}
	k.life = &Life{plan: plan, turn: make(chan struct{}, 1), current: k.box}
	l, err := k.listen()
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { k.serve(l) })
	stop := func() { k.finish(); serving.Wait() }
	t.Cleanup(func() { stop(); _ = shown.Close() })
	return kept{remoteOwner{dir: dir}, k.life, tier, stop}
}

// raise asks for a memory limit of 900.
func (k kept) raise(ctx context.Context) error {
	return k.update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 900}})
}

// memory returns the limit that the sandbox has when all requests are answered.
func (k kept) memory() int64 {
	k.stop()
	return k.life.Box().Limits().Memory
}

// gone returns the snapshots that were discarded when all requests are answered.
func (k kept) gone() []paddock.SnapshotID {
	k.stop()
	k.tier.mu.Lock()
	defer k.tier.mu.Unlock()
	return k.tier.discarded
}

// A waiting context tells when somebody begins to wait for its end.
type waiting struct {
	context.Context
	begun func()
}

func (w waiting) Done() <-chan struct{} { w.begun(); return w.Context.Done() }

func TestAChangeOfACallerWhoLeavesIsNotMadeLater(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	k := keptBy(t, &stubborn{snapshot: func(context.Context) error { close(begun); <-release; return nil }})
	var others sync.WaitGroup
	defer others.Wait()
	defer sync.OnceFunc(func() { close(release) })()
	others.Go(func() {
		if _, err := k.snapshot(t.Context(), paddock.SnapshotOptions{}); err != nil {
			t.Error(err)
		}
	})
	<-begun // it has the turn
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := k.raise(waiting{ctx, sync.OnceFunc(cancel)}) // it leaves when it has asked
	if !errors.Is(err, paddock.Canceled) || errors.Is(err, paddock.Unavailable) {
		t.Errorf("update: %v", err)
	}
	if got := k.life.Box().Limits().Memory; got != 100 {
		t.Errorf("the limit is %d", got)
	}
	release <- struct{}{}
	others.Wait()
	if got := k.memory(); got != 100 {
		t.Errorf("the limit was changed later: %d", got)
	}
}

func TestACallerWhoLeavesStillLearnsWhatBecameOfAChange(t *testing.T) {
	for name, row := range map[string]struct {
		then error // what the tier says when its caller has left
		want int64
	}{
		"it was made all the same": {nil, 900},
		"it was given up":          {paddock.Canceled, 100},
		"it was refused":           {paddock.Conflict, 100},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			k := keptBy(t, &stubborn{update: func(inside context.Context) error {
				cancel()
				<-inside.Done() // it learns that the caller has left
				return row.then
			}})
			if err := k.raise(ctx); !errors.Is(err, row.then) || errors.Is(err, paddock.Unavailable) || (err == nil) != (row.then == nil) {
				t.Errorf("update: %v", err)
			}
			if got := k.life.Box().Limits().Memory; got != row.want {
				t.Errorf("the limit is %d", got)
			}
		})
	}
}

func TestWhatBecameOfAChangeIsUnknownOnlyIfNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var keeper sync.WaitGroup
	defer keeper.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	keeper.Go(func() {
		c, err := l.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, sys.PacketMax)); err != nil {
			t.Error(err)
		}
		cancel()
		_, _ = c.Read(make([]byte, 1)) // until the caller hangs up; then it dies
	})
	r := remoteOwner{dir: dir}
	if err := r.update(ctx, paddock.Update{}); !errors.Is(err, paddock.Unavailable) || paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("update: %v", err)
	}
	if err := r.update(ctx, paddock.Update{}); !errors.Is(err, paddock.Canceled) { // without a word to the keeper
		t.Errorf("another: %v", err)
	}
}

// say sends a request as a caller does that is not of this release, or dies.
func (k kept) say(t *testing.T, q request) *sys.Channel {
	t.Helper()
	ch, err := k.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	data, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Send(data); err != nil {
		t.Fatal(err)
	}
	return ch
}

func heard(t *testing.T, ch *sys.Channel) {
	t.Helper()
	data, _, err := ch.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := answered(data); err != nil || got.Saved != "im-x" {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestASnapshotIsSomebodysOrGone(t *testing.T) {
	for name, row := range map[string]struct {
		take func(t *testing.T, k kept)
		gone bool
	}{
		"its caller takes it": {func(t *testing.T, k kept) {
			if id, err := k.snapshot(t.Context(), paddock.SnapshotOptions{}); err != nil || id != "im-x" {
				t.Errorf("%q, %v", id, err)
			}
		}, false},
		"its caller leaves while it is written": {func(t *testing.T, k kept) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			k.tier.writes(func(inside context.Context) error { cancel(); <-inside.Done(); return nil })
			if id, err := k.snapshot(ctx, paddock.SnapshotOptions{}); !errors.Is(err, paddock.Canceled) || id != "" {
				t.Errorf("%q, %v", id, err)
			}
		}, true},
		"its caller dies with the answer": {func(t *testing.T, k kept) {
			ch := k.say(t, request{Op: "snapshot", Keeps: true})
			heard(t, ch)
			_ = ch.Close()
		}, true},
		"its caller says something else": {func(t *testing.T, k kept) {
			ch := k.say(t, request{Op: "snapshot", Keeps: true})
			heard(t, ch)
			if err := ch.Send([]byte(`{"op":"stand"}`)); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a caller of an earlier release": {func(t *testing.T, k kept) {
			heard(t, k.say(t, request{Op: "snapshot"}))
		}, false},
		"one of an earlier release that leaves": {func(t *testing.T, k kept) {
			begun := make(chan struct{})
			k.tier.writes(func(inside context.Context) error { close(begun); <-inside.Done(); return nil })
			ch := k.say(t, request{Op: "snapshot"})
			<-begun
			_ = ch.Close()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := keptBy(t, &stubborn{})
			row.take(t, k)
			want := []paddock.SnapshotID{"im-x"}
			if !row.gone {
				want = nil
			}
			if got := k.gone(); !slices.Equal(got, want) {
				t.Errorf("discarded were %q, not %q", got, want)
			}
		})
	}
}

func TestASnapshotOfAKeeperOfAnEarlierReleaseIsTaken(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, then := range []*response{{Error: `request "keep"`, Kind: paddock.Unsupported}, nil} { // nil: it is killed
		var keeper sync.WaitGroup
		keeper.Go(func() {
			c, err := l.AcceptUnix()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for _, r := range []*response{{Saved: "im-x"}, then} {
				if _, err := c.Read(make([]byte, sys.PacketMax)); err != nil {
					t.Error(err)
				}
				if r == nil {
					return
				}
				data, err := json.Marshal(r)
				if err != nil {
					t.Error(err)
				}
				if _, err := c.Write(data); err != nil {
					t.Error(err)
				}
			}
		})
		if id, err := (remoteOwner{dir: dir}).snapshot(t.Context(), paddock.SnapshotOptions{}); err != nil || id != "im-x" {
			t.Errorf("%q, %v", id, err)
		}
		keeper.Wait()
	}
}
