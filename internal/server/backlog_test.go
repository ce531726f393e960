package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// alternate adds single bytes of both streams in turn until an attachment accepts no more.
func alternate(t *testing.T, at *attachment) (count int64) {
	t.Helper()
	for {
		n, _, err := at.add([]byte{byte(count)}, count%2 == 1)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return count
		}
		count++
	}
}

// newTestAttachment returns an attachment with a budget that its window does not use up.
func newTestAttachment() *attachment {
	at := newAttachment(func() {}, &budget{max: maxOutput})
	close(at.ready)
	return at
}

func TestOutputOfAlternatingStreamsTakesTheMemoryThatTheBudgetCounts(t *testing.T) {
	at := newTestAttachment()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	count := alternate(t, at)
	runtime.GC()
	runtime.ReadMemStats(&after)
	took, counted := int64(after.HeapAlloc)-int64(before.HeapAlloc), at.room.used
	if count < window/2 || count > window {
		t.Errorf("the window accepts %d bytes", count)
	}
	if took > counted*5/4+64<<10 {
		t.Errorf("the output takes %d bytes of memory, and the budget counts %d", took, counted)
	}
	runtime.KeepAlive(at)
}

// allocated returns the bytes that a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestALookAndAnAcknowledgementAllocateLittleHoweverMuchIsHeld(t *testing.T) {
	at := newTestAttachment()
	count := alternate(t, at)
	turn := at.enter()
	for _, from := range []int64{0, count / 2, count - 1} {
		took := allocated(func() {
			if m, err := at.look(from, turn); err != nil || len(m.pieces) == 0 {
				t.Fatal(m, err)
			}
		})
		if took > 256<<10 {
			t.Errorf("a look at the output from %d allocates %d bytes", from, took)
		}
	}
	took := allocated(func() {
		for offset := range int64(50) {
			if err := at.ack(offset); err != nil {
				t.Fatal(err)
			}
		}
	})
	if took > 256<<10 {
		t.Fatalf("50 acknowledgements of a byte allocate %d bytes", took)
	}
	took = allocated(func() { // amortized: the whole window, byte by byte
		for offset := int64(50); offset <= count; offset++ {
			if err := at.ack(offset); err != nil {
				t.Fatal(err)
			}
		}
	})
	const signals = 256 // of the channels that wake the readers
	if took > uint64(count)*signals+8*window {
		t.Errorf("%d acknowledgements of a byte allocate %d bytes", count, took)
	}
	if at.room.used != 0 {
		t.Errorf("%d bytes are still counted", at.room.used)
	}
}

// modelByte is a byte of output in a model that keeps everything.
type modelByte struct {
	value  byte
	stderr bool
}

// lookAt returns the output that an attachment has from an offset on.
func lookAt(t *testing.T, at *attachment, from int64, turn int) (all []modelByte) {
	t.Helper()
	for {
		m, err := at.look(from, turn)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.pieces) == 0 {
			return all
		}
		size := 0
		for _, o := range m.pieces {
			if len(o.data) == 0 || len(o.data) > piece {
				t.Fatalf("a piece has %d bytes", len(o.data))
			}
			size += len(o.data)
			for _, b := range o.data {
				all = append(all, modelByte{b, o.stderr})
			}
		}
		if m.next != from+int64(size) {
			t.Fatalf("%d bytes from %d end at %d", size, from, m.next)
		}
		from = m.next
	}
}

