package serve

import (
	"context"
	"errors"
	"log/slog"
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
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/server"
)

func TestAServerIsNeverLeftOpenUnlessItIsAskedForByName(t *testing.T) {
	for _, row := range []struct {
		name string
		f    serveFlags
		ok   bool
	}{
		{"a socket", serveFlags{listen: "unix:/x"}, true},
		{"loopback", serveFlags{listen: "127.0.0.1:0"}, true},
		{"loopback by name", serveFlags{listen: "localhost:0"}, true},
		{"loopback of version 6", serveFlags{listen: "[::1]:0"}, true},
		{"every address", serveFlags{listen: ":0"}, false},
		{"a name that may be any address", serveFlags{listen: "localhost.example:0"}, false},
		{"an address, encrypted", serveFlags{listen: "10.0.0.1:0", cert: "c", certKey: "k"}, true},
		{"an address in clear text, by name", serveFlags{listen: "10.0.0.1:0", plain: true}, true},
		{"half a certificate", serveFlags{listen: "10.0.0.1:0", cert: "c", plain: true}, false},
		{"an encrypted socket", serveFlags{listen: "unix:/x", cert: "c", certKey: "k"}, false},
		{"a socket with a key", serveFlags{listen: "unix:/x", key: "k"}, false},
		{"a socket with a record", serveFlags{listen: "unix:/x", account: accountFlags{audit: "d"}}, true},
		{"a socket with lifetimes", serveFlags{listen: "unix:/x", account: accountFlags{longest: 1}}, true},
		{"a socket with a number of sandboxes for all tenants", serveFlags{listen: "unix:/x", account: accountFlags{most: 1}}, false},
		{"a socket with a database", serveFlags{listen: "unix:/x", store: storeFlags{database: "d"}}, false},
		{"a socket with images for all tenants", serveFlags{listen: "unix:/x", images: imageFlags{shared: []string{"a"}}}, false},
		{"a socket with a caller that is trusted already", serveFlags{listen: "unix:/x", trusted: true}, false},
		{"no port", serveFlags{listen: "127.0.0.1"}, false},
	} {
		err := row.f.check()
		var hint *cli.Hinted
		if (err == nil) != row.ok || err != nil && !errors.As(err, &hint) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestAKeyIsOfOneSource(t *testing.T) {
	dir := t.TempDir()
	clitest.Plant(t, filepath.Join(dir, "key"), "from-file\n", 0o600)
	clitest.Plant(t, filepath.Join(dir, "empty"), "\n", 0o600)
	env := func(string) (string, bool) { return "from-environment", true }
	for _, row := range []struct {
		f    serveFlags
		want string
	}{
		{serveFlags{}, "from-environment"},
		{serveFlags{key: "flag"}, "flag"},
		{serveFlags{keyFile: filepath.Join(dir, "key")}, "from-file"},
	} {
		if got, err := row.f.sharedKey(env); err != nil || got != row.want {
			t.Errorf("%+v: %q: %v", row.f, got, err)
		}
	}
	for _, bad := range []serveFlags{{key: "a", keyFile: "b"}, {keyFile: filepath.Join(dir, "empty")}, {keyFile: filepath.Join(dir, "none")}, {key: "two words"}} {
		if got, err := bad.sharedKey(env); err == nil {
			t.Errorf("%+v: %q", bad, got)
		}
	}
}

// A house has sandboxes or not.
type house struct {
	fake.Fake
	mu   sync.Mutex
	full bool // guarded by mu
}

func (h *house) List(context.Context) ([]paddock.Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return []paddock.Status{{ID: "one"}}, nil
	}
	return nil, nil
}

func TestAServerLeavesWhenNobodyCalledForAWhileAndItIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{full: true}
		s := &service{driver: h, log: slog.New(slog.DiscardHandler), last: time.Now(), changed: make(chan struct{}, 1)}
		left := make(chan time.Time, 1)
		began := time.Now()
		go func() {
			if s.leave(t.Context(), time.Minute) {
				left <- time.Now()
			}
		}()
		s.count(1)
		time.Sleep(10 * time.Minute) // the bubble's time
		s.count(-1)                  // a long call
		time.Sleep(30 * time.Second) // the bubble's time
		s.count(1)
		s.count(-1)
		time.Sleep(10 * time.Minute) // the bubble's time
		select {
		case <-left:
			t.Fatal("it left with a sandbox")
		default:
		}
		h.mu.Lock()
		h.full = false
		h.mu.Unlock()
		if at := (<-left).Sub(began); at < 20*time.Minute || at > 22*time.Minute {
			t.Errorf("it left after %v", at)
		}
	})
}

