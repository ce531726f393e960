package e2b_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// notes are a store in memory.
type notes struct {
	mu   sync.Mutex
	data map[[3]string]string // guarded by mu
}

func (n *notes) Keep(_ context.Context, kind, tenant, id, data string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data[[3]string{kind, tenant, id}] = data
	return nil
}

func (n *notes) Forget(_ context.Context, kind, tenant, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.data, [3]string{kind, tenant, id})
	return nil
}

func (n *notes) Each(_ context.Context, kind string, f func(tenant, id, data string) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for at, data := range n.data {
		if at[0] == kind {
			if err := f(at[1], at[2], data); err != nil {
				return err
			}
		}
	}
	return nil
}

// agent answers for a sandbox: with its token, or until it is cut.
type agent struct {
	in   e2b.Inside
	held chan struct{}
}

func (a agent) Close() error { return nil }

func (a agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hold" {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(a.held)
		<-r.Context().Done()
		_, _ = io.WriteString(w, "a good end") // which nobody may get
		return
	}
	w.Header().Set("Content-Disposition", `inline; filename="page.html"`)
	fmt.Fprint(w, a.in.Token)
}

// A bench is a handler over the tier sim, whose keys are the names of tenants. All
// tenants share a driver, so that only the handler keeps them apart.
type bench struct {
	*testing.T
	d      *lifetime.Driver
	lessor lifetime.Lessor // d, or what is around it
	notes  *notes
	held   chan struct{}
	h      *e2b.Handler
	s      *httptest.Server
	ready  []paddock.Tier
	base   *e2b.Image
	check  func(paddock.Spec) error
	full   atomic.Pointer[error] // why no request is let in; nil lets all in
}

// A counted place has all of its bounds.
type counted struct{}

func (counted) Body(r io.Reader) io.Reader { return r }
func (counted) Hold(int64) error           { return nil }
func (counted) Leave()                     {}

func (counted) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func newBench(t *testing.T) *bench {
	t.Helper()
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, notes: &notes{data: map[[3]string]string{}}, held: make(chan struct{})}
	if b.d, err = lifetime.New(t.Context(), inner, lifetime.Options{}); err != nil {
		t.Fatal(err)
	}
	b.lessor = b.d
	t.Cleanup(func() {
		b.close()
		if err := b.d.Close(); err != nil {
			t.Error(err)
		}
	})
	b.open()
	return b
}

