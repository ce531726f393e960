package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/mcpserver"
)

func TestASandboxFromItsMakingToItsEnd(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{"directory": "write"})
	text, out := a.must("sandbox_run", args{"sandbox": id, "command": "echo hi; echo oops >&2; echo x > made; pwd; exit 3"})
	if !strings.Contains(text, "hi\n"+r.work+"\n[stderr]\noops\n[exit 3, exited]\n[changed: created made]") {
		t.Errorf("the model reads %q", text)
	}
	if out["exit"] != 3.0 || out["cause"] != "exited" || out["stderr"] != "oops\n" || fmt.Sprint(out["changed"]) != "[created made]" {
		t.Errorf("a program reads %v", out)
	}
	if data, err := os.ReadFile(filepath.Join(r.work, "made")); err != nil || string(data) != "x\n" {
		t.Errorf("on the host the file is %q, %v", data, err)
	}
	a.must("file_write", args{"sandbox": id, "path": "dir/made", "content": "one\ntwo\nthree\n"})
	if text, _ := a.must("file_read", args{"sandbox": id, "path": "dir/made", "offset": 2, "limit": 1}); text != "two\n[lines 2 to 2; go on at offset 3]" {
		t.Errorf("a line is %q", text)
	}
	a.must("file_write", args{"sandbox": id, "path": "dir/made", "old": "two", "content": "zwei"})
	if text, _ := a.must("file_read", args{"sandbox": id, "path": filepath.Join(r.work, "dir/made")}); text != "one\nzwei\nthree\n" {
		t.Errorf("the edited file is %q", text)
	}
	if text, _ := a.must("file_read", args{"sandbox": id, "path": "."}); text != "dir/\nmade (2 bytes)" {
		t.Errorf("the directory is %q", text)
	}
	if text, _ := a.must("sandbox_changes", args{"sandbox": id}); !strings.Contains(text, "+zwei") || !strings.Contains(text, "created made") {
		t.Errorf("the changes are %q", text)
	}
	if text, out := a.must("sandbox_undo", args{"sandbox": id}); !strings.Contains(text, "dir/made") || len(out["restored"].([]any)) != 1 {
		t.Errorf("undo answers %q, %v", text, out)
	}
	if data, err := os.ReadFile(filepath.Join(r.work, "dir/made")); err != nil || string(data) != "one\ntwo\nthree\n" {
		t.Errorf("after the undo it is %q, %v", data, err)
	}
	if text, _ := a.must("sandbox_list", args{}); !strings.Contains(text, id+" ready") {
		t.Errorf("the list is %q", text)
	}
	a.must("sandbox_kill", args{"sandbox": id})
	if n := r.boxes(t); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	a.refused("sandbox_run", args{"sandbox": id, "command": "true"}, "there is no sandbox "+id, "sandbox_list")
}

func TestAnAgentGetsNoMoreThanIsOffered(t *testing.T) {
	r := newRig(t)
	r.offer.Spec.Policy.Network = paddock.NetworkPolicy{
		Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "listed.example"}, {Host: "other.example"}},
		Secrets: []paddock.Secret{{Name: "TOKEN", Value: "s3cret-value-of-the-user", Hosts: []string{"listed.example"}}},
	}
	a := r.agent(t, false)
	a.refused("sandbox_create", args{"directory": "/etc"}, "none read overlay write")
	a.refused("sandbox_create", args{"hosts": []string{"evil.example"}}, "not offered", "listed.example, other.example")
	a.refused("sandbox_create", args{"hosts": []string{"*"}}, "not offered")
	a.refused("sandbox_create", args{"secrets": []string{"HOME"}}, "there is no secret", "TOKEN")
	a.refused("sandbox_create", args{"name": "../../etc"}, "name")
	a.refused("sandbox_create", args{"mounts": []string{"/"}}, "mounts")
	if n := r.boxes(t); n != 0 {
		t.Errorf("%d sandboxes were made", n)
	}
	id := a.box(args{"hosts": []string{"listed.example"}})
	text, out := a.must("sandbox_run", args{"sandbox": id, "command": "getent hosts other.example; env; ls " + r.work})
	if strings.Contains(text, "TOKEN=") || strings.Contains(text, "s3cret") {
		t.Errorf("a secret that was not asked for is there: %q", text)
	}
	if refused := fmt.Sprint(out["refused"]); !strings.Contains(refused, "other.example") {
		t.Errorf("what was refused is %s", refused)
	}
	if _, out := a.must("sandbox_run", args{"sandbox": id, "command": "true"}); fmt.Sprint(out["refused"]) != "[]" {
		t.Errorf("it is told twice: %v", out["refused"])
	}
	id = a.box(args{"secrets": []string{"TOKEN"}})
	text, _ = a.must("sandbox_run", args{"sandbox": id, "command": "echo $TOKEN"})
	if strings.TrimSpace(text) == "" || strings.Contains(text, "s3cret") {
		t.Errorf("the variable of the secret is %q", text)
	}
}

