package drivertest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func removePromises() []group {
	return []group{{promises: []promise{
		{"Remove ends every call under way, and nothing hangs", removeDuring},
		{"a removed sandbox is gone: it is not found, and its calls say so", removed},
		{"the same of one that is ephemeral", removedEphemeral},
		{"removing twice, or by many at once, is fine", removeTwice},
	}}}
}

// ending reports whether a call may return err when its sandbox is removed: Unavailable if
// it was pending, and also NotFound if it came later.
func ending(err error) bool {
	return errors.Is(err, paddock.Unavailable) || errors.Is(err, paddock.NotFound)
}

// An activity is an operation in progress when the sandbox is removed. once performs it one
// time and reports that it began. It is repeated until it fails.
type activity struct {
	what string
	once func(ctx context.Context, began func()) error
}

func (b box) activities(t *testing.T) []activity {
	t.Helper()
	start := func(ctx context.Context, cmd paddock.Cmd, began func(), use func(p paddock.Process) error) error {
		p, err := b.Start(ctx, cmd)
		if err != nil {
			return err
		}
		defer p.Release()
		began()
		return use(p)
	}
	wait := func(ctx context.Context) func(p paddock.Process) error {
		return func(p paddock.Process) error {
			exit, err := p.Wait(ctx)
			if err == nil && exit.Cause == paddock.SandboxGone && exit.Reason != "" {
				return paddock.Unavailable
			}
			if err == nil && exit.Cause == paddock.OutOfBudget {
				return nil // finished before the removal: repeat
			}
			if err == nil {
				t.Errorf("a process of a removed sandbox ended with %+v", exit)
				return paddock.Unavailable
			}
			return err
		}
	}
	all := []activity{
		{"a wait", func(ctx context.Context, began func()) error {
			return start(ctx, b.shell("exec sleep 1000"), began, wait(ctx))
		}},
		{"output", func(ctx context.Context, began func()) error {
			cmd := b.shell("exec yes")
			cmd.Output = paddock.Output{Stdout: io.Discard}
			return start(ctx, cmd, began, wait(ctx))
		}},
		{"input", func(ctx context.Context, began func()) error {
			cmd := b.shell("exec sleep 1000")
			cmd.Input = true
			return start(ctx, cmd, began, func(p paddock.Process) error {
				_, err := io.Copy(p.Input(), noise(5))
				return err
			})
		}},
		{"short commands", func(ctx context.Context, began func()) error {
			began()
			r, err := b.try(ctx, b.shell("exit 0"))
			if err == nil && r.exit.Cause == paddock.SandboxGone {
				return paddock.Unavailable
			}
			return err
		}},
		{"reading", func(ctx context.Context, began func()) error {
			r, err := b.FS().Open(ctx, b.in("big"), paddock.OpenOptions{})
			if err != nil {
				return err
			}
			began()
			_, err = io.Copy(io.Discard, r)
			return errors.Join(err, r.Close())
		}},
		{"a reader that stands still", func(ctx context.Context, began func()) error {
			r, err := b.FS().Open(ctx, b.in("big"), paddock.OpenOptions{})
			if err != nil {
				return err
			}
			began()
			<-ctx.Value(removedKey{}).(chan struct{})
			_, err = io.Copy(io.Discard, r)
			_ = r.Close() // it may return the same error again
			return err
		}},
		{"writing", func(ctx context.Context, began func()) error {
			w, err := b.FS().Create(ctx, b.in("written"), paddock.CreateOptions{})
			if err != nil {
				return err
			}
			began()
			_, err = io.Copy(w, io.LimitReader(noise(6), 8<<20))
			return errors.Join(err, w.Close())
		}},
		{"listing", func(ctx context.Context, began func()) error {
			began()
			_, err := b.list(ctx, b.dir, 100)
			return err
		}},
		{"status", func(ctx context.Context, began func()) error {
			began()
			_, err := b.Status(ctx)
			return err
		}},
	}
	if b.s.info.Can(paddock.CanTerminal) {
		all = append(all, activity{"a terminal", func(ctx context.Context, began func()) error {
			cmd := b.shell("exec cat")
			cmd.Terminal = &paddock.Size{Rows: 24, Cols: 80}
			return start(ctx, cmd, began, wait(ctx))
		}})
	}
	if b.s.info.Can(paddock.CanAttach) {
		pid := b.detached(t, "exec sleep 1000", false)
		all = append(all, activity{"an attached process", func(ctx context.Context, began func()) error {
			p, err := b.Attach(ctx, pid, paddock.Output{})
			if err != nil {
				return err
			}
			defer p.Release()
			began()
			return wait(ctx)(p)
		}})
	}
	if b.s.info.Can(paddock.CanWatch) {
		all = append(all, activity{"a watcher", func(ctx context.Context, began func()) error {
			w, err := b.FS().Watch(ctx, "/", paddock.WatchOptions{})
			if err != nil {
				return err
			}
			began()
			for err == nil {
				_, err = w.Next(ctx)
			}
			_ = w.Close() // it may return the same error again
			return err
		}})
	}
	if b.s.info.Can(paddock.CanDial) {
		port := b.echoPort(t, "127.0.0.1:0")
		all = append(all, activity{"a connection", func(ctx context.Context, began func()) error {
			conn, err := b.Dial(ctx, port)
			if err != nil {
				return err
			}
			defer conn.Close()
			began()
			_, err = conn.Read(make([]byte, 1))
			if err != nil {
				return paddock.Unavailable // errors of a connection have no kind
			}
			return nil
		}})
	}
	return all
}

