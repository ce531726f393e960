package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func outputPromises() []group {
	return []group{{promises: []promise{
		{"standard output and standard error are kept apart", streamsApart},
		{"each stream arrives in order and whole while both are busy", streamsInOrder},
		{"both streams are written from one goroutine", oneGoroutine},
		{"the last output arrives before Wait answers", lastOutput},
		{"output is bytes, not text", binaryOutput},
		{"output that has nowhere to go does not hold up the command", discarded},
		{"a writer that fails is detached and the process goes on", writerFails},
		{"a slow reader slows the process down and loses nothing", slowReader},
		{"output that nobody takes holds up no other call", stalledOutput},
	}}, {alone: true, promises: []promise{
		{"100 MB through standard output arrive whole, and the host does not grow", func(t *testing.T, s *suite) {
			bulkOutput(t, s, "", func(w io.Writer) paddock.Output { return paddock.Output{Stdout: w} })
		}},
		{"100 MB through standard error arrive whole, and the host does not grow", func(t *testing.T, s *suite) {
			bulkOutput(t, s, ">&2", func(w io.Writer) paddock.Output { return paddock.Output{Stderr: w} })
		}},
	}}}
}

func streamsApart(t *testing.T, s *suite) {
	r := s.box(t).sh(t, "echo out; echo err >&2; echo out again; echo err again >&2")
	if r.out != "out\nout again\n" || r.err != "err\nerr again\n" {
		t.Errorf("stdout %q, stderr %q", r.out, r.err)
	}
}

func streamsInOrder(t *testing.T, s *suite) {
	const n = 20_000
	r := s.box(t).sh(t, "seq 1 20000 >&2 & seq 1 20000; wait")
	for name, got := range map[string]string{"stdout": r.out, "stderr": r.err} {
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		for i, l := range lines {
			if l != fmt.Sprint(i+1) {
				t.Fatalf("%s: line %d is %q", name, i+1, l)
			}
		}
		if len(lines) != n {
			t.Errorf("%s: %d lines, want %d", name, len(lines), n)
		}
	}
}

// oneGoroutine writes both streams to a buffer without a lock. The race detector finds
// concurrent writes that the lengths do not show.
func oneGoroutine(t *testing.T, s *suite) {
	b := s.box(t)
	var both bytes.Buffer
	cmd := b.shell("seq 1 5000 >&2 & seq 1 5000; wait")
	cmd.Output = paddock.Output{Stdout: &both, Stderr: &both}
	wait(t, b.start(t, cmd))
	if want := 2 * 23893; both.Len() != want {
		t.Errorf("%d bytes, want %d", both.Len(), want)
	}
}

func lastOutput(t *testing.T, s *suite) {
	b := s.box(t)
	for i := range 30 {
		want := fmt.Sprint("the end of ", i)
		if got := b.must(t, `printf "%s" "$1"`, want); got != want {
			t.Fatalf("run %d: %q, want %q", i, got, want)
		}
	}
}

func binaryOutput(t *testing.T, s *suite) {
	b := s.box(t)
	data := make([]byte, 256*256)
	for i := range data {
		data[i] = byte(i ^ i>>8)
	}
	b.put(t, b.in("all"), data, 0)
	if got := b.must(t, "cat all"); got != string(data) {
		t.Error("what cat printed is not what the file holds")
	}
}

func discarded(t *testing.T, s *suite) {
	b := s.box(t)
	// More than any pipe or ring buffer holds.
	exit := wait(t, b.start(t, b.shell("yes | head -c 20000000; yes | head -c 20000000 >&2")))
	if exit.Cause != paddock.Exited || exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
}

// A refuser accepts some writes and fails the rest.
type refuser struct{ left int }

func (r *refuser) Write(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errors.New("this writer had enough")
	}
	r.left--
	return len(p), nil
}

func writerFails(t *testing.T, s *suite) {
	b := s.box(t)
	cmd := b.shell("yes | head -c 20000000; echo finished > done")
	cmd.Output = paddock.Output{Stdout: &refuser{left: 2}}
	p := b.start(t, cmd)
	exit := wait(t, p)
	if exit.Cause != paddock.Exited || exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	if got := string(b.get(t, b.in("done"))); got != "finished\n" {
		t.Errorf("the process did not go on: %q", got)
	}
}

// A gate is a writer that blocks until it is opened.
type gate struct {
	w       io.Writer
	entered chan struct{} // closed when the first write blocks
	open    chan struct{} // closed by the test
	once    sync.Once
}