func TestMalformedArgumentsAreAnsweredInWords(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{})
	for _, c := range []struct {
		tool string
		in   string
		word string
	}{
		{"sandbox_run", `{}`, "sandbox"},
		{"sandbox_run", `{"sandbox":"` + id + `"}`, "command"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":""}`, "empty"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":["ls"]}`, "command"},
		{"sandbox_run", `{"sandbox":7,"command":"ls"}`, "sandbox"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":"ls","timeout":-1}`, "timeout"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":"ls","timeout":1e300}`, "timeout"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":"ls","language":"cobol"}`, "language"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":"ls","shell":true}`, "shell"},
		{"sandbox_run", `{"sandbox":"` + id + `","command":"a\u0000b"}`, ""},
		{"sandbox_run", `{"sandbox":"../x","command":"ls"}`, "no ID"},
		{"sandbox_run", `{"sandbox":"x?y=z/../..","command":"ls"}`, "no ID"},
		{"sandbox_run", `null`, ""},
		{"sandbox_run", `[]`, ""},
		{"sandbox_process", `{"sandbox":"` + id + `"}`, "process 0"},
		{"sandbox_process", `{"sandbox":"` + id + `","process":99999}`, "process 99999"},
		{"sandbox_process", `{"sandbox":"` + id + `","process":1,"action":"explode"}`, "action"},
		{"sandbox_process", `{"sandbox":"` + id + `","process":1,"limit":99999999}`, "limit"},
		{"file_read", `{"sandbox":"` + id + `","path":""}`, "empty"},
		{"file_read", `{"sandbox":"` + id + `","path":"/nowhere"}`, "no file"},
		{"file_read", `{"sandbox":"` + id + `","path":"/etc/passwd","offset":-1}`, "negative"},
		{"file_write", `{"sandbox":"` + id + `","path":"/usr/x","content":"y"}`, ""},
		{"file_write", `{"sandbox":"` + id + `","path":"/tmp/x","content":"y","old":""}`, "old"},
		{"file_write", `{"sandbox":"` + id + `","path":"/tmp/none","content":"y","old":"z"}`, "no file"},
		{"sandbox_changes", `{"sandbox":"` + id + `"}`, "directory: write"},
		{"sandbox_undo", `{"sandbox":"` + id + `"}`, "directory: write"},
		{"sandbox_kill", `{"sandbox":"nobody"}`, "no sandbox nobody"},
		{"sandbox_fork", `{"sandbox":"nobody"}`, "no sandbox nobody"},
	} {
		res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.in)})
		text := fmt.Sprint(err)
		if err == nil {
			if !res.IsError {
				t.Errorf("%s %s did not fail", c.tool, c.in)
			}
			text = res.Content[0].(*mcp.TextContent).Text
		}
		if !strings.Contains(text, c.word) || len(text) > 5000 {
			t.Errorf("%s %s says %q, and not %q", c.tool, c.in, text, c.word)
		}
	}
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "sandbox_escape"}); err == nil {
		t.Error("a tool that there is not was called")
	}
	a.must("sandbox_run", args{"sandbox": id, "command": "true"})
}

