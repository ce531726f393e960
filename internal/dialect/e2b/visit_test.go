package e2b

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A port is one that answers with its name.
type port string

func (p port) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, string(p)) }
func (port) Close() error                                       { return nil }

// A wired sandbox has a program at each of its ports.
type wired struct {
	still
	to string
}

func (s wired) Dial(ctx context.Context, _ int) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.to)
}

type wiredDriver struct {
	lifetime.Lessor
	sb paddock.Sandbox
}

func (d wiredDriver) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return d.sb, nil }

func (wiredDriver) Terms(context.Context, paddock.ID) (lifetime.Lease, error) {
	return lifetime.Lease{Ends: time.Now().Add(time.Hour)}, nil
}

// List fails, because the samples of a test that takes long are none of its business.
func (wiredDriver) List(context.Context) ([]paddock.Status, error) { return nil, paddock.Unavailable }

// A crossing is a handler before a sandbox whose program answers "inside".
type crossing struct {
	*Handler
	marked atomic.Pointer[string] // who was said to call last
}

func newCrossing(t *testing.T, rec record, ports *ingress.Proxy, inside http.HandlerFunc) *crossing {
	t.Helper()
	web := httptest.NewServer(inside)
	t.Cleanup(web.Close)
	rec.ID, rec.Tenant, rec.Token, rec.Ends = testID, "acme", testToken, time.Now().Add(time.Hour)
	d := wiredDriver{sb: wired{to: web.Listener.Addr().String()}}
	c := &crossing{}
	var err error
	c.Handler, err = New(t.Context(), Options{
		Caller: func(_ context.Context, key string) (dialect.Caller, error) {
			if key != "write" {
				return dialect.Caller{}, fmt.Errorf("no such key: %w", paddock.Denied)
			}
			return dialect.Caller{Tenant: "acme", Who: "key-write", Driver: d}, nil
		},
		Live:   func(context.Context, string, string) (bool, error) { return true, nil },
		Tenant: func(context.Context, string) (lifetime.Lessor, error) { return d, nil },
		Mark: func(ctx context.Context, _ *http.Request, _, who string) context.Context {
			c.marked.Store(&who)
			return ctx
		},
		Store: shelf{rec: rec}, Ports: ports,
		Envd: func(Inside) (Port, error) { return port("agent"), nil },
		Code: func(Inside) (Port, error) { return port("code"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestTheRecordTellsWhoReachedAPort(t *testing.T) {
	inside := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") }
	for _, c := range []struct {
		traffic string
		header  []string
		who     string
	}{
		{"", nil, "public"},
		{"", []string{headerToken, "ea_wrong", "X-Api-Key", "guessed"}, "public"},
		{"", []string{headerToken, testToken}, "sandbox-token"},
		{"", []string{"X-Api-Key", "write"}, "key-write"},
		{"ta_x", []string{headerTraffic, "ta_x"}, "traffic-token"},
	} {
		h := newCrossing(t, record{Traffic: c.traffic}, nil, inside)
		w := ask(t, h.Handler, "GET", "/", append([]string{headerID, testID, headerPort, "8080"}, c.header...)...)
		if who := h.marked.Load(); w.Code != 200 || w.Body.String() != "inside" || who == nil || *who != c.who {
			t.Errorf("%v: %d %q, done by %v, want %s", c.header, w.Code, w.Body, who, c.who)
		}
	}
}

// A proxy before this server may go by another of them.
func TestARequestNamesOneSandboxAndOnePort(t *testing.T) {
	h := newCrossing(t, record{}, nil, func(http.ResponseWriter, *http.Request) { t.Error("a port was reached") })
	for _, header := range [][]string{
		{headerID, testID, headerPort, "8080", headerPort, "9090"},
		{headerID, testID, headerID, "ibbbbbbbbbbbbbbbbbbbb", headerPort, "8080"},
		{headerID, "", headerID, testID},
	} {
		if w := ask(t, h.Handler, "GET", "/", header...); w.Code != http.StatusBadRequest {
			t.Errorf("%v: %d %s", header, w.Code, w.Body)
		}
	}
}

func TestStrangersLeaveRoomAtPortsForTheOwner(t *testing.T) {
	const strangers = 512 - 512/8 // of one sandbox
	arrived, leave := make(chan struct{}, 512), make(chan struct{})
	shared := &ingress.Proxy{}
	h := newCrossing(t, record{}, shared, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- struct{}{}
			<-leave
		}
	})
	done := make(chan struct{})
	for range strangers {
		go func() {
			ask(t, h.Handler, "GET", "/wait", headerID, testID, headerPort, "8080")
			done <- struct{}{}
		}()
	}
	for range strangers {
		<-arrived
	}
	if w := ask(t, h.Handler, "GET", "/", headerID, testID, headerPort, "8080"); w.Code != http.StatusTooManyRequests {
		t.Errorf("one stranger more: %d", w.Code)
	}
	if w := ask(t, h.Handler, "GET", "/", headerID, testID, headerPort, "8080", "X-Api-Key", "write"); w.Code != 200 {
		t.Errorf("the owner: %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder() // the other way in has no places of its own
	shared.Serve(w, httptest.NewRequest("GET", "/", http.NoBody), ingress.Target{
		ID: testID, Port: 8080, Tenant: "acme", Dial: func(context.Context) (net.Conn, error) { return nil, paddock.Unavailable },
	})
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("a stranger by the other way: %d", w.Code)
	}
	close(leave)
	for range strangers {
		<-done
	}
}

func TestContextsOfTheInterpreterAreTheOwners(t *testing.T) {
	h := newCrossing(t, record{}, nil, func(http.ResponseWriter, *http.Request) {})
	b, _ := h.find(testID)
	told := b.answer().TrafficAccessToken
	if told == nil || *told == "" {
		t.Fatal("clients are told no token that they would show")
	}
	asked := newCrossing(t, record{Traffic: "ta_x"}, nil, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		h            *crossing
		method, path string
		header       []string
		want         int
	}{
		{h, "GET", "/contexts", nil, 403},
		{h, "POST", "/contexts/x/restart", nil, 403},
		{h, "DELETE", "/contexts/x", []string{headerTraffic, "ta_guessed"}, 403},
		{h, "POST", "/execute", []string{headerToken, "ea_guessed"}, 403},
		{h, "GET", "/contexts/../health", nil, 403},
		{h, "GET", "/contexts", []string{headerTraffic, *told}, 200},
		{h, "GET", "/contexts", []string{headerToken, testToken}, 200},
		{h, "GET", "/health", nil, 200},
		{asked, "GET", "/contexts", []string{headerTraffic, *told}, 403},
		{asked, "GET", "/contexts", []string{headerTraffic, "ta_x"}, 200},
		{asked, "GET", "/contexts", []string{headerToken, testToken}, 403}, // what is not public asks for its own
	} {
		if w := ask(t, c.h.Handler, c.method, c.path, append([]string{headerID, testID, headerPort, "49999"}, c.header...)...); w.Code != c.want {
			t.Errorf("%s %s %v: %d %s, want %d", c.method, c.path, c.header, w.Code, w.Body, c.want)
		}
	}
	if w := ask(t, h.Handler, "GET", "/", headerID, testID, headerPort, "8080"); w.Code != 200 {
		t.Errorf("a port that is public: %d", w.Code)
	}
}
