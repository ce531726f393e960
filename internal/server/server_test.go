package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A trial is a server over the simulated tier, with its contract. Every answer is validated
// against it.
type trial struct {
	t        testing.TB
	s        *Server
	web      *httptest.Server
	contract *contract
	caller   Caller
}

func newTrial(t testing.TB, change ...func(*Caller)) *trial {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{t: t, contract: readContract(t), caller: Caller{Name: "one", Driver: d, Trusted: true}}
	for _, c := range change {
		c(&tr.caller)
	}
	tr.s, err = New(Options{Caller: func(r *http.Request) (Caller, error) {
		switch r.Header.Get("Authorization") {
		case "Bearer good":
			return tr.caller, nil
		case "Bearer other":
			return Caller{Name: "two", Driver: d}, nil
		}
		return Caller{}, fmt.Errorf("no key that is known: %w", paddock.Denied)
	}})
	if err != nil {
		t.Fatal(err)
	}
	tr.web = httptest.NewServer(tr.s)
	t.Cleanup(func() {
		if err := errors.Join(tr.s.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		tr.web.Close()
	})
	return tr
}

// ask makes a request and validates the answer.
func (tr *trial) ask(method, path, body string, header ...string) (*http.Response, []byte) {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(tr.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, tr.web.URL+path, strings.NewReader(body))
	if err != nil {
		tr.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := tr.web.Client().Do(req)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		tr.t.Fatalf("%s %s: %v", method, path, err)
	}
	if _, pattern := tr.s.mux.Handler(req); pattern != "" {
		tr.contract.answered(tr.t, pattern, res, data)
	}
	return res, data
}

// want makes a request and compares the status code.
func (tr *trial) want(code int, method, path, body string, header ...string) []byte {
	tr.t.Helper()
	res, data := tr.ask(method, path, body, header...)
	if res.StatusCode != code {
		tr.t.Errorf("%s %s: %d, want %d: %s", method, path, res.StatusCode, code, data)
	}
	return data
}

func TestAnswersAreWhatTheContractSays(t *testing.T) {
	tr := newTrial(t)
	tr.want(200, "GET", "/openapi.yaml", "")
	tr.want(200, "GET", "/v1/info", "")
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","labels":{"x":"1"},"limits":{"memory":100000000}}`)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"b"}`)
	tr.want(200, "GET", "/v1/sandboxes", "")
	tr.want(200, "GET", "/v1/sandboxes/a", "")
	tr.want(200, "PATCH", "/v1/sandboxes/a", `{"labels":{}}`)
	tr.want(200, "GET", "/v1/sandboxes/a/usage", "")
	tr.want(201, "POST", "/v1/sandboxes/a/snapshots", `{}`)
	tr.want(201, "POST", "/v1/sandboxes/a/fork", `{"spec":{"id":"c"}}`)
	tr.want(200, "POST", "/v1/sandboxes/c/pause", "")
	tr.want(409, "POST", "/v1/sandboxes/c/processes", `{"args":["true"]}`)
	tr.want(200, "POST", "/v1/sandboxes/c/resume", "")
	tr.want(200, "POST", "/v1/sandboxes/a/processes", `{"args":["echo","hi"]}`)
	tr.want(201, "POST", "/v1/sandboxes/a/processes", `{"args":["cat"],"input":true,"detached":true}`)
	tr.want(404, "POST", "/v1/sandboxes/a/processes", `{"args":["no-such-program"]}`)
	var list api.Processes
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/processes", ""), &list); err != nil || len(list.Processes) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	pid := fmt.Sprintf("/v1/sandboxes/a/processes/%d/", list.Processes[1].PID)
	tr.want(200, "POST", pid+"input?close=true", "text")
	tr.want(200, "GET", pid+"output?from=0", "")
	tr.want(200, "GET", pid+"output?detached=true", "")
	tr.want(404, "POST", pid+"signal", `{"signal":9}`)
	tr.want(409, "POST", pid+"resize", `{"rows":1,"cols":1}`)
	tr.want(200, "GET", "/v1/sandboxes/a/contexts", "")
	tr.want(501, "POST", "/v1/sandboxes/a/contexts", `{}`) // this tier has no interpreter
	tr.want(400, "POST", "/v1/sandboxes/a/contexts", `{"language":"cobol"}`)
	tr.want(501, "POST", "/v1/sandboxes/a/interpret", `{"code":"1"}`)
	tr.want(400, "POST", "/v1/sandboxes/a/interpret", `{"code":"1","language":"bash","context":"x"}`)
	tr.want(404, "POST", "/v1/sandboxes/a/interpret", `{"code":"1","context":"x"}`)
	tr.want(404, "POST", "/v1/sandboxes/a/contexts/x/restart", "")
	tr.want(404, "POST", "/v1/sandboxes/a/contexts/x/interrupt", "")
	tr.want(404, "DELETE", "/v1/sandboxes/a/contexts/x", "")
	tr.want(204, "POST", "/v1/sandboxes/a/files/mkdir?path=/tmp/d&mode=700", "")
	tr.want(204, "PUT", "/v1/sandboxes/a/files?path=/tmp/d/%FF", "text")
	if got := tr.want(200, "GET", "/v1/sandboxes/a/files?path=/tmp/d/%FF&offset=1&length=2", ""); string(got) != "ex" {
		t.Errorf("%q", got)
	}
	tr.want(200, "GET", "/v1/sandboxes/a/files/stat?path=/tmp/d/%FF", "")
	tr.want(200, "GET", "/v1/sandboxes/a/files/list?path=/tmp", "")
	tr.want(204, "POST", "/v1/sandboxes/a/files/move?from=/tmp/d/%FF&to=/tmp/d/e", "")
	tr.want(204, "POST", "/v1/sandboxes/a/files/chmod?path=/tmp/d/e&mode=600", "")
	tr.want(403, "POST", "/v1/sandboxes/a/files/chmod?path=/tmp/d/e&mode=4755", "")
	tr.want(204, "POST", "/v1/sandboxes/a/files/symlink?path=/tmp/d/l&target=e", "")
	tr.want(204, "DELETE", "/v1/sandboxes/a/files?path=/tmp/d&all=true", "")
	tr.want(501, "GET", "/v1/sandboxes/a/ports/80", "", "Connection", "Upgrade", "Upgrade", api.PortProtocol)
	tr.want(426, "GET", "/v1/sandboxes/a/ports/80", "")
	tr.want(204, "DELETE", "/v1/snapshots/none", "")
	tr.want(204, "DELETE", "/v1/leases/0123456789abcdef", "")
	tr.want(204, "DELETE", "/v1/creations/0123456789abcdef", "")
	tr.want(204, "DELETE", "/v1/attachments/0123456789abcdef", "")
	tr.want(404, "POST", "/v1/attachments/0123456789abcdef/ack?offset=0", "")
	for range 2 {
		tr.want(204, "DELETE", "/v1/sandboxes/a", "")
	}
	tr.want(404, "GET", "/v1/sandboxes/a", "")
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	for _, row := range []struct {
		code               int
		method, path, body string
	}{
		{400, "POST", "/v1/sandboxes", ``},
		{400, "POST", "/v1/sandboxes", `{`},
		{400, "POST", "/v1/sandboxes", `{} {}`},
		{400, "POST", "/v1/sandboxes", `[]`},
		{400, "POST", "/v1/sandboxes", `{"ephemeralx":true}`},
		{400, "POST", "/v1/sandboxes", `{"limits":{"mem":1}}`},
		{400, "PATCH", "/v1/sandboxes/a", `{"label":{}}`},
		{400, "GET", "/v1/sandboxes?limit=0", ""},
		{400, "GET", "/v1/sandboxes?limit=100000", ""},
		{400, "GET", "/v1/sandboxes?cursor=x", ""},
		{400, "GET", "/v1/sandboxes?label=x", ""},
		{400, "GET", "/v1/sandboxes?labels=x", ""},
		{400, "GET", "/v1/sandboxes/A", ""},
		{400, "GET", "/v1/sandboxes/a/processes/x/output", ""},
		{400, "GET", "/v1/sandboxes/a/processes/1/output?from=-1", ""},
		{400, "POST", "/v1/sandboxes/a/processes", `{"args":["true"],"attachment":"short"}`},
		{400, "POST", "/v1/sandboxes/a/processes", `{"args":[{"base64":"!"}]}`},
		{400, "GET", "/v1/sandboxes/a/ports/0", ""},
		{400, "GET", "/v1/events?after=x", ""},
		{400, "POST", "/v1/sandboxes/a/files/mkdir?path=/tmp/x&mode=9", ""},
		{409, "POST", "/v1/sandboxes", `{"ephemeral":true}`},
		{429, "POST", "/v1/sandboxes", `{"user":"` + strings.Repeat("x", maxBody) + `"}`},
		{429, "POST", "/v1/sandboxes/a/processes/1/input", strings.Repeat("x", maxInput+1)},
		{404, "GET", "/v2", ""},
		{405, "PUT", "/v1/sandboxes", ""},
		{405, "DELETE", "/v1/info", ""},
	} {
		data := tr.want(row.code, row.method, row.path, row.body)
		if err := tr.contract.check("/components/schemas/Failure", data); err != nil {
			t.Errorf("%s %s: %v", row.method, row.path, err)
		}
	}
}

func TestACallerWhoIsNotKnownIsToldSo(t *testing.T) {
	tr := newTrial(t)
	for _, r := range tr.s.table() {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{id}", "a", "{pid}", "1", "{port}", "80", "{token}", "0123456789abcdef", "{snapshot}", "s").Replace(path)
		if path == "/openapi.yaml" {
			continue
		}
		tr.want(401, method, path, "", "Authorization", "")
		tr.want(403, method, path, "", "Authorization", "Bearer wrong")
	}
}

func TestACallerWhoIsNotTrustedMayNameNothingOfTheHost(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Trusted = false })
	rule := func(r string) string { return `{"policy":{"network":{"mode":"list","rules":[` + r + `]}}}` }
	const agent = `{"policy":{"key_agents":[{"kind":"ssh","socket":"/run/agent"}]}}` // which is the operator's
	for _, body := range []string{
		`{"root":{"kind":"dir","path":"/"}}`, `{"root":{"kind":"open"}}`, `{"root":{"path":"/"}}`,
		`{"mounts":[{"source":"/etc","target":"/mnt"}]}`, `{"allow_missing":["landlock"]}`,
		`{"policy":{"network":{"mode":"host"}}}`,
		agent, `{"policy":{"key_agents":[{"kind":"gpg","socket":"/run/user/1000/gnupg/S.gpg-agent.extra","keys":["` + strings.Repeat("0A", 20) + `"]}]}}`,
		rule(`{"host":"example.com","proxy":"http://proxy:3128"}`),
		rule(`{"host":"10.0.0.1"}`), rule(`{"host":"0.0.0.0/0"}`), rule(`{"host":"169.254.169.254"}`), rule(`{"host":"::1"}`),
		rule(`{"host":"::ffff:10.0.0.1"}`), rule(`{"host":"fe80::/10"}`), rule(`{"host":"64:ff9b::a00:1"}`),
		rule(`{"host":"host.docker.internal","ports":[5432]}`), rule(`{"host":"HOST.Docker.internal.","ports":[5432]}`),
	} {
		tr.want(403, "POST", "/v1/sandboxes", body)
	}
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(403, "PATCH", "/v1/sandboxes/a", rule(`{"host":"192.168.1.1"}`))
	tr.want(403, "PATCH", "/v1/sandboxes/a", agent)
	tr.want(403, "POST", "/v1/sandboxes/a/fork", `{"spec":`+agent+`}`)
	tr.want(403, "PATCH", "/v1/sandboxes/a", rule(`{"host":"host.docker.internal","ports":[5432]}`))
	for _, host := range []string{"example.com", "*.example.com", "*", "1.1.1.1", "2606:4700::1111", "8.8.8.0/24"} {
		if !public(host) {
			t.Errorf("%s is not public", host)
		}
	}
}

