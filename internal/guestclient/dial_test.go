//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// listen serves each connection to a port of this machine with do.
func listen(t *testing.T, address string, do func(*net.TCPConn)) int {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine cannot listen on %s: %v", address, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				do(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

func dial(t *testing.T, port int) net.Conn {
	t.Helper()
	g := guesttest.New(t, guest.Options{})
	conn, err := g.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func closeWrite(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
}

func TestAPortIsReachedAndEachDirectionEndsByItself(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		conn := dial(t, listen(t, address, echo))
		data := noise(3 << 20)
		var wg sync.WaitGroup
		wg.Go(func() {
			if n, err := conn.Write(data); n != len(data) || err != nil {
				t.Error(n, err)
			}
			closeWrite(t, conn)
			closeWrite(t, conn)
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Error("written after CloseWrite")
			}
		})
		got, err := io.ReadAll(conn)
		wg.Wait()
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
			t.Error("closed twice:", err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Error("read after Close:", err)
		}
	}
}

func TestThePortMayStopFirst(t *testing.T) {
	got := make(chan []byte, 1)
	conn := dial(t, listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Write([]byte("hello"))
		_ = c.CloseWrite()
		data, _ := io.ReadAll(c)
		got <- data
	}))
	if data, err := io.ReadAll(conn); err != nil || string(data) != "hello" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := conn.Write([]byte("still here")); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if data := <-got; string(data) != "still here" {
		t.Errorf("the port read %q", data)
	}
}

func TestCloseDoesNotLoseWhatWasWritten(t *testing.T) {
	got := make(chan int, 1)
	port := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		n, _ := io.Copy(io.Discard, c)
		got <- int(n)
	})
	g := guesttest.New(t, guest.Options{})
	for range 20 {
		conn, err := g.Dial(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(make([]byte, 200_000)); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if n := <-got; n != 200_000 {
			t.Fatalf("%d bytes arrived", n)
		}
	}
}

func TestABrokenConnectionIsNotAnEnd(t *testing.T) {
	conn := dial(t, listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		_ = c.SetLinger(0) // Close resets
	}))
	if _, err := conn.Write([]byte("xyz")); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	wantKind(t, err, paddock.Unavailable)
}

func TestPortsThatCannotBeReached(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	for _, port := range []int{0, -1, 65536, 1 << 40} {
		_, err := g.Dial(t.Context(), port)
		wantKind(t, err, paddock.Invalid)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	_, err = g.Dial(t.Context(), port)
	wantKind(t, err, paddock.NotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Dial(ctx, port)
	wantKind(t, err, paddock.Canceled)
}

func TestDeadlinesOfAConnection(t *testing.T) {
	release := make(chan struct{})
	conn := dial(t, listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		<-release
		echo(c)
	}))
	defer close(release)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Error("read:", err)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	// Nobody reads, so all buffers fill.
	for err = nil; err == nil; {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("write:", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	started := make(chan struct{})
	wg.Go(func() {
		close(started)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a deadline in the past does not end a read that waits:", err)
		}
	})
	<-started
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestHTTPWorksOverADialledPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_, _ = w.Write(data)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() { srv.Close(); <-served }()
	g := guesttest.New(t, guest.Options{})
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return g.Dial(ctx, l.Addr().(*net.TCPAddr).Port)
	}}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range 10 {
				data := noise(50_000 * i)
				res, err := client.Post("http://sandbox/", "text/plain", bytes.NewReader(data))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAConnectionEndsWithItsGuest(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	conn, err := g.Dial(t.Context(), listen(t, "127.0.0.1:0", echo))
	if err != nil {
		t.Fatal(err)
	}
	w, err := g.FS().Watch(t.Context(), t.TempDir(), paddock.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	_, err = conn.Read(make([]byte, 1))
	wantKind(t, err, paddock.Unavailable)
	_, err = w.Next(t.Context())
	wantKind(t, err, paddock.Unavailable)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
