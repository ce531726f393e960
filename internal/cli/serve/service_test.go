package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/ingress/access"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A deadlines remembers the deadlines that reads were given.
type deadlines struct {
	*httptest.ResponseRecorder
	reads []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.reads = append(d.reads, at)
	return nil
}

func TestABodyOfNobodyKnownIsNotWaitedForWithoutAnEnd(t *testing.T) {
	s, err := newService(&house{}, nobody, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/none"} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("never read")))
		if n := len(w.reads); n < 2 || w.reads[0].IsZero() || w.reads[n-1].IsZero() {
			t.Errorf("%s: deadlines %v; want one before the answer and one behind it", path, w.reads)
		}
	}
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody))
	if len(w.reads) != 0 {
		t.Errorf("deadlines %v of a request without a body", w.reads)
	}
}

// noNotes are those of a server that never had any.
type noNotes struct{}

func (noNotes) Keep(context.Context, string, string, string, string) error { return nil }
func (noNotes) Forget(context.Context, string, string, string) error       { return nil }
func (noNotes) Each(context.Context, string, func(tenant, id, data string) error) error {
	return nil
}

// fullService is one with everything that answers at its address.
func fullService(t *testing.T) *service {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "server.db"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := access.New(access.Options{
		Store: db, Key: make([]byte, 32), Base: "http://box.test:7463",
		Caller: func(*http.Request) (access.Caller, error) { return access.Caller{}, paddock.Denied },
		Live:   func(context.Context, string, string) (bool, error) { return false, nil },
		Dial: func(context.Context, access.Visit, paddock.ID, int) (net.Conn, error) {
			return nil, paddock.Unavailable
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(&house{}, nobody, slog.New(slog.DiscardHandler), g)
	if err != nil {
		t.Fatal(err)
	}
	h, err := e2b.New(t.Context(), e2b.Options{
		Domain: "box.test:7463", Store: noNotes{},
		Caller: func(context.Context, string) (dialect.Caller, error) { return dialect.Caller{}, paddock.Denied },
		Live:   func(context.Context, string, string) (bool, error) { return false, nil },
		Tenant: func(context.Context, string) (lifetime.Lessor, error) { return nil, paddock.Denied },
		Envd:   func(e2b.Inside) (e2b.Port, error) { return nil, paddock.Unsupported },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.speak("e2b", h)
	t.Cleanup(func() {
		if err := s.end(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A keeping sandbox keeps whoever writes a file, until the driver lets go.
type keeping struct {
	fake.Fake
	began, gone chan struct{}
}

type keepingBox struct {
	paddock.Sandbox
	d *keeping
}

type keepingFiles struct {
	paddock.FS
	d *keeping
}

func (d *keeping) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return keepingBox{d: d}, nil
}
func (b keepingBox) ID() paddock.ID { return "a" }
func (b keepingBox) FS() paddock.FS { return keepingFiles{d: b.d} }

func (f keepingFiles) Create(context.Context, string, paddock.CreateOptions) (io.WriteCloser, error) {
	return f.d, nil
}

func (d *keeping) Write([]byte) (int, error) {
	close(d.began)
	<-d.gone
	return 0, paddock.Unavailable
}

func TestNoSandboxKeepsTheServerFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &keeping{began: make(chan struct{}), gone: make(chan struct{})}
		caller := func(*http.Request) (server.Caller, error) { return server.Caller{Name: "x", Driver: d}, nil }
		s, err := newService(d, caller, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		calls.Go(func() {
			defer func() { _ = recover() }() // a call that is cut ends with a panic
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/v1/sandboxes/a/files?path=/f", strings.NewReader("x")))
		})
		<-d.began
		began := time.Now()
		if err := s.end(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != drainTime+cutTime {
			t.Errorf("it took %v", took)
		}
		close(d.gone) // as a driver that is closed does
		calls.Wait()
	})
}

func TestAPathOfASandboxsHostIsNeverTheServers(t *testing.T) {
	s := fullService(t)
	theirs := "i" + strings.Repeat("a", 20)
	for _, c := range []struct {
		host, path string
		head       [2]string
		code       int
		has        string
	}{
		{"8080-box.box.test:7463", "/files", [2]string{"E2b-Sandbox-Id", theirs}, 401, "private"},
		{"8080-box.box.test:7463", "/health", [2]string{}, 401, "private"},
		{"8080-box.box.test:7463", "/healthz", [2]string{}, 401, "private"},
		{"nothing.box.test:7463", "/v2/sandboxes", [2]string{}, 404, "PORT-ID"},
		{"127.0.0.1:7463", "/health", [2]string{access.SandboxHeader, "box"}, 400, access.PortHeader},
		{"8080-" + theirs + ".box.test:7463", "/healthz", [2]string{}, 502, theirs},
		{"api.box.test:7463", "/health", [2]string{}, 204, ""},
		{"127.0.0.1:7463", "/health", [2]string{}, 204, ""},
		{"127.0.0.1:7463", "/healthz", [2]string{}, 200, "it lives"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
		r.Host = c.host
		if c.head[0] != "" {
			r.Header.Set(c.head[0], c.head[1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s%s %v: %d %s; want %d and %q", c.host, c.path, c.head, w.Code, w.Body, c.code, c.has)
		}
	}
}

func TestWhatE2BsClientsAskIsWithinTheServersBounds(t *testing.T) {
	s := fullService(t)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/sandboxes", http.NoBody))
	if w.Code != 401 || w.Header().Get(api.RequestHeader) == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
