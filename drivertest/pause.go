package drivertest

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func pausePromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanPause}, promises: []promise{
		{"nothing runs in a paused sandbox, and nothing is lost", pauses},
		{"a paused sandbox says so, and a command in it is a conflict", pausedConflict},
		{"pausing and resuming twice is fine", pauseTwice},
		{"a paused sandbox can be removed", removePaused},
		{"a pause ends files that are read or written, so that nobody waits for it to end", pausedFiles},
	}}, {can: []paddock.Capability{paddock.CanSnapshotFiles}, promises: []promise{
		{"a snapshot of files has a name", snapshotNamed},
	}}, {can: []paddock.Capability{paddock.CanSnapshotFiles, paddock.CanRootSnapshot}, promises: []promise{
		{"a sandbox made from a snapshot begins with its files, and each goes its own way", snapshotForks},
		{"a fork inherits the limits of its origin, also those that are enforced less than fully", snapshotLimits},
		{"a snapshot holds what was there when it was taken, and outlives its sandbox", snapshotStays},
		{"a snapshot that is not known is not found", snapshotUnknown},
		{"a snapshot keeps odd names, modes, times, holes and pipes, and no link of it is followed", snapshotOdd},
		{"what runs goes on after a snapshot of files", snapshotGoesOn},
		{"a snapshot that was removed is gone, and what was made from it goes on", snapshotRemoved},
	}}, {can: []paddock.Capability{paddock.CanPause, paddock.CanOutlive}, promises: []promise{
		{"what was paused goes on by another driver, with its processes", pausedElsewhere},
	}}, {can: []paddock.Capability{paddock.CanSnapshotMemory, paddock.CanRootSnapshot, paddock.CanAttach}, promises: []promise{
		{"a sandbox made from a snapshot of memory goes on where that was, and each goes its own way", memoryForks},
		{"what is made of one memory shares no randomness with anything, and knows the time", memoryRandom},
		{"a snapshot of memory is refused where it cannot go on, in words", memoryRefused},
	}}}
}

// counting is a command that counts, in memory only, while the file "go" exists. Then it
// prints the count.
const counting = `cd "$1" && : > go && i=0; while [ -e go ]; do i=$((i+1)); sleep 0.01; done; echo "$i"`

func pausedElsewhere(t *testing.T, s *suite) {
	b := s.own(t)
	cmd := b.shell(counting, b.dir)
	cmd.Output = paddock.Output{Detached: true}
	p := b.start(t, cmd)
	until(t, "it counts", func() bool { return b.exists(t, b.in("go")) })
	b.put(t, b.in("kept"), []byte("kept"), 0)
	before, err := b.Status(bounded(t))
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	sb, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if err := sb.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	again := box{Sandbox: sb, s: s, dir: b.dir}
	if after, err := sb.Status(bounded(t)); err != nil || !after.Created.Equal(before.Created) {
		t.Errorf("it was made at %v, and says %v now: %v", before.Created, after.Created, err)
	}
	if got := string(again.get(t, b.in("kept"))); got != "kept" {
		t.Errorf("%q", got)
	}
	if n := count(t, again, p.ID()); n < 1 {
		t.Errorf("it came to %d", n)
	}
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("the first driver sees %+v, %v", st, err)
	}
	b.must(t, "echo usable")
}

// count ends a counting command and returns its count.
func count(t testing.TB, b box, pid paddock.PID) int {
	t.Helper()
	var out syncBuffer
	p, err := b.Attach(bounded(t), pid, paddock.Output{Stdout: &out})
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	b.must(t, `rm "$1"/go`, b.dir)
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Errorf("%q", out.String())
	}
	return n
}

func memoryForks(t *testing.T, s *suite) {
	b := s.own(t)
	cmd := b.shell(counting, b.dir)
	cmd.Output = paddock.Output{Detached: true}
	p := b.start(t, cmd)
	until(t, "it counts", func() bool { return b.exists(t, b.in("go")) })
	b.must(t, `echo one > "$1"/file`, b.dir)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	first, second := s.from(t, id), s.from(t, id)
	first.must(t, `echo two > "$1"/file`, b.dir)
	first.dir, second.dir = b.dir, b.dir // the directory of the process
	for what, sb := range map[string]box{"the first": first, "the second": second, "the source": b} {
		if n := count(t, sb, p.ID()); n < 1 {
			t.Errorf("%s came to %d", what, n)
		}
	}
	if got := string(second.get(t, b.in("file"))); got != "one\n" {
		t.Errorf("the second has %q", got)
	}
	// New commands follow the new spec.
	third := s.own(t, func(spec *paddock.Spec) {
		spec.Root, spec.Env = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}, map[string]string{"FORK": "third"}
	})
	if got := third.must(t, `echo "$FORK"`); got != "third\n" {
		t.Errorf("%q", got)
	}
}