func TestAListIsGivenInPages(t *testing.T) {
	tr := newTrial(t)
	for i := range 7 {
		tr.want(201, "POST", "/v1/sandboxes", fmt.Sprintf(`{"id":"box-%d","labels":{"odd":"%v"}}`, i, i%2 == 1))
	}
	for query, want := range map[string]string{
		"limit=3": "0123456", "limit=3&label=odd%3Dtrue": "135", "limit=1&state=ready": "0123456", "limit=2&state=paused": "", "tier=jail&limit=2": "",
	} {
		var got strings.Builder
		for next := ""; ; {
			var page api.Page
			if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes?"+query+next, ""), &page); err != nil {
				t.Fatal(err)
			}
			for _, st := range page.Sandboxes {
				got.WriteString(strings.TrimPrefix(string(st.ID), "box-"))
			}
			if page.Next == "" {
				break
			}
			next = "&cursor=" + page.Next
		}
		if got.String() != want {
			t.Errorf("%s: %s, want %s", query, got.String(), want)
		}
	}
}

func TestEventsAreToldAfterwardsToo(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(200, "POST", "/v1/sandboxes/a/pause", "")
	tr.want(204, "DELETE", "/v1/sandboxes/a", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", tr.web.URL+"/v1/events?after=0", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := tr.web.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	d := json.NewDecoder(res.Body)
	var got []api.NewsKind
	for len(got) < 3 {
		var line api.Line
		if err := d.Decode(&line); err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		if line.Event != nil {
			got = append(got, line.Event.What)
		}
	}
	if fmt.Sprint(got) != "[created paused removed]" {
		t.Errorf("%q", got)
	}
}

// A panicker is a driver that panics.
type panicker struct{ paddock.Driver }

func (panicker) Info(context.Context, paddock.Tier) (paddock.Info, error) { panic("a fault") }

func TestAFaultOfTheServerIsAnAnswer(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Driver = &panicker{c.Driver} })
	tr.want(500, "GET", "/v1/info", "")
	tr.want(200, "GET", "/v1/sandboxes", "")
}