func TestOthersSandboxesAreNotThere(t *testing.T) {
	r := newRig(t)
	other, err := r.jails.Create(t.Context(), paddock.Spec{ID: "of-the-user", AllowMissing: r.offer.Spec.AllowMissing, Labels: map[string]string{"mcp": ""}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Remove(context.Background()) })
	one, two := r.agent(t, false), r.agent(t, false)
	theirs, kept := two.box(args{}), two.box(args{"keep": true})
	for _, id := range []string{"of-the-user", theirs} {
		for _, tool := range []string{"sandbox_kill", "sandbox_fork", "sandbox_changes", "sandbox_undo"} {
			one.refused(tool, args{"sandbox": id}, "there is no sandbox "+id)
		}
		one.refused("sandbox_run", args{"sandbox": id, "command": "true"}, "there is no sandbox "+id)
		one.refused("sandbox_process", args{"sandbox": id, "action": "list"}, "there is no sandbox "+id)
		one.refused("file_read", args{"sandbox": id, "path": "/etc/passwd"}, "there is no sandbox "+id)
		one.refused("file_write", args{"sandbox": id, "path": "/tmp/x", "content": ""}, "there is no sandbox "+id)
	}
	if text, _ := one.must("sandbox_list", args{}); strings.Contains(text, "of-the-user") || strings.Contains(text, theirs) || !strings.Contains(text, kept) {
		t.Errorf("the list is %q", text)
	}
	one.must("sandbox_run", args{"sandbox": kept, "command": "true"})
	r.offer.Spec.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "listed.example"}}}
	three := r.agent(t, false)
	three.refused("sandbox_run", args{"sandbox": kept, "command": "true"}, "there is no sandbox "+kept)
	two.vanish()
	<-two.gone
	if n := r.boxes(t); n != 2 {
		t.Errorf("%d sandboxes are there, and of one was asked that it is kept", n)
	}
	one.must("sandbox_kill", args{"sandbox": kept})
}

func TestLongAndBinaryOutputStaysShort(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{})
	text, out := a.must("sandbox_run", args{"sandbox": id, "command": "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"})
	if len(text) > 20_000 || !strings.HasPrefix(text, "begin\nxxx") || !strings.Contains(text, "xxx\nend\n") || !strings.Contains(text, "bytes are left out") || !strings.Contains(text, "the rest: sandbox_process") {
		t.Errorf("%d bytes: %.100s … %s", len(text), text, text[max(0, len(text)-300):])
	}
	pid := out["process"]
	text, out = a.must("sandbox_process", args{"sandbox": id, "process": pid, "offset": 99_999_990, "limit": 100})
	if out["offset"] != 99_999_990.0 || out["output"] != strings.Repeat("x", 16)+"\nend\n" {
		t.Errorf("the end of the output is %q, %v", text, out)
	}
	if text, out := a.must("sandbox_process", args{"sandbox": id, "process": pid, "offset": 0}); !strings.Contains(text, "are kept no more") || out["offset"].(float64) < 1 {
		t.Errorf("the lost beginning is %.200q", text)
	}
	text, _ = a.must("sandbox_run", args{"sandbox": id, "command": "head -c 5000 /dev/urandom"})
	if !strings.Contains(text, "5000 bytes that are no text") || len(text) > 200 {
		t.Errorf("binary output is %q", text)
	}
	if text, _ = a.must("sandbox_run", args{"sandbox": id, "command": `printf 'a\033[2Kb\xff\U000E0041c'`}); text != "a\ufffd[2Kb\ufffd\ufffdc\n" {
		t.Errorf("control characters are %q", text)
	}
	a.must("sandbox_run", args{"sandbox": id, "command": "head -c 3000000 /dev/zero > /tmp/b; yes line | head -n 500000 > /tmp/t; head -c 200000 /dev/zero | tr '\\0' y > /tmp/l"})
	if text, out := a.must("file_read", args{"sandbox": id, "path": "/tmp/b"}); out["kind"] != "binary" || len(text) > 300 {
		t.Errorf("a binary file is %.300q", text)
	}
	if text, out := a.must("file_read", args{"sandbox": id, "path": "/tmp/t", "offset": 499_999}); text != "line\nline\n" || out["next"] != nil {
		t.Errorf("its end is %q, %v", text, out)
	}
	if text, out := a.must("file_read", args{"sandbox": id, "path": "/tmp/t", "limit": 100_000}); len(text) > 40_000 || out["next"].(float64) < 2 {
		t.Errorf("%d bytes, %v", len(text), out["next"])
	}
	if text, _ := a.must("file_read", args{"sandbox": id, "path": "/tmp/l"}); len(text) > 40_000 || !strings.Contains(text, "longer than") {
		t.Errorf("a long line is %d bytes", len(text))
	}
}

