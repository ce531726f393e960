package e2b_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A watch is a handler in a bubble of synctest, whose time is the bubble's and whose
// wall clock a test sets. Nothing of it listens.
type watch struct {
	*testing.T
	off   atomic.Int64 // of the wall clock, in nanoseconds
	inner paddock.Driver
	store *lifetime.Memory
	late  time.Duration // of what is told of terms
	notes *notes
	envd  func(e2b.Inside) (e2b.Port, error) // nil is agent
	d     *lifetime.Driver
	h     *e2b.Handler
}

// shared is a driver that is not closed with what is around it.
type shared struct{ paddock.Driver }

func (shared) Close() error { return nil }

func newWatch(t *testing.T) *watch {
	t.Helper()
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{T: t, inner: inner, store: &lifetime.Memory{}, notes: &notes{data: map[[3]string]string{}}}
	w.open()
	return w
}

func (w *watch) now() time.Time { return time.Now().Add(time.Duration(w.off.Load())) }

func (w *watch) jump(by time.Duration) { w.off.Add(int64(by)) }

func (w *watch) open() {
	w.Helper()
	var err error
	if w.d, err = lifetime.New(w.Context(), shared{w.inner}, lifetime.Options{Store: w.store, Wall: w.now}); err != nil {
		w.Fatal(err)
	}
	w.h, err = e2b.New(w.Context(), e2b.Options{
		Caller: func(_ context.Context, key string) (dialect.Caller, error) {
			return dialect.Caller{Tenant: key, Who: key, Driver: late{w.d, w.late}}, nil
		},
		Live:   func(context.Context, string, string) (bool, error) { return true, nil },
		Tenant: func(context.Context, string) (lifetime.Lessor, error) { return w.d, nil },
		Store:  w.notes, Wall: w.now,
		Envd: func(in e2b.Inside) (e2b.Port, error) {
			if w.envd != nil {
				return w.envd(in)
			}
			return agent{in, nil}, nil
		},
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *watch) close() {
	w.Helper()
	if err := w.h.Close(); err != nil {
		w.Error(err)
	}
	if err := w.d.Close(); err != nil {
		w.Error(err)
	}
}

func (w *watch) end() {
	w.Helper()
	w.close()
	if err := w.inner.Close(); err != nil {
		w.Error(err)
	}
}

// pass lets time pass, and what follows be done.
func (w *watch) pass(by time.Duration) {
	<-time.After(by)
	synctest.Wait()
}

func (w *watch) ask(method, path, body string, want int) map[string]any {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", "acme")
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	if rec.Code != want {
		w.Fatalf("%s %s: %d %s, want %d", method, path, rec.Code, rec.Body, want)
	}
	var v map[string]any
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
			w.Fatalf("%s: %v", rec.Body, err)
		}
	}
	return v
}

func (w *watch) make(body string) string {
	w.Helper()
	id, _ := w.ask("POST", "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false,`+body+`}`, 201)["sandboxID"].(string)
	return id
}

// A late lessor tells of terms as they were a while ago.
type late struct {
	lifetime.Lessor
	by time.Duration
}

func (l late) Terms(ctx context.Context, id paddock.ID) (lifetime.Lease, error) {
	t, err := l.Lessor.Terms(ctx, id)
	<-time.After(l.by)
	return t, err
}

// A slow driver takes its time to make a sandbox.
type slow struct {
	paddock.Driver
	by time.Duration
}

func (s slow) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	<-time.After(s.by)
	return s.Driver.Create(ctx, spec)
}