// removedKey is the key of the context value that is closed when Remove has returned.
type removedKey struct{}

func removeDuring(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, patternScript(8<<20)+" > big; mkdir tree; cd tree; seq 1 1000 | xargs touch")
	removedNow := make(chan struct{})
	ctx := context.WithValue(bounded(t), removedKey{}, removedNow)
	all := b.activities(t)
	var began, ended sync.WaitGroup
	began.Add(len(all))
	for _, a := range all {
		ended.Go(func() {
			once := sync.OnceFunc(began.Done)
			var err error
			for err == nil {
				err = a.once(ctx, once)
			}
			once() // the activity could not begin
			if !ending(err) {
				t.Errorf("%s ended with: %v (kind %q)", a.what, err, paddock.KindOf(err))
			}
		})
	}
	began.Wait()
	if err := b.Remove(bounded(t)); err != nil {
		t.Errorf("remove: %v", err)
	}
	close(removedNow)
	ended.Wait() // ctx bounds it; then the kind of the error is wrong
}

func removed(t *testing.T, s *suite) { s.removed(t, s.own(t)) }

func removedEphemeral(t *testing.T, s *suite) {
	s.removed(t, s.own(t, func(spec *paddock.Spec) { spec.Ephemeral = true }))
}

func (s *suite) removed(t *testing.T, b box) {
	t.Helper()
	id := b.ID()
	p := b.start(t, b.shell("exec sleep 1000"))
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	for _, d := range []paddock.Driver{s.driver, s.fresh(t)} {
		_, err := d.Open(bounded(t), id)
		wantKind(t, "open", err, paddock.NotFound)
		if s.listed(t, d, id) {
			t.Error("it is still listed")
		}
	}
	if exit, err := p.Wait(bounded(t)); err == nil && (exit.Cause != paddock.SandboxGone || exit.Reason == "") || err != nil && !ending(err) {
		t.Errorf("the process ended with %+v, %v", exit, err)
	}
	calls := map[string]func() error{
		"Start":     func() error { _, err := b.Start(bounded(t), b.shell("true")); return err },
		"Status":    func() error { _, err := b.Status(bounded(t)); return err },
		"Processes": func() error { _, err := b.Processes(bounded(t)); return err },
		"Open": func() error {
			_, err := b.FS().Open(bounded(t), "/etc/passwd", paddock.OpenOptions{})
			return err
		},
		"Create": func() error { return b.write(bounded(t), b.in("x"), strings.NewReader("x"), paddock.CreateOptions{}) },
		"List":   func() error { _, err := b.list(bounded(t), "/", 1); return err },
		"Update": func() error {
			return b.Update(bounded(t), paddock.Update{Labels: map[string]string{"a": "b"}})
		},
		"Signal": func() error { return p.Signal(bounded(t), sigKill) },
	}
	if s.info.Can(paddock.CanPause) {
		calls["Pause"] = func() error { return b.Pause(bounded(t)) }
		calls["Resume"] = func() error { return b.Resume(bounded(t)) }
	}
	if s.info.Can(paddock.CanSnapshotFiles) {
		calls["Snapshot"] = func() error { _, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{}); return err }
	}
	for what, call := range calls {
		if err := call(); !ending(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// listed reports whether a driver lists a sandbox.
func (s *suite) listed(t testing.TB, d paddock.Driver, id paddock.ID) bool {
	t.Helper()
	all, err := d.List(bounded(t))
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, st := range all {
		if st.ID == id {
			return true
		}
	}
	return false
}

func removeTwice(t *testing.T, s *suite) {
	b := s.own(t)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := b.Remove(ctx); err != nil {
				t.Errorf("remove: %v", err)
			}
		})
	}
	wg.Wait()
	if err := b.Remove(ctx); err != nil {
		t.Errorf("remove again: %v", err)
	}
}
