package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// An endpoint is how an operation of the contract is asked for, and who may.
type endpoint struct {
	need  string // open, read, write or admin
	body  string
	query string
}

// endpoints has each operation of openapi.yaml: who adds one says here who may call it.
func endpoints() map[string]endpoint {
	const box = "/v1/sandboxes/{id}"
	return map[string]endpoint{
		"GET /openapi.yaml": {need: "open"},
		"GET /v1/info":      {need: "read"},
		"GET /v1/events":    {need: "read", query: "after=0"},

		"GET /v1/usage":         {need: "read"},
		"GET /v1/keys":          {need: "admin"},
		"POST /v1/keys":         {need: "admin", body: `{"scopes":["read"]}`},
		"DELETE /v1/keys/{key}": {need: "admin"},

		"GET /v1/images":    {need: "read"},
		"POST /v1/images":   {need: "write", body: `{"reference":"none.test/own:1","pull":"never"}`},
		"DELETE /v1/images": {need: "write", query: "reference=none.test/own:1"},

		"POST /v1/sandboxes":              {need: "write", body: `{"tier":"sim"}`},
		"GET /v1/sandboxes":               {need: "read"},
		"DELETE /v1/creations/{token}":    {need: "write"},
		"DELETE /v1/snapshots/{snapshot}": {need: "write"},
		"GET /v1/leases/{token}":          {need: "write"},
		"DELETE /v1/leases/{token}":       {need: "write"},

		"GET " + box:                 {need: "read"},
		"PATCH " + box:               {need: "write", body: `{"labels":{"changed":"yes"}}`},
		"GET " + box + "/usage":      {need: "read"},
		"GET " + box + "/terms":      {need: "read"},
		"PUT " + box + "/terms":      {need: "write", body: `{"lifetime":3600000000000}`},
		"POST " + box + "/extend":    {need: "write", body: `{"by":1000000000}`},
		"POST " + box + "/budget":    {need: "write", body: `{"set":{"cpu":60000000000}}`},
		"POST " + box + "/renew":     {need: "write"},
		"POST " + box + "/pause":     {need: "write"},
		"POST " + box + "/resume":    {need: "write"},
		"POST " + box + "/snapshots": {need: "write", body: `{}`},
		"POST " + box + "/fork":      {need: "write", body: `{"spec":{}}`},
		"POST " + box + "/escalate":  {need: "write", body: `{"tier":"jail"}`},

		"GET " + box + "/questions":             {need: "read"},
		"POST " + box + "/questions/{question}": {need: "write", body: `{"answer":"allow"}`},

		"POST " + box + "/processes":              {need: "write", body: `{"args":["true"]}`},
		"GET " + box + "/processes":               {need: "read"},
		"GET " + box + "/processes/{pid}/output":  {need: "read", query: "detached=true"},
		"POST " + box + "/processes/{pid}/input":  {need: "write", body: "text"},
		"POST " + box + "/processes/{pid}/signal": {need: "write", body: `{"signal":15}`},
		"POST " + box + "/processes/{pid}/resize": {need: "write", body: `{"rows":1,"cols":1}`},
		"POST /v1/attachments/{token}/ack":        {need: "read", query: "offset=0"},
		"DELETE /v1/attachments/{token}":          {need: "read"},

		"POST " + box + "/interpret":                    {need: "write", body: `{"code":"1"}`},
		"GET " + box + "/contexts":                      {need: "read"},
		"POST " + box + "/contexts":                     {need: "write", body: `{}`},
		"DELETE " + box + "/contexts/{context}":         {need: "write"},
		"POST " + box + "/contexts/{context}/restart":   {need: "write"},
		"POST " + box + "/contexts/{context}/interrupt": {need: "write"},

		"GET " + box + "/files":          {need: "read", query: "path=/tmp/secret"},
		"PUT " + box + "/files":          {need: "write", query: "path=/tmp/secret", body: "overwritten"},
		"DELETE " + box + "/files":       {need: "write", query: "path=/tmp/secret"},
		"GET " + box + "/files/stat":     {need: "read", query: "path=/tmp/secret"},
		"GET " + box + "/files/list":     {need: "read", query: "path=/tmp"},
		"GET " + box + "/files/watch":    {need: "read", query: "path=/tmp"},
		"POST " + box + "/files/mkdir":   {need: "write", query: "path=/tmp/d"},
		"POST " + box + "/files/move":    {need: "write", query: "from=/tmp/secret&to=/tmp/gone"},
		"POST " + box + "/files/chmod":   {need: "write", query: "path=/tmp/secret&mode=777"},
		"POST " + box + "/files/symlink": {need: "write", query: "path=/tmp/l&target=secret"},

		"GET " + box + "/steps":             {need: "read"},
		"GET " + box + "/steps/{step}":      {need: "read"},
		"GET " + box + "/steps/{step}/diff": {need: "read"},
		"POST " + box + "/undo":             {need: "write", body: `{"steps":[1]}`},

		"GET " + box + "/ports/{port}":           {need: "write"},
		"GET " + box + "/ports/{port}/public":    {need: "read"},
		"PUT " + box + "/ports/{port}/public":    {need: "write"},
		"DELETE " + box + "/ports/{port}/public": {need: "write"},
		"POST " + box + "/ports/{port}/url":      {need: "write", body: `{}`},

		"DELETE " + box: {need: "write"},
	}
}