func TestAServerThatIsToldToEndDoesNotWaitUntilItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{driver: &house{}, log: slog.New(slog.DiscardHandler), last: time.Now(), changed: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s.leave(ctx, time.Hour) {
			t.Error("it says that it is idle")
		}
	})
}

func TestHealthIsToldWithoutAKeyAndIsNoUse(t *testing.T) {
	s, err := newService(&house{}, nobody, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := s.quiet()
	get := func(path string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w.Code
	}
	if get("/healthz") != 200 || get("/readyz") != 200 || get("/v1/sandboxes") != 401 {
		t.Errorf("answered %d, %d, %d", get("/healthz"), get("/readyz"), get("/v1/sandboxes"))
	}
	if err := s.end(t.Context()); err != nil {
		t.Error(err)
	}
	if get("/healthz") != 200 || get("/readyz") != 503 {
		t.Errorf("answered %d, %d", get("/healthz"), get("/readyz"))
	}
	if after, ok := s.quiet(); !ok || !after.After(before) {
		t.Error("a call did not count")
	}
}

func nobody(*http.Request) (server.Caller, error) { return server.Caller{}, paddock.Denied }

func TestTheStateOfAServerIsItsOwnersAlone(t *testing.T) {
	v := invoke(t.TempDir(), nil, nil)
	dir, err := stateDir(v.App, "new/state")
	if info, missing := os.Stat(dir); err != nil || missing != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", dir, err, missing)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := stateDir(v.App, "new/state"); !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), "only you can write") {
		t.Errorf("open to others: %v", err)
	}
}

// Without --state, too: else the server of a socket, which the command line starts by
// itself, would list and end what is a tenant's.
func TestServersOfOneUserDoNotShareTenantsSandboxes(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "unix:/x"} {
		dir := t.TempDir()
		v := invoke(dir, map[string]string{"HOME": dir, "XDG_DATA_HOME": filepath.Join(dir, "data")}, nil)
		g, err := (&serveFlags{listen: listen}).gear(v.App)
		if err != nil {
			t.Fatal(err)
		}
		live, saved := g.Kept(paddock.Jail)
		if ours := strings.HasPrefix(listen, "unix:"); ours != (live == "") || saved != "" {
			t.Errorf("%s: sandboxes live in %q, and are saved in %q", listen, live, saved)
		}
		g, err = (&serveFlags{listen: listen, store: storeFlags{state: filepath.Join(dir, "s")}}).gear(v.App)
		if live, saved := g.Kept(paddock.Jail); err != nil || live != filepath.Join(dir, "s/live/jail") || saved != filepath.Join(dir, "s/saved/jail") {
			t.Errorf("%s --state: sandboxes live in %q, and are saved in %q: %v", listen, live, saved, err)
		}
	}
}

func TestWhatAServerKeepsIsHiddenFromItsSandboxes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"key", "archive/tls.key", "paddock.yaml"} {
		clitest.Plant(t, filepath.Join(dir, name), "x", 0o600)
	}
	if err := os.Symlink("archive/tls.key", filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	v := clitest.Invoke(dir, nil, nil)
	f := &serveFlags{
		listen: "127.0.0.1:0", keyFile: "key", certKey: filepath.Join(dir, "tls.key"), operate: operateFlags{config: "paddock.yaml"},
		store: storeFlags{state: "state", database: "a.db"}, account: accountFlags{audit: "record"},
	}
	g, err := f.gear(v.App)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state", "state/saved/gvisor", "key", "tls.key", "archive/tls.key", "paddock.yaml", "a.db", "a.db-wal", "record"} {
		if g.Private.Refuse("mount", filepath.Join(dir, name)) == nil {
			t.Errorf("%s can be mounted", name)
		}
	}
	if err := g.Private.Refuse("root", filepath.Join(dir, "state", imagesDir, "one")); err != nil {
		t.Error(err)
	}
	if err := g.Private.Refuse("mount", dir); err != nil {
		t.Error(err)
	}
	if data, err := v.App.Data(); err != nil || g.Private.Refuse("mount", filepath.Join(data, "audit", "key.pem")) == nil {
		t.Errorf("the key of the record can be mounted, or %v", err)
	}
	v.App.Data = func() (string, error) { return "", errors.New("no home") }
	if g, err = f.gear(v.App); err != nil || g.Private.Refuse("mount", filepath.Join(dir, "key")) == nil {
		t.Errorf("without a home: %v", err)
	}
}