func TestAServerThatDrainsBeginsNothingNew(t *testing.T) {
	tr := newTrial(t)
	if err := tr.s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.want(503, "POST", "/v1/sandboxes", `{}`)
	tr.want(200, "GET", "/v1/sandboxes", "")
	if err := tr.s.Close(); err != nil {
		t.Error(err)
	}
	if res, err := http.Get(tr.web.URL + "/v1/sandboxes"); err == nil {
		res.Body.Close()
		t.Errorf("a closed server answers %d, which a client might take for the next one's", res.StatusCode)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/sandboxes", []byte(`{"labels":{"a":"b"}}`))
	f.Add("GET", "/v1/sandboxes?limit=1&cursor=AA", []byte(nil))
	f.Add("POST", "/v1/sandboxes/a/processes", []byte(`{"args":[{"base64":"/w=="}]}`))
	f.Add("GET", "/v1/sandboxes/a/files/list?path=/&depth=9", []byte(nil))
	tr := newTrial(f, func(c *Caller) { c.Driver = empty{} })
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		req, err := http.NewRequest(method, "http://x"+path, bytes.NewReader(body))
		if err != nil || req.URL.Host != "x" || req.URL.Path == "/v1/events" || strings.HasPrefix(req.URL.Path, "/v1/leases/") {
			return
		}
		req.Header.Set("Authorization", "Bearer good")
		res := httptest.NewRecorder()
		tr.s.ServeHTTP(res, req)
		if res.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: %s", method, path, res.Body)
		}
	})
}

