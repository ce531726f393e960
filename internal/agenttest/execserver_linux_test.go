package agenttest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// outside is what a file of the host holds that no box may see.
const outside = "only the host knows this"

// codexOutside runs Codex on the host, with its tools in a box.
func (r *rig) codexOutside(t *testing.T, mode string) string {
	t.Helper()
	write(t, filepath.Join(r.home, ".codex", "environments.toml"), `default = "box"
include_local = false
[[environments]]
id = "box"
program = "`+r.paddock+`"
args = ["exec-server", "--tier", "`+r.tier+`"]
initialize_timeout_sec = 300
`)
	args := append([]string{"--sandbox", mode}, r.once("https://localhost:"+r.model.Port(), "do it")...)
	c := exec.Command(filepath.Join(r.agents, "node_modules", ".bin", "codex"), args...)
	c.Dir, c.Env = r.work, append(r.surroundings(), "CODEX_HOME="+filepath.Join(r.home, ".codex"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("codex: %v: %s", err, out)
	}
	return string(out)
}

// codexOn runs a test of Codex on the tiers.
func codexOn(t *testing.T, run func(t *testing.T, tier string, p product)) {
	t.Helper()
	list := products()
	i := slices.IndexFunc(list, func(p product) bool { return p.name == "codex" })
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) { run(t, tier, list[i]) })
	}
}

// Codex stays on the host, and its shell and patch tools see and change what the box has, and nothing else.
func TestCodexRunsItsToolsInABox(t *testing.T) {
	codexOn(t, func(t *testing.T, tier string, p product) {
		r := outsideRig(t, p, tier, func(work string) []agenttest.Turn {
			at := func(name string) string { return filepath.Join(work, name) }
			secret := filepath.Join(filepath.Dir(work), "home", "secret.txt")
			return []agenttest.Turn{
				agenttest.Shell("cat " + secret + " > stolen.txt 2>&1; cat src/main.c > seen.txt; env > env.txt; cat stolen.txt"),
				agenttest.Write(at("made.txt"), "two\n"),
				agenttest.Edit(at("made.txt"), "two", "three"),
				agenttest.Write(filepath.Join(filepath.Dir(work), "home", "planted.txt"), "planted\n"),
				agenttest.Shell("cat made.txt > again.txt"),
				agenttest.Say("I am done."),
			}
		})
		secret := filepath.Join(r.home, "secret.txt")
		write(t, secret, outside)
		before := tree(t, r.work)
		t.Log(r.codexOutside(t, "danger-full-access"))
		if got := r.model.Reached(); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
			t.Fatalf("Codex took the turns %d", got)
		}
		for name, want := range map[string]string{"seen.txt": "int main(void) { return 0; }\n", "made.txt": "three\n", "again.txt": "three\n"} {
			if got, err := os.ReadFile(filepath.Join(r.work, name)); string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		stolen, err := os.ReadFile(filepath.Join(r.work, "stolen.txt"))
		if err != nil || !strings.Contains(string(stolen), "No such file") {
			t.Errorf("what a command says of the file outside: %q, %v", stolen, err)
		}
		env, err := os.ReadFile(filepath.Join(r.work, "env.txt"))
		if err != nil || !bytes.Contains(env, []byte("CODEX_CI=1")) || bytes.Contains(env, []byte(key)) {
			t.Errorf("the variables of a command: %s, %v", env, err)
		}
		for _, q := range r.model.Requests() {
			if bytes.Contains(q.Body, []byte(outside)) {
				t.Errorf("the model saw what is outside: %s", q.Body)
			}
		}
		if _, err := os.Lstat(filepath.Join(r.home, "planted.txt")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the patch tool wrote outside: %v", err)
		}
		var steps []struct{ Number int64 }
		if err := json.Unmarshal([]byte(r.start(t, "steps", "--json")), &steps); err != nil || len(steps) == 0 {
			t.Fatalf("the steps: %v, %v", steps, err)
		}
		first := steps[0].Number
		for _, s := range steps {
			first = min(first, s.Number)
		}
		t.Log(r.start(t, "undo", "--to", strconv.FormatInt(first, 10)))
		if after := tree(t, r.work); !maps.Equal(before, after) {
			t.Errorf("undo left %v of %v", after, before)
		}
	})
}

// A sandbox of Codex's own, which the box would not make, is refused: nothing runs with more rights than were asked for.
func TestCodexsOwnSandboxIsRefused(t *testing.T) {
	codexOn(t, func(t *testing.T, tier string, p product) {
		r := outsideRig(t, p, tier, func(work string) []agenttest.Turn {
			return []agenttest.Turn{
				agenttest.Shell("touch ran.txt"),
				agenttest.Write(filepath.Join(work, "made.txt"), "two\n"),
				agenttest.Say("I am done."),
			}
		})
		out := r.codexOutside(t, "read-only")
		for _, name := range []string{"ran.txt", "made.txt"} {
			if _, err := os.Lstat(filepath.Join(r.work, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there: %v: %s", name, err, out)
			}
		}
		if !strings.Contains(out, "danger-full-access") {
			t.Errorf("Codex does not say what to do: %s", out)
		}
	})
}