func (b *bench) open() {
	b.Helper()
	var err error
	b.h, err = e2b.New(b.Context(), e2b.Options{
		Caller: func(_ context.Context, key string) (dialect.Caller, error) {
			if strings.HasPrefix(key, "bad") {
				return dialect.Caller{}, fmt.Errorf("no key: %w", paddock.Denied)
			}
			return dialect.Caller{Tenant: key, Who: key, Driver: b.lessor, Check: b.check, ReadOnly: key == "looker"}, nil
		},
		Domain: "box.test", Base: b.base,
		Enter: func(context.Context, string) (dialect.Place, error) {
			if why := b.full.Load(); why != nil {
				return nil, *why
			}
			return counted{}, nil
		},
		Live:   func(context.Context, string, string) (bool, error) { return true, nil },
		Tenant: func(context.Context, string) (lifetime.Lessor, error) { return b.lessor, nil },
		Ready:  b.ready,
		Store:  b.notes,
		Envd:   func(in e2b.Inside) (e2b.Port, error) { return agent{in, b.held}, nil },
		Code:   func(in e2b.Inside) (e2b.Port, error) { return agent{in, nil}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.s = httptest.NewServer(b.h)
}

func (b *bench) close() {
	if err := b.h.Close(); err != nil {
		b.Error(err)
	}
	b.s.Close()
}

// ask makes a request, of the control plane where key is given, else of a sandbox.
func (b *bench) ask(key, method, path, body string, head ...string) (int, map[string]any) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.s.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	var v map[string]any
	if bytes.HasPrefix(data, []byte("{")) {
		if err := json.Unmarshal(data, &v); err != nil {
			b.Errorf("%s: %v", data, err)
		}
	} else {
		v = map[string]any{"text": string(data)}
	}
	return res.StatusCode, v
}

func (b *bench) make(key string) (id, token string) {
	b.Helper()
	code, v := b.ask(key, "POST", "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false}`)
	id, _ = v["sandboxID"].(string)
	token, _ = v["envdAccessToken"].(string)
	if code != 201 || id == "" || token == "" {
		b.Fatalf("%d %v", code, v)
	}
	return id, token
}

func TestATenantSeesNothingOfAnother(t *testing.T) {
	b := newBench(t)
	id, _ := b.make("acme")
	for _, call := range [][3]string{
		{"GET", "/sandboxes/" + id, ""}, {"DELETE", "/sandboxes/" + id, ""}, {"POST", "/sandboxes/" + id + "/timeout", `{"timeout":5}`},
		{"POST", "/sandboxes/" + id + "/pause", ""}, {"POST", "/v2/sandboxes/" + id + "/connect", ""}, {"POST", "/sandboxes/" + id + "/fork", ""},
		{"PUT", "/sandboxes/" + id + "/network", "{}"}, {"POST", "/sandboxes/" + id + "/snapshots", ""}, {"GET", "/sandboxes/" + id + "/metrics", ""},
		{"GET", "/sandboxes/" + id + "/logs", ""}, {"GET", "/v2/sandboxes/" + id + "/logs", ""}, {"POST", "/sandboxes/" + id + "/refreshes", ""},
	} {
		theirs, said := b.ask("other", call[0], call[1], call[2])
		never, words := b.ask("other", call[0], strings.Replace(call[1], id, "inothing", 1), call[2])
		if theirs != 404 || never != 404 || strings.ReplaceAll(fmt.Sprint(said), id, "inothing") != fmt.Sprint(words) {
			t.Errorf("%s %s: %d %v, %d %v", call[0], call[1], theirs, said, never, words)
		}
	}
	if code, v := b.ask("other", "GET", "/v2/sandboxes", ""); code != 200 || strings.TrimSpace(fmt.Sprint(v["text"])) != "[]" {
		t.Errorf("listed %v", v)
	}
	if code, _ := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 {
		t.Errorf("its own tenant's: %d", code)
	}
}

func TestAKeyIsNeeded(t *testing.T) {
	b := newBench(t)
	for _, key := range []string{"", "bad"} {
		if code, v := b.ask(key, "GET", "/v2/sandboxes", ""); code != 401 || v["code"] != float64(401) {
			t.Errorf("%q: %d %v", key, code, v)
		}
	}
	if code, _ := b.ask("looker", "POST", "/v2/sandboxes", `{"templateID":"base"}`); code != 403 {
		t.Errorf("a key that may look: %d", code)
	}
	if code, _ := b.ask("", "GET", "/health", ""); code != 204 {
		t.Errorf("health: %d", code)
	}
}

func TestASandboxIsFoundByItsTokenWhereNothingNamesIt(t *testing.T) {
	b := newBench(t)
	_, one := b.make("acme")
	_, two := b.make("acme")
	for _, token := range []string{one, two} {
		if code, v := b.ask("", "GET", "/files?path=x", "", "X-Access-Token", token); code != 200 || v["text"] != token {
			t.Errorf("%d %v", code, v)
		}
	}
	for _, path := range []string{"/files?path=x", "/files?path=x&signature=v1_wrong"} {
		if code, v := b.ask("", "GET", path, ""); code != 401 || v["code"] != float64(401) {
			t.Errorf("%s: %d %v", path, code, v)
		}
	}
}

func TestAServerThatStartsAgainGoesOnWithItsSandboxes(t *testing.T) {
	b := newBench(t)
	id, token := b.make("acme")
	b.close()
	b.open()
	if code, v := b.ask("", "GET", "/x", "", "E2b-Sandbox-Id", id); code != 200 || v["text"] != token {
		t.Errorf("%d %v", code, v)
	}
	if code, _ := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d", code)
	}
	if len(b.notes.data) != 0 {
		t.Errorf("left: %v", b.notes.data)
	}
}

func TestASandboxThatIsKilledCutsItsStreamsAndIsGoneAtOnce(t *testing.T) {
	b := newBench(t)
	id, _ := b.make("acme")
	cut := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.s.URL+"/hold", nil)
		if err != nil {
			cut <- nil
			return
		}
		r.Header.Set("E2b-Sandbox-Id", id)
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		cut <- err
	}()
	<-b.held
	if code, _ := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d", code)
	}
	if err := <-cut; err == nil {
		t.Error("the stream ended as if all of it had been said")
	}
	code, v := b.ask("", "GET", "/health", "", "E2b-Sandbox-Id", id)
	if code != 502 || v["sandboxId"] != id || v["code"] != float64(502) || v["message"] != "The sandbox was not found" {
		t.Errorf("%d %v", code, v)
	}
	// The client of the code interpreter puts this body into a sentence.
	code, v = b.ask("", "POST", "/execute", "{}", "E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "49999")
	if code != 502 || v["text"] != "The sandbox was not found" {
		t.Errorf("the code interpreter: %d %v", code, v)
	}
	if code, v := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 404 || v["code"] != float64(404) {
		t.Errorf("killed twice: %d %v", code, v)
	}
}

