package e2b

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A removing driver removes its sandbox unless it fails, and counts the attempts.
type removing struct {
	lifetime.Lessor
	fail    error
	removed int
}

func (d *removing) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return removedBy{d: d}, nil
}

func (*removing) Terms(context.Context, paddock.ID) (lifetime.Lease, error) {
	return lifetime.Lease{Ends: time.Now().Add(1000 * time.Hour)}, nil
}

func (*removing) List(context.Context) ([]paddock.Status, error) { return nil, paddock.Unavailable }

type removedBy struct {
	still
	d *removing
}

func (s removedBy) Remove(context.Context) error {
	s.d.removed++
	return s.d.fail
}

func TestASandboxThatDoesNotLetGoIsRemovedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &removing{}
		h, err := New(t.Context(), Options{
			Caller: func(context.Context, string) (dialect.Caller, error) {
				return dialect.Caller{Tenant: "acme", Who: "acme", Driver: d}, nil
			},
			Live:   func(context.Context, string, string) (bool, error) { return true, nil },
			Tenant: func(context.Context, string) (lifetime.Lessor, error) { return d, nil },
			Store:  forgetful{shelf{rec: record{ID: testID, Tenant: "acme", Token: testToken, Started: time.Now()}}},
			Envd:   func(Inside) (Port, error) { return closing{1000 * time.Hour}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		hold := func() <-chan struct{} {
			cut := make(chan struct{})
			go func() {
				defer close(cut)
				defer func() { _ = recover() }() // a cut stream ends with a panic
				h.ServeHTTP(httptest.NewRecorder(), asking(t, "GET", "/hold"))
			}()
			synctest.Wait()
			return cut
		}
		for _, c := range []struct {
			fail error
			code int
		}{{errors.New("not now"), http.StatusInternalServerError}, {nil, http.StatusNoContent}} {
			d.fail = c.fail
			cut := hold()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, asking(t, "DELETE", "/sandboxes/"+testID))
			if w.Code != c.code {
				t.Errorf("%d %s, want %d", w.Code, w.Body, c.code)
			}
			<-cut
		}
		if took := time.Since(began); took != 0 || d.removed != 2 {
			t.Errorf("it took %v, and %d attempts", took, d.removed)
		}
		if err := h.Close(); err != nil || time.Since(began) < 1000*time.Hour {
			t.Errorf("%v: Close did not wait for the handlers of ports", err)
		}
	})
}

func asking(t *testing.T, method, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if method == "DELETE" {
		r.Header.Set("X-Api-Key", "write")
		return r
	}
	r.Header.Set(headerID, testID)
	r.Header.Set(headerToken, testToken)
	return r
}

// An unread sandbox starts processes that read no input and do not end.
type unread struct{ paddock.Sandbox }

func (unread) Start(context.Context, paddock.Cmd) (paddock.Process, error) {
	return unreadProcess{released: make(chan struct{}), once: &sync.Once{}}, nil
}

type unreadProcess struct {
	paddock.Process
	released chan struct{}
	once     *sync.Once
}

func (p unreadProcess) Input() io.WriteCloser { return p }
func (p unreadProcess) Close() error          { return nil }
func (p unreadProcess) Release()              { p.once.Do(func() { close(p.released) }) }

func (p unreadProcess) Write([]byte) (int, error) {
	<-p.released
	return 0, paddock.Canceled
}

func (p unreadProcess) Wait(ctx context.Context) (paddock.Exit, error) {
	<-p.released
	return paddock.Exit{}, paddock.Canceled
}

func TestABuildWhoseStepReadsNoInputEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where a write that waits for ever is a failure at once
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := work{sb: unread{}}
		if _, err := w.exec(ctx, "", paddock.Cmd{Args: []string{"tar"}}, strings.NewReader("x")); err == nil {
			t.Error("it is as if it had been read")
		}
	})
}