// memoryRandom compares sandboxes from one snapshot, its source, and new sandboxes, because
// all of them may start from the same memory image. Random numbers that a process took
// before the snapshot are the same in its copies. Later ones must differ.
func memoryRandom(t *testing.T, s *suite) {
	b := s.own(t)
	probe, file := b.helper(t), b.in("waits")
	p := b.start(t, paddock.Cmd{Args: []string{probe, "random", file}, Output: paddock.Output{Detached: true}})
	until(t, "it waits", func() bool { return b.exists(t, file) })
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	seen := map[string]string{} // the owner of each value
	note := func(who, text string) {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) < 3 {
			t.Errorf("%s tells %q", who, text)
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, " ")
			if other, ok := seen[value]; ok || len(value) < 32 || strings.Trim(value, "0") == "" {
				t.Errorf("%s: %s is %q, as for %q", who, name, value, other)
			}
			seen[value] = who + ": " + name
		}
	}
	copies := map[string]box{"the first": s.from(t, id), "the second": s.from(t, id), "the source": b}
	for who, sb := range copies {
		if err := sb.FS().Remove(bounded(t), file, false); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		var out syncBuffer
		again, err := sb.Attach(bounded(t), p.ID(), paddock.Output{Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		if exit := wait(t, again); exit.Code != 0 || exit.Cause != paddock.Exited {
			t.Errorf("%s: %+v: %s", who, exit, out.String())
		}
		note(who+", in what ran", out.String())
	}
	probes := map[string]string{} // addresses that differ
	for range 2 {
		fresh := s.own(t)
		who := string(fresh.ID())
		copies[who], probes[who] = fresh, fresh.helper(t)
	}
	for who, sb := range copies {
		note(who, sb.must(t, `exec "$1" random`, cmp.Or(probes[who], probe)))
		before := time.Now().Unix()
		text := strings.TrimSpace(sb.must(t, "date +%s"))
		if now, err := strconv.ParseInt(text, 10, 64); err != nil || now < before-1 || now > time.Now().Unix()+1 {
			t.Errorf("%s: the time is %q, since %d", who, text, before)
		}
	}
}

func memoryRefused(t *testing.T, s *suite) {
	b := s.own(t)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	dir := hostTree(t, map[string]string{"file": "x"})
	sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
		spec.Mounts = []paddock.Mount{{Source: dir, Target: "/mnt/desk"}}
	}))
	if err == nil {
		s.removeAfter(t, sb)
	}
	wantKind(t, "a mount that its memory does not know", err, paddock.Invalid, paddock.Unsupported)
}

