package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func TestAFullBoundForAllLeavesEachCallerItsFloor(t *testing.T) {
	all := &budget{max: 4 << 20}
	caller := func() *budget { return &budget{max: 2 << 20, floor: floor, above: all} }
	var greedy []*budget
	for range 2 {
		b := caller()
		if n, _ := b.take(2 << 20); n != 2<<20 {
			t.Fatalf("%d bytes of what is free", n)
		}
		greedy = append(greedy, b)
	}
	if n, more := greedy[0].take(1); n != 0 || more == nil {
		t.Errorf("beyond its own bound: %d", n)
	}
	fresh := caller()
	if n, _ := fresh.take(64 << 10); n != 64<<10 {
		t.Errorf("%d bytes of 64 KiB", n)
	}
	if n, _ := fresh.take(2 << 20); n != floor-64<<10 {
		t.Errorf("%d bytes of the rest of the floor", n)
	}
	n, more := fresh.take(1)
	if n != 0 || more == nil {
		t.Fatalf("beyond the floor: %d", n)
	}
	if all.used != all.max+floor || fresh.used != floor {
		t.Errorf("%d bytes are counted in all, %d of one", all.used, fresh.used)
	}
	fresh.give(floor)
	select {
	case <-more:
	default:
		t.Error("who waits is not told")
	}
	for _, b := range greedy {
		b.give(2 << 20)
	}
	if all.used != 0 || fresh.used != 0 {
		t.Errorf("%d and %d bytes are counted of nothing", all.used, fresh.used)
	}
}

func TestACallerIsServedWhileOthersUseUpAllBounds(t *testing.T) {
	tr := newTrial(t)
	s := tr.s
	for _, b := range []*budget{&s.output, &s.bodies, &s.inputHeld, &s.files, &s.answers} {
		b.force(b.max)
		defer b.give(b.max)
	}
	const size = 64 << 10
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`+strings.Repeat(" ", size))
	tr.want(200, "POST", "/v1/sandboxes/a/processes", `{"args":["seq","100000"]}`)
	tr.want(204, "PUT", "/v1/sandboxes/a/files?path=/tmp/x", strings.Repeat("x", size))
	if got := tr.want(200, "GET", "/v1/sandboxes/a/files?path=/tmp/x", ""); len(got) != size {
		t.Errorf("%d bytes of the file", len(got))
	}
	room := s.InputRoom("one")
	if !room.Take(size) {
		t.Error("there is no room for input")
	}
	room.Give(size)
	p, err := s.Enter(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Leave()
	if _, err := p.Encode(strings.Repeat("x", size)); err != nil {
		t.Errorf("an answer: %v", err)
	}
}

func TestOutputGoesOnToAClientWhileOthersUseUpTheBound(t *testing.T) {
	tr := newTrial(t)
	tr.s.output.force(allOutput)
	defer tr.s.output.give(allOutput)
	d, err := client.New(client.Options{Address: tr.web.URL, Key: "good"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sb, err := d.Create(ctx, paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	const size = 3_388_895 // more than the floor, and than what a client takes before it acknowledges
	var got counting
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"seq", "1", "500000"}, Output: paddock.Output{Stdout: &got}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 || got != size {
		t.Errorf("%d bytes of %d came: %+v, %v", got, size, exit, err)
	}
}

// A counting writer counts what is written to it.
type counting int

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}
