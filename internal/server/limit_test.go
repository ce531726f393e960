package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A gate is a listener whose connections have addresses chosen by the test.
type gate struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func newGate() *gate { return &gate{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-g.ended:
		return nil, net.ErrClosed
	}
}

func (g *gate) Close() error {
	g.once.Do(func() { close(g.ended) })
	return nil
}

func (g *gate) Addr() net.Addr { return &net.TCPAddr{} }

// A foreignConn is a connection with another remote address.
type foreignConn struct {
	net.Conn
	from net.Addr
}

func (f foreignConn) RemoteAddr() net.Addr { return f.from }

// dial connects from an address and returns the client's end.
func (g *gate) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	addr, err := net.ResolveTCPAddr("tcp", from+":1")
	if err != nil {
		t.Fatal(err)
	}
	g.conns <- foreignConn{theirs, addr}
	t.Cleanup(func() { ours.Close() })
	return ours
}

// limitedServer serves "ok" behind a limit. It answers a request for /wait when release is
// closed.
func limitedServer(t *testing.T, o Connections) (g *gate, l *Limit, waiting chan struct{}, release chan struct{}) {
	t.Helper()
	g, waiting, release = newGate(), make(chan struct{}, 100), make(chan struct{})
	l = NewLimit(g, true, o)
	h := &http.Server{ConnState: l.State, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			waiting <- struct{}{}
			<-release
		}
		_, _ = io.WriteString(w, "ok")
	})}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return g, l, waiting, release
}

func send(t *testing.T, c net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

func (l *Limit) wait(t *testing.T, ok func(Crowd) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(l.Crowd()); {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", l.Crowd())
		}
		runtime.Gosched()
	}
}

// settle waits until no connection is in use, because the server notes that after its
// answer.
func (l *Limit) settle(t *testing.T) {
	t.Helper()
	l.wait(t, func(Crowd) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.open {
			if c.idle.IsZero() {
				return false
			}
		}
		return true
	})
}

func TestWhoOnlyHoldsConnectionsOpenKeepsNobodyOut(t *testing.T) {
	g, l, _, _ := limitedServer(t, Connections{Most: 4})
	hold := g.dial(t, "10.0.0.1")
	send(t, hold, "/") // idle between two requests
	receive(t, hold)
	for range 3 {
		g.dial(t, "10.0.0.1") // sends nothing
	}
	l.wait(t, func(c Crowd) bool { return c.Open == 4 })
	for range 10 {
		c := g.dial(t, "10.0.0.2")
		send(t, c, "/")
		if res := receive(t, c); res.StatusCode != http.StatusOK {
			t.Fatalf("answered %d", res.StatusCode)
		}
		l.settle(t)
	}
	if c := l.Crowd(); c.Evicted != 10 || c.Open != 4 || c.Full != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhereNoConnectionIsIdleANewOneIsRefusedInWords(t *testing.T) {
	g, l, waiting, release := limitedServer(t, Connections{Most: 2})
	var busy []net.Conn
	for range 2 {
		c := g.dial(t, "10.0.0.1")
		send(t, c, "/wait")
		<-waiting
		busy = append(busy, c)
	}
	if res := receive(t, g.dial(t, "10.0.0.2")); res.StatusCode != http.StatusServiceUnavailable || !res.Close || res.Header.Get("Retry-After") == "" {
		t.Errorf("answered %d, %v", res.StatusCode, res.Header)
	}
	close(release)
	for _, c := range busy {
		if res := receive(t, c); res.StatusCode != http.StatusOK {
			t.Errorf("one that was busy: %d", res.StatusCode)
		}
		c.Close()
	}
	l.wait(t, func(c Crowd) bool { return c.Open == 0 })
	if c := l.Crowd(); c.Full != 1 || c.Evicted != 0 {
		t.Errorf("%+v", c)
	}
}

func TestAnAddressHasItsShareAndNoMore(t *testing.T) {
	g, l, _, _ := limitedServer(t, Connections{Each: 2})
	for _, from := range []string{"10.0.0.1", "[2001:db8::%x]"} {
		at := func(n string) string { return strings.Replace(from, "%x", n, 1) }
		for _, n := range []string{"1", "2"} {
			c := g.dial(t, at(n))
			send(t, c, "/")
			receive(t, c)
		}
		if res := receive(t, g.dial(t, at("3"))); res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: answered %d", from, res.StatusCode)
		}
	}
	for range 5 { // from this machine, where a proxy may be
		c := g.dial(t, "127.0.0.1")
		send(t, c, "/")
		receive(t, c)
	}
	if c := l.Crowd(); c.Crowded != 2 || c.Open != 9 {
		t.Errorf("%+v", c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.crowd) != 3 {
		t.Errorf("%d addresses are kept", len(l.crowd))
	}
}