// A town is a whole server on the network with two tenants.
type town struct {
	t    *testing.T
	web  *httptest.Server
	keys map[string]string // their texts, by tenant and scope: "ours write"
	ids  map[string]string // of the key with scope read, by tenant

	painter  *painter
	accounts *accounts
}

func newTown(t *testing.T, change ...func(*serveFlags)) *town {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	f := &serveFlags{listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(dir, "state")}, account: accountFlags{host: "a"}}
	for _, c := range change {
		c(f)
	}
	app, o := invoke(dir, nil, nil).App, &operation{log: log}
	var err error
	if o.images, err = openImages(t.Context(), app, f, log); err != nil {
		t.Fatal(err)
	}
	d := newPainter(t, o.images)
	c, err := openAccounts(t.Context(), app, d, f, "static", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.openAccess(t.Context(), "http://box.test:7463"); err != nil {
		t.Fatal(err)
	}
	s, err := newService(d, c.caller, log, c.access)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.offer("http://box.test:7463"); err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, web: httptest.NewServer(s), keys: map[string]string{}, ids: map[string]string{}, painter: d, accounts: c}
	t.Cleanup(func() {
		err := s.end(context.WithoutCancel(t.Context()))
		w.web.Close()
		if err := errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	})
	all := store.Quota{Sandboxes: store.Unbounded, CPU: store.Unbounded, Memory: store.Unbounded, PIDs: store.Unbounded, Disk: store.Unbounded, Snapshots: store.Unbounded, Rate: store.Unbounded}
	for _, tenant := range []string{"ours", "theirs"} {
		if err := c.store.AddTenant(t.Context(), store.Tenant{ID: tenant, Quota: all, Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
		for _, scopes := range [][]key.Scope{{key.Read}, {key.Write}, {key.Read, key.Write, key.Admin}} {
			text, made, err := c.ring.Make(t.Context(), key.Grant{Tenant: tenant, Scopes: scopes})
			if err != nil {
				t.Fatal(err)
			}
			w.keys[tenant+" "+string(scopes[len(scopes)-1])] = text
			if len(scopes) == 1 && scopes[0] == key.Read {
				w.ids[tenant] = made.ID
			}
		}
	}
	return w
}

// ask makes a request with somebody's key; an empty one is none.
func (w *town) ask(who, method, path, body string) (int, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.web.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+w.keys[who])
	}
	if strings.HasSuffix(path, "/ports/8080") {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", api.PortProtocol)
	}
	if tenant, ok := strings.CutPrefix(body, `{"id":"box-`); ok {
		tenant, _, _ = strings.Cut(tenant, `"`)
		r.Header.Set(api.CreationHeader, token(tenant))
	}
	res, err := w.web.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	for _, part := range []string{"/files/watch", "/v1/events", "/v1/leases/", "/output"} {
		if method == http.MethodGet && strings.Contains(path, part) && res.StatusCode == http.StatusOK {
			return res.StatusCode, "" // which has no end
		}
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(text)
}

