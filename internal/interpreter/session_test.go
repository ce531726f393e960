package interpreter

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A dying is a process that a signal ends.
type dying struct {
	paddock.Process
	k   *kernel
	got []syscall.Signal
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

func (p *dying) Input() io.WriteCloser { return nowhere{io.Discard} }

func (p *dying) Signal(_ context.Context, sig syscall.Signal) error {
	p.got = append(p.got, sig)
	close(p.k.exited)
	return nil
}

func TestAKernelThatBrokeTheFormBetweenTwoCellsIsKilled(t *testing.T) {
	i := &Interpreter{ctx: t.Context(), room: &budget{}, log: slog.New(slog.DiscardHandler)}
	s := i.session(Context{Language: Python}, nil)
	k := s.newKernel(aMark)
	p := &dying{k: k}
	k.p, k.used = p, time.Now().Add(-time.Hour)
	s.set(k)
	if err := k.take(&k.out, &k.outText, Stdout, onOut, []byte(piece("x", ""))); err == nil {
		t.Fatal("it is not found")
	}
	there, err := s.answers(t.Context(), k)
	s.forget(k)
	if there || err != nil || len(p.got) != 1 || p.got[0] != sigKill || s.left != nil {
		t.Errorf("it is there: %v, %v, got %v, is to be joined: %v", there, err, p.got, s.left)
	}
	i.wg.Wait()
}

func TestOutputBetweenTwoCellsIsBoundedInItsPiecesToo(t *testing.T) {
	i := &Interpreter{ctx: t.Context(), room: &budget{}, log: slog.New(slog.DiscardHandler)}
	k := i.session(Context{Language: Python}, nil).newKernel(aMark)
	out := k.output(0)
	alternate := func() {
		for range 4 * maxSparePieces {
			for _, w := range []io.Writer{out.Stdout, out.Stderr} {
				if _, err := w.Write([]byte("x")); err != nil {
					t.Error(err)
				}
			}
		}
	}
	alternate()
	if n := len(k.kept()); n != maxSparePieces {
		t.Errorf("%d pieces are kept between two cells", n)
	}

	c := k.begin(1) // a kernel that is being started says so much before it is ready
	go func() {
		alternate()
		for _, end := range []int{onOut, onErr} {
			if err := k.put(item{seq: 1, end: end}); err != nil {
				t.Error(err)
			}
		}
	}()
	if err := k.await(t.Context(), c, time.Minute); err != nil {
		t.Fatal(err)
	}
	k.end(c)
	if n := len(k.spare); n != maxSparePieces {
		t.Errorf("%d pieces are kept of the start", n)
	}
	if text := k.early(); text != strings.Repeat("x", 500) {
		t.Errorf("the start said %q", text)
	}
}

func TestCellsThatWaitHoldSoMuchCodeAndNoMore(t *testing.T) {
	i, err := New(Options{Sandbox: struct{ paddock.Sandbox }{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	i.found = true
	c, err := i.Default(t.Context(), Python)
	if err != nil {
		t.Fatal(err)
	}
	s := i.contexts[c.ID]
	s.turn <- struct{}{} // somebody runs
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	cell := Cell{Code: strings.Repeat("x", maxCode)}
	most := maxHeld / (cell.size() + languages()[Python].size(cell))
	if most < 2 {
		t.Fatalf("%d long cells may wait", most)
	}
	for range most + 1 {
		go func() { done <- i.Run(ctx, cell, nil) }()
	}
	if err := <-done; paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	for range most {
		if err := <-done; paddock.KindOf(err) != paddock.Canceled {
			t.Error(err)
		}
	}
	if i.cells.held != 0 {
		t.Errorf("%d bytes are held of none", i.cells.held)
	}
}

func TestResultsOfAllSandboxesHaveRoomTogether(t *testing.T) {
	all := NewRoom(8*maxPiece, 0, nil)
	owners := [2]*Room{NewRoom(6*maxPiece, 0, all), NewRoom(6*maxPiece, 0, all)}
	long := piece("+", strings.Repeat("x", maxPiece)) + piece("+", strings.Repeat("x", maxPiece)) + piece("+", strings.Repeat("x", maxPiece))
	var streams []*stream
	var boxes []*Interpreter
	lost := 0
	for n := range 4 { // sandboxes of two owners, each of which would fit by itself
		i, err := New(Options{Sandbox: struct{ paddock.Sandbox }{}, Room: owners[n%2]})
		if err != nil {
			t.Fatal(err)
		}
		s := &stream{mark: aMark, room: i.room}
		streams, boxes = append(streams, s), append(boxes, i)
		err = s.write([]byte(long), func([]byte) error { return nil }, func(p []byte, took int) error {
			if p != nil || took != 0 {
				t.Errorf("a message that is not whole: %d bytes", len(p))
			}
			lost++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if lost != 2 || all.Held() != 6*maxPiece {
		t.Errorf("%d messages are dropped, %d bytes are held; want 2 and %d", lost, all.Held(), 6*maxPiece)
	}
	for n, s := range streams {
		s.drop()
		if boxes[n].room.held != 0 {
			t.Errorf("sandbox %d holds %d bytes", n, boxes[n].room.held)
		}
	}
	if all.Held() != 0 || owners[0].Held() != 0 || owners[1].Held() != 0 {
		t.Errorf("%d, %d, %d bytes are held of nothing", all.Held(), owners[0].Held(), owners[1].Held())
	}
}

func TestWhatBelongsToAnotherCellIsNotTold(t *testing.T) {
	i := &Interpreter{ctx: t.Context(), room: &budget{}, log: slog.New(slog.DiscardHandler)}
	k := i.session(Context{Language: Bash}, nil).newKernel(aMark)
	var got []string
	r := &running{k: k, c: k.begin(7), begun: make(chan struct{}), tell: func(e Event) error {
		got = append(got, string(e.Kind))
		return nil
	}}
	failed := Event{Kind: Failed, Error: &Error{Name: "E"}}
	ends := 0
	for _, it := range []item{
		{seq: 6, event: Event{Kind: Begun}}, {seq: 6, event: failed}, {seq: 6, end: onOut}, {seq: 0, end: onErr},
		{seq: 7, event: Event{Kind: Begun}}, {event: Event{Kind: Stdout, Text: "x"}}, {seq: 7, event: failed}, {seq: 7, end: onErr},
	} {
		ends |= r.take(t.Context(), it)
	}
	if want := "begun stdout error"; strings.Join(got, " ") != want || ends != onErr || !r.hasBegun {
		t.Errorf("it tells %q, ends %d; want %q, %d", got, ends, want, onErr)
	}
}

func TestAFullRoomForAllLeavesEachOwnerItsFloor(t *testing.T) {
	all := NewRoom(100, 0, nil)
	greedy := NewRoom(100, 10, all)
	if !greedy.b.take(100) {
		t.Fatal("there is no room")
	}
	fresh := NewRoom(100, 10, all)
	box := &budget{most: 64, above: fresh.b}
	if !box.take(4) || !box.take(6) {
		t.Error("there is no room for the floor")
	}
	if box.take(1) || box.held != 10 || fresh.Held() != 10 || all.Held() != 110 {
		t.Errorf("%d, %d and %d bytes are held", box.held, fresh.Held(), all.Held())
	}
	box.give(10)
	greedy.b.give(100)
	if box.held != 0 || fresh.Held() != 0 || greedy.Held() != 0 || all.Held() != 0 {
		t.Errorf("%d, %d, %d and %d bytes are held of nothing", box.held, fresh.Held(), greedy.Held(), all.Held())
	}
	if !fresh.b.take(100) {
		t.Error("there is no room where nothing is held")
	}
}
