package envd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

const token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"

// A trial is the API of one sandbox of the simulated tier.
type trial struct {
	t   testing.TB
	sb  paddock.Sandbox
	box *Box
	web *httptest.Server
}

func newTrial(t testing.TB, change ...func(*Options)) *trial {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, d, sb, change...)
}

func serve(t testing.TB, d paddock.Driver, sb paddock.Sandbox, change ...func(*Options)) *trial {
	t.Helper()
	o := Options{Sandbox: sb, SandboxID: "i1", TemplateID: "base", Env: map[string]string{"GLOBAL": "g"}}
	for _, c := range change {
		c(&o)
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{t: t, sb: sb, box: b, web: httptest.NewServer(b)}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), sb.Remove(context.Background()), d.Close()); err != nil {
			t.Error(err)
		}
		tr.web.Close()
	})
	return tr
}

// do makes a request. Pairs of header follow the body.
func (tr *trial) do(method, path string, body io.Reader, header ...string) *http.Response {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(tr.t.Context(), time.Minute)
	tr.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, tr.web.URL+path, body)
	if err != nil {
		tr.t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := tr.web.Client().Do(r)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { res.Body.Close() })
	return res
}

// ask makes a request and reads its whole answer.
func (tr *trial) ask(method, path, body string, header ...string) (int, string, http.Header) {
	tr.t.Helper()
	res := tr.do(method, path, strings.NewReader(body), header...)
	data, err := io.ReadAll(res.Body)
	if err != nil {
		tr.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(data), res.Header
}

// call makes a call that has one answer. An error is "code: message".
func (tr *trial) call(method, body string, header ...string) (map[string]any, string) {
	tr.t.Helper()
	code, data, _ := tr.ask("POST", "/"+method, body, append([]string{"Content-Type", "application/json"}, header...)...)
	var m map[string]any
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		tr.t.Fatalf("%s: %d: %v: %s", method, code, err, data)
	}
	if code != 200 {
		return m, fmt.Sprint(m["code"], ": ", m["message"])
	}
	return m, ""
}

// must is call, of what must not fail.
func (tr *trial) must(method, body string) map[string]any {
	tr.t.Helper()
	m, failure := tr.call(method, body)
	if failure != "" {
		tr.t.Fatalf("%s %s: %s", method, body, failure)
	}
	return m
}

// frame makes a message of a stream.
func frame(flag byte, body string) string {
	head := [5]byte{flag}
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)))
	return string(head[:]) + body
}

// Events are the answer of a streaming call.
type events struct {
	t    testing.TB
	res  *http.Response
	quit context.CancelFunc
}

// open makes a call that answers with a stream.
func (tr *trial) open(method, body string, header ...string) *events {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(tr.t.Context(), time.Minute)
	tr.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "POST", tr.web.URL+"/"+method, strings.NewReader(frame(0, body)))
	if err != nil {
		tr.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/connect+json")
	r.Header.Set("Connect-Protocol-Version", "1")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := tr.web.Client().Do(r)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { res.Body.Close() })
	return &events{tr.t, res, cancel}
}

// next reads a message. At the end it gives flag 2.
func (s *events) next() (flag byte, m map[string]any, _ error) {
	var head [5]byte
	if _, err := io.ReadFull(s.res.Body, head[:]); err != nil {
		return 0, nil, err
	}
	data := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(s.res.Body, data); err != nil {
		return 0, nil, err
	}
	return head[0], m, json.Unmarshal(data, &m)
}

// event reads an event of a process: its name and its content.
func (s *events) event() (string, map[string]any) {
	s.t.Helper()
	flag, m, err := s.next()
	if err != nil {
		s.t.Fatal(err)
	}
	if flag == 2 {
		return "over", m
	}
	e, _ := m["event"].(map[string]any)
	for name, content := range e {
		c, _ := content.(map[string]any)
		return name, c
	}
	return "", m
}

// pid reads the first event.
func (s *events) pid() int {
	s.t.Helper()
	pid := s.started()
	if pid == 0 {
		s.t.Fatal("its time was over before it started")
	}
	return pid
}

