package outputring

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
)

// replay reads everything that is kept from an offset.
func replay(t testing.TB, o *Ring, from int64) (text string, missed int64) {
	t.Helper()
	r := o.Join(from)
	defer o.Leave(r)
	var out bytes.Buffer
	next := r.at
	for {
		var b [7]byte
		n, stderr, offset, err := o.Take(r, b[:])
		if n == 0 || err == io.EOF {
			return out.String(), o.Missed(r)
		}
		if offset != next {
			t.Fatalf("offset %d after %d", offset, next)
		}
		next += int64(n)
		mark := 'o'
		if stderr {
			mark = 'e'
		}
		for _, c := range b[:n] {
			fmt.Fprintf(&out, "%c%c", mark, c)
		}
	}
}

func TestTheNewestOutputIsKeptWithItsStreams(t *testing.T) {
	o := New(1024)
	var want string
	for i := range 3000 {
		stderr := i/5%3 == 0
		c := byte('a' + i%26)
		o.Write(stderr, []byte{c})
		mark := "o"
		if stderr {
			mark = "e"
		}
		want += mark + string(c)
	}
	first, next, size := o.Bounds()
	if next != 3000 || size > 1024 {
		t.Fatalf("kept %d to %d in %d bytes", first, next, size)
	}
	got, missed := replay(t, o, 0)
	if got != want[2*first:] || missed != first {
		t.Errorf("from %d: %q, %d missed", first, got, missed)
	}
	if got, missed := replay(t, o, 2990); got != want[2*2990:] || missed != 0 {
		t.Errorf("from 2990: %q, %d missed", got, missed)
	}
}

func TestChangingStreamsWithEveryByteCostsLittle(t *testing.T) {
	o := New(64 << 10)
	for i := range 200_000 {
		o.Write(i%2 == 0, []byte{'x'})
	}
	if n := len(o.runs); n > o.maxRuns() || cap(o.runs) > 4*o.maxRuns() {
		t.Errorf("%d runs, room for %d", n, cap(o.runs))
	}
	if first, next, _ := o.Bounds(); next-first != int64(len(o.runs)) {
		t.Errorf("%d bytes in %d runs", next-first, len(o.runs))
	}
}

func TestAReaderHoldsBackTheRing(t *testing.T) {
	o := New(4096)
	r := o.Join(0)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range 10_000 {
			o.Write(i%2 == 0, []byte("0123456789"))
		}
		o.End()
	}()
	var all int64
	for {
		if err := o.Wait(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var b [100]byte
		n, _, offset, err := o.Take(r, b[:])
		if err == io.EOF {
			break
		}
		if offset != all {
			t.Fatalf("offset %d after %d bytes", offset, all)
		}
		all += int64(n)
	}
	<-written
	if all != 100_000 || o.Missed(r) != 0 {
		t.Errorf("%d bytes came, %d missed", all, o.Missed(r))
	}
}

func TestAReaderThatLeavesLetsTheProcessGoOn(t *testing.T) {
	o := New(4096)
	r := o.Join(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Write(false, make([]byte, 1<<20))
	}()
	select {
	case <-done:
		t.Fatal("a megabyte fits into 4096 bytes")
	case <-r.wake:
	}
	o.Leave(r)
	<-done
}

func TestWaitEndsWithItsContext(t *testing.T) {
	o := New(4096)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Wait(ctx, o.Join(0)); err != context.Canceled {
		t.Error(err)
	}
}

// FuzzOutput compares the ring with a plain slice.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("abc"), uint16(16))
	f.Add([]byte{0x80, 0xff, 0x01, 0x81, 0x7f, 0x00}, uint16(100))
	f.Fuzz(func(t *testing.T, ops []byte, limit uint16) {
		o := New(int(limit)%2000 + 16)
		var want string
		for i, op := range ops {
			stderr, n := op&0x80 != 0, int(op&0x7f)*7
			mark := "o"
			if stderr {
				mark = "e"
			}
			c := string(rune('a' + i%26))
			o.Write(stderr, bytes.Repeat([]byte(c), n))
			for range n {
				want += mark + c
			}
		}
		first, next, size := o.Bounds()
		if next != int64(len(want)/2) || size > o.limit || next-first > int64(o.limit) || len(o.runs) > o.maxRuns() {
			t.Fatalf("%d to %d in %d bytes and %d runs", first, next, size, len(o.runs))
		}
		if got, missed := replay(t, o, 0); got != want[2*first:] || missed != first {
			t.Fatalf("kept %q, want %q", got, want[2*first:])
		}
	})
}
