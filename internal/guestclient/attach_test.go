//go:build linux

package guestclient_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

func attach(t *testing.T, g *guestclient.Guest, pid paddock.PID, out paddock.Output) paddock.Process {
	t.Helper()
	p, err := g.Attach(limit(t), pid, out)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAttachReplaysFromAnOffset(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	p := start(t, g, sh("echo one; echo two >&2; exit 6"))
	wait(t, p)
	for from, want := range map[int64]string{0: "one\n|two\n", 2: "e\n|two\n", 6: "|o\n", 8: "|", 100: "|"} {
		var o, e bytes.Buffer
		exit := wait(t, attach(t, g, p.ID(), paddock.Output{Stdout: &o, Stderr: &e, From: from}))
		if got := o.String() + "|" + e.String(); got != want || exit.Code != 6 || exit.Dropped != 0 {
			t.Errorf("from %d: %q, %+v", from, got, exit)
		}
	}
	for _, pid := range []paddock.PID{p.ID() + 100000, 0, -1, 1 << 40} {
		if _, err := g.Attach(limit(t), pid, paddock.Output{}); !errors.Is(err, paddock.NotFound) {
			t.Errorf("attach to %d answers %v", pid, err)
		}
	}
	if _, err := g.Attach(limit(t), p.ID(), paddock.Output{From: -1}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("attach from -1 answers %v", err)
	}
}

func TestAProcessOutlivesItsConnection(t *testing.T) {
	first, s := guesttest.Both(t, guest.Options{}, guestclient.Options{})
	out := newMailbox()
	cmd := sh("echo before; read line; echo $line")
	cmd.Input, cmd.Output.Stdout = true, out
	p := start(t, first, cmd)
	hear(t, out, "before")
	_ = first.Close()
	if exit := wait(t, p); exit.Cause != paddock.SandboxGone || exit.Reason == "" {
		t.Errorf("on the old connection it ended with %+v", exit)
	}
	second := guesttest.Join(t, s, guestclient.Options{})
	var all bytes.Buffer
	again := attach(t, second, p.ID(), paddock.Output{Stdout: &all})
	if _, err := again.Input().Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, again); exit.Code != 0 || all.String() != "before\nafter\n" {
		t.Errorf("%+v, %q", exit, all.String())
	}
}

func TestWithoutAnOutputTheNewestIsKeptAndTheRestIsCounted(t *testing.T) {
	const kept, made = 64 << 10, 1_000_000
	g := guesttest.New(t, guest.Options{Kept: kept})
	cmd := sh("yes | head -c 1000000; echo end")
	cmd.Output.Detached = true
	p := start(t, g, cmd)
	if exit := wait(t, p); exit.Code != 0 || exit.Dropped != 0 {
		t.Errorf("%+v", exit) // nothing was asked for, so nothing was missed
	}
	list, err := g.Processes(limit(t))
	if err != nil || len(list) != 1 || list[0].Next != made+4 || list[0].First != made+4-kept {
		t.Errorf("%+v, %v", list, err)
	}
	var s bytes.Buffer
	exit := wait(t, attach(t, g, p.ID(), paddock.Output{Stdout: &s, From: 1000}))
	if s.Len() != kept || !strings.HasSuffix(s.String(), "y\nend\n") || exit.Dropped != made+4-kept-1000 {
		t.Errorf("%d bytes came, %+v", s.Len(), exit)
	}
}

// A gate lets writes through when it is open.
type gate struct {
	open chan struct{}
	in   chan struct{}
	n    int
}

func (g *gate) Write(p []byte) (int, error) {
	select {
	case g.in <- struct{}{}:
	default:
	}
	<-g.open
	g.n += len(p)
	return len(p), nil
}

func TestAProcessWaitsForItsWriters(t *testing.T) {
	const kept = 64 << 10
	g := guesttest.New(t, guest.Options{Kept: kept})
	w := &gate{open: make(chan struct{}), in: make(chan struct{}, 1)}
	cmd := sh("head -c 8000000 /dev/zero; echo written >&2")
	cmd.Output.Stdout = w
	p := start(t, g, cmd)
	<-w.in
	// The process is not through, although nothing else holds it up: what
	// lies between it and the writer has bounds far below 8 MB.
	for range 100 {
		list, err := g.Processes(limit(t))
		if err != nil || list[0].Exit != nil || list[0].Next > 4_000_000 {
			t.Fatal(list, err)
		}
	}
	close(w.open)
	if exit := wait(t, p); exit.Code != 0 || exit.Dropped != 0 || w.n != 8_000_000 {
		t.Errorf("%+v, %d bytes", exit, w.n)
	}
}

