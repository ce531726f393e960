package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	}}, {can: []paddock.Capability{paddock.CanWatch, paddock.CanWatchHost, paddock.CanMountWrite}, promises: []promise{
		{"a change made on the host reaches who watches inside", watchHost},
		{"a file of a mount that the host changes or replaces can be watched", watchHostFile},
		{"what commands change in a mount is told once", watchHostOnce},
	}}, {can: []paddock.Capability{paddock.CanWatch, paddock.CanWatchHost, paddock.CanMountWrite}, limits: []paddock.Control{paddock.ControlKernel}, promises: []promise{
		{"nobody inside is told what the host does with a file that may not be read", watchHostHidden},
	}}, {can: []paddock.Capability{paddock.CanWatch, paddock.CanWatchHost, paddock.CanMountWrite, paddock.CanSnapshotMemory}, promises: []promise{
		{"a watcher goes on to see the host's changes after a snapshot of memory", watchHostSaved},
	}}, {can: []paddock.Capability{paddock.CanPrograms, paddock.CanWatchHost, paddock.CanMountWrite, paddock.CanPause}, promises: []promise{
		{"a program's own watch goes on to tell what the host changes after a pause", watchHostPaused},
		{"a program learns by its own watch that the host changed files during a pause", watchHostMeanwhile},
	}}, {can: []paddock.Capability{paddock.CanPrograms, paddock.CanWatchHost, paddock.CanMountWrite}, promises: []promise{
		{"a program's own watch tells what the host changes, and how", watchHostProgram},
		{"a watch tells what the host changes in a directory that a command has renamed", watchHostRenamed},
		{"a watch of a file goes on when the host renames a directory above it", watchHostMoved},
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

// watchHost makes each change as people's programs make them: in place, and by a file that takes the place of
// another, as editors save.
func watchHost(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"src/app.js": "1", "src/deep/er/x": "1"})
	b := s.mounted(t, s.desk(dir))
	const in = "/mnt/desk/"
	w := b.watch(t, "/mnt/desk", true)
	app := filepath.Join(dir, "src/app.js")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		if got := b.get(t, in+name); string(got) != want {
			t.Errorf("%s has %q after its event, not %q", name, got, want)
		}
	}

	write("src/app.js", "22")
	expect(t, w, "write "+in+"src/app.js")
	holds("src/app.js", "22")

	write("src/deep/er/new", "new")
	expect(t, w, "create "+in+"src/deep/er/new", "write "+in+"src/deep/er/new")
	holds("src/deep/er/new", "new")

	write("src/.app.js.tmp", "333")
	step(os.Rename(filepath.Join(dir, "src/.app.js.tmp"), app))
	expect(t, w, "rename "+in+"src/.app.js.tmp", "create "+in+"src/app.js")
	holds("src/app.js", "333")
	before, err := os.Stat(app)
	step(err)

	step(os.Chmod(app, 0o600))
	expect(t, w, "chmod "+in+"src/app.js")
	step(os.Chmod(app, 0o644))

	step(os.Mkdir(filepath.Join(dir, "src/late"), 0o755))
	expect(t, w, "create "+in+"src/late")
	write("src/late/file", "late")
	expect(t, w, "create "+in+"src/late/file")
	write("src/late/file", "later")
	expect(t, w, "write "+in+"src/late/file")

	step(os.Remove(filepath.Join(dir, "src/late/file")))
	expect(t, w, "remove "+in+"src/late/file")
	step(os.Rename(filepath.Join(dir, "src/late"), filepath.Join(dir, "moved")))
	expect(t, w, "rename "+in+"src/late", "create "+in+"moved")
	write("moved/again", "again")
	expect(t, w, "create "+in+"moved/again")

	after, err := os.Stat(app)
	step(err)
	if !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
		t.Errorf("telling of it changed the file: %v %d, before %v %d", after.ModTime(), after.Size(), before.ModTime(), before.Size())
	}
}

func watchHostFile(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"conf": "1", "other": "1"})
	b := s.mounted(t, s.desk(dir))
	const name = "/mnt/desk/conf"
	w := b.watch(t, name, false)
	for text, op := range map[string]string{"22": "write", "333": "create"} {
		file := filepath.Join(dir, "conf")
		if op == "create" { // as editors save
			file += ".tmp"
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if op == "create" {
			if err := os.Rename(file, filepath.Join(dir, "conf")); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, w, op+" "+name)
		if got := b.get(t, name); string(got) != text {
			t.Errorf("it has %q after its event, not %q", got, text)
		}
	}
}

