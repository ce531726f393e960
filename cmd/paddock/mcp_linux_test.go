package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An installed program is this one, with a home and a server of its own.
type installed struct {
	t               *testing.T
	path, work, log string
	env             []string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // a box is another user
		t.Fatal(err)
	}
	p := &installed{t: t, path: filepath.Join(dir, "paddock"), work: filepath.Join(dir, "work"), log: filepath.Join(dir, "state", "server", "log")}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.work, filepath.Join(dir, "home")} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "PADDOCK_STATE=" + filepath.Join(dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
	t.Cleanup(p.endServer)
	return p
}

// endServer ends the server of the test's own, if one was started.
func (p *installed) endServer() {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return
	}
	_, rest, ok := strings.Cut(string(log), `"msg":"listening"`)
	_, rest, found := strings.Cut(rest, `"pid":`)
	if !ok || !found {
		return
	}
	pid, err := strconv.Atoi(rest[:strings.IndexAny(rest, ",}")])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGTERM)
	}
	if err != nil {
		p.t.Error(err)
	}
	for syscall.Kill(pid, 0) == nil && p.t.Context().Err() == nil { // it ends by itself
	}
}

func (p *installed) command(args ...string) *exec.Cmd {
	c := exec.Command(p.path, args...)
	c.Dir, c.Env = p.work, p.env
	return c
}

// ids lists the sandboxes that there are.
func (p *installed) ids() string {
	p.t.Helper()
	out, err := p.command("ls", "-q").CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// agent starts the program and connects to it.
func (p *installed) agent(c *exec.Cmd) *mcp.ClientSession {
	p.t.Helper()
	c.Stderr = os.Stderr
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(p.t.Context(), &mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *installed) tool(s *mcp.ClientSession, name string, in map[string]any) string {
	p.t.Helper()
	res, err := s.CallTool(p.t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		p.t.Fatalf("%s: %s", name, text)
	}
	return text
}

func TestAnAgentHasSandboxesOfTheProgramUntilItEnds(t *testing.T) {
	p := newInstalled(t)
	s := p.agent(p.command("mcp", "--tier", "jail"))
	type in = map[string]any
	p.tool(s, "sandbox_create", in{"name": "box", "directory": "write"})
	if text := p.tool(s, "sandbox_run", in{"sandbox": "box", "command": "echo hi | tee a; pwd"}); text != "hi\n"+p.work+"\n[changed: created a]\n" {
		t.Errorf("it says %q", text)
	}
	p.tool(s, "file_write", in{"sandbox": "box", "path": "b", "content": "two"})
	if text := p.tool(s, "file_read", in{"sandbox": "box", "path": "b"}); text != "two" {
		t.Errorf("it reads %q", text)
	}
	p.tool(s, "sandbox_create", in{"name": "gone"})
	p.tool(s, "sandbox_kill", in{"sandbox": "gone"})
	p.tool(s, "sandbox_create", in{"name": "kept", "keep": true})
	mark := strconv.Itoa(2_000_000_000 + os.Getpid())
	p.tool(s, "sandbox_run", in{"sandbox": "box", "command": "sleep " + mark, "background": true})
	for !runs(t, mark) { // the shell that becomes it was started
		if t.Context().Err() != nil {
			t.Fatal("the process in background does not run")
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if ids := p.ids(); ids != "kept" || runs(t, mark) {
		t.Errorf("when it had ended there was left %q, and a process: %v", ids, runs(t, mark))
	}
	out, err := p.command("undo", "--to", "1").CombinedOutput()
	if _, gone := os.Stat(filepath.Join(p.work, "a")); err != nil || !os.IsNotExist(gone) {
		t.Errorf("what it changed is not undone: %v, %v, %s", gone, err, out)
	}
	s = p.agent(p.command("mcp", "--tier", "jail"))
	p.tool(s, "sandbox_kill", in{"sandbox": "kept"})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// runs reports whether a process of the host, in a sandbox or not, has this argument.
func runs(t *testing.T, argument string) bool {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		line, err := os.ReadFile(name)
		if err == nil && slices.Contains(strings.Split(string(line), "\x00"), argument) {
			return true
		}
	}
	return false
}

func TestAProgramThatIsKilledLeavesNoSandbox(t *testing.T) {
	p := newInstalled(t)
	c := p.command("mcp", "--tier", "jail", "--single")
	s := p.agent(c)
	mark := strconv.Itoa(1_000_000_000 + os.Getpid())
	p.tool(s, "sandbox_run", map[string]any{"command": "setsid sleep " + mark + " >/dev/null 2>&1 &"})
	for !runs(t, mark) {
		if t.Context().Err() != nil {
			t.Fatal("there is no sandbox")
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close() // the process was killed
	for runs(t, mark) {
		if t.Context().Err() != nil {
			t.Fatal("a sandbox is left")
		}
	}
}

func TestATerminalAndAHomeAreNoAgents(t *testing.T) {
	p := newInstalled(t)
	c := p.command("mcp", "--single", "--workspace", "/")
	c.Stdin = strings.NewReader("")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "hint: ") {
		t.Errorf("%v: %s", err, out)
	}
	c = p.command("mcp", "--single")
	c.Dir = filepath.Dir(p.work) // which holds the home
	c.Stdin = strings.NewReader("")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "--workspace") {
		t.Errorf("%v: %s", err, out)
	}
}
