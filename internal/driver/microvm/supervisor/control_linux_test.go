package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// theirs returns a control and plays the machine's init with answer.
func theirs(t *testing.T, answer func(net.Conn)) *supervisor {
	t.Helper()
	ours, far := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); defer far.Close(); answer(far) }()
	t.Cleanup(func() { ours.Close(); <-done })
	return &supervisor{control: control{conn: ours}}
}

func TestTheMachineIsAskedAndBelievedWithinBounds(t *testing.T) {
	answered := func(a protocol.Answer) func(net.Conn) {
		return func(c net.Conn) {
			var r protocol.Request
			for protocol.Read(c, &r) == nil && protocol.Write(c, &a) == nil {
				r = protocol.Request{}
			}
		}
	}
	for _, c := range []struct {
		what   string
		answer func(net.Conn)
		kind   error // nil for no error
		again  error // of a second request
	}{
		{"an answer", answered(protocol.Answer{Kills: 3}), nil, nil},
		{"a refusal", answered(protocol.Answer{Error: "no", Kind: paddock.Denied}), paddock.Denied, paddock.Denied},
		{"nobody", func(net.Conn) {}, paddock.Unavailable, paddock.Unavailable},
		{"an answer without end", func(c net.Conn) {
			_ = protocol.Read(c, &protocol.Request{})
			_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff})
		}, paddock.Unavailable, paddock.Unavailable},
		{"an answer without sense", func(c net.Conn) {
			_ = protocol.Read(c, &protocol.Request{})
			_ = protocol.WriteChunk(c, []byte("{"))
		}, paddock.Unavailable, paddock.Unavailable},
		{"silence", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, paddock.Timeout, paddock.Unavailable},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := theirs(t, c.answer)
			most := time.Minute
			if errors.Is(c.kind, paddock.Timeout) {
				most = time.Millisecond
			}
			for _, want := range []error{c.kind, c.again} {
				if _, err := m.control.ask(protocol.Request{Inspect: true}, most, nil, nil); !errors.Is(err, want) {
					t.Errorf("%v, and not %v", err, want)
				}
			}
		})
	}
}

func TestASavedMachineIsNotAsked(t *testing.T) {
	m := theirs(t, func(c net.Conn) {
		_ = protocol.Read(c, &protocol.Request{})
		_ = protocol.Write(c, &protocol.Answer{Kills: 1, Memory: 2, Peak: 3})
	})
	m.spec.Limit = 1
	for range 2 {
		kills, memory, peak, err := m.Measure()
		if kills != 1 || memory != 2 || peak != 3 || err != nil {
			t.Errorf("%d kills, %d bytes of %d: %v", kills, memory, peak, err)
		}
		m.control.rest = true // from then on, the last measurement is used
	}
	if err := m.Bound(1); !errors.Is(err, paddock.Conflict) {
		t.Error(err)
	}
}

func TestALayerPassesInChunks(t *testing.T) {
	data := bytes.Repeat([]byte("layer"), 200000)
	from := tempFile(t, data)
	var b bytes.Buffer
	if err := sendLayer(&b, from); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		chunk, err := protocol.ReadChunk(&b)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunk) == 0 {
			break
		}
		got = append(got, chunk...)
	}
	if !bytes.Equal(got, data) || b.Len() > 0 {
		t.Errorf("%d bytes of %d, and %d more", len(got), len(data), b.Len())
	}
}

func TestAnArchiveIsNoLargerThanItsRoom(t *testing.T) {
	const chunk = 1000
	m := func() *supervisor {
		return theirs(t, func(c net.Conn) {
			var r protocol.Request
			if protocol.Read(c, &r) != nil || protocol.Write(c, &protocol.Answer{}) != nil {
				return
			}
			for range 5 {
				if protocol.WriteChunk(c, make([]byte, chunk)) != nil {
					return
				}
			}
			_ = protocol.WriteChunk(c, nil)
		})
	}
	for room, want := range map[int64]int64{5 * chunk: 5 * chunk, 5*chunk - 1: 4 * chunk} {
		f := tempFile(t, nil)
		err := m().Archive(f, boxinit.Room{All: room})
		st, e := f.Stat()
		if e != nil || st.Size() != want || (err == nil) != (want == 5*chunk) || err != nil && !errors.Is(err, paddock.Exhausted) {
			t.Errorf("room for %d: %d bytes, %v", room, st.Size(), err)
		}
	}
}

func TestNobodyWritesWhileTheGateIsTaken(t *testing.T) {
	ours, far := net.Pipe()
	defer far.Close()
	var g gate
	if err := g.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.take(ctx); !errors.Is(err, paddock.Unavailable) {
		t.Error(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := newGated(ours, &g).Write([]byte("x"))
		written <- err
	}()
	g.leave()
	if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestTheEndOfWhatWasSaidIsKept(t *testing.T) {
	said, w, err := newTail()
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		_, _ = w.WriteString("a line that is like the others\r\n")
	}
	_, _ = w.WriteString("\x1b[31mred\x07\n\n  Kernel panic \xff")
	w.Close()
	<-said.over
	if got, want := said.lines(2), "[31mred; Kernel panic"; got != want {
		t.Errorf("%q", got)
	}
	if got := said.lines(1000); len(got) > tailSize || !strings.HasSuffix(got, "Kernel panic") {
		t.Errorf("%d bytes: %q", len(got), got[max(0, len(got)-50):])
	}
}

// An agent may accept no streams, so their number is bounded.
func TestAnAgentThatTakesNoConnectionIsNotWaitedForForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &link{port: port{"agent", path}}
	for range sessions().AcceptBacklog {
		if _, err := l.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 2 * openings { // no caller blocks another one
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := l.connect(ctx); !errors.Is(err, paddock.Timeout) {
				t.Errorf("%v, and not that it takes none", err)
			}
		})
	}
	wg.Wait()
	if n := len(l.opening); n > openings {
		t.Errorf("%d wait for the agent", n)
	}
	l.session.Close()
	if _, err := l.connect(t.Context()); err != nil { // the next session
		t.Error(err)
	}
}

// A machine may end while it is being saved, when nobody writes to it.
func TestALinkEndsWithAllThatOpensStreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &link{port: port{"agent", path}}
	for range sessions().AcceptBacklog {
		if _, err := l.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.gate.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range openings {
		callers.Go(func() {
			if c, err := l.connect(t.Context()); err == nil {
				t.Error("a connection to an agent that takes none: ", c.LocalAddr())
			}
		})
	}
	for len(l.opening) < openings {
		runtime.Gosched()
	}
	l.close()
	callers.Wait()
	if n := len(l.opening); n != 0 {
		t.Errorf("%d still open streams", n)
	}
	if _, err := l.connect(t.Context()); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a connection after the end: %v", err)
	}
	l.close() // twice is fine
}