func TestACanceledCallKillsItsCommand(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{"directory": "write"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "sandbox_run", Arguments: args{"sandbox": id, "command": "touch began; sleep 100000"}})
		done <- err
	}()
	for _, err := os.Stat(filepath.Join(r.work, "began")); err != nil; _, err = os.Stat(filepath.Join(r.work, "began")) {
		a.must("sandbox_list", args{}) // the server answers meanwhile
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a canceled call has an answer")
	}
	text := ""
	for !strings.Contains(text, "exit 137") {
		text, _ = a.must("sandbox_process", args{"sandbox": id, "action": "list"})
		if t.Context().Err() != nil {
			t.Fatal(text)
		}
	}
	if strings.Contains(text, "running") || strings.Contains(text, "timed-out") {
		t.Errorf("it was not killed: %s", text)
	}
}

func TestAClientThatVanishesLeavesNothing(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{"directory": "write"})
	a.must("sandbox_run", args{"sandbox": id, "command": "sleep 100000", "background": true})
	go func() { // the connection of it ends
		_, _ = a.CallTool(context.Background(), &mcp.CallToolParams{Name: "sandbox_run", Arguments: args{"sandbox": id, "command": "touch began; sleep 100000"}})
	}()
	for _, err := os.Stat(filepath.Join(r.work, "began")); err != nil; _, err = os.Stat(filepath.Join(r.work, "began")) {
		a.must("sandbox_list", args{})
	}
	a.vanish()
	<-a.gone
	if n := r.boxes(t); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

func TestBackgroundProcessesAreReadAndFed(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{})
	_, out := a.must("sandbox_run", args{"sandbox": id, "command": "echo ready; cat; echo over", "background": true})
	pid := out["process"]
	if out["cause"] != "running" || out["exit"] != nil {
		t.Errorf("it is %v", out)
	}
	a.must("sandbox_process", args{"sandbox": id, "process": pid, "action": "write", "input": "hello\n"})
	a.must("sandbox_process", args{"sandbox": id, "process": pid, "action": "close"})
	_, out = a.must("sandbox_process", args{"sandbox": id, "process": pid, "wait": 300})
	if out["output"] != "ready\nhello\nover\n" || out["exit"] != 0.0 || out["cause"] != "exited" {
		t.Errorf("its output is %v", out)
	}
	_, out = a.must("sandbox_run", args{"sandbox": id, "command": "sleep 100000", "background": true})
	a.must("sandbox_process", args{"sandbox": id, "process": out["process"], "action": "kill"})
	_, out = a.must("sandbox_process", args{"sandbox": id, "process": out["process"], "wait": 300})
	if out["exit"] != 137.0 || out["cause"] != "signaled" {
		t.Errorf("it ended by %v", out)
	}
	_, out = a.must("sandbox_run", args{"sandbox": id, "command": "sleep 100000", "timeout": 0.2})
	if out["cause"] != "timed-out" {
		t.Errorf("its cause is %v", out)
	}
}

