package box

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A holder is told of changes, and answers when it is let go.
type holder struct {
	told chan struct{}
	free chan struct{}
}

func (h holder) Change(step.Watched) error {
	h.told <- struct{}{}
	<-h.free
	return nil
}

func (holder) Ended(*step.Record) {}

// A directory that is not there any more is named as the sandbox saw it.
func TestAnUndoDoesNotTellWhereADirectoryIs(t *testing.T) {
	s := recordedDir(t, paddock.UndoOn, nil)
	end, err := s.command(t.Context(), runStep, []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	work := string(s.roots[0].Path)
	if err := errors.Join(s.Change(boxinit.Change{Kind: boxinit.ChangeContent, Path: "f"}), os.WriteFile(filepath.Join(work, "f"), []byte("y"), 0o600)); err != nil {
		t.Fatal(err)
	}
	end(t.Context(), nil)
	if err := os.Rename(work, work+".moved"); err != nil {
		t.Fatal(err)
	}
	d := &Driver{reading: newReaders(1)}
	j := &journal{id: "box", driver: d, s: &Sandbox{id: "box", driver: d}, how: s.how}
	done, err := j.Undo(t.Context(), paddock.Undo{To: 1})
	told := fmt.Sprint(done, err)
	if !errors.Is(err, paddock.Conflict) || !strings.Contains(told, `"/w"`) || strings.Contains(told, work) {
		t.Error(told)
	}
}

// recordedDir begins to record a directory that has the file "f".
func recordedDir(t *testing.T, mode paddock.UndoMode, w step.Watcher) *stepping {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "w")
	if err := errors.Join(os.Mkdir(work, 0o700), os.WriteFile(filepath.Join(work, "f"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	how := &recording{Journal: filepath.Join(dir, "steps"), Mode: mode, Life: "l"}
	s, err := newStepping("box", how, func(context.Context) ([]boxinit.Change, error) { return nil, nil }, false, w)
	if err != nil {
		t.Fatal(err)
	}
	s.refused = func() []paddock.Refusal { return nil }
	s.settle = func(context.Context) {}
	s.reading = func() reading { return reading{cpu: -1} }
	t.Cleanup(s.close)
	if _, err := s.watch([]WitnessedTree{{Source: work, Target: "/w"}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Lists of all sandboxes wait for this answer.
func TestWhatIsRecordedIsToldWhileAChangeIsHeld(t *testing.T) {
	h := holder{make(chan struct{}), make(chan struct{})}
	s := recordedDir(t, paddock.UndoOn, h)
	end, err := s.command(t.Context(), runStep, []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	var change sync.WaitGroup
	change.Go(func() {
		if err := s.Change(boxinit.Change{Kind: boxinit.ChangeContent, Path: "f"}); err != nil {
			t.Error(err)
		}
	})
	<-h.told
	if words := s.words(); words != "" { // which would wait for ever
		t.Error(words)
	}
	close(h.free)
	change.Wait()
	end(t.Context(), nil)
	s.lose(errors.New("first"))
	s.lose(errors.New("second"))
	if words := s.words(); words != "first" {
		t.Error(words)
	}
}

func TestStepsThatGoOnAreBounded(t *testing.T) {
	for _, mode := range []paddock.UndoMode{paddock.UndoOn, paddock.UndoStrict} {
		t.Run(string(mode), func(t *testing.T) {
			s := recordedDir(t, mode, nil)
			var ends []endStep
			for i := range maxOpenSteps + 3 {
				end, err := s.command(t.Context(), runStep, []string{fmt.Sprint(i)})
				if refused := mode == paddock.UndoStrict && i >= maxOpenSteps; refused {
					if !errors.Is(err, paddock.Exhausted) {
						t.Errorf("command %d: %v", i, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, end)
			}
			if len(s.open) != maxOpenSteps {
				t.Errorf("%d steps go on", len(s.open))
			}
			if err := s.Change(boxinit.Change{Kind: boxinit.ChangeContent, Path: "f"}); err != nil {
				t.Fatal(err)
			}
			for _, end := range ends {
				end(t.Context(), nil)
			}
			list, err := s.journal.List(t.Context(), step.Filter{})
			if err != nil || len(list) != maxOpenSteps {
				t.Fatalf("%d steps, %v", len(list), err)
			}
			if newest := list[len(list)-1]; mode == paddock.UndoOn && newest.Missed+newest.Changed == 0 {
				t.Error("the newest step does not say that others changed something")
			}
			if err := s.failed(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A keeper may take minutes to end a step. It needs nobody who waits for that.
func TestNobodyWaitsForTheEndOfAStepWhenHeStops(t *testing.T) {
	for _, why := range []string{"the request ended", "the driver is closed"} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unixpacket"})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			running, closing := context.WithCancel(context.Background())
			defer closing()
			var keeper sync.WaitGroup
			defer keeper.Wait()
			keeper.Go(func() {
				c, err := l.AcceptUnix()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				b := make([]byte, sys.PacketMax)
				if _, err := c.Read(b); err != nil {
					t.Error(err)
				}
				if _, err := c.Write([]byte("{}")); err != nil {
					t.Error(err)
				}
				if n, err := c.Read(b); err != nil || n == 0 {
					t.Error("no end is told:", n, err)
				}
				if why == "the request ended" {
					cancel()
				} else {
					closing()
				}
				_, _ = c.Read(b) // until the caller hangs up, which it does before an answer
			})
			r := remoteOwner{dir: dir, driver: &Driver{site: &Site{running: running}}}
			end, err := r.step(context.Background(), runStep, []string{"true"})
			if err != nil {
				t.Fatal(err)
			}
			end(ctx, &paddock.Exit{Cause: paddock.Exited})
		})
	}
}

func TestPathsOfARequestAreBoundedBeforeAnythingIsRead(t *testing.T) {
	j := &journal{s: &Sandbox{id: "box"}, how: &recording{}}
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprint("/w/", i)
	}
	for _, names := range [][]string{many, {"w"}, {"/w/../etc"}} {
		if _, err := j.Diff(t.Context(), 1, 1, names); !errors.Is(err, paddock.Invalid) {
			t.Errorf("diff of %d paths: %v", len(names), err)
		}
		if _, err := j.Undo(t.Context(), paddock.Undo{To: 1, Paths: names}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("undo of %d paths: %v", len(names), err)
		}
	}
}

func TestPathsAreTranslatedByTheRootsOfRecords(t *testing.T) {
	roots := []step.Root{{Path: "/host/a", Target: "/w"}, {Path: "/host/b", Target: "/w/in"}}
	m := rootsOf([]step.Record{{Roots: roots}, {Roots: []step.Root{{Path: "/host/a", Target: "/w", Ino: 7}}}})
	if len(m.all) != 2 {
		t.Errorf("roots %v", m.all)
	}
	got, err := m.outside(t.Context(), []string{"/w/x", "/w/in/y", "/w", "/w/x"})
	if want := []string{"/host/a/x", "/host/a/in/y", "/host/b/y", "/host/a", "/host/b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := m.outside(t.Context(), []string{"/etc"}); !errors.Is(err, paddock.NotFound) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.outside(ctx, []string{"/w"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := m.target("/host/b", "z"); got != "/w/in/z" {
		t.Error(got)
	}
}

func TestOneSandboxHasOnePlaceAmongReaders(t *testing.T) {
	r := newReaders(2)
	first, err := r.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, err := r.enter(ctx, "a"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for range 3 {
		other, err := r.enter(t.Context(), "b") // which would wait for ever
		if err != nil {
			t.Fatal(err)
		}
		other()
	}
	cancel()
	waiting.Wait()
	first()
	if len(r.one) > 0 || len(r.all) > 0 {
		t.Errorf("%d sandboxes and %d places are left", len(r.one), len(r.all))
	}
}

// What the host cannot look at is not changed. If it was, that is told as what nobody can name.
func TestAChangeThatTheHostCannotLookAtIsRefused(t *testing.T) {
	for _, mode := range []paddock.UndoMode{paddock.UndoOn, paddock.UndoStrict} {
		t.Run(string(mode), func(t *testing.T) {
			runtime.LockOSThread() // never unlocked: the thread ends without capabilities
			if err := sys.DropThreadCapabilities(); err != nil {
				t.Fatal(err)
			}
			var told []step.Watched
			s := recordedDir(t, mode, watcherOf(func(w step.Watched) { told = append(told, w) }))
			work := string(s.roots[0].Path)
			if err := errors.Join(os.Mkdir(filepath.Join(work, "d"), 0o700), os.WriteFile(filepath.Join(work, "d/f"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			end, err := s.command(t.Context(), runStep, []string{"true"})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(work, "d"), 0); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []boxinit.ChangeKind{boxinit.ChangeContent, boxinit.ChangeMode, boxinit.ChangeRemoved} {
				if err := s.Change(boxinit.Change{Kind: kind, Path: "d/f"}); !errors.Is(err, paddock.Denied) {
					t.Errorf("a change of the kind %d: %v", kind, err)
				}
			}
			if err := s.failed(); err != nil {
				t.Error(err)
			}
			told = nil
			_ = s.Change(boxinit.Change{Kind: boxinit.ChangeMoved, Path: "d/f", To: "g"}) // it was made already
			if !slices.ContainsFunc(told, func(w step.Watched) bool { return w.Verb == step.Unseen && w.Done }) {
				t.Errorf("the watcher was told %+v", told)
			}
			if err := s.failed(); (err != nil) != (mode == paddock.UndoStrict) {
				t.Errorf("the recording: %v", err)
			}
			if err := os.Chmod(filepath.Join(work, "d"), 0o700); err != nil {
				t.Fatal(err)
			}
			end(t.Context(), nil)
		})
	}
}

// watcherOf is a watcher that permits everything.
type watcherOf func(step.Watched)

func (f watcherOf) Change(w step.Watched) error {
	f(w)
	return nil
}

func (watcherOf) Ended(*step.Record) {}
