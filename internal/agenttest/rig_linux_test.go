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
	env      func(url string) []string
	home     func(url string) map[string]string // files of the host's home
	once     func(url, prompt string) []string  // arguments with which it works without a person
	again    func(url, prompt string) []string  // the same, in the session before
}

func products() []product {
	none := func(string) map[string]string { return nil }
	codex := func(url string) []string {
		return []string{
			"--skip-git-repo-check", "-c", "model_provider=x",
			"-c", `model_providers.x={name="x",base_url="` + url + `/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`,
		}
	}
	return []product{
		{
			"claude", "ANTHROPIC_API_KEY", func(url string) []string { return []string{"ANTHROPIC_BASE_URL=" + url} }, none,
			func(_, prompt string) []string { return []string{"-p", prompt} },
			func(_, prompt string) []string { return []string{"-c", "-p", prompt} },
		},
		{
			"codex", "OPENAI_API_KEY", func(string) []string { return nil }, none,
			func(url, prompt string) []string { return append(append([]string{"exec"}, codex(url)...), prompt) },
			func(url, prompt string) []string {
				return append(append([]string{"exec", "resume"}, codex(url)...), "--last", prompt)
			},
		},
		{
			"gemini", "GEMINI_API_KEY", func(url string) []string { return []string{"GOOGLE_GEMINI_BASE_URL=" + url} },
			func(string) map[string]string {
				return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`}
			},
			func(_, prompt string) []string { return []string{"-m", "gemini-2.5-flash", "-p", prompt} },
			func(_, prompt string) []string {
				return []string{"-m", "gemini-2.5-flash", "--resume", "latest", "-p", prompt}
			},
		},
		{
			"opencode", "ANTHROPIC_API_KEY", func(url string) []string {
				return []string{`OPENCODE_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"` + url + `/v1"}}}}`}
			}, none,
			func(_, prompt string) []string { return []string{"run", "-m", "anthropic/claude-sonnet-4-5", prompt} },
			func(_, prompt string) []string {
				return []string{"run", "-m", "anthropic/claude-sonnet-4-5", "-c", prompt}
			},
		},
		{
			"copilot", "COPILOT_PROVIDER_API_KEY", func(url string) []string {
				return []string{"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_MODEL=gpt-4.1", "COPILOT_OFFLINE=true"}
			}, none,
			func(_, prompt string) []string { return []string{"-p", prompt} },
			func(_, prompt string) []string { return []string{"--continue", "-p", prompt} },
		},
		{
			"pi", "ANTHROPIC_API_KEY", func(string) []string { return nil }, func(url string) map[string]string {
				// Nothing but a file tells it where a model is, and that file is not copied. So this is a profile of the user.
				own, err := os.ReadFile("../agentprofile/profiles/pi.yaml")
				if err != nil {
					panic(err)
				}
				first := "first_run:\n  - file: ~/.pi/agent/models.json\n    json: '{\"providers\":{\"anthropic\":{\"baseUrl\":\"" + url + "\"}}}'\n"
				return map[string]string{".config/paddock/agents/pi.yaml": string(own) + first}
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
	model           *agenttest.Model
	work, home, out string // the project, the host's home, and a directory to which the agent may write as well
	paddock, agents string
	tier            string
}

// newRig makes one for an agent in a box, whose files are removed at the end.
func newRig(t *testing.T, p product, tier string, turns func(work string) []agenttest.Turn) *rig {
	t.Helper()
	r := outsideRig(t, p, tier, turns)
	t.Cleanup(func() {
		c := r.command(t, "agent", "reset", r.name)
		if out, err := c.CombinedOutput(); err != nil { // as it is where a box is left that uses them
			t.Errorf("reset: %v: %s", err, out)
		}
	})
	return r
}

// outsideRig makes one for an agent of which Paddock keeps no files. The turns are those of the model, which may name
// files of the project by what they get.
func outsideRig(t *testing.T, p product, tier string, turns func(work string) []agenttest.Turn) *rig {
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
	r.out = filepath.Join(top, "out")
	for _, dir := range []string{r.work, r.home, r.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.model = agenttest.NewModel(t, turns(r.work)...)
	for name, text := range p.home(r.model.URL()) {
		write(t, filepath.Join(r.home, name), text)
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
	return []string{"PATH=" + filepath.Join(r.agents, "node_modules", ".bin") + ":" + os.Getenv("PATH"), "HOME=" + r.home, "TERM=xterm-256color", "LANG=C.UTF-8", "SSL_CERT_FILE=" + r.model.Authority(), r.variable + "=" + key}
}

// flags returns the command line that starts the agent in a box.
func (r *rig) flags(arguments []string, more ...string) []string {
	at := agenttest.Host + ":" + r.model.Port()
	list := append([]string{
		"agent", r.name, "--tier", r.tier, "--write", r.out, "--allow", "host:" + r.model.Port(), "--secret", r.variable + "=env:" + r.variable + "@" + at,
	}, more...)
	for _, e := range r.env(r.model.URL()) {
		list = append(list, "-e", e)
	}
	return append(append(list, "--"), arguments...)
}

// states is where this machine keeps the files of the agent, for all projects.
func (r *rig) states(t *testing.T) []string {
	t.Helper()
	data := filepath.Join(r.home, ".local", "share", "paddock")
	if os.Geteuid() == 0 {
		data = "/var/lib/paddock"
	}
	list, err := filepath.Glob(filepath.Join(data, "agents", r.name+"-*"))
	if err != nil || len(list) == 0 {
		t.Errorf("no files of %s are kept in %s: %v", r.name, data, err)
	}
	return list
}

// command returns paddock with arguments, in the project.
func (r *rig) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(r.paddock, args...)
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