// watchHostOnce needs the host's change at the end, which comes after all that was told before.
func watchHostOnce(t *testing.T, s *suite) {
	dir := hostTree(t, nil)
	b := s.mounted(t, s.desk(dir))
	w := b.watch(t, "/mnt/desk", false)
	b.must(t, "cd /mnt/desk; echo 1 > a; echo 2 >> a; chmod 600 a; mv a b; mkdir c; rm b; rmdir c")
	if err := os.WriteFile(filepath.Join(dir, "last"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, e := range expect(t, w, "create /mnt/desk/last") {
		op, name, _ := strings.Cut(e, " /mnt/desk/")
		if e = op + " " + name; name != "last" && (op != "write" || !slices.Contains(seen, e)) { // writes may be told as one
			seen = append(seen, e)
		}
	}
	want := []string{"create a", "write a", "chmod a", "rename a", "create b", "create c", "remove b", "remove c"}
	if !slices.Equal(seen, want) {
		t.Errorf("it saw %q, not %q", seen, want)
	}
}

// watchHostHidden holds for a kernel of the sandbox's own. On the host's, a watch of the directory tells it.
func watchHostHidden(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"secret.env": "TOPSECRET", "open": "open"})
	b := s.policed(t, paddock.FilePolicy{DenyRead: []string{"/mnt/desk/secret.env"}}, s.desk(dir))
	w := b.watch(t, "/mnt/desk", true)
	secret, open := filepath.Join(dir, "secret.env"), filepath.Join(dir, "open")
	for _, err := range []error{
		os.Chmod(secret, 0o600), os.WriteFile(secret, []byte("MORESECRET"), 0o600), os.Rename(secret, open+".gone"),
		os.WriteFile(open, []byte("opened"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range expect(t, w, "write /mnt/desk/open") {
		if strings.Contains(e, "secret") {
			t.Errorf("it is told of %q", e)
		}
	}
}

func watchHostSaved(t *testing.T, s *suite) {
	dir := hostTree(t, nil)
	b := s.mounted(t, s.desk(dir))
	w := b.watch(t, "/mnt/desk", false)
	b.must(t, "echo 1 > /mnt/desk/a")
	expect(t, w, "create /mnt/desk/a")
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.driver.RemoveSnapshot(bounded(t), id); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "create /mnt/desk/b")
	b.must(t, "mkdir /mnt/desk/c; rmdir /mnt/desk/c")
	if err := os.WriteFile(filepath.Join(dir, "last"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, e := range expect(t, w, "create /mnt/desk/c", "remove /mnt/desk/c", "create /mnt/desk/last") {
		if e == "create /mnt/desk/c" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("what a command made is told %d times", made)
	}
}

// watchHostProgram tries what a library of the language's own would not tell.
func watchHostProgram(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"src/app.js": "1", "conf": "1"})
	b := s.mounted(t, s.desk(dir))
	out := new(syncBuffer)
	p := b.start(t, paddock.Cmd{
		Args:   []string{b.helper(t), "events", "/mnt/desk", "/mnt/desk/src", "/mnt/desk/conf"},
		Output: paddock.Output{Stdout: out, Stderr: out},
	})
	said := func(lines ...string) {
		t.Helper()
		until(t, fmt.Sprintf("the probe says %q; it said %q", lines, out.Bytes()), func() bool {
			rest := "\n" + string(out.Bytes())
			for _, line := range lines {
				_, after, ok := strings.Cut(rest, "\n"+line+"\n")
				if !ok {
					return false
				}
				rest = "\n" + after
			}
			return true
		})
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	said("watching")
	app := filepath.Join(dir, "src/app.js")
	step(os.WriteFile(app, []byte("22"), 0o644))
	said("src modify app.js", "src close_write app.js")
	step(os.Mkdir(filepath.Join(dir, "src/dir"), 0o755))
	said("src create|dir dir")
	step(os.WriteFile(app+"~", []byte("333"), 0o644))
	said("src create app.js~", "src modify app.js~", "src close_write app.js~")
	step(os.Rename(app+"~", app))
	said("src moved_from app.js~", "src moved_to app.js")
	step(os.Remove(app))
	said("src delete app.js")
	step(os.WriteFile(filepath.Join(dir, "conf"), []byte("22"), 0o644))
	said("conf modify ", "conf close_write ")
	step(os.WriteFile(filepath.Join(dir, "new"), []byte("22"), 0o644))
	step(os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "conf")))
	said("conf attrib ", "conf delete_self ", "conf ignored ")
	step(os.RemoveAll(filepath.Join(dir, "src")))
	said("src delete|dir dir", "src delete_self ", "src ignored ")
	said("desk delete|dir src")
	step(p.Signal(bounded(t), sigKill))
	if _, err := p.Wait(bounded(t)); err != nil {
		t.Error(err)
	}
}

// eventsIn has the probe print the events of paths in a mount, and returns a function that awaits a line which begins
// and contains what it is told.
func (b box) eventsIn(t testing.TB, paths ...string) (said func(begin, contain string), all func() string) {
	t.Helper()
	cmd := b.shell(`exec "$@" > events`, append([]string{b.helper(t), "events"}, paths...)...)
	cmd.Output = paddock.Output{Detached: true}
	b.start(t, cmd)
	all = func() string { return string(b.get(t, b.in("events"))) }
	said = func(begin, contain string) {
		t.Helper()
		until(t, "the probe says "+begin+contain, func() bool {
			return slices.ContainsFunc(strings.Split(all(), "\n"), func(line string) bool {
				return strings.HasPrefix(line, begin) && strings.Contains(line, contain)
			})
		})
	}
	until(t, "the probe begins", func() bool { return b.exists(t, b.in("events")) })
	said("watching", "")
	return said, all
}

func watchHostPaused(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"src/deep/x": "1"})
	b := s.mounted(t, s.desk(dir))
	said, _ := b.eventsIn(t, "/mnt/desk/src", "/mnt/desk/src/deep")
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src", "src/deep"} {
		if err := os.WriteFile(filepath.Join(dir, name, "new"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		said(filepath.Base(name)+" create new", "")
	}
}