func newGate(w io.Writer) *gate {
	return &gate{w: w, entered: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	return g.w.Write(p)
}

func slowReader(t *testing.T, s *suite) {
	const size = 64 << 20
	b := s.box(t)
	want := newPattern()
	g := newGate(want)
	release := sync.OnceFunc(func() { close(g.open) })
	defer release()
	cmd := b.shell(patternScript(size) + "; echo finished > done")
	cmd.Output = paddock.Output{Stdout: g}
	p := b.start(t, cmd)
	<-g.entered

	// The process is blocked when it has produced no more output for a while.
	last, same := int64(-1), 0
	until(t, "the process waits for its reader", func() bool {
		next := b.info(t, p.ID()).Next
		if next != last {
			last, same = next, 0
			return false
		}
		same++
		return same == 25
	})
	if last >= size/2 {
		t.Errorf("%d of %d bytes were made while nobody read", last, size)
	}
	if b.exists(t, b.in("done")) {
		t.Error("the process ended before its output was taken")
	}
	release()
	if exit := wait(t, p); exit.Dropped != 0 {
		t.Errorf("dropped %d bytes", exit.Dropped)
	}
	want.check(t, size)
}

func stalledOutput(t *testing.T, s *suite) {
	b := s.own(t)
	g := newGate(io.Discard)
	defer close(g.open)
	var ps []paddock.Process
	for range 8 {
		cmd := b.shell("exec yes")
		cmd.Output = paddock.Output{Stdout: g}
		ps = append(ps, b.start(t, cmd))
	}
	<-g.entered
	for range 20 {
		if got := b.must(t, "echo still here"); got != "still here\n" {
			t.Errorf("got %q", got)
		}
	}
	for _, p := range ps {
		p.Release()
		kill(t, p)
	}
}

// bulkOutput does not use the shared box, because it measures.
func bulkOutput(t *testing.T, s *suite, to string, output func(io.Writer) paddock.Output) {
	const size = 100 << 20
	b := s.own(t)
	want := newPattern()
	cmd := b.shell("{ " + patternScript(size) + "; } " + to)
	cmd.Output = output(want)
	grown := growth(t, 64<<20)
	p := b.start(t, cmd)
	exit := wait(t, p)
	if exit.Dropped != 0 || exit.Cause != paddock.Exited {
		t.Errorf("exit %+v", exit)
	}
	want.check(t, size)
	grown()
}

// info returns the entry of one process in Processes.
func (b box) info(t testing.TB, pid paddock.PID) paddock.ProcessInfo {
	t.Helper()
	all, err := b.Processes(bounded(t))
	if err != nil {
		t.Fatalf("processes: %v", err)
	}
	i := slices.IndexFunc(all, func(p paddock.ProcessInfo) bool { return p.PID == pid })
	if i < 0 {
		t.Fatalf("process %d is not listed in %+v", pid, all)
	}
	return all[i]
}

// patternLine is a line in which every loss and repetition shows, because no part of it
// equals another.
const patternLine = "0123456789abcde\n"

// patternScript returns a script that prints size bytes of the pattern.
func patternScript(size int) string {
	return fmt.Sprintf("yes 0123456789abcde | head -c %d", size)
}

// A pattern is a writer that checks what it receives.
type pattern struct {
	text []byte
	n    int64
	bad  int64 // offset of the first wrong byte, -1 if none
}

func newPattern() *pattern {
	return &pattern{text: bytes.Repeat([]byte(patternLine), 1<<16/len(patternLine)+1), bad: -1}
}

func (p *pattern) Write(data []byte) (int, error) {
	total := len(data)
	for len(data) > 0 {
		want := p.text[p.n%int64(len(patternLine)):]
		want = want[:min(len(want), len(data))]
		if p.bad < 0 && !bytes.Equal(want, data[:len(want)]) {
			p.bad = p.n
		}
		p.n += int64(len(want))
		data = data[len(want):]
	}
	return total, nil
}

func (p *pattern) check(t testing.TB, size int64) {
	t.Helper()
	if p.bad >= 0 {
		t.Errorf("wrong bytes at or after offset %d", p.bad)
	}
	if p.n != size {
		t.Errorf("%d bytes, want %d", p.n, size)
	}
}

// growth measures the growth of this process's memory until the returned function is
// called. That function fails the test if the growth exceeds limit.
func growth(t testing.TB, limit int64) func() {
	t.Helper()
	// Garbage that is collected late, on a busy machine, does not count as growth, whether
	// it exists now or comes later.
	debug.FreeOSMemory()
	baseHeap, baseRSS := heap(), rss()
	before := debug.SetMemoryLimit(mapped() + limit - 16<<20)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	var maxHeap, maxRSS int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			maxHeap, maxRSS = max(maxHeap, heap()), max(maxRSS, rss())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-done })
	t.Cleanup(end)
	return func() {
		t.Helper()
		end()
		if grown := maxHeap - baseHeap; grown > limit {
			t.Errorf("the heap grew by %d MB", grown>>20)
		}
		if grown := maxRSS - baseRSS; grown > 2*limit {
			t.Errorf("the resident memory grew by %d MB", grown>>20)
		}
	}
}