// started reads the first event of what has a time limit: the process, or 0 if its time was over first.
func (s *events) started() int {
	s.t.Helper()
	name, m := s.event()
	if name == "over" {
		return 0
	}
	pid, ok := m["pid"].(float64)
	if name != "start" || !ok {
		s.t.Fatalf("the first event is %s %v", name, m)
	}
	return int(pid)
}

// withTime tries what has a time limit with longer ones until it was quick enough to be seen. A machine may be slow.
func withTime(t *testing.T, try func(milliseconds string) (quick bool)) {
	t.Helper()
	for ms := 100; !try(strconv.Itoa(ms)); ms *= 2 {
		if ms > 100_000 {
			t.Fatal("nothing started within its time")
		}
	}
}

// rest reads to the end: output, the end event, and the error of the last frame.
func (s *events) rest() (out, errs string, end map[string]any, failure string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	for {
		switch name, m := s.event(); name {
		case "data":
			for to, kind := range map[*bytes.Buffer][]string{&stdout: {"stdout", "pty"}, &stderr: {"stderr"}} {
				for _, k := range kind {
					if text, ok := m[k].(string); ok {
						to.Write(unbase64(s.t, text))
					}
				}
			}
		case "end":
			end = m
		case "over":
			if e, ok := m["error"].(map[string]any); ok {
				failure = fmt.Sprint(e["code"], ": ", e["message"])
			}
			return stdout.String(), stderr.String(), end, failure
		case "keepalive":
		default:
			s.t.Fatalf("event %q: %v", name, m)
		}
	}
}

// run runs a script to its end.
func (tr *trial) run(script string) (out, errs string, end map[string]any, failure string) {
	tr.t.Helper()
	s := tr.open("process.Process/Start", start(script))
	s.pid()
	return s.rest()
}