// watchHostMeanwhile accepts an event of the change, or one by which changes may have been lost.
func watchHostMeanwhile(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"src/deep/x": "1", "conf": "1"})
	b := s.mounted(t, s.desk(dir))
	said, _ := b.eventsIn(t, "/mnt/desk/src", "/mnt/desk/src/deep", "/mnt/desk/conf")
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src/new", "src/deep/x", "conf"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("22"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatal(err)
	}
	said("src ", "create")
	said("deep ", "modify")
	said("conf ", "modify")
}

func watchHostRenamed(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"a/x": "1", "top/c/y": "1"})
	b := s.mounted(t, s.desk(dir))
	said, all := b.eventsIn(t, "/mnt/desk/a", "/mnt/desk/top/c")
	b.must(t, "cd /mnt/desk; echo 2 > a/x; echo 2 > top/c/y; mv a b; mv top other")
	said("a ", "move_self")
	said("c close_write y", "")
	for _, name := range []string{"b/x", "other/c/y"} {
		watched, file := filepath.Split(name)
		want := map[string]string{"b/": "a", "other/c/": "c"}[watched] + " modify " + file + "\n"
		before := strings.Count(all(), want)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("333"), 0o644); err != nil {
			t.Fatal(err)
		}
		until(t, "the probe says "+want, func() bool { return strings.Count(all(), want) > before })
	}
}

func watchHostMoved(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"d/f": "1"})
	b := s.mounted(t, s.desk(dir))
	said, all := b.eventsIn(t, "/mnt/desk/d/f")
	if err := errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")), os.Chmod(filepath.Join(dir, "e/f"), 0o600)); err != nil {
		t.Fatal(err)
	}
	said("f attrib", "")
	if err := os.WriteFile(filepath.Join(dir, "e/f"), []byte("22"), 0o600); err != nil {
		t.Fatal(err)
	}
	said("f close_write", "")
	if got := all(); strings.Contains(got, "delete_self") || strings.Contains(got, "ignored") {
		t.Errorf("a file that is there has ended: %q", got)
	}
}
