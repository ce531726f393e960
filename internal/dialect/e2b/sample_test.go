package e2b

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A silent driver has sandboxes that do not answer when they are listed.
type silent struct {
	lifetime.Lessor
	mu    sync.Mutex
	lists int // guarded by mu
	now   int // guarded by mu; that have not returned
}

func (d *silent) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return removed{}, nil }

func (d *silent) Terms(context.Context, paddock.ID) (lifetime.Lease, error) {
	return lifetime.Lease{Ends: time.Now().Add(24 * time.Hour)}, nil
}

func (d *silent) count(lists, now int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists, d.now = d.lists+lists, d.now+now
}

func (d *silent) List(ctx context.Context) ([]paddock.Status, error) {
	d.count(1, 1)
	defer d.count(0, -1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// An open driver lists its sandbox.
type open struct{ lifetime.Lessor }

func (open) List(context.Context) ([]paddock.Status, error) {
	return []paddock.Status{{ID: "ibbbbbbbbbbbbbbbbbbbb", State: paddock.Ready}}, nil
}

type removed struct{ still }

func (removed) Remove(context.Context) error { return nil }

// A forgetful shelf forgets what it is told to.
type forgetful struct{ shelf }

func (forgetful) Forget(context.Context, string, string, string) error { return nil }

// A closing port holds each request until its sandbox is cut, and is slow to close.
type closing struct{ slow time.Duration }

func (p closing) Close() error {
	time.Sleep(p.slow)
	return nil
}

func (closing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	<-r.Context().Done()
}

// newSilent makes a handler with a sandbox that does not answer when it is listed, and that ends in a
// minute.
func newSilent(t *testing.T, d *silent) *Handler {
	t.Helper()
	rec := record{ID: testID, Tenant: "acme", Token: testToken, Started: time.Now()}
	h, err := New(t.Context(), Options{
		Caller: func(context.Context, string) (dialect.Caller, error) { return dialect.Caller{}, paddock.Denied },
		Live:   func(context.Context, string, string) (bool, error) { return true, nil },
		Tenant: func(_ context.Context, tenant string) (lifetime.Lessor, error) {
			if tenant == "other" {
				return open{}, nil
			}
			return d, nil
		},
		Store: forgetful{shelf{rec: rec}},
		Envd:  func(Inside) (Port, error) { return closing{time.Hour}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if d.now != 0 {
			t.Error("Close did not wait for a sample")
		}
	})
	b, _ := h.find(testID)
	b.mu.Lock()
	h.lasts(&b.rec, time.Minute)
	b.mu.Unlock()
	h.ring()
	return h
}

func TestSandboxesThatDoNotAnswerDelayNoOthersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &silent{}
		h := newSilent(t, d)
		cut := make(chan struct{})
		go func() {
			defer close(cut)
			defer func() { _ = recover() }() // a cut stream ends with a panic
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/hold", http.NoBody)
			r.Header.Set(headerID, testID)
			r.Header.Set(headerToken, testToken)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		time.Sleep(time.Minute - time.Second)
		select {
		case <-cut:
			t.Fatal("it was cut before its end")
		default:
		}
		// A second one ends while the handlers of the first are being closed.
		later := h.newBox(record{ID: "icccccccccccccccccccc", Tenant: "acme", Ends: time.Now()})
		later.rec.end = time.Now().Add(2 * time.Second)
		h.mu.Lock()
		h.boxes[later.id] = later
		h.mu.Unlock()
		h.ring()
		time.Sleep(2 * time.Second)
		select {
		case <-cut:
		default:
			t.Error("a sandbox that ended was not cut in time")
		}
		time.Sleep(time.Second)
		if _, ok := later.record(); ok {
			t.Error("a sandbox that ended while another was being closed is there")
		}
	})
}

func TestSandboxesThatDoNotAnswerDelayNoOtherTenantsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &silent{}
		h := newSilent(t, d)
		other := h.newBox(record{ID: "ibbbbbbbbbbbbbbbbbbbb", Tenant: "other", Started: time.Now()})
		h.mu.Lock()
		h.boxes[other.id] = other
		h.mu.Unlock()
		time.Sleep(4*sampleEvery + time.Second)
		other.mu.Lock()
		samples := len(other.metrics)
		other.mu.Unlock()
		d.mu.Lock()
		lists, now := d.lists, d.now
		d.mu.Unlock()
		if samples != 4 || lists != 1 || now != 1 {
			t.Errorf("%d samples of another tenant; %d lists of a silent one, %d at once", samples, lists, now)
		}
		time.Sleep(sampleTime)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lists != 2 || d.now > 1 {
			t.Errorf("%d lists of a silent tenant after the first ended, %d at once", d.lists, d.now)
		}
	})
}
