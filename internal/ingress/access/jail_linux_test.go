package access_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/ingress/access"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// insideArgument has the test's own program be the server in a sandbox.
const insideArgument = "serve-inside"

const patience = time.Minute

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime()) || gateway.Main() {
		return
	}
	if len(os.Args) == 2 && os.Args[1] == insideArgument {
		fmt.Fprintln(os.Stderr, serveInside())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveInside() error {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // a connection that is kept keeps the sandbox awake
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	})
	mux.Handle("/socket", websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }))
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	return http.Serve(l, mux)
}

func jailed(state string) (paddock.Driver, error) {
	return jail.New(jail.Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

// A world is access control before the jail, with tenants and lifetimes between them.
type world struct {
	*httptest.Server
	access *access.Control
	driver paddock.Driver // of acme
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	d, err := jailed(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leased, err := lifetime.New(ctx, d, lifetime.Options{Default: lifetime.Terms{IdlePause: time.Second, Wake: true, IgnoreProcesses: true}})
	if err != nil {
		t.Fatal(errors.Join(err, d.Close()))
	}
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "state", "server.db"))
	if err != nil {
		t.Fatal(errors.Join(err, leased.Close()))
	}
	t.Cleanup(func() { s.Close() })
	all := store.Quota{Sandboxes: store.Unbounded, CPU: store.Unbounded, Memory: store.Unbounded, PIDs: store.Unbounded, Disk: store.Unbounded, Rate: store.Unbounded}
	if err := s.AddTenant(ctx, store.Tenant{ID: "acme", Quota: all, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	tenants, err := tenant.New(leased, tenant.Options{Store: s, Place: "here"})
	if err != nil {
		t.Fatal(errors.Join(err, leased.Close()))
	}
	t.Cleanup(func() {
		if err := tenants.Close(); err != nil {
			t.Error(err)
		}
	})
	secret, err := s.Secret(ctx, "ports")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{driver: tenants.Driver("acme")}
	w.access, err = access.New(access.Options{
		Store: s, Key: secret, Base: "http://example.com",
		Caller: func(*http.Request) (access.Caller, error) { return access.Caller{}, paddock.Denied },
		Live:   func(context.Context, string, string) (bool, error) { return true, nil },
		Dial: func(ctx context.Context, v access.Visit, id paddock.ID, port int) (net.Conn, error) {
			sb, err := tenants.Driver(v.Tenant).Open(ctx, id)
			if err != nil {
				return nil, err
			}
			return sb.Dial(ctx, port)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.access.Take(rw, r) {
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(func() { w.access.Close(); w.CloseClientConnections(); w.Close() })
	return w
}

// box makes a sandbox in which the test's own program serves.
func (w *world) box(t *testing.T) paddock.Sandbox {
	t.Helper()
	ctx := t.Context()
	sb, err := w.driver.Create(ctx, paddock.Spec{ID: "box", AllowMissing: drivertest.Weak(t, jailed)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	st, err := sb.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	name := st.Dir + "/server"
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := sb.FS().Create(ctx, name, paddock.CreateOptions{Mode: 0o755})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	// Nobody is attached to it: that would keep the sandbox awake.
	if _, err := sb.Start(ctx, paddock.Cmd{Args: []string{name, insideArgument}, Output: paddock.Output{Detached: true}}); err != nil {
		t.Fatal(err)
	}
	until(t, "it listens", func() bool {
		c, err := sb.Dial(ctx, 8080)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return sb
}

// until looks again and again whether something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (w *world) get(t *testing.T, host, path string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "PUT", w.URL+path, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestAServerInAJailIsReachedAndWoken(t *testing.T) {
	w := newWorld(t)
	sb := w.box(t)
	ctx := t.Context()
	if _, err := w.access.SetPublic(ctx, "acme", "box", 8080, true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.access.SetPublic(ctx, "acme", "box", 8081, true); err != nil {
		t.Fatal(err)
	}
	if code, body := w.get(t, "8080-box.example.com", "/a?b"); code != 200 || body != "PUT /a?b body" {
		t.Errorf("%d %q", code, body)
	}
	if code, body := w.get(t, "8081-box.example.com", "/"); code != 502 || !strings.Contains(body, "port 8081 of sandbox box") {
		t.Errorf("a port where nobody listens: %d %q", code, body)
	}
	if code, _ := w.get(t, "8082-box.example.com", "/"); code != 401 {
		t.Errorf("a private port: %d", code)
	}

	// Nobody uses it: it pauses, and the next request wakes it.
	until(t, "it pauses", func() bool {
		st, err := sb.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return st.State == paddock.Paused
	})
	if code, body := w.get(t, "8080-box.example.com", "/woken"); code != 200 || body != "PUT /woken body" {
		t.Errorf("%d %q", code, body)
	}

	// A connection keeps it awake, and ends with it.
	config, err := websocket.NewConfig("ws://8080-box.example.com/socket", "http://8080-box.example.com")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", w.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patience))
	c, err := websocket.NewClient(config, raw)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := errors.Join(websocket.Message.Send(c, "hello"), websocket.Message.Receive(c, &got)); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	linked, err := w.access.Link(ctx, "acme", "key-acme", "box", 8080, api.Link{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	var cut net.Error
	if err := websocket.Message.Receive(c, &got); err == nil || errors.As(err, &cut) && cut.Timeout() {
		t.Errorf("the connection outlives the sandbox: %q, %v", got, err)
	}
	_, query, _ := strings.Cut(linked.URL, "?")
	if code, body := w.get(t, "8080-box.example.com", "/?"+query); code != 403 {
		t.Errorf("a signed URL outlives the sandbox: %d %q", code, body)
	}
}