// checkAttachment runs writes and acknowledgements on an attachment and on a model. A seed
// chooses them.
func checkAttachment(t *testing.T, seed uint64, steps int, longest int64, room int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	at := newAttachment(func() {}, &budget{max: room})
	close(at.ready)
	turn := at.enter()
	var model []modelByte
	base := int64(0)
	for range steps {
		switch random.IntN(6) {
		case 0, 1, 2, 3:
			p, stderr := make([]byte, 1+random.Int64N(longest)), random.IntN(2) == 1
			for i := range p {
				p[i] = byte(random.Uint32())
			}
			n, _, err := at.add(p, stderr)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && int64(len(model)) == base {
				t.Fatal("an empty attachment accepts nothing")
			}
			for _, b := range p[:n] {
				model = append(model, modelByte{b, stderr})
			}
		case 4:
			offset := base + random.Int64N(int64(len(model))-base+1)
			if err := at.ack(offset); err != nil {
				t.Fatal(err)
			}
			base = offset
		case 5:
			from := base + random.Int64N(int64(len(model))-base+1)
			if got := lookAt(t, at, from, turn); !slices.Equal(got, model[from:]) {
				t.Fatalf("seed %d: the output from %d of %d to %d is wrong", seed, from, base, len(model))
			}
		}
		held := int64(len(model)) - base
		if used := at.room.used; held > window || used < held || used > 2*held+2*piece {
			t.Fatalf("seed %d: %d bytes are not acknowledged, and %d are counted", seed, held, used)
		}
	}
	if err := at.ack(int64(len(model)) + 1); err == nil {
		t.Error("output that was not written is acknowledged")
	}
	if _, err := at.look(int64(len(model))+1, turn); err == nil {
		t.Error("output that was not written is shown")
	}
	if base > 0 {
		if _, err := at.look(base-1, turn); err == nil {
			t.Error("output that was acknowledged is shown")
		}
	}
	if random.IntN(2) == 0 {
		if err := at.ack(int64(len(model))); err != nil {
			t.Fatal(err)
		}
	} else {
		at.detach()
	}
	if at.room.used != 0 {
		t.Errorf("seed %d: %d bytes are still counted", seed, at.room.used)
	}
}

func TestOffsetsAreExactForAnyOrderOfWritesAndAcknowledgements(t *testing.T) {
	for seed := range uint64(40) {
		checkAttachment(t, seed, 300, 3, maxOutput)
		checkAttachment(t, seed, 300, 200, maxOutput)
		checkAttachment(t, seed, 100, piece+100, maxOutput)
		checkAttachment(t, seed, 100, piece+100, 2*piece+17)
	}
}

func FuzzAttachment(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint16(3), uint32(maxOutput))
	f.Add(uint64(2), uint16(100), uint16(piece+1), uint32(3*piece))
	f.Fuzz(func(t *testing.T, seed uint64, steps, longest uint16, room uint32) {
		checkAttachment(t, seed, int(steps%500), int64(longest)+1, int64(room))
	})
}

// A weaver is a talker that writes its bytes to both streams in turn.
type weaver struct{ *talker }

func (w *weaver) Attach(_ context.Context, _ paddock.PID, out paddock.Output) (paddock.Process, error) {
	p := &weave{talk{copied: make(chan struct{}), released: make(chan struct{})}}
	go func() {
		for i := out.From; i < int64(len(w.said)); i++ {
			to := out.Stdout
			if i%2 == 1 {
				to = out.Stderr
			}
			if _, err := to.Write(w.said[i : i+1]); err != nil {
				return
			}
		}
		close(p.copied)
	}()
	return p, nil
}

type weave struct{ talk }

func (p *weave) Wait(ctx context.Context) (paddock.Exit, error) {
	exit, err := p.talk.Wait(ctx)
	if err == nil {
		exit.Cause = paddock.Exited
	}
	return exit, err
}

func TestAClientGetsAlternatingStreamsInOrder(t *testing.T) {
	sb := &weaver{newTalker(10_001)}
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	for _, query := range []string{"", "attachment=" + someToken, "attachment=" + someToken + "&from=7777"} {
		next := 0
		if _, err := fmt.Sscanf(query, "attachment="+someToken+"&from=%d", &next); err != nil {
			next = 0
		}
		in := api.NewFrameReader(tr.follow(query).Body)
		for ended := false; !ended; {
			k, payload, err := in.Next()
			if err != nil {
				t.Fatalf("%q: after %d bytes: %v", query, next, err)
			}
			switch k {
			case api.Stdout, api.Stderr:
				for _, b := range payload {
					if b != sb.said[next] || (k == api.Stderr) != (next%2 == 1) {
						t.Fatalf("%q: byte %d is %d of stream %v", query, next, b, k)
					}
					next++
				}
			case api.End:
				ended = true
			case api.Begin, api.Alive, api.Fail:
			}
		}
		if next != len(sb.said) {
			t.Errorf("%q: %d bytes came of %d", query, next, len(sb.said))
		}
	}
	list, _ := outputs(t, tr.want(http.StatusOK, "GET", "/v1/sandboxes/a/processes/1/output", "", "Accept", api.LineType))
	next := 0
	for _, o := range list {
		if o.Stdout != nil {
			next += len(*o.Stdout)
		}
		if o.Stderr != nil {
			next += len(*o.Stderr)
		}
	}
	if next != len(sb.said) {
		t.Errorf("%d bytes came as lines of %d", next, len(sb.said))
	}
}
