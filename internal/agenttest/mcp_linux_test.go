package agenttest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// Claude Code and Codex stay on the host, and call tools of paddock mcp as it was installed for them.
func TestAgentsCallToolsOfPaddock(t *testing.T) {
	for _, p := range products() {
		if p.name != "claude" && p.name != "codex" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			r := outsideRig(t, p, "jail", func(string) []agenttest.Turn {
				return []agenttest.Turn{
					agenttest.Serve("file_write", map[string]any{"path": "made.txt", "content": "two\n"}),
					agenttest.Serve("sandbox_run", map[string]any{"command": "cat ../home/secret.txt; cat made.txt > again.txt; rm search.py; echo done; getent hosts refused.example"}),
					agenttest.Serve("sandbox_undo", map[string]any{"paths": []string{"search.py"}}),
					agenttest.Say("I am done."),
				}
			})
			write(t, filepath.Join(r.home, "secret.txt"), outside)
			state := filepath.Join(filepath.Dir(r.home), "state")
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			variables := append(r.surroundings(), "PADDOCK_STATE="+state)
			run := func(program string, args ...string) string {
				t.Helper()
				c := exec.Command(program, args...)
				c.Dir, c.Env = r.work, variables
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v: %s", program, args, err, out)
				}
				return string(out)
			}
			t.Cleanup(func() { endPrivate(t, state) })
			// The client hands its own environment to servers in part, and the state is the test's.
			run(r.paddock, "mcp", "install", "--yes", p.name, "--", "--single", "--tier", "jail", "--server", "unix:"+filepath.Join(state, "server", "socket"))
			run(r.paddock, "ls") // starts the server
			agent := filepath.Join(r.agents, "node_modules", ".bin", p.name)
			url := r.model.URL()
			arguments := p.once(url, "do it")
			if p.name == "claude" {
				variables = append(variables, p.env("https://localhost:"+r.model.Port())...)
				variables = append(variables, "NODE_EXTRA_CA_CERTS="+r.model.Authority(), "IS_SANDBOX=1")
				arguments = append([]string{"--dangerously-skip-permissions"}, arguments...)
			} else {
				arguments = append([]string{"--dangerously-bypass-approvals-and-sandbox"}, p.once("https://localhost:"+r.model.Port(), "do it")...)
			}
			t.Log(run(agent, arguments...))
			if got := r.model.Reached(); !slices.Equal(got, []int{0, 1, 2, 3}) {
				t.Fatalf("it took the turns %d", got)
			}
			for name, want := range map[string]string{"made.txt": "two\n", "again.txt": "two\n"} {
				if got, err := os.ReadFile(filepath.Join(r.work, name)); string(got) != want {
					t.Errorf("%s is %q, %v", name, got, err)
				}
			}
			if _, err := os.Stat(filepath.Join(r.work, "search.py")); err != nil {
				t.Errorf("the undo: %v", err)
			}
			told := false
			for _, q := range r.model.Requests() {
				if bytes.Contains(q.Body, []byte(outside)) {
					t.Errorf("the model saw what is outside: %s", q.Body)
				}
				told = told || bytes.Contains(q.Body, []byte("removed search.py")) && bytes.Contains(q.Body, []byte("refused.example"))
			}
			if !told {
				t.Error("the model was not told what was changed and refused")
			}
		})
	}
}

// endPrivate ends the server of one state directory.
func endPrivate(t *testing.T, state string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(state, "server", "log"))
	if err != nil {
		return // none was started
	}
	_, rest, ok := bytes.Cut(log, []byte(`"pid":`))
	if !ok {
		return
	}
	number := string(rest[:bytes.IndexAny(rest, ",}")])
	if out, err := exec.Command("kill", number).CombinedOutput(); err != nil {
		t.Errorf("end the server: %v: %s", err, out)
	}
}
