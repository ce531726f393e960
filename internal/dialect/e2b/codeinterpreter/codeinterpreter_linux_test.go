package codeinterpreter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/codeinterpreter"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime()) || gateway.Main() {
		return
	}
	drivertest.Main(m, jailed)
}

func jailed(state string) (paddock.Driver, error) {
	return jail.New(jail.Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

const token = "the-token"

// serve gives the address of a box's handler.
func serve(t *testing.T) string {
	t.Helper()
	d, err := jailed(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: drivertest.Weak(t, jailed)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := codeinterpreter.New(codeinterpreter.Options{Sandbox: sb, Token: token, Env: func() map[string]string { return map[string]string{"OURS": "here"} }})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(b)
	t.Cleanup(func() {
		web.CloseClientConnections()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return web.URL
}

func ask(t *testing.T, method, url, body, token string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Access-Token", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(data))
}

// run executes a cell and gives its lines without their times.
func run(t *testing.T, url, body string) []string {
	t.Helper()
	status, answer := ask(t, "POST", url+"/execute", body, token)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", body, status, answer)
	}
	var list []string
	for line := range strings.Lines(answer) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := time.Parse(time.RFC3339Nano, str(v["timestamp"])); v["timestamp"] != nil && err != nil {
			t.Error(err)
		}
		delete(v, "timestamp")
		if v["type"] == "error" && !strings.Contains(str(v["traceback"]), str(v["name"])) {
			t.Errorf("the traceback is %q", v["traceback"])
		}
		delete(v, "traceback")
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(data))
	}
	return list
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func TestCellsAreToldInE2BsLines(t *testing.T) {
	url := serve(t)
	for _, row := range []struct{ body, want string }{
		{`{"code":"print('hi')\n'text'"}`, `{"execution_count":1,"type":"number_of_executions"} {"text":"hi\n","type":"stdout"} {"is_main_result":true,"text":"text","type":"result"} {"type":"end_of_execution"}`},
		{`{"code":"1/0","context_id":null,"language":null}`, `{"execution_count":2,"type":"number_of_executions"} {"name":"ZeroDivisionError","type":"error","value":"division by zero"} {"type":"end_of_execution"}`},
		{`{"code":"from IPython.display import display, HTML\ndisplay({'text/latex': 'x', 'x/y': 'z'}, raw=True)"}`, `{"execution_count":3,"type":"number_of_executions"} {"extra":{"x/y":"z"},"is_main_result":false,"latex":"x","type":"result"} {"type":"end_of_execution"}`},
		{`{"code":"import os; os.environ['OURS'] + os.environ['MINE']","env_vars":{"MINE":"!"}}`, `{"execution_count":4,"type":"number_of_executions"} {"is_main_result":true,"text":"here!","type":"result"} {"type":"end_of_execution"}`},
		{`{"code":"'later'","language":"js"}`, `{"execution_count":1,"type":"number_of_executions"} {"is_main_result":true,"text":"later","type":"result"} {"type":"end_of_execution"}`},
	} {
		if got := strings.Join(run(t, url, row.body), " "); got != row.want {
			t.Errorf("%s gives\n%s, want\n%s", row.body, got, row.want)
		}
	}
}

func TestContextsAreE2Bs(t *testing.T) {
	url := serve(t)
	if status, body := ask(t, "GET", url+"/health", "", ""); status != 200 || body != `"OK"` {
		t.Errorf("health: %d %s", status, body)
	}
	var c struct{ ID, Language, Cwd string }
	status, body := ask(t, "POST", url+"/contexts", `{"language":"python","cwd":"/tmp"}`, "")
	if err := json.Unmarshal([]byte(body), &c); status != 200 || err != nil || c.Language != "python" || c.Cwd != "/tmp" || c.ID == "" {
		t.Fatalf("create: %d %s", status, body)
	}
	var list []struct{ ID, Language string }
	status, body = ask(t, "GET", url+"/contexts", "", "")
	if err := json.Unmarshal([]byte(body), &list); status != 200 || err != nil || len(list) != 3 || list[0].Language != "python" || list[1].Language != "javascript" || list[2].ID != c.ID {
		t.Errorf("list: %d %s", status, body) // the two of the beginning, and then the new one
	}
	run(t, url, `{"code":"x = 1","context_id":"`+c.ID+`"}`)
	if status, body := ask(t, "POST", url+"/contexts/"+c.ID+"/restart", "", ""); status != 200 || body != "null" {
		t.Errorf("restart: %d %s", status, body)
	}
	if got := run(t, url, `{"code":"x","context_id":"`+c.ID+`"}`); !strings.Contains(got[1], "NameError") {
		t.Errorf("after a restart: %s", got)
	}
	if status, body := ask(t, "DELETE", url+"/contexts/"+c.ID, "", ""); status != 200 || body != "null" {
		t.Errorf("remove: %d %s", status, body)
	}
	for _, row := range []struct {
		status                    int
		method, path, body, token string
	}{
		{404, "DELETE", "/contexts/" + c.ID, "", token},
		{404, "POST", "/contexts/" + c.ID + "/restart", "", token},
		{404, "POST", "/execute", `{"code":"1","context_id":"` + c.ID + `"}`, token},
		{400, "POST", "/execute", `{"code":"1","context_id":"x","language":"python"}`, token},
		{400, "POST", "/execute", `{"code":"1","language":"cobol"}`, token},
		{400, "POST", "/execute", `{`, token},
		{401, "POST", "/execute", `{"code":"1"}`, ""},
		{401, "POST", "/execute", `{"code":"1"}`, "wrong"},
		{404, "GET", "/other", "", token},
	} {
		if status, body := ask(t, row.method, url+row.path, row.body, row.token); status != row.status {
			t.Errorf("%s %s %s: %d %s", row.method, row.path, row.body, status, body)
		}
	}
}

func TestAClientThatGoesAwayInterruptsItsCell(t *testing.T) {
	url := serve(t)
	run(t, url, `{"code":"kept = 1"}`)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/execute", strings.NewReader(`{"code":"print('go')\nimport time\ntime.sleep(1000)"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Access-Token", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "go") {
			cancel()
		}
	}
	cancel()
	if got := run(t, url, `{"code":"kept"}`); len(got) != 3 || !strings.Contains(got[1], `"text":"1"`) {
		t.Errorf("afterwards: %s", got)
	}
}

func TestAKernelThatEndsIsToldToTheEnd(t *testing.T) {
	url := serve(t)
	got := run(t, url, `{"code":"import os; os._exit(1)"}`)
	if len(got) != 3 || !strings.Contains(got[1], "UnexpectedEndOfExecution") || !strings.Contains(got[2], "end_of_execution") {
		t.Errorf("it told %s", got)
	}
	if got := run(t, url, `{"code":"1+1"}`); len(got) != 3 || !strings.Contains(got[1], `"text":"2"`) {
		t.Errorf("the next: %s", got)
	}
}