// start is the request to run a script, with more fields.
func start(script string, more ...string) string {
	text, err := json.Marshal(script)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"process":{"cmd":"/bin/bash","args":["-l","-c",%s]%s},"stdin":false}`, text, strings.Join(append([]string{""}, more...), ","))
}

func TestHealthIsAnsweredWithoutATokenAndNothingElseIs(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	if code, _, _ := tr.ask("GET", "/health", ""); code != 204 {
		t.Errorf("health: %d", code)
	}
	for path, method := range map[string]string{
		"/envs": "GET", "/metrics": "GET", "/files/compose": "POST", "/process.Process/List": "POST",
		"/filesystem.Filesystem/Stat": "POST", "/process.Process/Start": "POST",
	} {
		for _, shown := range []string{"", "wrong", token + "x", token[1:]} {
			code, body, _ := tr.ask(method, path, "{}", "X-Access-Token", shown, "Content-Type", "application/json")
			if want := `{"code":401,"message":"` + unauthorized + `"}`; code != 401 || body != want {
				t.Errorf("%s with %q: %d %s", path, shown, code, body)
			}
		}
	}
	if code, body, _ := tr.ask("GET", "/envs", "", "X-Access-Token", token); code != 200 || body != `{"GLOBAL":"g"}` {
		t.Errorf("envs: %d %s", code, body)
	}
}

func TestWhatIsForTheHostAloneIsNotThere(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	for _, path := range []string{"/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade", "/"} {
		if code, body, _ := tr.ask("POST", path, "{}", "X-Access-Token", token); code != 404 || !strings.HasPrefix(body, `{"code":404,`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestMetricsAreNumbersOfTheSandbox(t *testing.T) {
	tr := newTrial(t)
	code, body, _ := tr.ask("GET", "/metrics", "")
	var m map[string]float64
	if err := json.Unmarshal([]byte(body), &m); code != 200 || err != nil {
		t.Fatalf("%d %v %s", code, err, body)
	}
	for _, name := range []string{"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"} {
		if _, ok := m[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if m["mem_total"] <= 0 || m["cpu_count"] < 1 || m["disk_total"] <= 0 {
		t.Errorf("limits: %v", m)
	}
}

func TestASandboxThatIsGoneAnswersAsNoSandbox(t *testing.T) {
	asked := make(chan string, 100)
	for name, gone := range map[string]func(http.ResponseWriter, *http.Request){
		"in E2B's words": nil,
		"as is asked for": func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
			http.Error(w, "gone", http.StatusBadGateway)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t, func(o *Options) { o.Gone = gone })
			s := tr.open("process.Process/Start", start("sleep 1000"))
			s.pid()
			w := tr.open("filesystem.Filesystem/WatchDir", `{"path":"/tmp"}`)
			w.event()
			if err := tr.sb.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*events{s, w} {
				for {
					flag, m, err := s.next()
					if err != nil {
						break // cut
					}
					if flag == 2 {
						t.Errorf("a stream ended in order: %v", m)
						break
					}
				}
			}
			for path, method := range map[string]string{
				"/health": "GET", "/process.Process/List": "POST", "/filesystem.Filesystem/Stat": "POST", "/files?path=/etc/passwd": "GET",
				"/files?path=/tmp/x": "POST", "/metrics": "GET",
			} {
				code, body, _ := tr.ask(method, path, `{"path":"/tmp"}`, "Content-Type", map[bool]string{true: "application/octet-stream", false: "application/json"}[strings.HasPrefix(path, "/files?")])
				if code != 502 || gone == nil && body != `{"code":502,"message":"The sandbox was not found","sandboxId":"i1"}` {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			s2 := tr.open("process.Process/Start", start("true"))
			if s2.res.StatusCode != 502 {
				t.Errorf("start: %d", s2.res.StatusCode)
			}
		})
	}
	if len(asked) == 0 {
		t.Error("nobody was asked")
	}
}

// A dying writer has a sandbox end as an answer begins.
type dying struct {
	http.ResponseWriter
	end func()
}

func (d *dying) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *dying) WriteHeader(code int) {
	d.end()
	time.Sleep(20 * time.Millisecond) // whatever that cuts is cut
	d.ResponseWriter.WriteHeader(code)
}

func TestAnAnswerThatASandboxLivesIsNotCutByItsEnd(t *testing.T) {
	tr := newTrial(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.box.ServeHTTP(&dying{w, tr.box.cancel}, r)
	}))
	defer web.Close()
	tr.web.Close()
	tr.web = web
	if code, _, _ := tr.ask("GET", "/health", ""); code != 204 {
		t.Errorf("health: %d", code)
	}
}

func TestClosingEndsStreamsAndWaits(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("sleep 1000"))
	pid := s.pid()
	if err := tr.box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.next(); err == nil {
		t.Error("the stream goes on, or ended in order")
	}
	if code, _, _ := tr.ask("GET", "/health", ""); code != 502 {
		t.Errorf("health: %d", code)
	}
	list, err := tr.sb.Processes(t.Context())
	if err != nil || len(list) != 1 || int(list[0].PID) != pid || list[0].Exit != nil {
		t.Errorf("the process went with the API: %v, %v", list, err)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	tr := newTrial(t)
	for _, o := range []Options{{}, {Sandbox: tr.sb, Dir: "relative"}} {
		if _, err := New(o); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// newServer serves one more Box of a sandbox.
func newServer(t testing.TB, b *Box) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(b)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web
}

func TestClosingEndsTransfersWhoseClientDoesNothing(t *testing.T) {
	tr := newTrial(t)
	tr.put("large", strings.Repeat("x", 16<<20))
	get := tr.do("GET", "/files?path=large", nil) // nothing of it is read
	body, sender := io.Pipe()
	defer sender.Close()
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		r, err := http.NewRequestWithContext(t.Context(), "POST", tr.web.URL+"/files?path=never", body)
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/octet-stream")
		if res, err := tr.web.Client().Do(r); err == nil {
			res.Body.Close()
		}
	}()
	if _, err := io.WriteString(sender, "some"); err != nil {
		t.Fatal(err)
	}
	if err := tr.box.Close(); err != nil { // it would wait for both
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, get.Body); err == nil && n == 16<<20 {
		t.Log("the whole file was on its way already")
	}
	sender.CloseWithError(io.ErrUnexpectedEOF)
	<-posted
}
