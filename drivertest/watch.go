package drivertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func watchPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanWatch}, promises: []promise{
		{"a watcher tells what is made, written, renamed, changed and removed", watches},
		{"a watcher sees what commands do", watchesCommands},
		{"a recursive watcher sees directories below, also new ones", watchesBelow},
		{"a watcher that is not recursive sees only its own directory", watchesNotBelow},
		{"a single file can be watched", watchesFile},
		{"more events than are read are lost, told as such, and hold up nobody", watchFlood},
		{"a closed watcher, and a call that is given up, say so", watchClosed},
		{"what does not exist cannot be watched", watchMissing},
	}}}
}

func (b box) watch(t testing.TB, name string, recursive bool) paddock.Watcher {
	t.Helper()
	w, err := b.FS().Watch(bounded(t), name, paddock.WatchOptions{Recursive: recursive})
	if err != nil {
		t.Fatalf("watch %s: %v", name, err)
	}
	t.Cleanup(func() { _ = w.Close() }) // a second Close may return an error
	return w
}

// expect reads events until each of the wanted ones ("op name") has arrived, in any order.
// It returns all events.
func expect(t testing.TB, w paddock.Watcher, wanted ...string) []string {
	t.Helper()
	missing := make(map[string]bool)
	for _, e := range wanted {
		missing[e] = true
	}
	ctx := bounded(t)
	var seen []string
	for len(missing) > 0 {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("next: %v; seen %q, missing %v", err, seen, missing)
		}
		text := fmt.Sprintf("%s %s", e.Op, e.Name)
		seen = append(seen, text)
		delete(missing, text)
	}
	return seen
}

func watches(t *testing.T, s *suite) {
	b := s.box(t)
	w := b.watch(t, b.dir, false)
	b.put(t, b.in("file"), []byte("x"), 0)
	expect(t, w, "create "+b.in("file"), "write "+b.in("file"))
	if err := b.FS().Chmod(bounded(t), b.in("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "chmod "+b.in("file"))
	if err := b.FS().Rename(bounded(t), b.in("file"), b.in("moved")); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "rename "+b.in("file"), "create "+b.in("moved"))
	if err := b.FS().Remove(bounded(t), b.in("moved"), false); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "remove "+b.in("moved"))
}

func watchesCommands(t *testing.T, s *suite) {
	b := s.box(t)
	w := b.watch(t, b.dir, false)
	b.must(t, "echo 1 > 'a b'; mkdir dir; mv 'a b' c; rm c; rmdir dir")
	expect(t, w, "create "+b.in("a b"), "write "+b.in("a b"), "create "+b.in("dir"),
		"rename "+b.in("a b"), "create "+b.in("c"), "remove "+b.in("c"), "remove "+b.in("dir"))
}

func watchesBelow(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir -p old/deep")
	w := b.watch(t, b.dir, true)
	b.must(t, "echo 1 > old/deep/file")
	expect(t, w, "create "+b.in("old/deep/file"))
	b.must(t, "mkdir new")
	expect(t, w, "create "+b.in("new"))
	// A directory that was made and filled at once is reported completely.
	b.must(t, "mkdir -p new/a/b; echo 1 > new/a/b/file")
	expect(t, w, "create "+b.in("new/a"), "create "+b.in("new/a/b"), "create "+b.in("new/a/b/file"))
}

func watchesNotBelow(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir below")
	w := b.watch(t, b.dir, false)
	b.must(t, "echo 1 > below/file; echo 1 > last")
	for _, e := range expect(t, w, "create "+b.in("last")) {
		if strings.Contains(e, "below/") {
			t.Errorf("it saw %q", e)
		}
	}
}

func watchesFile(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "echo 1 > file; echo 1 > other")
	w := b.watch(t, b.in("file"), false)
	b.must(t, "echo 2 > other; echo 2 >> file")
	for _, e := range expect(t, w, "write "+b.in("file")) {
		if strings.Contains(e, "other") {
			t.Errorf("it saw %q", e)
		}
	}
	b.must(t, "rm file")
	expect(t, w, "remove "+b.in("file"))
}

func watchFlood(t *testing.T, s *suite) {
	const n = 20_000
	b := s.own(t)
	w := b.watch(t, b.dir, false)
	b.must(t, fmt.Sprintf("i=0; while [ $i -lt %d ]; do : > f$i; i=$((i+1)); done", n))
	b.must(t, "echo 1 > last")
	ctx := bounded(t)
	made, lost := 0, false
	for {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("next after %d: %v", made, err)
		}
		lost = lost || e.Lost
		if e.Op == paddock.EventCreate && strings.HasPrefix(e.Name, b.in("f")) {
			made++
		}
		if e.Name == b.in("last") {
			break
		}
		if lost {
			// The last events may be among the lost ones. A new event is not.
			b.must(t, "echo 1 >> last")
		}
	}
	if made != n && !lost {
		t.Errorf("%d of %d came, and nothing is said of the rest", made, n)
	}
}

func watchClosed(t *testing.T, s *suite) {
	b := s.box(t)
	w := b.watch(t, b.dir, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Next(ctx)
	wantKind(t, "next of a call that is given up", err, paddock.Canceled, paddock.Timeout)
	b.put(t, b.in("after"), nil, 0)
	expect(t, w, "create "+b.in("after")) // the watcher still works

	v := b.watch(t, b.in("after"), false)
	waiting := make(chan error, 1)
	long := bounded(t)
	go func() {
		_, err := v.Next(long)
		waiting <- err
	}()
	if err := v.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantKind(t, "next that was waiting", <-waiting, paddock.Canceled)
	_, err = v.Next(long)
	wantKind(t, "next after close", err, paddock.Canceled)
}

func watchMissing(t *testing.T, s *suite) {
	b := s.box(t)
	_, err := b.FS().Watch(bounded(t), b.in("missing"), paddock.WatchOptions{})
	wantKind(t, "watch", err, paddock.NotFound)
}
