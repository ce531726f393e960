package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// A ledger is a log handler that remembers the worst level.
type ledger struct {
	slog.Handler
	mu    sync.Mutex
	worst slog.Level // guarded by mu
	cause string     // guarded by mu
}

func (l *ledger) Enabled(context.Context, slog.Level) bool { return true }

func (l *ledger) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level > l.worst {
		l.worst = r.Level
		r.Attrs(func(a slog.Attr) bool {
			l.cause += a.String() + " "
			return true
		})
	}
	return nil
}

func (l *ledger) take() (slog.Level, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	level, cause := l.worst, l.cause
	l.worst, l.cause = 0, ""
	return level, cause
}

// The server answers every request, from a known or unknown caller, without a panic. Every
// internal error is in its log.
func FuzzHandler(f *testing.F) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		f.Fatal(err)
	}
	log := &ledger{}
	s, err := New(Options{Log: slog.New(log), Caller: func(r *http.Request) (Caller, error) {
		if r.Header.Get("Authorization") == "" {
			return Caller{}, fmt.Errorf("no key: %w", paddock.Denied)
		}
		return Caller{Name: "one", Driver: d}, nil
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := errors.Join(s.Close(), d.Close()); err != nil {
			f.Error(err)
		}
	})
	there := func(t testing.TB) { // makes the sandbox again, because requests remove it
		all, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, st := range all {
			found = found || st.ID == "a"
			if st.ID == "a" || len(all) < 20 {
				continue
			}
			if other, err := d.Open(t.Context(), st.ID); err == nil {
				if err := other.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !found {
			if _, err := d.Create(t.Context(), paddock.Spec{ID: "a"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range s.table() {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{id}", "a", "{pid}", "1", "{port}", "80", "{token}", "0123456789abcdef", "{snapshot}", "x", "{context}", "x", "{key}", "x").Replace(path)
		f.Add(method, path, "path=/tmp/x", "Paddock-Lease: 0123456789abcdef", []byte("{}"), true)
	}
	f.Add("POST", "/v1/sandboxes/a/processes", "attachment=0123456789abcdef", "Content-Type: application/json", []byte(`{"args":["sh","-c","echo x"]}`), true)
	f.Add("PRI", "*", "", "Expect: 100-continue", []byte("\x00"), false)
	f.Fuzz(func(t *testing.T, method, path, query, header string, body []byte, known bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // bounds streams, which have no end
		defer cancel()
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Host: "x", RemoteAddr: "192.0.2.1:1", RequestURI: path, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body)),
		}
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		r.Header.Del("Authorization")
		if known {
			r.Header.Set("Authorization", "x")
		}
		there(t)
		w := httptest.NewRecorder()
		log.take()
		func() {
			defer func() {
				if cause := recover(); cause != nil {
					if err, ok := cause.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
						t.Errorf("panic: %v", cause)
					}
				}
			}()
			s.ServeHTTP(w, r.WithContext(ctx))
		}()
		level, cause := log.take()
		if level >= slog.LevelError {
			t.Errorf("%s %s: %s", method, path, cause)
		}
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: a fault of the server: %s (%s)", method, path, w.Body, cause)
		}
		if !known && w.Code == http.StatusOK && path != "/openapi.yaml" && w.Body.Len() > 0 {
			t.Errorf("%s %s: answered %d to nobody", method, path, w.Code)
		}
	})
}
