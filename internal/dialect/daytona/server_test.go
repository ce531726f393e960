package daytona_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/daytona"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// ports tell what is asked of them.
type ports struct{}

func (ports) URL(context.Context, string, paddock.ID, int) (string, error) { return "", nil }

func (ports) Public(context.Context, string, paddock.ID, bool) error { return nil }

func (ports) Sign(context.Context, string, string, paddock.ID, int, time.Duration) (string, error) {
	return "signed", nil
}

func (ports) End(context.Context, string, paddock.ID, int, string) error { return nil }

func (ports) Serve(w http.ResponseWriter, r *http.Request, id paddock.ID, port int) {
	fmt.Fprint(w, id, " ", port, " ", r.URL.RequestURI())
}

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

// A bench is a handler over the tier sim, whose keys are the names of tenants. All tenants share a driver, so that only
// the handler keeps them apart.
type bench struct {
	*testing.T
	d     *lifetime.Driver
	notes *notes
	h     *daytona.Handler
	check func(paddock.Spec) error // of each new sandbox; nil takes all
	ended bool                     // the keys that sign
	s     *httptest.Server
}

func newBench(t *testing.T) *bench {
	t.Helper()
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, notes: &notes{data: map[[3]string]string{}}}
	if b.d, err = lifetime.New(t.Context(), inner, lifetime.Options{}); err != nil {
		t.Fatal(err)
	}
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
	b.h, err = daytona.New(b.Context(), daytona.Options{
		Caller: func(_ context.Context, key string) (dialect.Caller, error) {
			if strings.HasPrefix(key, "bad") {
				return dialect.Caller{}, fmt.Errorf("no key: %w", paddock.Denied)
			}
			tenant, _, _ := strings.Cut(key, "-")
			return dialect.Caller{Tenant: tenant, Who: key, Driver: b.d, Check: b.check, ReadOnly: strings.HasSuffix(key, "-looker")}, nil
		},
		Store: b.notes,
		Ports: ports{},
		Signer: func(_ context.Context, tenant, who string) (dialect.Caller, error) {
			if b.ended {
				return dialect.Caller{}, fmt.Errorf("its key has ended: %w", paddock.Denied)
			}
			return dialect.Caller{Tenant: tenant, Who: who, Driver: b.d}, nil
		},
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

// text makes a request, and returns its status and its body.
func (b *bench) text(key, method, path string) (int, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.s.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
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
	return res.StatusCode, string(data)
}

// ask makes a request, and returns its status and its object, if it has one.
func (b *bench) ask(key, method, path, body string, head ...string) (int, map[string]any) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.s.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusSwitchingProtocols {
		return res.StatusCode, nil // it has no end
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	var v map[string]any
	_ = json.Unmarshal(data, &v) // not every answer is an object
	return res.StatusCode, v
}

// want asks, and reports another status, or a text that is not in the answer's message.
func (b *bench) want(status int, message, key, method, path, body string, head ...string) map[string]any {
	b.Helper()
	got, v := b.ask(key, method, path, body, head...)
	if got != status || message != "" && !strings.Contains(fmt.Sprint(v["message"]), message) {
		b.Errorf("%s %s: %d %v, not %d %q", method, path, got, v, status, message)
	}
	return v
}

// Every field that some generated client requires is there.
func TestASandboxHasEveryRequiredField(t *testing.T) {
	b := newBench(t)
	box := b.want(200, "", "acme", "POST", "/api/sandbox", `{"env":{},"labels":{"code-toolbox-language":"python"},"target":"sim","networkBlockAll":true}`)
	for _, name := range []string{
		"id", "organizationId", "name", "user", "env", "labels", "public", "networkBlockAll", "kvm", "target", "cpu", "gpu", "memory", "disk", "toolboxProxyUrl", "state", "desiredState", "snapshot",
		"autoStopInterval", "autoArchiveInterval", "autoDeleteInterval", "createdAt", "updatedAt",
	} {
		if _, ok := box[name]; !ok {
			t.Errorf("there is no %s: %v", name, box)
		}
	}
	if box["state"] != "started" || box["toolboxProxyUrl"] != b.s.URL+"/toolbox" {
		t.Errorf("%v", box)
	}
	list := b.want(200, "", "acme", "GET", "/api/sandbox", "")
	if items, _ := list["items"].([]any); len(items) != 1 {
		t.Errorf("%v", list)
	}
	if next, ok := list["nextCursor"]; !ok || next != nil {
		t.Errorf("%v", list)
	}
}

// A sandbox of another tenant is as one that never was, whatever is asked of it.
func TestTenantsAreApart(t *testing.T) {
	b := newBench(t)
	box := b.want(200, "", "acme", "POST", "/api/sandbox", `{"name":"mine","target":"sim","networkBlockAll":true}`)
	id := box["id"].(string)
	for _, name := range []string{id, "mine", "00000000-0000-4000-8000-000000000000", "..%2f" + id} {
		for _, c := range [][2]string{
			{"GET", "/api/sandbox/" + name}, {"DELETE", "/api/sandbox/" + name}, {"POST", "/api/sandbox/" + name + "/stop"}, {"POST", "/api/sandbox/" + name + "/autostop/5"},
			{"POST", "/toolbox/" + name + "/process/execute"}, {"GET", "/toolbox/" + name + "/files?path=/"}, {"GET", "/toolbox/" + name + "/process/session"},
			{"POST", "/api/toolbox/" + name + "/toolbox/process/execute"}, {"GET", "/toolbox/" + name + "/git/status?path=x"}, {"GET", "/toolbox/" + name + "/process/interpreter/context"},
			{"GET", "/api/sandbox/" + name + "/ports/80/preview-url"}, {"GET", "/api/sandbox/" + name + "/ports/80/signed-preview-url"}, {"POST", "/api/sandbox/" + name + "/ports/80/signed-preview-url/a/expire"},
		} {
			b.want(404, "not found", "other", c[0], c[1], `{"command":"id"}`)
		}
	}
	if list := b.want(200, "", "other", "GET", "/api/sandbox", ""); len(list["items"].([]any)) != 0 {
		t.Errorf("%v", list)
	}
	b.want(200, "", "other", "POST", "/api/sandbox", `{"name":"mine","target":"sim","networkBlockAll":true}`) // names are a tenant's own
	b.want(409, "already exists", "acme", "POST", "/api/sandbox", `{"name":"mine","target":"sim","networkBlockAll":true}`)
	b.want(401, "Invalid credentials", "bad", "GET", "/api/sandbox/"+id, "")
	b.want(401, "missing", "", "GET", "/api/sandbox/"+id, "")
	b.want(403, "may only look", "acme-looker", "DELETE", "/api/sandbox/"+id, "")
	b.want(403, "may only look", "acme-looker", "POST", "/toolbox/"+id+"/process/execute", `{"command":"id"}`)
	b.want(200, "", "acme-looker", "GET", "/api/sandbox/"+id, "")
}

// The path below a port is the rest of the request's, as it was written.
func TestThePathBelowAPortIsKept(t *testing.T) {
	b := newBench(t)
	for at, want := range map[string]string{
		"/toolbox/box/proxy/80": "box 80 /", "/toolbox/box/proxy/80/": "box 80 /", "/toolbox/box/proxy/80/a%2Fb/c?d=e": "box 80 /a%2Fb/c?d=e",
		"/toolbox/box/proxy/80/proxy/80/x": "box 80 /proxy/80/x", "/api/toolbox/box/toolbox/proxy/8080/x%20y": "box 8080 /x%20y",
	} {
		if code, text := b.text("", "GET", at); code != 200 || text != want {
			t.Errorf("%s: %d %q, not %q", at, code, text, want)
		}
	}
	for _, at := range []string{"/toolbox/box/proxy/0/", "/toolbox/box/proxy/080/", "/toolbox/box/proxy/65536/", "/toolbox/box/proxy/x/", "/toolbox/B%20X/proxy/80/", "/toolbox/box/proxy/%380/"} {
		b.want(400, "", "", "GET", at, "")
	}
}

// A signature is for one file, method and time, and ends with the key of its maker.
func TestASignedURLOfAFileIsForNothingElse(t *testing.T) {
	b := newBench(t)
	id := b.want(200, "", "acme", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	theirs := b.want(200, "", "other", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	key := func(who string) string {
		t.Helper()
		code, text := b.text(who, "GET", "/api/sandbox/"+id+"/signing-key")
		if code != 200 {
			t.Fatalf("status %d, %s", code, text)
		}
		return strings.Trim(strings.TrimSpace(text), `"`)
	}
	b.want(403, "may only look", "acme-looker", "GET", "/api/sandbox/"+id+"/signing-key", "")
	b.want(404, "not found", "other", "GET", "/api/sandbox/"+id+"/signing-key", "")
	b.want(404, "not found", "other", "POST", "/api/sandbox/"+id+"/signing-key/rotate", "")
	k := key("acme")
	if again := key("acme"); again != k || len(k) < 22 {
		t.Errorf("%q, and then %q", k, again)
	}
	sign := func(key, method, path, expires string) string {
		sum := hmac.New(sha256.New, []byte(key))
		_, _ = sum.Write([]byte("v1:files:" + method + ":" + path + ":" + expires))
		return "path=" + path + "&expires=" + expires + "&signature=v1_" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
	}
	down, up := "/toolbox/"+id+"/files/download?", "/toolbox/"+id+"/files/upload-v2?"
	b.want(200, "", "", "POST", up+sign(k, "POST", "a", "0"), "content")
	if code, text := b.text("", "GET", down+sign(k, "GET", "a", "0")); code != 200 || text != "content" {
		t.Errorf("%d %q", code, text)
	}
	good := sign(k, "GET", "a", "0")
	for _, bad := range []string{
		down + sign(k, "GET", "a", "1"), down + sign(k, "GET", "a", "-1"), down + sign(k, "GET", "a", "00"), down + sign(k, "POST", "a", "0"), down + sign("", "GET", "a", "0"), down + sign(k+"x", "GET", "a", "0"),
		down + strings.Replace(good, "path=a", "path=b", 1), down + good + "&path=b", down + "path=b&" + good, down + good + "&expires=0", down + good[:len(good)-1], down + "path=a&expires=0&signature=",
		"/toolbox/" + theirs + "/files/download?" + good, "/toolbox/none/files/download?" + good,
	} {
		b.want(401, "signature", "", "GET", bad, "")
	}
	b.want(401, "signature", "", "POST", up+good, "x")
	b.want(401, "missing", "", "GET", "/toolbox/"+id+"/files/info?"+good, "")
	b.want(401, "missing", "", "DELETE", "/toolbox/"+id+"/files?"+good, "")
	b.ended = true
	b.want(401, "signature", "", "GET", down+good, "")
	b.ended = false
	b.close()
	b.open()
	b.want(200, "", "", "POST", up+sign(k, "POST", "a", "0"), "content") // the next server knows the key
	for i := range 15 {
		key("acme-" + strconv.Itoa(i))
	}
	b.want(409, "rotate", "acme-15", "GET", "/api/sandbox/"+id+"/signing-key", "")
	b.ended = true
	key("acme-15") // in the place of those that have ended
	b.ended = false
	b.want(401, "signature", "", "GET", down+good, "")
}

// Parallel requests give a name to one sandbox.
func TestANameIsOfOneSandboxAlone(t *testing.T) {
	b := newBench(t)
	const body = `{"name":"one","target":"sim","networkBlockAll":true}`
	begun, goOn, first := make(chan bool, 2), make(chan bool), make(chan int)
	b.check = func(paddock.Spec) error {
		begun <- true
		<-goOn
		return nil
	}
	go func() {
		code, _ := b.ask("acme", "POST", "/api/sandbox", body)
		first <- code
	}()
	<-begun
	second := make(chan int, 1)
	go func() {
		code, _ := b.ask("acme", "POST", "/api/sandbox", body)
		second <- code
	}()
	select {
	case code := <-second:
		if code != 409 {
			t.Errorf("status %d", code)
		}
	case <-begun:
		t.Error("both are made")
	}
	close(goOn)
	if code := <-first; code != 200 {
		t.Errorf("status %d", code)
	}
	b.want(200, "", "acme", "DELETE", "/api/sandbox/one", "")
	b.want(200, "", "acme", "POST", "/api/sandbox", body)
}

// The records are there after a restart, and those of sandboxes that are gone are forgotten.
func TestARestartLosesNothing(t *testing.T) {
	b := newBench(t)
	id := b.want(200, "", "acme", "POST", "/api/sandbox", `{"name":"kept","labels":{"a":"b"},"target":"sim","networkBlockAll":true}`)["id"].(string)
	gone := b.want(200, "", "acme", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	b.close()
	sb, err := b.d.Open(t.Context(), paddock.ID(gone))
	if err == nil {
		err = sb.Remove(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.open()
	if box := b.want(200, "", "acme", "GET", "/api/sandbox/kept", ""); box["id"] != id || box["labels"].(map[string]any)["a"] != "b" {
		t.Errorf("%v", box)
	}
	b.want(404, "not found", "acme", "GET", "/api/sandbox/"+gone, "")
	b.want(200, "", "acme", "DELETE", "/api/sandbox/kept", "")
	if len(b.notes.data) != 0 {
		t.Errorf("%v is left", b.notes.data)
	}
}

// What a client sends wrongly is told, and does nothing.
func TestBadRequestsAreTold(t *testing.T) {
	b := newBench(t)
	for body, why := range map[string]string{
		`{`: "does not fit", `[]`: "does not fit", `{"cpu":-1}`: "not a size", `{"memory":1e300}`: "not a size", `{"autoStopInterval":-5}`: "autoStopInterval", `{"env":{"A=B":"c"}}`: "no", `{"env":{"":"c"}}`: "not a variable",
		`{"name":"a/b"}`: "name", `{"name":"` + strings.Repeat("a", 300) + `"}`: "name", `{"networkAllowList":"nothing"}`: "not a range", `{"domainAllowList":"a b"}`: "not a domain",
		`{"labels":{"a":"` + strings.Repeat("b", 70_000) + `"}}`: "maximum",
	} {
		if code, v := b.ask("acme", "POST", "/api/sandbox", body); code != 400 || why != "no" && !strings.Contains(fmt.Sprint(v["message"]), why) || v["source"] != "DAYTONA_API" {
			t.Errorf("%.80s: %d %v", body, code, v)
		}
	}
	for _, body := range []string{`{"volumes":[{"volumeId":"a"}]}`, `{"secrets":["a"]}`, `{"buildInfo":{"dockerfileContent":"FROM a"}}`, `{"gpu":1}`, `{"outboundProxyUrl":"http://a"}`} {
		if v := b.want(501, "", "acme", "POST", "/api/sandbox", body); v["code"] != "NOT_SUPPORTED" {
			t.Errorf("%s: %v", body, v)
		}
	}
	id := b.want(200, "", "acme", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	at := "/toolbox/" + id
	b.want(400, "required", "acme", "POST", at+"/process/execute", `{"command":" "}`)
	b.want(400, "timeout", "acme", "POST", at+"/process/execute", `{"command":"id","timeout":-1}`)
	b.want(400, "not python", "acme", "POST", at+"/process/code-run", `{"code":"1","language":"cobol"}`)
	b.want(400, "sessionId", "acme", "POST", at+"/process/session", `{"sessionId":""}`)
	b.want(404, "session", "acme", "GET", at+"/process/session/none", "")
	b.want(400, "WebSocket", "acme", "GET", at+"/process/pty/create-connect?id=a", "")
	b.want(400, "path", "acme", "GET", at+"/files/info", "")
	b.want(404, "file not found", "acme", "GET", at+"/files/download?path=none", "")
	b.want(400, "no form", "acme", "POST", at+"/files/bulk-upload", "x")
	b.want(400, "ended early", "acme", "POST", at+"/files/bulk-upload", "--x\r\nContent-Disp", "Content-Type", "multipart/form-data; boundary=x")
	b.want(400, "before its path", "acme", "POST", at+"/files/bulk-upload", "--x\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"a\"\r\n\r\nb\r\n--x--\r\n", "Content-Type", "multipart/form-data; boundary=x")
	b.want(400, "no name", "acme", "POST", at+"/git/branches", `{"path":"x","name":"--force"}`)
	b.want(501, "does not have that part", "acme", "POST", "/api/organizations/a/usage", "{}")
	b.want(501, "toolbox", "acme", "POST", at+"/computeruse/screenshot", "{}")
	b.want(404, "no events", "acme", "GET", "/api/socket.io/?EIO=4", "")
}

// Files, with every byte, by the wire alone; and a form that is cut leaves nothing half.
func TestAnUploadThatIsCutLeavesNothing(t *testing.T) {
	b := newBench(t)
	id := b.want(200, "", "acme", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	form := "--x\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\ndir/a\r\n--x\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"a\"\r\n\r\n" + strings.Repeat("b", 100_000)
	b.want(400, "ended early", "acme", "POST", "/toolbox/"+id+"/files/bulk-upload", form, "Content-Type", "multipart/form-data; boundary=x")
	r := b.want(200, "", "acme", "POST", "/toolbox/"+id+"/process/execute", `{"command":"find . -type f"}`)
	if r["result"] != "" {
		t.Errorf("%v is left", r["result"])
	}
	b.want(200, "", "acme", "POST", "/toolbox/"+id+"/files/bulk-upload", form+"\r\n--x--\r\n", "Content-Type", "multipart/form-data; boundary=x")
	if r := b.want(200, "", "acme", "POST", "/toolbox/"+id+"/process/execute", `{"command":"wc -c dir/a; ls -a dir"}`); !strings.Contains(fmt.Sprint(r["result"]), "100000") || strings.Contains(fmt.Sprint(r["result"]), ".paddock") {
		t.Errorf("%v", r)
	}
}

// Whether a request only looks is not told by its method: a WebSocket begins with GET.
func TestAKeyThatMayOnlyLookStartsNothing(t *testing.T) {
	b := newBench(t)
	id := b.want(200, "", "acme", "POST", "/api/sandbox", `{"target":"sim","networkBlockAll":true}`)["id"].(string)
	socket := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	for _, base := range []string{"/toolbox/" + id, "/api/toolbox/" + id + "/toolbox"} {
		for _, path := range []string{
			"/process/pty/create-connect?id=a", "/process/pty/a/connect", "/process/interpreter/execute", "/process/interpreter/context", "/git/status?path=.", "/git/history?path=.",
		} {
			b.want(403, "may only look", "acme-looker", "GET", base+path, "", socket...)
		}
		for _, path := range []string{"/files?path=.", "/process/session", "/process/pty", "/version"} {
			b.want(200, "", "acme-looker", "GET", base+path, "")
		}
	}
}
