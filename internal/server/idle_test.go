package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// Environment variables of the test of idle connections: their number, and where a child
// process holds them. Both ends of all connections are more descriptors than one process
// may have.
const (
	idleCount  = "PADDOCK_TEST_CONNECTIONS"
	idleHolder = "PADDOCK_TEST_HOLD"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(idleHolder); address != "" {
		if err := hold(address, os.Getenv(idleCount)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hold makes a request on each of count connections, and holds them until its input ends.
func hold(address, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	held := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		held = append(held, c)
		if _, err := io.WriteString(c, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
		res.Body.Close()
	}
	if _, err := fmt.Println("HELD"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// servedOn starts a server of the simulated tier on a listener of its own, as cmd/paddock
// does.
func servedOn(t *testing.T, o Connections, change func(*http.Server)) (address string, l *Limit) {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Caller: func(r *http.Request) (Caller, error) {
		name := r.Header.Get("Authorization")
		if name == "" {
			return Caller{}, fmt.Errorf("no key: %w", paddock.Denied)
		}
		return Caller{Name: name, Driver: d}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = NewLimit(tcp, true, o)
	h := s.HTTP()
	h.ConnState = l.State
	if change != nil {
		change(h)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), h.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return tcp.Addr().String(), l
}

// answered makes a request of another tenant, on a new connection.
func answered(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/sandboxes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "another")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("another tenant is answered %d, %v", res.StatusCode, err)
	}
}

// PADDOCK_TEST_CONNECTIONS=10000 tests the number that a server is promised to bear.
func TestIdleConnectionsCostLittleAndKeepNobodyOut(t *testing.T) {
	n := 500
	if text := os.Getenv(idleCount); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	address, l := servedOn(t, Connections{Most: n}, nil)
	answered(t, address)
	before := inUse()
	child := exec.Command(os.Args[0])
	child.Stderr = os.Stderr
	child.Env = append(os.Environ(), idleHolder+"="+address, idleCount+"="+strconv.Itoa(n))
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "HELD" {
		t.Log(lines.Text())
	}
	each := (inUse() - before) / int64(n)
	if c := l.Crowd(); c.Open != n {
		t.Errorf("%+v", c)
	}
	t.Logf("%d idle connections, each %d bytes of memory", n, each)
	if each > 64<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	for range 10 {
		answered(t, address) // an idle connection has to make room for it
	}
	if c := l.Crowd(); c.Open > n || c.Evicted == 0 || c.Full != 0 {
		t.Errorf("%+v", c)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := child.Wait(); err != nil {
		t.Errorf("who holds them: %v", err)
	}
}

// inUse returns the memory in use, including stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
