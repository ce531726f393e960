package agenttest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// A hooked agent is one that stays on the host, with its shell tool in a box.
type hooked struct {
	*rig
	state string // of the private server, which the hooks start
}

// hook makes one, and ends its server with the test.
func hook(t *testing.T, r *rig) hooked {
	t.Helper()
	state, err := os.MkdirTemp("", "hk") // short, because a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	h := hooked{r, state}
	t.Cleanup(func() {
		h.do(t, r.work, r.paddock, "rm", "--all", "-f")
		for _, pid := range h.servers(t) {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Errorf("stop the server: %v", err)
			}
		}
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	return h
}

// servers lists the private servers that were started, by their log.
func (h hooked) servers(t *testing.T) (list []int) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(h.state, "server", "log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for line := range bytes.Lines(log) {
		var said struct {
			Msg string
			PID int
		}
		if json.Unmarshal(line, &said) == nil && said.Msg == "listening" && said.PID > 1 {
			list = append(list, said.PID)
		}
	}
	return list
}

// do runs a program of the host as the user of the agent, and returns what it says.
func (h hooked) do(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	at := "https://localhost:" + h.model.Port()
	c := exec.Command(program, args...)
	c.Dir = dir
	c.Env = append(h.surroundings(), "PADDOCK_STATE="+h.state, "NODE_EXTRA_CA_CERTS="+h.model.Authority(),
		"ANTHROPIC_BASE_URL="+at, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "GOOGLE_GEMINI_BASE_URL="+at, "GEMINI_CLI_TRUST_WORKSPACE=true")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v: %s", filepath.Base(program), args, err, out)
	}
	return string(out)
}

// agent runs the agent to its end.
func (h hooked) agent(t *testing.T, dir, prompt string) string {
	t.Helper()
	args := h.once("", prompt)
	if h.name == "gemini" {
		args = append([]string{"--yolo"}, args...) // its hook cannot answer for the user
	}
	return h.do(t, dir, filepath.Join(h.agents, "node_modules", ".bin", h.name), args...)
}

// The real agents stay on the host. A step runs in a box, leaves the project enterable for the next hook, and the file of
// settings is at the end what it was. A session that begins below the project runs no step.
func TestHooksRouteTheShellToolOfAnAgent(t *testing.T) {
	settings := map[string]string{
		"claude": "{\n\t\"includeCoAuthoredBy\":   false,\n    \"env\": { \"X\": \"it's\" }\n\n}",
		"gemini": `{ "security" :{"auth":{"selectedType":"gemini-api-key"}},` + "\n// of the user\n" + `"general": {"vimMode":false} }`,
	}
	each(t, "agents with hooks", func(t *testing.T, tier string, p product) {
		r := outsideRig(t, p, tier, func(work string) []agenttest.Turn {
			return []agenttest.Turn{
				agenttest.Shell("mkdir sub; chmod 0 .; chmod a-x '" + work + "'; (cd sub; chmod 0 ..); echo x > ../out/escaped.txt; cat ../home/secret.txt > stolen.txt; pwd > first.txt"),
				agenttest.Shell("cd sub && pwd > second.txt"),
				agenttest.Shell("id -u > third.txt; exit 3"),
				agenttest.Say("I am done."),
			}
		})
		r.model.When("below the project", agenttest.Shell("touch ran.txt"), agenttest.Say("I am done."))
		file := filepath.Join(r.home, "."+p.name, "settings.json")
		write(t, file, settings[p.name])
		write(t, filepath.Join(r.home, "secret.txt"), outside)
		mode, err := os.Stat(r.work)
		if err != nil {
			t.Fatal(err)
		}
		h := hook(t, r)
		t.Log(h.do(t, r.work, r.paddock, "hooks", "install", p.name, "--yes", "--approve", "--tier", tier))
		t.Log(h.agent(t, r.work, "do it"))
		if got := r.model.Reached(); !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Fatalf("the agent took the turns %d", got)
		}
		for name, want := range map[string]string{"first.txt": r.work + "\n", "sub/second.txt": r.work + "/sub\n", "stolen.txt": ""} {
			if got, err := os.ReadFile(filepath.Join(r.work, name)); string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(r.work, "third.txt")); err != nil && p.name != "claude" { // there `cd` lasts
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(r.out, "escaped.txt")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a step wrote outside: %v", err)
		}
		if fi, err := os.Stat(r.work); err != nil || fi.Mode() != mode.Mode() {
			t.Errorf("the project's directory is %v, %v; it was %v", fi, err, mode.Mode())
		}
		if got := h.do(t, r.work, r.paddock, "ls"); strings.Contains(got, "hook-") {
			t.Errorf("the session has ended, and its box is there: %s", got)
		}
		t.Log(h.agent(t, filepath.Join(r.work, "src"), "do it below the project"))
		for _, name := range []string{"ran.txt", "src/ran.txt"} {
			if _, err := os.Lstat(filepath.Join(r.work, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a step of a session below the project ran: %s: %v", name, err)
			}
		}
		for _, q := range r.model.Requests() {
			if bytes.Contains(q.Body, []byte(outside)) {
				t.Errorf("the model saw what is outside: %s", q.Body)
			}
		}
		t.Log(h.do(t, r.work, r.paddock, "hooks", "remove", p.name, "--yes"))
		if got, err := os.ReadFile(file); string(got) != settings[p.name] {
			t.Errorf("the settings are %q, %v", got, err)
		}
	}, "claude", "gemini")
}