func pauses(t *testing.T, s *suite) {
	b := s.own(t)
	var out syncBuffer
	cmd := b.shell("i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done")
	cmd.Output = paddock.Output{Stdout: &out}
	p := b.start(t, cmd)
	count := func() int {
		text := out.String()
		return strings.Count(text, "\n")
	}
	until(t, "it counts", func() bool { return count() > 5 })
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	// Output on its way still arrives. Then there is none, for fifty times as long as one
	// step takes.
	settled := count()
	until(t, "it stands still", func() bool {
		before := settled
		steady := !eventually(500*time.Millisecond, func() bool { settled = count(); return settled != before })
		return steady
	})
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	until(t, "it counts on", func() bool { return count() > settled+5 })
	kill(t, p)
	if exit := wait(t, p); exit.Dropped != 0 || exit.Cause != paddock.Signaled {
		t.Errorf("%+v", exit)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	b.must(t, "echo usable")
}

func pausedConflict(t *testing.T, s *suite) {
	b := s.own(t)
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	st, err := b.Status(bounded(t))
	if err != nil || st.State != paddock.Paused {
		t.Errorf("%+v, %v", st, err)
	}
	_, err = b.Start(bounded(t), b.shell("true"))
	wantKind(t, "start", err, paddock.Conflict)
	_, err = b.FS().Stat(bounded(t), "/etc/passwd")
	wantKind(t, "stat", err, paddock.Conflict)
	if s.info.Can(paddock.CanOutlive) {
		sb, err := s.fresh(t).Open(bounded(t), b.ID())
		if err != nil {
			t.Fatalf("open by another driver: %v", err)
		}
		if st, err := sb.Status(bounded(t)); err != nil || st.State != paddock.Paused {
			t.Errorf("another driver sees %+v, %v", st, err)
		}
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("%+v, %v", st, err)
	}
	b.must(t, "echo usable")
}

func pauseTwice(t *testing.T, s *suite) {
	b := s.own(t)
	if err := b.Resume(bounded(t)); err != nil {
		t.Errorf("resume what runs: %v", err)
	}
	for range 2 {
		if err := b.Pause(bounded(t)); err != nil {
			t.Fatalf("pause: %v", err)
		}
	}
	for range 2 {
		if err := b.Resume(bounded(t)); err != nil {
			t.Fatalf("resume: %v", err)
		}
	}
	b.must(t, "echo usable")
}

func removePaused(t *testing.T, s *suite) {
	b := s.own(t)
	p := b.start(t, b.shell("exec sleep 1000"))
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if exit, err := p.Wait(bounded(t)); err == nil && exit.Cause != paddock.SandboxGone || err != nil && !ending(err) {
		t.Errorf("%+v, %v", exit, err)
	}
	_, err := s.driver.Open(bounded(t), b.ID())
	wantKind(t, "open", err, paddock.NotFound)
}

// pausedFiles has three files open while the sandbox is paused: one that is read, one that is written all the
// time, and one that is only closed.
func pausedFiles(t *testing.T, s *suite) {
	b := s.own(t)
	const size = 16 << 20 // more than is on its way
	b.must(t, patternScript(size)+" > big")
	r, err := b.FS().Open(bounded(t), b.in("big"), paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Fatalf("read: %v", err)
	}
	var writers [2]io.WriteCloser
	for i, name := range []string{"busy", "idle"} {
		if writers[i], err = b.FS().Create(bounded(t), b.in(name), paddock.CreateOptions{}); err == nil {
			_, err = writers[i].Write([]byte("x"))
		}
		if err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	written, read, closed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	var over atomic.Bool
	go func() {
		for !over.Load() {
			if _, err := writers[0].Write([]byte("x")); err != nil {
				break
			}
		}
		written <- writers[0].Close()
	}()
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	over.Store(true)
	go func() {
		n, err := io.Copy(io.Discard, r)
		if n == size-1 && err == nil {
			err = errWhole
		}
		read <- cmp.Or(err, r.Close())
	}()
	go func() { closed <- writers[1].Close() }()
	whole := false
	for what, ended := range map[string]<-chan error{"a write": written, "a read": read, "the end of a write": closed} {
		select {
		case err := <-ended:
			switch {
			case what == "a read" && errors.Is(err, errWhole):
			case what == "the end of a write" && err == nil:
				whole = true
			case what == "a write" && err == nil: // it was between two pieces
			default:
				wantKind(t, what, err, paddock.Conflict, paddock.Unavailable)
			}
		case <-bounded(t).Done():
			t.Errorf("%s waits", what)
		}
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	if whole {
		if got := string(b.get(t, b.in("idle"))); got != "x" {
			t.Errorf("%q was written", got)
		}
	}
	b.put(t, b.in("other"), []byte("again"), 0)
	if got := string(b.get(t, b.in("other"))); got != "again" {
		t.Errorf("%q", got)
	}
}

var errWhole = errors.New("all of the file was on its way")

func snapshotNamed(t *testing.T, s *suite) {
	b := s.own(t)
	b.put(t, b.in("file"), []byte("kept"), 0)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Name: "first"})
	if err != nil || id == "" {
		t.Errorf("%q, %v", id, err)
	}
	b.must(t, "cat file")
}

// from makes a sandbox from a snapshot.
func (s *suite) from(t testing.TB, id paddock.SnapshotID) box {
	t.Helper()
	return s.own(t, func(spec *paddock.Spec) { spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id} })
}

func (b box) snapshot(t testing.TB) paddock.SnapshotID {
	t.Helper()
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return id
}

func snapshotForks(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, `mkdir -p d; echo one > d/file; ln -s file d/link; ln d/file d/hard; chmod 640 d/file; printf 'a\0b' > "d/odd name"`)
	id := b.snapshot(t)
	first, second := s.from(t, id), s.from(t, id)
	first.must(t, `cd "$1" && echo two > d/file && rm d/link`, b.dir)
	for _, row := range []struct {
		b    box
		want string
	}{
		{first, "two\ntwo\n640\na\x00b"}, {second, "one\none\n640\na\x00b"}, {b, "one\none\n640\na\x00b"},
	} {
		if got := row.b.must(t, `cd "$1/d" && cat file hard && stat -c %a file && cat "odd name"`, b.dir); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	if got := second.must(t, `cd "$1/d" && readlink link; [ file -ef hard ] && echo same`, b.dir); got != "file\nsame\n" {
		t.Errorf("%q", got)
	}
}

