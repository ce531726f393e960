package drivertest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func attachPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanAttach}, promises: []promise{
		{"a process that was started detached goes on, and its output is read later", attachLater},
		{"kept output is replayed from an offset", attachOffset},
		{"kept output is replayed in the order in which it was made", attachOrder},
		{"several callers see the same live output at once", attachTwice},
		{"the input of an attached process is the same way in", attachInput},
		{"what was dropped while nobody was there is told", attachDropped},
		{"a released process can be attached again", attachAgain},
		{"a process that is not known cannot be attached", attachUnknown},
	}}}
}

// attach attaches to a process and collects its output.
func (b box) attach(t testing.TB, pid paddock.PID, from int64) (paddock.Process, *syncBuffer, *syncBuffer) {
	t.Helper()
	var out, errs syncBuffer
	p, err := b.Attach(bounded(t), pid, paddock.Output{Stdout: &out, Stderr: &errs, From: from})
	if err != nil {
		t.Fatalf("attach %d from %d: %v", pid, from, err)
	}
	t.Cleanup(p.Release)
	return p, &out, &errs
}

// detached starts a script with nobody attached. If ended, it waits until the script has
// ended.
func (b box) detached(t testing.TB, script string, ended bool) paddock.PID {
	t.Helper()
	cmd := b.shell(script)
	cmd.Output = paddock.Output{Detached: true}
	p := b.start(t, cmd)
	p.Release()
	if ended {
		until(t, "it has ended", func() bool { return b.info(t, p.ID()).Exit != nil })
	}
	return p.ID()
}

func attachLater(t *testing.T, s *suite) {
	b := s.box(t)
	pid := b.detached(t, "echo hello; echo trouble >&2; exit 6", true)
	for range 2 { // reading the kept output does not discard it
		p, out, errs := b.attach(t, pid, 0)
		exit := wait(t, p)
		if out.String() != "hello\n" || errs.String() != "trouble\n" || exit.Code != 6 || exit.Cause != paddock.Exited || exit.Dropped != 0 {
			t.Errorf("stdout %q, stderr %q, %+v", out, errs, exit)
		}
		if p.ID() != pid {
			t.Errorf("it is %d, not %d", p.ID(), pid)
		}
	}
}

func attachOffset(t *testing.T, s *suite) {
	b := s.box(t)
	pid := b.detached(t, "printf 0123456789", true)
	for from, want := range map[int64]string{0: "0123456789", 4: "456789", 9: "9", 10: "", 1 << 40: ""} {
		p, out, _ := b.attach(t, pid, from)
		if exit := wait(t, p); out.String() != want || exit.Dropped != 0 {
			t.Errorf("from %d: %q, want %q (%+v)", from, out, want, exit)
		}
	}
	_, err := b.Attach(bounded(t), pid, paddock.Output{From: -1})
	wantKind(t, "from -1", err, paddock.Invalid)
}

// attachOrder makes the command wait until each piece was received, so that the order is
// known. Then it has the output replayed.
func attachOrder(t *testing.T, s *suite) {
	b := s.box(t)
	var live, replayed syncBuffer
	cmd := b.shell("for i in 1 2 3 4 5 6 7 8; do echo o$i; read x; echo e$i >&2; read x; done")
	cmd.Input = true
	cmd.Output = paddock.Output{Stdout: &live, Stderr: &live}
	p := b.start(t, cmd)
	var want strings.Builder
	for i := range 16 {
		want.WriteString(string("oe"[i%2]) + string(rune('1'+i/2)) + "\n")
		until(t, "piece by piece", func() bool { return live.String() == want.String() })
		if _, err := io.WriteString(p.Input(), "next\n"); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, p)
	again, err := b.Attach(bounded(t), p.ID(), paddock.Output{Stdout: &replayed, Stderr: &replayed})
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	defer again.Release()
	wait(t, again)
	if replayed.String() != want.String() {
		t.Errorf("replayed %q, want %q", &replayed, &want)
	}
}

// echoing repeats each line of its input.
const echoing = `echo ready; while read -r line; do echo "got $line"; done`

func attachTwice(t *testing.T, s *suite) {
	b := s.box(t)
	p, first := b.announce(t, echoing)
	q, second, _ := b.attach(t, p.ID(), 0)
	r, third, _ := b.attach(t, p.ID(), 6) // after "ready\n"
	for _, line := range []string{"one", "two"} {
		if _, err := io.WriteString(p.Input(), line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Input().Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []paddock.Process{p, q, r} {
		if exit := wait(t, p); exit.Code != 0 || exit.Dropped != 0 {
			t.Errorf("%+v", exit)
		}
	}
	if want := "ready\ngot one\ngot two\n"; first.String() != want || second.String() != want || third.String() != want[6:] {
		t.Errorf("%q, %q, %q", first, second, third)
	}
}

func attachInput(t *testing.T, s *suite) {
	b := s.box(t)
	p, _ := b.announce(t, echoing)
	p.Release()
	q, out, _ := b.attach(t, p.ID(), 0)
	if _, err := io.WriteString(q.Input(), "line\n"); err != nil {
		t.Fatal(err)
	}
	if err := q.Input().Close(); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, q); exit.Code != 0 || out.String() != "ready\ngot line\n" {
		t.Errorf("%q, %+v", out, exit)
	}
}

func attachDropped(t *testing.T, s *suite) {
	const size = 64 << 20 // more than any tier keeps
	b := s.own(t)
	pid := b.detached(t, patternScript(size), true)
	info := b.info(t, pid)
	if info.Next != size || info.First <= 0 || info.First >= size {
		t.Errorf("kept from %d to %d of %d", info.First, info.Next, size)
	}
	p, out, _ := b.attach(t, pid, 0)
	exit := wait(t, p)
	got := int64(len(out.Bytes()))
	if exit.Dropped != size-got || got == 0 {
		t.Errorf("%d bytes came and %d were dropped, of %d", got, exit.Dropped, size)
	}
	tail := bytes.Repeat([]byte(patternLine), int(got)/len(patternLine)+2)
	if want := tail[len(tail)-int(got):]; !bytes.Equal(out.Bytes(), want) {
		t.Error("what was kept is not the newest output")
	}
}

func attachAgain(t *testing.T, s *suite) {
	b := s.box(t)
	p, _ := b.announce(t, echoing)
	p.Release()
	for i := range 5 {
		q, out, _ := b.attach(t, p.ID(), 0)
		until(t, "the kept output", func() bool { return out.String() == "ready\n" })
		if i == 4 {
			kill(t, q)
			if exit := wait(t, q); exit.Cause != paddock.Signaled || exit.Signal != sigKill {
				t.Errorf("%+v", exit)
			}
		}
		q.Release()
	}
}

func attachUnknown(t *testing.T, s *suite) {
	b := s.box(t)
	all, err := b.Processes(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	known := func(pid paddock.PID) bool {
		return slices.ContainsFunc(all, func(i paddock.ProcessInfo) bool { return i.PID == pid })
	}
	for _, pid := range []paddock.PID{1 << 29, 1, 0, -1} {
		if known(pid) {
			continue // the first number may be any
		}
		_, err := b.Attach(bounded(t), pid, paddock.Output{})
		wantKind(t, "attach", err, paddock.NotFound, paddock.Invalid)
	}
}