func TestADiskIsAskedFor(t *testing.T) {
	b := newBench(t)
	_, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false,"diskSizeMB":77}`)
	id, _ := v["sandboxID"].(string)
	if code, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 || v["diskSizeMB"] != float64(77) {
		t.Errorf("the sandbox: %d %v", code, v)
	}
	for _, size := range []string{"-1", "1e12", `"x"`} {
		if code, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"base","diskSizeMB":`+size+`}`); code != 400 {
			t.Errorf("%s: %d %v", size, code, v)
		}
		if code, v := b.ask("acme", "POST", "/v3/templates", `{"name":"a","minFreeDiskMb":`+size+`}`); code != 400 {
			t.Errorf("%s free: %d %v", size, code, v)
		}
	}
}

func TestARepeatedCreationIsOne(t *testing.T) {
	b := newBench(t)
	var ids []any
	for _, tenant := range []string{"acme", "acme", "other"} {
		_, v := b.ask(tenant, "POST", "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false}`, "Idempotency-Key", "one")
		ids = append(ids, v["sandboxID"])
	}
	if ids[0] == nil || ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("%v", ids)
	}
}

func TestABodyThatIsWrongIsRefused(t *testing.T) {
	b := newBench(t)
	for _, body := range []string{
		"", "[", `{"templateID":1}`, `{}`, `{"templateID":"base","timeout":0}`, `{"templateID":"base","timeout":-1}`, `{"templateID":"base","timeout":999999999}`,
		`{"templateID":"base","envVars":{"A=B":""}}`, `{"templateID":"base","volumeMounts":[{}]}`, `{"templateID":"base","iam":{}}`,
		`{"templateID":"base","autoPauseMemory":false}`, `{"templateID":"base","network":{"allowOut":["a.b"]}}`,
	} {
		if code, v := b.ask("acme", "POST", "/v2/sandboxes", body); code != 400 || v["code"] != float64(400) || v["message"] == "" {
			t.Errorf("%s: %d %v", body, code, v)
		}
	}
}

// A tenant must not reach the loopback of the server's machine by the name that a rule may open.
func TestTheLoopbackOfTheServerIsAskedOfTheCallersRights(t *testing.T) {
	b := newBench(t)
	b.check = func(spec paddock.Spec) error { // as server.Caller.Refuse does
		for _, r := range spec.Policy.Network.Rules {
			if !r.Deny && r.Host == paddock.LoopbackHost {
				return paddock.Denied
			}
		}
		return nil
	}
	for _, out := range []string{
		`{"allowOut":["host.docker.internal"],"denyOut":["0.0.0.0/0"]}`, `{"allowOut":["HOST.Docker.Internal"],"denyOut":["0.0.0.0/0"]}`,
	} {
		if code, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"base","network":`+out+`}`); code != 403 {
			t.Errorf("create with %s: %d %v", out, code, v)
		}
	}
	id, _ := b.make("acme")
	path := "/sandboxes/" + id + "/network"
	if code, v := b.ask("acme", "PUT", path, `{"allowOut":["host.docker.internal"],"denyOut":["0.0.0.0/0"]}`); code != 403 {
		t.Errorf("change: %d %v", code, v)
	}
}
