package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/key"
)

// A whole server, with its store, whose clock is set: what people wrote down by their
// clock follows it, and how long something takes does not.
func TestNoSandboxIsLostWhereTheClockOfAServerJumps(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ahead atomic.Int64
		v := invoke(dir, nil, nil)
		v.App.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		f := &serveFlags{
			listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(dir, "state")},
			account: accountFlags{host: "a", idleRemove: cli.TimeFlag(12 * time.Hour), longest: cli.TimeFlag(30 * time.Hour)},
		}
		c, err := openAccounts(t.Context(), v.App, d, f, "static", &operation{log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := newService(d, c.caller, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(s.end(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
		}()
		text, _, err := c.ring.Make(t.Context(), key.Grant{Tenant: developer, Scopes: []key.Scope{key.Read}, Expires: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		sb, err := c.mustDriver(t).Create(t.Context(), paddock.Spec{ID: "box"})
		if err != nil {
			t.Fatal(err)
		}
		answer := func() int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sandboxes", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+text)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code
		}
		there := func(when string) {
			t.Helper()
			all, err := d.List(t.Context()) // as the tier has it: nobody's call wakes or renews it
			if err != nil || len(all) != 1 || all[0].ID == "" || sb.ID() == "" {
				t.Fatalf("%s: %d sandboxes, %v", when, len(all), err)
			}
		}
		if code := answer(); code != http.StatusOK {
			t.Errorf("a fresh key: %d", code)
		}
		for _, jump := range []struct {
			when string
			by   time.Duration
			code int
		}{
			{"a day forward", 24 * time.Hour, http.StatusForbidden},
			{"back again", 0, http.StatusOK},
			{"a day back", -24 * time.Hour, http.StatusOK},
			{"as it was", 0, http.StatusOK},
		} {
			ahead.Store(int64(jump.by))
			if code := answer(); code != jump.code {
				t.Errorf("%s: a key of an hour is answered %d, want %d", jump.when, code, jump.code)
			}
			time.Sleep(10 * time.Minute) // the bubble's time: more than any grace
			there(jump.when)
		}
		time.Sleep(12 * time.Hour) // the bubble's time
		if all, err := d.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("what was idle for 12 hours is still there: %d, %v", len(all), err)
		}
	})
}

// mustDriver is the driver of the tenant of the command line.
func (c *accounts) mustDriver(t *testing.T) paddock.Driver {
	t.Helper()
	d, err := c.driver(developer)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