func TestCodeKeepsItsVariablesAndShowsPlots(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, false)
	id := a.box(args{})
	a.must("sandbox_run", args{"sandbox": id, "language": "python", "command": "x = 41"})
	if text, _ := a.must("sandbox_run", args{"sandbox": id, "language": "python", "command": "print('p'); x + 1"}); text != "p\n42\n" {
		t.Errorf("it shows %q", text)
	}
	text, out := a.must("sandbox_run", args{"sandbox": id, "language": "python", "command": "1/0"})
	if !strings.Contains(text, "ZeroDivisionError") || out["cause"] != "error" {
		t.Errorf("an error is %q, %v", text, out)
	}
	png := []byte("\x89PNG\r\n\x1a\n and so on")
	code := "class P:\n  def _repr_png_(self): return bytes.fromhex('" + fmt.Sprintf("%x", png) + "')\nP()"
	res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "sandbox_run", Arguments: args{"sandbox": id, "language": "python", "command": code}})
	if err != nil || len(res.Content) != 2 {
		t.Fatalf("%v, %v", res, err)
	}
	if image, ok := res.Content[1].(*mcp.ImageContent); !ok || image.MIMEType != "image/png" || !bytes.Equal(image.Data, png) {
		t.Errorf("the plot is %v", res.Content[1])
	}
	a.must("sandbox_run", args{"sandbox": id, "command": "printf '\\x89PNG\\r\\n\\x1a\\n' > /tmp/p.png"})
	res, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "file_read", Arguments: args{"sandbox": id, "path": "/tmp/p.png"}})
	if err != nil || len(res.Content) != 2 || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
}

func TestOneImplicitSandboxHasFourTools(t *testing.T) {
	r := newRig(t)
	a := r.agent(t, true)
	list, err := a.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	if n := r.boxes(t); n != 0 {
		t.Errorf("%d sandboxes are there before a call", n)
	}
	a.must("file_write", args{"path": "a", "content": "one"})
	text, out := a.must("sandbox_run", args{"command": "cat a; rm a; yes | head -c 100000"})
	if !strings.Contains(text, "[changed: removed a]") || !strings.Contains(text, "the rest: file_read") {
		t.Errorf("it says %q", text[max(0, len(text)-300):])
	}
	text, _ = a.must("file_read", args{"path": fmt.Sprintf("output:%v", out["process"]), "offset": 99_999})
	if !strings.HasPrefix(text, "y\n\n"[:1]) && !strings.HasPrefix(text, "\n") {
		t.Errorf("the rest is %q", text)
	}
	a.must("sandbox_undo", args{})
	if data, err := os.ReadFile(filepath.Join(r.work, "a")); err != nil || string(data) != "one" {
		t.Errorf("after the undo it is %q, %v", data, err)
	}
	a.refused("sandbox_run", args{"sandbox": "x", "command": "true"}, "sandbox")
	if n := r.boxes(t); n != 1 {
		t.Errorf("there are %d sandboxes", n)
	}
}

func TestToolsAreFewAndShort(t *testing.T) {
	r := newRig(t)
	r.offer.Spec.Policy.Network = paddock.NetworkPolicy{
		Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "listed.example"}},
		Secrets: []paddock.Secret{{Name: "TOKEN", Value: "s3cret-value-of-the-user", Hosts: []string{"listed.example"}}},
	}
	list, err := r.agent(t, false).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) > 10 {
		t.Errorf("there are %d tools", len(list.Tools))
	}
	// Tokenizers make of JSON with English words a token of 3.3 bytes or more.
	if tokens := (len(data) + 2) / 3; tokens > 2500 {
		t.Errorf("the list has %d bytes, which may be %d tokens", len(data), tokens)
	}
	for _, tool := range list.Tools {
		if tool.Annotations == nil || tool.OutputSchema == nil || tool.Description == "" {
			t.Errorf("%s lacks something", tool.Name)
		}
	}
}

func TestOneSandboxNeedsADirectory(t *testing.T) {
	if _, err := mcpserver.New(mcpserver.Options{Single: true}); err == nil {
		t.Error("it was made")
	}
}