type refusing struct{ after int }

func (w *refusing) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestAWriterThatFailsDetachesAndTheProcessGoesOn(t *testing.T) {
	g := guesttest.New(t, guest.Options{Kept: 64 << 10})
	cmd := sh("yes | head -c 5000000; exit 3")
	cmd.Output.Stdout = &refusing{after: 10}
	p := start(t, g, cmd)
	if exit := wait(t, p); exit.Code != 3 || exit.Cause != paddock.Exited {
		t.Errorf("%+v", exit)
	}
}

func TestADetachedProcessCanBeWaitedFor(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	cmd := sh("read line; exit $line")
	cmd.Input, cmd.Output.Detached = true, true
	p := start(t, g, cmd)
	silent := attach(t, g, p.ID(), paddock.Output{Detached: true, Stdout: &refusing{}})
	if _, err := silent.Input().Write([]byte("11\n")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []paddock.Process{p, silent} {
		if exit := wait(t, p); exit.Code != 11 {
			t.Errorf("%+v", exit)
		}
	}
}

func TestReleaseEndsTheWaitForADetachedProcess(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	p := start(t, g, paddock.Cmd{Args: []string{"sleep", "1000"}, Output: paddock.Output{Detached: true}})
	defer func() { _ = p.Signal(limit(t), syscall.SIGKILL) }()
	waited := make(chan error)
	go func() {
		_, err := p.Wait(limit(t))
		waited <- err
	}()
	p.Release()
	if err := <-waited; !errors.Is(err, paddock.Canceled) {
		t.Error(err)
	}
}

func TestTwoOutputsOfOneProcessBothGetEverything(t *testing.T) {
	g := guesttest.New(t, guest.Options{Kept: 64 << 10})
	cmd := sh("read line; yes | head -c 2000000")
	var a, b sum
	cmd.Input, cmd.Output.Stdout = true, &a
	p := start(t, g, cmd)
	q := attach(t, g, p.ID(), paddock.Output{Stdout: &b})
	if _, err := p.Input().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	wait(t, q)
	if a.n != 2_000_000 || b.n != 2_000_000 || a.wrong || b.wrong {
		t.Errorf("%d and %d bytes", a.n, b.n)
	}
}

func TestOutputGoesToTheStreamThatItWasWrittenTo(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	_, o, e := run(t, g, sh("i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"))
	for _, s := range []struct{ got, letter string }{{o, "o"}, {e, "e"}} {
		lines := strings.Fields(s.got)
		if len(lines) != 500 || lines[0] != s.letter+"0" || lines[499] != s.letter+"499" || strings.Count(s.got, s.letter) != 500 {
			t.Errorf("stream %s: %d lines", s.letter, len(lines))
		}
	}
}

func TestStreamsStayInTheOrderInWhichTheyWereMade(t *testing.T) {
	// Whoever waits for the one stream before it writes the other sees them
	// in that order, also through one writer.
	g := guesttest.New(t, guest.Options{})
	out := newMailbox()
	cmd := sh("for i in 1 2 3; do echo o$i; read x; echo e$i >&2; read x; done")
	cmd.Input, cmd.Output = true, paddock.Output{Stdout: out, Stderr: out}
	p := start(t, g, cmd)
	for _, want := range []string{"o1", "e1", "o2", "e2", "o3", "e3"} {
		hear(t, out, want)
		if _, err := p.Input().Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, p)
	var all bytes.Buffer
	wait(t, attach(t, g, p.ID(), paddock.Output{Stdout: &all, Stderr: &all}))
	if want := "o1\ne1\no2\ne2\no3\ne3\n"; all.String() != want {
		t.Errorf("replayed %q", all.String())
	}
}

func TestOfTheEndedOnesTheNewestAreKept(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	first := start(t, g, sh("echo first"))
	wait(t, first)
	for range 256 {
		wait(t, start(t, g, paddock.Cmd{Args: []string{"/bin/true"}}))
	}
	list, err := g.Processes(limit(t))
	if err != nil || len(list) != 256 || list[0].PID == first.ID() {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	if _, err := g.Attach(limit(t), first.ID(), paddock.Output{}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("attach to the oldest answers %v", err)
	}
}
