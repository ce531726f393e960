package agenttest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// key is what must never be in a box.
const key = "sk-real-0123456789abcdef-real"

// A product is a coding agent, and how it is told where the scripted model is.
type product struct {
	name     string
	variable string // that holds its key
	state    string // the directory in which it keeps what it knows
	env      func(url, state string) []string
	files    func(url string) map[string]string // of its state
	once     func(url, prompt string) []string  // arguments with which it works without a person
	again    func(url, prompt string) []string  // the same, in the session before
}

func products() []product {
	no := func(string) map[string]string { return nil }
	codex := func(url string) []string {
		return []string{
			"--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model_provider=x",
			"-c", `model_providers.x={name="x",base_url="` + url + `/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`,
		}
	}
	return []product{
		{
			"claude", "ANTHROPIC_API_KEY", "claude",
			func(url, state string) []string {
				return []string{"ANTHROPIC_BASE_URL=" + url, "CLAUDE_CONFIG_DIR=" + state, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
			}, no,
			func(_, prompt string) []string { return []string{"--dangerously-skip-permissions", "-p", prompt} },
			func(_, prompt string) []string { return []string{"--dangerously-skip-permissions", "-c", "-p", prompt} },
		},
		{
			"codex", "OPENAI_API_KEY", "codex",
			func(_, state string) []string { return []string{"CODEX_HOME=" + state} }, no,
			func(url, prompt string) []string { return append(append([]string{"exec"}, codex(url)...), prompt) },
			func(url, prompt string) []string {
				return append(append([]string{"exec", "resume"}, codex(url)...), "--last", prompt)
			},
		},
		{
			"gemini", "GEMINI_API_KEY", "gemini",
			func(url, state string) []string {
				return []string{"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_HOME=" + state, "GEMINI_CLI_TRUST_WORKSPACE=true"}
			},
			func(string) map[string]string {
				return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`}
			},
			func(_, prompt string) []string { return []string{"--yolo", "-m", "gemini-2.5-flash", "-p", prompt} },
			func(_, prompt string) []string {
				return []string{"--yolo", "-m", "gemini-2.5-flash", "--resume", "latest", "-p", prompt}
			},
		},
		{
			"opencode", "ANTHROPIC_API_KEY", "opencode",
			func(url, state string) []string {
				return []string{
					"XDG_DATA_HOME=" + state + "/data", "XDG_STATE_HOME=" + state + "/state", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
					`OPENCODE_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"` + url + `/v1"}}},"permission":"allow","share":"disabled"}`,
				}
			}, no,
			func(_, prompt string) []string { return []string{"run", "-m", "anthropic/claude-sonnet-4-5", prompt} },
			func(_, prompt string) []string {
				return []string{"run", "-m", "anthropic/claude-sonnet-4-5", "-c", prompt}
			},
		},
		{
			"copilot", "COPILOT_PROVIDER_API_KEY", "copilot",
			func(url, state string) []string {
				return []string{"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_MODEL=gpt-4.1", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_HOME=" + state}
			}, no,
			func(_, prompt string) []string {
				return []string{"--allow-all-tools", "--allow-all-paths", "-p", prompt}
			},
			func(_, prompt string) []string {
				return []string{"--allow-all-tools", "--allow-all-paths", "--continue", "-p", prompt}
			},
		},
		{
			"pi", "ANTHROPIC_API_KEY", "pi",
			func(_, state string) []string {
				return []string{"PI_CODING_AGENT_DIR=" + state, "PI_OFFLINE=1", "PI_TELEMETRY=0"}
			},
			func(url string) map[string]string {
				return map[string]string{"models.json": `{"providers":{"anthropic":{"baseUrl":"` + url + `"}}}`}
			},
			func(_, prompt string) []string {
				return []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", prompt}
			},
			func(_, prompt string) []string {
				return []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-c", "-p", prompt}
			},
		},
	}
}

// A rig is an agent with a model, a project of git, and a home of the host, all of the test.
type rig struct {
	product
	model             *agenttest.Model
	work, home, state string
	paddock, agents   string
	tier              string
}

// newRig makes one. The turns are those of the model, which may name files of the project by what they get.
func newRig(t *testing.T, p product, tier string, turns func(work string) []agenttest.Turn) *rig {
	t.Helper()
	built, agents := os.Getenv("PADDOCK_TEST_BUILT"), os.Getenv("PADDOCK_TEST_AGENTS")
	if built == "" || agents == "" {
		t.Skip("PADDOCK_TEST_BUILT or PADDOCK_TEST_AGENTS is not set: make build agents")
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("a network with rules needs it: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // the box and its gateway are other users
		t.Fatal(err)
	}
	r := &rig{product: p, work: filepath.Join(top, "work"), home: filepath.Join(top, "home"), paddock: filepath.Join(built, "paddock"), agents: agents, tier: tier}
	r.state = filepath.Join(top, "kept", p.state)
	for _, dir := range []string{r.work, r.home, r.state} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.model = agenttest.NewModel(t, turns(r.work)...)
	for name, text := range p.files(r.model.URL()) {
		write(t, filepath.Join(r.state, name), text)
	}
	script, err := os.ReadFile("testdata/search.py")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.work, "search.py"), string(script))
	write(t, filepath.Join(r.work, "src", "main.c"), "int main(void) { return 0; }\n")
	write(t, filepath.Join(r.work, "src", "untracked"), strings.Repeat("not in git\n", 1000))
	r.git(t, "init", "-q")
	r.git(t, "add", "search.py", "src/main.c")
	r.git(t, "commit", "-q", "-m", "first")
	return r
}

// search is the command that looks for the key in the box.
func (r *rig) search() string {
	return "python3 search.py " + r.variable + " " + base64.StdEncoding.EncodeToString([]byte(key))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// git runs git on the host, as a user does in the project after an agent was there.
func (r *rig) git(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", r.work, "-c", "user.name=A", "-c", "user.email=a@b.example"}, args...)...)
	c.Env = r.surroundings()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
}

// surroundings are the variables of the user who starts the agent.
func (r *rig) surroundings() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "TERM=xterm-256color", "LANG=C.UTF-8", "SSL_CERT_FILE=" + r.model.Authority(), r.variable + "=" + key}
}

// flags returns the command line that starts the agent in a box.
func (r *rig) flags(arguments []string, more ...string) []string {
	at := agenttest.Host + ":" + r.model.Port()
	list := []string{
		"run", "--tier", r.tier, "--undo", "on", "-w", ".", "--read", r.agents, "--write", filepath.Dir(r.state), "--memory", "4G", "--pids", "512",
		"--allow", "host:" + r.model.Port(), "--secret", r.variable + "=env:" + r.variable + "@" + at,
	}
	list = append(list, more...)
	for _, e := range r.env(r.model.URL(), r.state) {
		list = append(list, "-e", e)
	}
	return append(append(list, "--", filepath.Join(r.agents, "node_modules", ".bin", r.name)), arguments...)
}

// command returns paddock with arguments, in the project.
func (r *rig) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), r.paddock, args...)
	c.Dir, c.Env = r.work, r.surroundings()
	return c
}

// start runs paddock to its end and returns what it wrote.
func (r *rig) start(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// tree returns a sum of each file below a directory with its mode, and what a link names.
func tree(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			text += " " + to
		}
		all[strings.TrimPrefix(name, top)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// holds lists the files below a directory that hold the key.
func holds(t *testing.T, top string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte(key)) {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
