package vminit

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/paddock-sandbox/paddock"
)

// A device stands in for /dev/fuse.
type device struct {
	asks    chan []byte
	answers chan []byte
}

func (d *device) Read(p []byte) (int, error) {
	m, ok := <-d.asks
	if !ok {
		return 0, syscall.ENODEV
	}
	return copy(p, m), nil
}

func (d *device) Write(p []byte) (int, error) {
	d.answers <- slices.Clone(p)
	return len(p), nil
}

// A line stands in for a port. nil closes its other end.
type line struct {
	sent   chan []byte
	comes  chan []byte
	opened chan struct{}
	closed bool // for writing
}

func (l *line) Read(p []byte) (int, error) {
	m := <-l.comes
	if m == nil {
		return 0, io.EOF
	}
	return copy(p, m), nil
}

func (l *line) Write(p []byte) (int, error) {
	if l.closed {
		l.closed = false
		return 0, &wrapped{syscall.EPIPE}
	}
	l.sent <- slices.Clone(p)
	return len(p), nil
}

func (l *line) WaitOpen(ctx context.Context) error {
	select {
	case <-l.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type wrapped struct{ error }

func (e *wrapped) Unwrap() error { return e.error }

func ask(op uint32, unique uint64) []byte {
	m := make([]byte, inHeader)
	binary.NativeEndian.PutUint32(m, inHeader)
	binary.NativeEndian.PutUint32(m[4:], op)
	binary.NativeEndian.PutUint64(m[8:], unique)
	return m
}

func reply(unique uint64, length int) []byte {
	m := make([]byte, length)
	binary.NativeEndian.PutUint32(m, uint32(length))
	binary.NativeEndian.PutUint64(m[8:], unique)
	return m
}

// newBench returns a pump that runs until the test ends.
func newBench(t *testing.T) (*pump, *device, *line) {
	t.Helper()
	d := &device{asks: make(chan []byte), answers: make(chan []byte, 10)}
	l := &line{sent: make(chan []byte, 10), comes: make(chan []byte), opened: make(chan struct{})}
	p := newPump(d, l)
	ctx, cancel := context.WithCancel(t.Context())
	up, down, closer := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { up <- p.up(ctx) }()
	go func() { down <- p.down(ctx) }()
	go func() { closer <- p.closer(ctx) }()
	t.Cleanup(func() {
		p.release()
		cancel()
		close(d.asks)
		l.comes <- nil
		if err := <-up; !errors.Is(err, syscall.ENODEV) {
			t.Error(err)
		}
		for _, ended := range []<-chan error{down, closer} {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	return p, d, l
}

func TestAnswersComeWhole(t *testing.T) {
	_, d, l := newBench(t)
	all := slices.Concat(reply(2, 16), reply(4, 5000), reply(6, 100))
	for len(all) > 0 { // as a port delivers it
		n := min(len(all), 1500)
		l.comes <- all[:n]
		all = all[n:]
	}
	for _, want := range [][]byte{reply(2, 16), reply(4, 5000), reply(6, 100)} {
		if got := <-d.answers; !slices.Equal(got, want) {
			t.Errorf("an answer of %d bytes, want %d", len(got), len(want))
		}
	}
}

func TestHalfAnAnswerOfASessionThatEndedIsNone(t *testing.T) {
	_, d, l := newBench(t)
	l.comes <- reply(2, 100)[:50]
	l.comes <- nil
	l.opened <- struct{}{}
	l.comes <- reply(4, 20)
	if got := <-d.answers; !slices.Equal(got, reply(4, 20)) {
		t.Errorf("%v", got)
	}
}

func TestARequestThatFoundTheHostAwayIsMadeAgain(t *testing.T) {
	_, d, l := newBench(t)
	l.closed = true
	d.asks <- ask(1, 2)
	l.opened <- struct{}{}
	if got := <-l.sent; !slices.Equal(got, ask(1, 2)) {
		t.Errorf("%v", got)
	}
}

func TestHoldWaitsForAnswersAndLetsNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, l := newBench(t)
		d.asks <- ask(1, 2)
		d.asks <- ask(opForget, 0) // which has no answer
		<-l.sent
		<-l.sent
		held := make(chan error, 1)
		go func() { held <- p.hold(t.Context()) }()
		synctest.Wait()
		if len(held) != 0 {
			t.Fatal("it holds with a request under way")
		}
		d.asks <- ask(3, 4)
		l.comes <- reply(2, 16)
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(l.sent) != 0 {
			t.Error("a request went to the host")
		}
		p.release()
		if got := <-l.sent; !slices.Equal(got, ask(3, 4)) {
			t.Errorf("%v", got)
		}
	})
}

func TestAHoldThatComesToNothingHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, l := newBench(t)
		d.asks <- ask(1, 2)
		<-l.sent
		ctx, cancel := context.WithCancel(t.Context())
		held := make(chan error, 1)
		go func() { held <- p.hold(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-held; !errors.Is(err, paddock.Unavailable) {
			t.Error(err)
		}
		d.asks <- ask(3, 4)
		<-l.sent
	})
}

func TestAnAnswerThatMakesNoSenseEndsThePump(t *testing.T) {
	for _, n := range []int{0, outHeader - 1, maxReply + 1} {
		m := reply(2, outHeader)
		binary.NativeEndian.PutUint32(m, uint32(n))
		p := newPump(&device{answers: make(chan []byte, 1)}, nil)
		if _, err := p.deliver(m); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A tree is mounted while there is no host, and the answers do not depend on one.
func TestAMachineThatIsAloneAnswersItself(t *testing.T) {
	d := &device{asks: make(chan []byte), answers: make(chan []byte, 1)}
	l := &line{sent: make(chan []byte, 1)}
	p := newPump(d, l)
	p.alone.Store(true)
	ended := make(chan error, 1)
	go func() { ended <- p.up(t.Context()) }()
	const opGetattr = 3
	first := ask(opInit, 2)
	for _, n := range []uint32{7, 99, 1 << 20, 1<<32 - 1} {
		first = binary.NativeEndian.AppendUint32(first, n)
	}
	binary.NativeEndian.PutUint32(first, uint32(len(first)))
	for _, c := range []struct {
		request []byte
		length  int
		errno   syscall.Errno
	}{
		{first, outHeader + 64, 0},
		{ask(opStatfs, 4), outHeader + 80, 0},
		{ask(opGetxattr, 6), outHeader, syscall.ENOSYS},
		{ask(opGetattr, 8), outHeader, syscall.EIO}, // for a file, before there are any
	} {
		d.asks <- ask(opForget, 0) // which has no answer
		d.asks <- c.request
		got := <-d.answers
		if len(got) != c.length || int(binary.NativeEndian.Uint32(got)) != c.length || !slices.Equal(got[8:outHeader], c.request[8:16]) ||
			-int32(binary.NativeEndian.Uint32(got[4:])) != int32(c.errno) {
			t.Errorf("% x is answered by % x", c.request, got)
		}
	}
	p.alone.Store(false)
	for _, op := range []uint32{opStatfs, opGetxattr, opGetattr} {
		m := ask(op, 10)
		d.asks <- m
		if got := <-l.sent; !slices.Equal(got, m) {
			t.Errorf("the host was asked % x", got)
		}
	}
	close(d.asks)
	<-ended
}

func TestAnINITWithoutSenseEndsTheMachine(t *testing.T) {
	for what, body := range map[string][]uint32{"nothing": {}, "an old kernel's": {7, 30, 0, 0}} {
		m := ask(opInit, 2)
		for _, n := range body {
			m = binary.NativeEndian.AppendUint32(m, n)
		}
		p := newPump(&device{}, &line{})
		if _, err := p.agree(m); err == nil {
			t.Errorf("%s is agreed to", what)
		}
	}
}
