package e2b_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// bare makes a request without a key, for what its answer's head says.
func (b *bench) bare(method, path, host string, head ...string) *http.Response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.s.URL+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		b.Error(err)
	}
	return res
}

func TestAGuestsBytesAreNoPageOfTheServers(t *testing.T) {
	b := newBench(t)
	id, token := b.make("acme")
	for what, res := range map[string]*http.Response{
		"by token":  b.bare("GET", "/files?path=page.html", "api.box.test", "X-Access-Token", token),
		"by header": b.bare("GET", "/files?path=page.html", "", "X-Access-Token", token, "E2b-Sandbox-Id", id),
	} {
		h := res.Header
		if res.StatusCode != 200 || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox; default-src 'none'") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Disposition") != "attachment; filename=page.html" {
			t.Errorf("%s: %d %v", what, res.StatusCode, h)
		}
	}
	if res := b.bare("GET", "/files?path=sw.js", "", "X-Access-Token", token, "Service-Worker", "script"); res.StatusCode != 403 {
		t.Errorf("a service worker: %d", res.StatusCode)
	}
	res := b.bare("GET", "/files?path=page.html", "49983-"+id+".box.test", "X-Access-Token", token)
	if h := res.Header; res.StatusCode != 200 || h.Get("Content-Security-Policy") != "" || !strings.HasPrefix(h.Get("Content-Disposition"), "inline") {
		t.Errorf("at the sandbox's own host: %d %v", res.StatusCode, h)
	}
}

func TestARequestForWhichThereIsNoPlaceIsToBeTriedAgain(t *testing.T) {
	b := newBench(t)
	id, token := b.make("acme")
	for code, why := range map[int]error{429: paddock.Exhausted, 503: paddock.Unavailable} {
		b.full.Store(&why)
		if got, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); got != code {
			t.Errorf("the control plane: %d %v; want %d", got, v, code)
		}
		if got, v := b.ask("", "GET", "/files?path=x", "", "X-Access-Token", token); got != code { // 502 were a sandbox that is gone
			t.Errorf("the agent: %d %v; want %d", got, v, code)
		}
	}
	if got, v := b.ask("bad", "GET", "/sandboxes/"+id, ""); got != 401 {
		t.Errorf("who has no key takes no place: %d %v", got, v)
	}
}
