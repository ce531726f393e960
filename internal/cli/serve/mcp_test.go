package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A bearing client shows a key.
type bearing struct{ key, origin string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	if b.origin != "" {
		r.Header.Set("Origin", b.origin)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects an agent with somebody's key.
func (w *town) tools(who string) *mcp.ClientSession {
	w.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(w.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.web.URL + toolPath, HTTPClient: &http.Client{Transport: bearing{key: w.keys[who]}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// tool calls a tool, and gives its text and whether it failed.
func (w *town) tool(s *mcp.ClientSession, name string, in map[string]any) (string, bool) {
	w.t.Helper()
	res, err := s.CallTool(w.t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		w.t.Fatalf("%s %v: %v", name, in, err)
	}
	text, _ := res.Content[0].(*mcp.TextContent)
	return text.Text, res.IsError
}

func TestToolsCanDoWhatTheKeyOfTheirCallerCan(t *testing.T) {
	w := newTown(t)
	ours, theirs, reader := w.tools("ours admin"), w.tools("theirs admin"), w.tools("ours read")
	type in = map[string]any
	if text, failed := w.tool(ours, "sandbox_create", in{"name": "of-ours"}); failed {
		t.Fatal(text)
	}
	if text, failed := w.tool(ours, "sandbox_run", in{"sandbox": "of-ours", "command": "echo hi > /tmp/a; cat /tmp/a"}); failed || text != "hi\n" {
		t.Errorf("%q, %v", text, failed)
	}
	if text, failed := w.tool(reader, "file_read", in{"sandbox": "of-ours", "path": "/tmp/a"}); failed || text != "hi\n" {
		t.Errorf("a key to read reads %q, %v", text, failed)
	}
	for name, args := range map[string]in{
		"sandbox_create": {}, "sandbox_run": {"sandbox": "of-ours", "command": "true"}, "file_write": {"sandbox": "of-ours", "path": "/tmp/a", "content": "x"},
		"sandbox_kill": {"sandbox": "of-ours"}, "sandbox_fork": {"sandbox": "of-ours"},
	} {
		if text, failed := w.tool(reader, name, args); !failed || !strings.Contains(text, "read-only") {
			t.Errorf("%s with a key to read: %q, %v", name, text, failed)
		}
	}
	for name, args := range map[string]in{
		"sandbox_run": {"command": "true"}, "sandbox_process": {"action": "list"}, "file_read": {"path": "/tmp/a"}, "file_write": {"path": "/tmp/a", "content": "x"},
		"sandbox_changes": {}, "sandbox_undo": {}, "sandbox_fork": {}, "sandbox_kill": {},
	} {
		args["sandbox"] = "of-ours"
		if text, failed := w.tool(theirs, name, args); !failed || !strings.Contains(text, "there is no sandbox of-ours") {
			t.Errorf("%s of another tenant: %q, %v", name, text, failed)
		}
	}
	if text, failed := w.tool(theirs, "sandbox_list", in{}); failed || strings.Contains(text, "of-ours") {
		t.Errorf("another tenant's list: %q, %v", text, failed)
	}
	if text, failed := w.tool(ours, "sandbox_create", in{"directory": "write"}); !failed {
		t.Errorf("a directory of the server: %q", text)
	}
	if text, failed := w.tool(ours, "sandbox_kill", in{"sandbox": "of-ours"}); failed {
		t.Error(text)
	}
}

// request sends a message without a library.
func (w *town) request(key, body string, header map[string]string) (int, http.Header) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.web.URL+toolPath, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := w.web.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode, res.Header
}

func TestNobodyElseReachesTools(t *testing.T) {
	w := newTown(t)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	good := w.keys["ours admin"]
	for name, c := range map[string]struct {
		key, body string
		header    map[string]string
		want      int
	}{
		"a key":            {good, list, nil, 200},
		"no key":           {"", list, nil, 401},
		"a wrong key":      {"pdk_wrong", list, nil, 403},
		"a page":           {good, list, map[string]string{"Origin": "https://evil.example"}, 403},
		"a rebound name":   {good, list, map[string]string{"Origin": "http://evil.example:7463", "Host": "evil.example:7463"}, 403},
		"no place":         {good, list, map[string]string{"Origin": "null"}, 403},
		"the server's own": {good, list, map[string]string{"Origin": "http://box.test:7463"}, 200},
		"a version":        {good, list, map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, 400},
		"no JSON":          {good, "{", nil, 400},
		"a long body":      {good, strings.Repeat(" ", longCall+1), nil, 429},
	} {
		code, header := w.request(c.key, c.body, c.header)
		if code != c.want {
			t.Errorf("%s: %d, not %d", name, code, c.want)
		}
		if code == http.StatusUnauthorized && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: it does not say that a key is missing: %v", name, header)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		if code, _ := w.ask("ours admin", method, toolPath, ""); code < 400 && method != http.MethodDelete {
			t.Errorf("%s: %d", method, code)
		}
	}
}

func TestACallThatIsGivenUpOverHTTPKillsItsCommand(t *testing.T) {
	w := newTown(t)
	s := w.tools("ours admin")
	w.tool(s, "sandbox_create", map[string]any{"name": "slow"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "sandbox_run", Arguments: map[string]any{"sandbox": "slow", "command": "sleep 100000"}})
		done <- err
	}()
	processes := func() (text string) {
		text, _ = w.tool(s, "sandbox_process", map[string]any{"sandbox": "slow", "action": "list"})
		return text
	}
	for !strings.Contains(processes(), "running") {
		if t.Context().Err() != nil {
			t.Fatal("it never ran")
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a call that was given up has an answer")
	}
	for strings.Contains(processes(), "running") {
		if t.Context().Err() != nil {
			t.Fatal("it runs on")
		}
	}
}

func TestVersionsOfTheProtocolAreSpoken(t *testing.T) {
	w := newTown(t)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01", "", "\x00"} {
		asked, err := json.Marshal(version)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%s,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, asked)
		if code, _ := w.request(w.keys["ours admin"], body, nil); code != http.StatusOK {
			t.Errorf("%q: %d", version, code)
		}
	}
}
