package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func portPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanDial}, promises: []promise{
		{"a port that listens inside is reached, both ways, with the end of each", dials},
		{"twenty connections at once do not mix", dialsMany},
		{"a connection obeys its deadlines and its closing", dialDeadline},
		{"a connection outlives the call that made it", dialOutlives},
		{"a port where nobody listens is told at once", dialNobody},
		{"a port that cannot be is invalid", dialInvalid},
	}}, {can: []paddock.Capability{paddock.CanDial}, walls: []paddock.Control{paddock.ControlNetNS}, promises: []promise{
		{"a port that listens on the host is not reached", dialHost},
	}}}
}

// echoPort starts an echo server and returns its port.
func (b box) echoPort(t testing.TB, address string) int {
	t.Helper()
	var out syncBuffer
	p := b.start(t, paddock.Cmd{Args: []string{b.helper(t), "echo", address}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Signal(ctx, sigKill); err != nil && !errors.Is(err, paddock.NotFound) && !errors.Is(err, paddock.Unavailable) {
			t.Errorf("kill: %v", err)
		}
	})
	says(t, &out, "\n")
	port, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("listen on %s: %q", address, &out)
	}
	return port
}

func (b box) dial(t testing.TB, port int) net.Conn {
	t.Helper()
	conn, err := b.Dial(bounded(t), port)
	if err != nil {
		t.Fatalf("dial %d: %v", port, err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // most are already closed
	return conn
}

func dials(t *testing.T, s *suite) {
	b := s.box(t)
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		conn := b.dial(t, b.echoPort(t, address))
		want, err := io.ReadAll(io.LimitReader(noise(4), 4<<20))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := conn.Write(want); err != nil {
				t.Errorf("write: %v", err)
			}
			half, ok := conn.(interface{ CloseWrite() error })
			if !ok {
				t.Errorf("%T cannot be closed in one direction", conn)
				_ = conn.Close()
				return
			}
			if err := half.CloseWrite(); err != nil {
				t.Errorf("close writing: %v", err)
			}
		})
		got, err := io.ReadAll(conn)
		wg.Wait()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d came back: %v", address, len(got), len(want), err)
		}
	}
}

func dialsMany(t *testing.T, s *suite) {
	b := s.box(t)
	port := b.echoPort(t, "127.0.0.1:0")
	ctx := bounded(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			conn, err := b.Dial(ctx, port)
			if err != nil {
				t.Errorf("dial: %v", err)
				return
			}
			defer conn.Close()
			want := bytes.Repeat([]byte{byte(i)}, 1000)
			got := make([]byte, len(want))
			for range 20 {
				if _, err := conn.Write(want); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func dialDeadline(t *testing.T, s *suite) {
	b := s.box(t)
	conn := b.dial(t, b.echoPort(t, "127.0.0.1:0"))
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatalf("set a deadline: %v", err)
	}
	var late net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("read after the deadline: %v", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Errorf("write: %v", err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("read without a deadline again: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	if err := conn.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a read of a closed connection gave something")
		}
	case <-bounded(t).Done():
		t.Error("closing did not end a read")
	}
}

func dialOutlives(t *testing.T, s *suite) {
	b := s.box(t)
	port := b.echoPort(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := b.Dial(ctx, port)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	cancel()
	if _, err := conn.Write([]byte("still")); err != nil {
		t.Fatalf("write: %v", err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "still" {
		t.Errorf("%q, %v", got, err)
	}
}

func dialNobody(t *testing.T, s *suite) {
	b := s.box(t)
	conn, err := b.Dial(bounded(t), 9)
	if err == nil {
		_ = conn.Close()
	}
	wantKind(t, "dial", err, paddock.NotFound, paddock.Unavailable, paddock.Conflict)
}

func dialInvalid(t *testing.T, s *suite) {
	b := s.box(t)
	for _, port := range []int{0, -1, 65536, 1 << 30} {
		conn, err := b.Dial(bounded(t), port)
		if err == nil {
			_ = conn.Close()
		}
		wantKind(t, "dial "+strconv.Itoa(port), err, paddock.Invalid)
	}
}

func dialHost(t *testing.T, s *suite) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := s.box(t)
	conn, err := b.Dial(bounded(t), l.Addr().(*net.TCPAddr).Port)
	if err == nil {
		_ = conn.Close()
		t.Error("it was reached")
	}
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "connect", "tcp", l.Addr().String()}})
	if r.exit.Code == 0 {
		t.Errorf("a command reached it: %q", r.out)
	}
}