func snapshotOdd(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, `mkdir -p d/e && cd d && mkfifo pipe && printf x > "$(printf 'n\377o')" && printf x > "a
b" && : > empty && ln -s /etc/passwd link && ln -s /etc dir && truncate -s 3000000 holes && printf end >> holes &&
chmod 400 empty && touch -d '2001-02-03 04:05:06 UTC' empty && chmod 500 e`)
	fork := s.from(t, b.snapshot(t))
	got := fork.must(t, `cd "$1/d" && cat "$(printf 'n\377o')" "a
b" && readlink link dir && stat -c '%a %s %Y' empty && stat -c '%a' e && [ -p pipe ] && stat -c %s holes && tail -c 4 holes | od -An -c`, b.dir)
	want := "xx/etc/passwd\n/etc\n400 0 981173106\n500\n3000003\n \\0   e   n   d\n"
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%q, want %q", got, want)
	}
}

func snapshotGoesOn(t *testing.T, s *suite) {
	b := s.own(t)
	cmd := b.shell(counting, b.dir)
	cmd.Output = paddock.Output{Detached: true}
	b.start(t, cmd)
	until(t, "it counts", func() bool { return b.exists(t, b.in("go")) })
	fork := s.from(t, b.snapshot(t))
	fork.must(t, `[ -e "$1/go" ]`, b.dir)
	b.must(t, "rm go")
	until(t, "the command ends", func() bool {
		list, err := b.Processes(bounded(t))
		return err == nil && !slices.ContainsFunc(list, func(p paddock.ProcessInfo) bool { return p.Exit == nil })
	})
	list, err := fork.Processes(bounded(t))
	if err != nil || slices.ContainsFunc(list, func(p paddock.ProcessInfo) bool { return p.Exit == nil }) {
		t.Errorf("in the fork run %v, %v", list, err)
	}
}

// snapshotLimits makes both with the default limits, whose weakness nobody has accepted.
func snapshotLimits(t *testing.T, s *suite) {
	unasked := func(spec *paddock.Spec) {
		spec.Limits = paddock.Limits{}
		spec.AllowMissing = slices.DeleteFunc(spec.AllowMissing, func(c paddock.Control) bool {
			return slices.Contains([]paddock.Control{paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlIO}, c)
		})
	}
	origin := s.own(t, unasked)
	st, err := origin.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	fork := s.own(t, unasked, func(spec *paddock.Spec) {
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: origin.snapshot(t)}
		spec.InheritLimits(st, true)
	})
	now, err := fork.Status(bounded(t))
	if err != nil || now.Limits != st.Limits {
		t.Errorf("%+v, of %+v, %v", now.Limits, st.Limits, err)
	}
}

func snapshotStays(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, "echo then > file")
	id := b.snapshot(t)
	b.must(t, "echo later > file")
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if got := s.from(t, id).must(t, `cat "$1"/file`, b.dir); got != "then\n" {
		t.Errorf("%q", got)
	}
}

func snapshotRemoved(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, "echo first > file")
	first := b.snapshot(t)
	child := s.from(t, first)
	child.must(t, `echo second > "$1"/other`, b.dir)
	second := child.snapshot(t)
	for range 2 { // the second time must succeed too
		if err := s.driver.RemoveSnapshot(bounded(t), first); err != nil {
			t.Fatalf("remove: %v", err)
		}
	}
	sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: first}
	}))
	if err == nil {
		s.removeAfter(t, sb)
	}
	wantKind(t, "create", err, paddock.NotFound)
	for _, from := range []box{child, s.from(t, second)} {
		if got := from.must(t, `cat "$1"/file "$1"/other`, b.dir); got != "first\nsecond\n" {
			t.Errorf("%q", got)
		}
	}
	if err := s.driver.RemoveSnapshot(bounded(t), second); err != nil {
		t.Errorf("remove: %v", err)
	}
	for _, id := range []paddock.SnapshotID{"", ".", "..", "../x", "/etc", "a/b", "a\x00b"} {
		wantKind(t, strconv.Quote(string(id)), s.driver.RemoveSnapshot(bounded(t), id), paddock.Invalid)
	}
}

func snapshotUnknown(t *testing.T, s *suite) {
	for _, id := range []paddock.SnapshotID{"none-of-that-name", "../../etc", "a\x00b"} {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
			spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
		}))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, string(id), err, paddock.NotFound, paddock.Invalid)
	}
}