// token is that of the creation of a tenant's sandbox.
func token(tenant string) string { return "token0of0creation0" + tenant }

// must is ask where it has to succeed, into v.
func (w *town) must(who, method, path, body string, v any) {
	w.t.Helper()
	code, text := w.ask(who, method, path, body)
	if code >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			w.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
}

// belongings makes what a tenant can have, and gives what stands for it in a path.
func (w *town) belongings(tenant string) map[string]string {
	w.t.Helper()
	who := tenant + " write"
	w.must(who, "POST", "/v1/sandboxes", `{"id":"box-`+tenant+`","tier":"sim"}`, nil)
	box := "/v1/sandboxes/box-" + tenant
	w.must(who, "PUT", box+"/files?path=/tmp/secret", "of "+tenant, nil)
	var p struct{ PID int }
	w.must(who, "POST", box+"/processes", `{"args":["cat"],"input":true,"detached":true}`, &p)
	var s struct{ ID string }
	w.must(who, "POST", box+"/snapshots", `{}`, &s)
	return map[string]string{"id": "box-" + tenant, "pid": fmt.Sprint(p.PID), "snapshot": s.ID, "key": w.ids[tenant], "token": token(tenant), "context": "x", "port": "8080", "step": "1"}
}

// filled fills an operation's path.
func filled(pattern, query string, with map[string]string) string {
	for name, value := range with {
		pattern = strings.ReplaceAll(pattern, "{"+name+"}", value)
	}
	if query != "" {
		pattern += "?" + query
	}
	return pattern
}

