package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A gate is a writer that waits until it is opened.
type gate struct {
	bytes.Buffer
	entered chan struct{} // gets a value at each write
	opened  chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	select {
	case g.entered <- struct{}{}:
	default:
	}
	<-g.opened
	return g.Buffer.Write(p)
}

// events reads lines back, and sums those that were lost.
func events(t *testing.T, lines []byte) (list []audit.Event, lost uint64) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var e audit.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list, lost = append(list, e), lost+e.Dropped
	}
	return list, lost
}

func TestEveryEventIsALineWhoeverRecordsIt(t *testing.T) {
	var out bytes.Buffer
	l := audit.NewLines(&out)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				l.Record(audit.Event{Kind: audit.Clone, Child: int32(i)})
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if list, lost := events(t, out.Bytes()); len(list) != 1600 || lost != 0 {
		t.Errorf("%d events and %d lost, want 1600", len(list), lost)
	}
}

func TestASlowWriterLosesEventsAndTellsHowMany(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 1), opened: make(chan struct{})}
	l := audit.NewLines(g)
	long := strings.Repeat("x", audit.MaxPath)
	const count = 3000 // some 12 MB, while nothing is written
	for range count {
		l.Record(audit.Event{Path: long, Dropped: 1})
	}
	<-g.entered
	close(g.opened)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list, lost := events(t, g.Bytes())
	last := list[len(list)-1]
	if last.Kind != audit.Lost || last.Dropped == 0 {
		t.Errorf("the last line does not tell what was lost: %+v", last)
	}
	if got := uint64(len(list)-1) + lost; got != 2*count {
		t.Errorf("%d lines and %d lost of %d events, each of which told of one more", len(list)-1, lost, count)
	}
}

func TestTheNextEventTellsWhatWasLost(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 1), opened: make(chan struct{})}
	l := audit.NewLines(g)
	long := strings.Repeat("x", 3000) // which leaves room for a short line
	l.Record(audit.Event{Path: long})
	<-g.entered // and so the writer takes nothing of what follows
	for range 3000 {
		l.Record(audit.Event{Path: long})
	}
	l.Record(audit.Event{Path: "small"}) // there is room for it, and not for another long one
	close(g.opened)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list, lost := events(t, g.Bytes())
	if last := list[len(list)-1]; last.Path != "small" || last.Dropped != lost || lost == 0 {
		t.Errorf("%d lost; the last event is %.20q and tells of %d", lost, last.Path, last.Dropped)
	}
}

func TestProcessesCannotHideWhatTheNetworkDecides(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 1), opened: make(chan struct{})}
	l := audit.NewLines(g)
	long := []string{strings.Repeat("\x01", audit.MaxArgs)}
	for range 500 { // some 25 MB
		l.Record(audit.Event{Kind: audit.Exec, Args: long})
	}
	<-g.entered
	for range 500 { // also what came while the first lines are written
		l.Record(audit.Event{Kind: audit.Exec, Args: long})
	}
	for range 1000 {
		l.Record(audit.Event{Kind: audit.Exec})
	}
	l.Record(audit.Event{Kind: audit.Network, Network: &audit.Flow{Host: "evil.example", Path: strings.Repeat("\x01", audit.MaxPath)}})
	l.Record(audit.Event{Kind: audit.Did, Action: &audit.Action{What: "sandbox.remove"}})
	close(g.opened)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list, lost := events(t, g.Bytes())
	if n := len(list); lost == 0 || list[n-2].Kind != audit.Network || list[n-1].Kind != audit.Did {
		t.Errorf("%d lost of %d lines, and the last are of kind %s and %s", lost, n, list[n-2].Kind, list[n-1].Kind)
	}
}

type broken struct{ writes int }

var errDisk = errors.New("disk full")

func (b *broken) Write(p []byte) (int, error) {
	b.writes++
	return len(p) / 2, errDisk
}

// Whoever makes many actions at once, while the writer waits for a disk, must not hide by them what was done.
func TestAnEventThatIsKeptWaitsForRoom(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 1), opened: make(chan struct{})}
	l := audit.NewLines(g)
	long := strings.Repeat("\x01", audit.MaxPath) // six bytes each in a line
	const count = 400                             // some 10 MB
	var wg sync.WaitGroup
	for range count {
		wg.Go(func() {
			if err := l.Keep(t.Context(), audit.Event{Kind: audit.Did, Action: &audit.Action{What: "file.read", Target: long, Result: "ok"}}); err != nil {
				t.Error(err)
			}
		})
	}
	<-g.entered
	for full := false; !full; { // nothing more is taken until the gate opens
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := l.Keep(ctx, audit.Event{Kind: audit.Did, Action: &audit.Action{What: "sandbox.remove", Target: long, Result: "ok"}})
		if full = err != nil; full && !errors.Is(err, paddock.Unavailable) {
			t.Errorf("without room: %v", err)
		}
	}
	close(g.opened)
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list, lost := events(t, g.Bytes())
	found := 0
	for _, e := range list {
		if e.Action != nil && e.Action.What == "file.read" {
			found++
		}
	}
	if found != count || lost != 1 {
		t.Errorf("%d of %d were recorded, and %d lost", found, count, lost)
	}
}

func TestNothingIsKeptByALogThatFailed(t *testing.T) {
	l := audit.NewLines(&broken{})
	l.Record(audit.Event{Kind: audit.Did, Action: &audit.Action{What: "file.read", Result: "ok"}})
	<-l.Failed()
	if err := l.Keep(t.Context(), audit.Event{Kind: audit.Did, Action: &audit.Action{What: "file.read", Result: "ok"}}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("after a failure: %v", err)
	}
	_ = l.Close()
	if err := l.Keep(t.Context(), audit.Event{Kind: audit.Lost}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNothingFollowsALineThatWasHalfWritten(t *testing.T) {
	b := &broken{}
	l := audit.NewLines(b)
	l.Record(audit.Event{})
	<-l.Failed()
	l.Record(audit.Event{})
	for range 2 {
		if err := l.Close(); !errors.Is(err, errDisk) {
			t.Errorf("Close: %v, want %v", err, errDisk)
		}
	}
	if b.writes != 1 {
		t.Errorf("%d writes after the first failed", b.writes-1)
	}
}

func TestAClosedSinkTakesNothing(t *testing.T) {
	var out bytes.Buffer
	l := audit.NewLines(&out)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Record(audit.Event{})
	if out.Len() > 0 {
		t.Errorf("written after Close: %s", out.Bytes())
	}
}

func BenchmarkRecord(b *testing.B) {
	l := audit.NewLines(discard{})
	e := audit.Event{Kind: audit.Open, Path: "/usr/lib/python3/dist-packages/six.py", Flags: "read", Process: audit.Process{PID: 9, Parent: 1, UID: 1000, Name: "python3"}}
	b.ReportAllocs()
	for b.Loop() {
		l.Record(e)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