// An empty driver has no sandboxes and cannot make any.
type empty struct{}

func (empty) Info(context.Context, paddock.Tier) (paddock.Info, error) { return paddock.Info{}, nil }
func (empty) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) {
	return nil, paddock.Unsupported
}
func (empty) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return nil, paddock.NotFound }
func (empty) List(context.Context) ([]paddock.Status, error)            { return nil, nil }
func (empty) RemoveSnapshot(context.Context, paddock.SnapshotID) error  { return nil }
func (empty) Close() error                                              { return nil }

func TestHTTP2IsSpokenWithoutTLSToo(t *testing.T) {
	tr := newTrial(t)
	web := httptest.NewUnstartedServer(tr.s)
	web.Config.Protocols = tr.s.HTTP().Protocols
	web.Start()
	defer web.Close()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", web.URL+"/v1/info", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusOK {
		t.Errorf("%s %s", res.Proto, res.Status)
	}
}

func TestCallersDoNotSeeEachOthersStreams(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	const token = "0123456789abcdef"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", tr.web.URL+"/v1/sandboxes/a/processes",
		strings.NewReader(`{"args":["sleep","1000"],"attachment":"`+token+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := tr.web.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	tr.want(404, "POST", "/v1/attachments/"+token+"/ack?offset=0", "", "Authorization", "Bearer other")
	tr.want(204, "DELETE", "/v1/attachments/"+token, "", "Authorization", "Bearer other") // affects no other caller
	tr.want(204, "POST", "/v1/attachments/"+token+"/ack?offset=0", "")
	tr.want(204, "DELETE", "/v1/attachments/"+token, "")
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// informed is a driver with an info of its own.
type informed struct {
	paddock.Driver
	info paddock.Info
}

func (d informed) Info(context.Context, paddock.Tier) (paddock.Info, error) { return d.info, nil }

func TestClientsAreNotToldOfWhatOnlyTheServersOwnRunsHave(t *testing.T) {
	has := []paddock.Capability{paddock.CanReview, paddock.CanUndo, paddock.CanMonitorFiles, paddock.CanMonitorNetwork, paddock.CanMonitorFreeze}
	tr := newTrial(t, func(c *Caller) {
		c.Driver = informed{c.Driver, paddock.Info{Tier: paddock.Jail, Available: true, Version: "1", Capabilities: has}}
	})
	var info paddock.Info
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/info", ""), &info); err != nil {
		t.Fatal(err)
	}
	if want := []paddock.Capability{paddock.CanUndo, paddock.CanOutlive}; !slices.Equal(info.Capabilities, want) {
		t.Errorf("told of %v, not of %v", info.Capabilities, want)
	}
	if has[0] != paddock.CanReview {
		t.Error("the driver's own list was changed")
	}
}