// operations gives those of the contract that the server answers, each once, the
// removal of a sandbox last.
func (w *town) operations() []string {
	w.t.Helper()
	_, text := w.ask("", "GET", "/openapi.yaml", "")
	var contract struct{ Paths map[string]map[string]any }
	if err := yaml.Unmarshal([]byte(text), &contract); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for path, item := range contract.Paths {
		for method := range item {
			if method != "parameters" {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		order := func(s string) string {
			switch {
			case s == "DELETE /v1/sandboxes/{id}":
				return "3"
			case strings.HasSuffix(s, "/resume"): // after the pause
				return "2"
			case strings.HasSuffix(s, "/pause"):
				return "1"
			}
			return "0" + s
		}
		return strings.Compare(order(a), order(b))
	})
	return all
}

func TestEachEndpointSaysWhoMayCallIt(t *testing.T) {
	w := newTown(t)
	for _, op := range w.operations() {
		if _, ok := endpoints()[op]; !ok {
			t.Errorf("%s: nobody said who may call it", op)
		}
	}
	own := w.belongings("ours")
	for _, op := range w.operations() {
		e := endpoints()[op]
		method, pattern, _ := strings.Cut(op, " ")
		at := filled(pattern, e.query, own)
		for _, row := range []struct {
			who string
			ok  bool
		}{
			{"", e.need == "open"},
			{"ours read", e.need == "open" || e.need == "read"},
			{"ours write", e.need != "admin"},
			{"ours admin", true},
		} {
			if op == "DELETE /v1/sandboxes/{id}" && row.who == "ours write" || op == "DELETE /v1/keys/{key}" && row.who == "ours admin" {
				continue // the last row does it, and this one is done with
			}
			code, text := w.ask(row.who, method, at, e.body)
			switch {
			case !row.ok && row.who == "" && code != http.StatusUnauthorized, !row.ok && row.who != "" && code != http.StatusForbidden:
				t.Errorf("%s, by the key %q: %d %s", op, row.who, code, text)
			case row.ok && (code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusBadRequest || code == http.StatusMethodNotAllowed):
				t.Errorf("%s, by the key %q, which may: %d %s", op, row.who, code, text)
			}
		}
	}
}

// Of what is another's a tenant is told the same as of what is not there.
func TestNoEndpointTellsOrChangesWhatIsAnotherTenants(t *testing.T) {
	w := newTown(t)
	theirs := w.belongings("theirs")
	w.belongings("ours")
	none := map[string]string{"id": "box-nobody", "pid": theirs["pid"], "snapshot": "snap-nobody", "key": "nokeynokeynokeyx", "token": token("nobody"), "context": "x", "port": "8080", "step": "1"}
	request := regexp.MustCompile(`"request":"[^"]*"`)
	// alike takes out what was asked for, and the request's own number.
	alike := func(text string, ids map[string]string) string {
		for name, id := range ids {
			if name != "pid" && name != "port" && name != "context" {
				text = strings.ReplaceAll(text, id, "{"+name+"}")
			}
		}
		return request.ReplaceAllString(text, "")
	}
	for _, op := range w.operations() {
		e := endpoints()[op]
		if op == "DELETE /v1/keys/{key}" || e.need == "open" {
			continue // below
		}
		method, pattern, _ := strings.Cut(op, " ")
		for _, scope := range []string{"write", "admin"} {
			if e.need == "admin" && scope != "admin" {
				continue
			}
			code, text := w.ask("ours "+scope, method, filled(pattern, e.query, theirs), e.body)
			if !strings.Contains(pattern, "{") {
				if strings.Contains(text, "theirs") || strings.Contains(text, theirs["snapshot"]) || strings.Contains(text, theirs["key"]) {
					t.Errorf("%s tells what is another's: %s", op, text)
				}
				continue
			}
			if noCode, noText := w.ask("ours "+scope, method, filled(pattern, e.query, none), e.body); code != noCode || alike(text, theirs) != alike(noText, none) {
				t.Errorf("%s of another's: %d %s\nof nobody's: %d %s", op, code, text, noCode, noText)
			}
			if code < 300 && method != "DELETE" && op != "GET /v1/leases/{token}" { // what is not there is removed, and a lease begins with who asks
				t.Errorf("%s of another's: %d %s", op, code, text)
			}
		}
	}
	if code, text := w.ask("ours admin", "DELETE", filled("/v1/keys/{key}", "", theirs), ""); code != http.StatusNotFound {
		t.Errorf("another's key: %d %s", code, text)
	}
	for _, body := range []string{`{"tier":"sim","root":{"kind":"snapshot","snapshot":%q}}`, `{"tier":"sim","root":{"kind":"snapshot","path":%q}}`} {
		code, text := w.ask("ours admin", "POST", "/v1/sandboxes", fmt.Sprintf(body, theirs["snapshot"]))
		noCode, noText := w.ask("ours admin", "POST", "/v1/sandboxes", fmt.Sprintf(body, none["snapshot"]))
		if code < 300 || code != noCode || alike(text, theirs) != alike(noText, none) {
			t.Errorf("a sandbox of another's snapshot: %d %s\nof nobody's: %d %s", code, text, noCode, noText)
		}
	}
	// And all of theirs is as it was.
	var st struct {
		State  string
		Labels map[string]string
	}
	w.must("theirs read", "GET", "/v1/sandboxes/box-theirs", "", &st)
	if _, text := w.ask("theirs read", "GET", "/v1/sandboxes/box-theirs/files?path=/tmp/secret", ""); text != "of theirs" || st.State != "ready" || len(st.Labels) != 0 {
		t.Errorf("%q, %+v", text, st)
	}
	var running api.Processes
	w.must("theirs read", "GET", "/v1/sandboxes/box-theirs/processes", "", &running)
	if len(running.Processes) != 1 || running.Processes[0].Exit != nil {
		t.Errorf("%+v", running)
	}
	w.must("theirs write", "DELETE", filled("/v1/snapshots/{snapshot}", "", theirs), "", nil)
}