func TestASandboxThatIsPausedWhileSomebodyConnectsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		defer w.end()
		sim := w.inner
		w.close()
		w.inner = slow{sim, 5 * time.Second} // so its terms pause it so long after it is told as paused
		w.late = 5 * time.Second
		w.open()
		id := w.make(`"timeout":30,"autoPause":true`)
		w.pass(27 * time.Second)
		if state := w.ask("GET", "/sandboxes/"+id, "", 200)["state"]; state != "paused" {
			t.Fatalf("at its end it is %v", state)
		}
		w.ask("POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":3600}`, 201)
		w.there("connected", id, true)
		w.pass(time.Hour - 30*time.Second)
		w.there("before its new end", id, true)
	})
}

// left wants the end of a sandbox to be told as so long from now, by the wall clock.
func (w *watch) left(when, id string, want time.Duration) {
	w.Helper()
	text, _ := w.ask("GET", "/sandboxes/"+id, "", 200)["endAt"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if left := at.Sub(w.now()); err != nil || (left-want).Abs() > time.Second {
		w.Errorf("%s: the end is told as %v from now, which is not %v: %v", when, left, want, err)
	}
}

// there wants the sandbox to be there or not: for clients, and for the tier.
func (w *watch) there(when, id string, want bool) {
	w.Helper()
	_, err := w.inner.Open(w.Context(), paddock.ID(id))
	if (err == nil) != want {
		w.Errorf("%s: the tier says %v", when, err)
	}
	r := httptest.NewRequestWithContext(w.Context(), "GET", "/x", strings.NewReader(""))
	r.Header.Set("E2b-Sandbox-Id", id)
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	if code := rec.Code; code != map[bool]int{true: 200, false: 502}[want] {
		w.Errorf("%s: answered %d", when, code)
	}
}

func TestASandboxLivesAsLongAsWasAskedWhateverTheClockDoes(t *testing.T) {
	for _, by := range []time.Duration{1000 * time.Hour, -1000 * time.Hour} {
		for name, test := range map[string]func(w *watch){
			"created": func(w *watch) {
				id := w.make(`"timeout":3600`)
				w.pass(time.Minute)
				w.jump(by)
				w.pass(58 * time.Minute)
				w.left("a minute before", id, time.Minute)
				w.there("a minute before", id, true)
				w.pass(time.Minute + time.Second)
				w.there("at its end", id, false)
			},
			"given another end": func(w *watch) {
				id := w.make(`"timeout":60`)
				w.jump(by)
				w.ask("POST", "/sandboxes/"+id+"/timeout", `{"timeout":3600}`, 204)
				w.left("set", id, time.Hour)
				w.ask("POST", "/sandboxes/"+id+"/timeout", `{"timeout":600}`, 204)
				w.left("set sooner", id, 10*time.Minute)
				w.jump(by)
				w.ask("POST", "/sandboxes/"+id+"/refreshes", `{"duration":1200}`, 204)
				w.ask("POST", "/sandboxes/"+id+"/refreshes", `{"duration":60}`, 204)
				w.left("refreshed", id, 20*time.Minute)
				w.ask("POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":3000}`, 200)
				w.ask("POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":30}`, 200)
				w.left("connected", id, 50*time.Minute)
				w.jump(-2 * by)
				w.pass(50*time.Minute - time.Second)
				w.there("a second before", id, true)
				w.pass(2 * time.Second)
				w.there("at its end", id, false)
			},
			"paused and resumed": func(w *watch) {
				id := w.make(`"timeout":60`)
				w.ask("POST", "/sandboxes/"+id+"/pause", "", 204)
				w.jump(by)
				w.pass(10 * time.Minute)
				w.ask("POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":3600}`, 201)
				w.jump(by)
				w.left("resumed", id, time.Hour)
				w.pass(time.Hour - time.Second)
				w.there("a second before", id, true)
				w.pass(2 * time.Second)
				w.there("at its end", id, false)
			},
			"paused at its end": func(w *watch) {
				id := w.make(`"timeout":600,"autoPause":true`)
				w.jump(by)
				w.pass(10*time.Minute - time.Second)
				w.there("a second before", id, true)
				w.pass(2 * time.Second)
				if state := w.ask("GET", "/sandboxes/"+id, "", 200)["state"]; state != "paused" {
					w.Errorf("at its end it is %v", state)
				}
				w.jump(-by)
				w.ask("POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":3600}`, 201)
				w.pass(time.Hour - time.Second)
				w.there("once more", id, true)
			},
			"the server started again": func(w *watch) {
				one, two, three := w.make(`"timeout":3600`), w.make(`"timeout":3600`), w.make(`"timeout":3600,"autoPause":true`)
				w.jump(by)
				w.pass(10 * time.Minute) // the record follows
				w.close()
				w.pass(10 * time.Minute)
				w.open()
				synctest.Wait()
				w.left("again", one, 40*time.Minute)
				w.jump(by)
				w.ask("POST", "/v2/sandboxes/"+one+"/connect", `{"timeout":60}`, 200)
				w.ask("POST", "/sandboxes/"+two+"/timeout", `{"timeout":60}`, 204)
				w.left("later alone", one, 40*time.Minute)
				w.left("sooner, too", two, time.Minute)
				w.pass(time.Minute + 2*time.Second)
				w.there("ended sooner", two, false)
				w.pass(39*time.Minute - 3*time.Second)
				w.there("a second before", one, true)
				w.pass(3 * time.Second)
				w.there("at its end", one, false)
				if state := w.ask("GET", "/sandboxes/"+three, "", 200)["state"]; state != "paused" {
					w.Errorf("at its end it is %v", state)
				}
			},
			"its end came while no server was there": func(w *watch) {
				id := w.make(`"timeout":60`)
				w.close()
				w.jump(max(by, 0))
				w.pass(time.Hour)
				w.open()
				synctest.Wait()
				w.there("in the grace", id, true)
				w.pass(time.Minute + 2*time.Second)
				w.there("after it", id, false)
				if len(w.notes.data) != 0 {
					w.Errorf("left: %v", w.notes.data)
				}
			},
		} {
			t.Run(fmt.Sprint(name, " ", by), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWatch(t)
					defer w.end()
					test(w)
				})
			})
		}
	}
}
