package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A fussy driver refuses every spec, and quotes the whole ID.
type fussy struct{ paddock.Driver }

func (fussy) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return nil, fmt.Errorf("sandbox %q: no: %w", spec.ID, paddock.Invalid)
}

// heap returns the live bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestFailedCreationsKeepLittle(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Driver = &fussy{c.Driver} })
	body := `{"id":"` + strings.Repeat("\x7f", 256<<10) + `"}`
	fail := func(i int) {
		res, data := tr.ask("POST", "/v1/sandboxes", body, api.CreationHeader, fmt.Sprintf("%016d", i))
		if res.StatusCode != http.StatusBadRequest || len(data) > 32<<10 {
			t.Errorf("%d with %d bytes", res.StatusCode, len(data))
		}
	}
	fail(0)
	before := heap()
	const many = 50
	for i := range many {
		fail(i + 1)
	}
	if more := heap() - before; more > 5<<20 {
		t.Errorf("%d failed creations keep %d bytes", many, more)
	}
	// Or there was nothing to keep. On a slow machine the first ones are forgotten already.
	if n := len(tr.s.accountOf("one").creations); n < many/5 {
		t.Errorf("%d creations are known", n)
	}
}

// A slow driver makes no sandbox until the context ends or it may go on.
type slow struct {
	paddock.Driver
	began chan struct{}
	goOn  chan struct{}
}

func (d *slow) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) {
	d.began <- struct{}{}
	<-d.goOn
	return nil, paddock.Canceled
}

func TestACreationCountsItsBodyAfterItsClientHasGone(t *testing.T) {
	d := &slow{began: make(chan struct{}), goOn: make(chan struct{})}
	tr := newTrial(t, func(c *Caller) { d.Driver, c.Driver = c.Driver, d })
	a := tr.s.accountOf("one")
	used := func() int64 {
		a.bodies.mu.Lock()
		defer a.bodies.mu.Unlock()
		return a.bodies.used
	}
	goOn := sync.OnceFunc(func() { close(d.goOn) })
	t.Cleanup(goOn)
	const size = 1 << 20
	body := `{"dir":"` + strings.Repeat("x", size) + `"}`
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", tr.web.URL+"/v1/sandboxes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set(api.CreationHeader, someToken)
	var gone atomic.Bool
	go func() {
		res, err := tr.web.Client().Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		gone.Store(true)
	}()
	<-d.began
	cancel()
	tr.until(func() bool { // the request is over, too
		a.mu.Lock()
		defer a.mu.Unlock()
		return gone.Load() && a.streams == 0
	})
	if n := used(); n < size {
		t.Errorf("%d bytes are counted while the creation goes on", n)
	}
	goOn()
	tr.until(func() bool { return used() == 0 })
}
