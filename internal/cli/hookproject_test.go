package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agenthook"
)

func inode(t *testing.T, dir string) string {
	t.Helper()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return inodeOf(info)
}

// named gives the word by which a hook knows a project.
func named(t *testing.T, dir string) string {
	t.Helper()
	return hookedProject{inode(t, dir), dir}.word()
}

// call has a hook called in a directory, as an agent does.
func (d hookHome) call(dir, input string, args ...string) (int, string) {
	v := invoke(dir, map[string]string{"HOME": d.home}, nil, append([]string{"hook", "call"}, args...)...)
	v.App.Stdin = strings.NewReader(input)
	return v.Run(context.Background()), v.Stdout.String() + v.Stderr.String()
}

func makeDir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAModelChoosesNoProject(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	keys := makeDir(t, filepath.Join(d.home, ".ssh"))
	step := func(cwd string) string {
		return `{"session_id":"s","cwd":"` + cwd + `","tool_name":"Bash","tool_input":{"command":"ls"}}`
	}
	word := named(t, d.project)
	status, one := d.call(d.project, step(d.project), "codex", "step", word, "--")
	if status != 0 || !strings.Contains(one, "--workspace "+d.project) {
		t.Fatalf("status %d, %s", status, one)
	}
	if status, two := d.call(d.project, step(keys), "codex", "step", word, "--"); status != 0 || two != one {
		t.Errorf("with the tool's directory elsewhere: status %d, %s", status, two)
	}
	if status, out := d.call(keys, step(keys), "codex", "step", word, "--"); status != 2 {
		t.Errorf("a session elsewhere: status %d, %s", status, out)
	}
	if status, out := d.call(keys, step(keys), "codex", "step", named(t, keys), "--"); status != 2 {
		t.Errorf("a directory of keys: status %d, %s", status, out)
	}
}

func TestAProjectThatABoxExchangedIsRefused(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	victim := makeDir(t, filepath.Join(d.home, "victim"))
	number, word := inode(t, d.project), named(t, d.project)
	input := `{"session_id":"s","cwd":"` + d.project + `","tool_name":"Bash","tool_input":{"command":"ls"}}`
	for _, exchange := range []func() error{
		func() error { return os.Symlink(victim, d.project) },
		func() error { return os.Mkdir(d.project, 0o755) },
	} {
		if _, err := os.Lstat(d.project + ".old"); err != nil {
			err = os.Rename(d.project, d.project+".old")
			if err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(d.project); err != nil {
			t.Fatal(err)
		}
		if err := exchange(); err != nil {
			t.Fatal(err)
		}
		if status, out := d.call(d.project, input, "claude", "step", word, "--"); status != 2 || !strings.Contains(out, "not the directory any more") {
			t.Errorf("call: status %d, %s", status, out)
		}
		v := invoke(d.project, map[string]string{"HOME": d.home}, nil, "hook", "shell", "--box", "a", "--workspace", d.project, "--inode", number, "--agent", "claude", "--", "ls")
		if status := v.Run(context.Background()); status != 125 || !strings.Contains(v.Stderr.String(), "not the directory any more") {
			t.Errorf("shell: status %d, %s", status, v.Stderr.String())
		}
	}
}

func TestNoHookIsInstalledThatABoxCouldExchange(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	inside, outside := filepath.Join(d.project, "policy.yaml"), filepath.Join(d.home, "policy.yaml")
	for _, path := range []string{inside, outside} {
		Plant(t, path, "version: 1\n", 0o600)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	v := invoke(d.project, map[string]string{"HOME": d.home}, nil)
	reach := func(project string, words ...string) error {
		var f boxFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse(words); err != nil {
			t.Fatal(err)
		}
		return f.outOfReach(v.App, fs.Changed, program, []hookedProject{{"", project}})
	}
	if err := reach(filepath.Dir(program)); !errors.Is(err, paddock.Denied) {
		t.Errorf("the program may be in the project: %v", err)
	}
	link := filepath.Join(d.home, "link.yaml")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(d.project, "secret")
	pol, data := makeDir(t, filepath.Join(d.home, "pol")), makeDir(t, filepath.Join(d.home, "data"))
	own, of, far := filepath.Join(pol, "own.yaml"), filepath.Join(pol, "secret.yaml"), filepath.Join(pol, "good.yaml")
	Plant(t, own, "version: 1\nmounts:\n  - {write: ~/pol}\n", 0o600)
	Plant(t, of, "version: 1\nnetwork: {mode: list, rules: [{allow: example.com}], secrets: {T: {from: 'file:~/project/secret', hosts: [example.com]}}}\n", 0o600)
	Plant(t, far, "version: 1\nmounts:\n  - {write: ~/data}\nnetwork: {mode: list, rules: [{allow: example.com}], secrets: {T: {from: 'file:~/pol/x', hosts: [example.com]}}}\n", 0o600)
	for from, to := range map[string]string{filepath.Join(d.project, "conf"): pol, filepath.Join(d.home, "conf"): filepath.Join(d.project, "conf"), filepath.Join(d.home, "here"): pol} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	sub := makeDir(t, filepath.Join(d.project, "sub"))
	for _, bad := range [][]string{
		{"--policy=" + inside},
		{"--policy=" + link},
		{"--srt-settings=" + inside},
		{"--secret=A=file:" + secret + "@example.com"},
		{"--secret=A=file:~/project/secret@example.com"},
		{"--policy=" + outside, "--write=" + d.home + ":/in"},
		{"--policy=" + own},
		{"--policy=" + far, "--write=" + far},
		{"--policy=" + filepath.Join(d.home, "conf", "good.yaml")},
		{"--policy=" + of},
		{"--read=" + filepath.Join(d.project, "conf") + ":/conf"},
		{"--read=" + filepath.Join(d.home, "conf")},
		{"--read=" + sub + ":/sub"},
		{"--mode=full"},
	} {
		if err := reach(d.project, bad...); err == nil || !strings.Contains(err.Error(), "a step could") && bad[0] != "--srt-settings="+inside {
			t.Errorf("%v: %v", bad, err)
		}
		if status, out := d.run(append([]string{"hooks", "install", "opencode", "--yes"}, bad...)...); status != 125 {
			t.Errorf("install %v: status %d, %s", bad, status, out)
		}
	}
	for _, good := range [][]string{
		nil,
		{"--policy=" + outside},
		{"--policy=" + far},
		{"--policy=" + filepath.Join(d.home, "here", "good.yaml"), "--read=" + filepath.Join(d.home, "here")},
		{"--write=" + data, "--secret=A=file:~/pol/x@example.com", "--mode=workspace-write"},
	} {
		if err := reach(d.project, good...); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	input := `{"session_id":"s","cwd":"` + d.project + `","tool_name":"Bash","tool_input":{"command":"ls"}}`
	for _, name := range []string{inside, own, of, filepath.Join(d.home, "conf", "good.yaml")} {
		if status, out := d.call(d.project, input, "claude", "step", named(t, d.project), "--", "--policy="+name); status != 2 || !strings.Contains(out, "a step could") {
			t.Errorf("call with %s: status %d, %s", name, status, out)
		}
		v := invoke(d.project, map[string]string{"HOME": d.home}, nil, "hook", "shell", "--box", "a", "--workspace", d.project, "--inode", inode(t, d.project), "--agent", "claude", "--policy="+name, "--", "ls")
		if status := v.Run(context.Background()); status != 125 || !strings.Contains(v.Stderr.String(), "a step could") {
			t.Errorf("shell with %s: status %d, %s", name, status, v.Stderr.String())
		}
	}
	if status, out := d.call(d.project, input, "claude", "step", named(t, d.project), "--", "--policy="+far); status != 0 {
		t.Errorf("call: status %d, %s", status, out)
	}
}

func TestWhatTakesTheEffectIsToldAndRefused(t *testing.T) {
	t.Parallel()
	const other = `{"hooks":[{"type":"command","command":"rewrite"}]}`
	for _, c := range []struct{ agent, path, text string }{
		{"claude", ".claude/settings.json", `{"disableAllHooks": true}`},
		{"claude", "project/.claude/settings.json", `{"disableAllHooks": true}`},
		{"claude", "project/.claude/settings.json", `{"hooks":{"PreToolUse":[` + other + `]}}`},
		{"claude", ".claude/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Bash|Write",` + other[1:] + `]}}`},
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"enabled":false}}`},
		{"codex", ".codex/config.toml", "[features]\nhooks = false\n"},
		{"codex", "project/.codex/hooks.json", `{"hooks":{"PreToolUse":[` + other + `]}}`},
		{"copilot", ".copilot/hooks/aa.json", `{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"rewrite"}]}}`},
		{"opencode", ".config/opencode/plugins/x.js", `export const X = async () => ({"tool.execute.before": async () => {}})`},
	} {
		d := newHookHome(t)
		install := []string{"hooks", "install", c.agent, "--yes", "--accept-fail-open"}
		d.must(t, install...)
		d.must(t, "hooks", "remove", c.agent, "--yes")
		Plant(t, filepath.Join(d.home, c.path), c.text, 0o600)
		before := d.look(t)
		if status, out := d.run(install...); status != 125 || !strings.Contains(out, filepath.Base(c.path)) {
			t.Errorf("%s with %s: status %d, %s", c.agent, c.text, status, out)
		}
		if !maps.Equal(d.look(t), before) {
			t.Errorf("%s with %s: something changed", c.agent, c.text)
		}
	}
	d := newHookHome(t)
	d.must(t, "hooks", "install", "claude", "--yes", "--accept-fail-open")
	if out := d.must(t, "hooks", "ls"); !strings.Contains(out, "installed, fails open") {
		t.Error(out)
	}
	Plant(t, filepath.Join(d.project, ".claude/settings.json"), `{"hooks":{"PreToolUse":[`+other+`]}}`, 0o600)
	if out := d.must(t, "hooks", "ls"); !strings.Contains(out, "not enforced: ") {
		t.Error(out)
	}
	input := `{"session_id":"s","cwd":"` + d.project + `","tool_name":"Bash","tool_input":{"command":"ls"}}`
	if status, out := d.call(d.project, input, "claude", "step", named(t, d.project), "--"); status != 2 {
		t.Errorf("call: status %d, %s", status, out)
	}
}

func TestAnAgentThatFailsOpenIsInstalledByNameOnly(t *testing.T) {
	t.Parallel()
	for _, agent := range agenthook.Agents() {
		d := newHookHome(t)
		status, out := d.run("hooks", "install", agent.Name, "--yes")
		byName := agent.Opens && !agent.AtStart
		if byName != (status == 125) || byName && !strings.Contains(out, "--accept-fail-open") {
			t.Errorf("%s: status %d, %s", agent.Name, status, out)
		}
		if agent.UserOnly {
			if status, out := d.run("hooks", "install", agent.Name, "--yes", "--project", "--accept-fail-open"); status != 125 || !strings.Contains(out, "leave --project out") {
				t.Errorf("%s: status %d, %s", agent.Name, status, out)
			}
		}
	}
}

// An agent that fails open is sure to start its hook in the project's own directory alone, whose mode no box changes.
func TestAStepElsewhereThanAtTheStartIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "gemini"} {
		d := newHookHome(t)
		sub := makeDir(t, filepath.Join(d.project, "sub"))
		d.must(t, "hooks", "install", name, "--yes")
		if out := d.must(t, "hooks", "ls"); !strings.Contains(out, "installed") || strings.Contains(out, "fails open") {
			t.Errorf("%s: %s", name, out)
		}
		tool := map[string]string{"claude": "Bash", "gemini": "run_shell_command"}[name]
		step := func(tool, input string) string {
			return `{"session_id":"s","cwd":"` + d.project + `","tool_name":"` + tool + `","tool_input":` + input + `}`
		}
		words := []string{name, "step", topWord, named(t, d.project), "--"}
		for _, c := range []struct {
			dir, input string
			refused    bool
		}{
			{d.project, step(tool, `{"command":"ls"}`), false},
			{sub, step(tool, `{"command":"ls"}`), true},
			{d.project, step("EnterWorktree", `{}`), name == "claude"},
			{d.project, step("Agent", `{"prompt":"x"}`), false},
			{d.project, step("Agent", `{"prompt":"x","isolation":"worktree"}`), name == "claude"},
			{d.project, step("Task", `{"prompt":"x","isolation":{}}`), name == "claude"},
			{d.project, step("Workflow", `{"script":"agent('x')"}`), false},
			{d.project, step("Workflow", `{"script":"agent('x', {isolation: 'worktree'})"}`), name == "claude"},
			{d.project, step("Workflow", `{"name":"x"}`), name == "claude"},
			{d.project, step("Workflow", `{"scriptPath":"/x"}`), name == "claude"},
		} {
			if status, out := d.call(c.dir, c.input, words...); c.refused != (status == 2) || !c.refused && status != 0 {
				t.Errorf("%s in %s, %s: status %d, %s", name, c.dir, c.input, status, out)
			}
		}
		// Who accepted that works below, too.
		d.must(t, "hooks", "install", name, "--yes", "--accept-fail-open")
		if out := d.must(t, "hooks", "ls"); !strings.Contains(out, "fails open") {
			t.Errorf("%s: %s", name, out)
		}
		if status, out := d.call(sub, step(tool, `{"command":"ls"}`), name, "step", named(t, d.project), "--"); status != 0 {
			t.Errorf("%s: status %d, %s", name, status, out)
		}
	}
}

func TestNoHookIsInstalledInAHome(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	for _, dir := range []string{d.home, filepath.Dir(d.home), makeDir(t, filepath.Join(d.home, ".codex/x"))} {
		v := invoke(dir, map[string]string{"HOME": d.home}, nil, "hooks", "install", "opencode", "--yes")
		if status := v.Run(context.Background()); status != 125 {
			t.Errorf("%s: status %d", dir, status)
		}
	}
}

func TestNothingIsMadeInAnotherUsersHome(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a home away")
	}
	d := newHookHome(t)
	if err := os.Chown(d.home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, name := range agenthook.Names() {
		before := d.look(t)
		if status, out := d.run("hooks", "install", name, "--yes", "--accept-fail-open"); status != 125 || !strings.Contains(out, "another user") {
			t.Errorf("%s: status %d, %s", name, status, out)
		}
		if !maps.Equal(d.look(t), before) {
			t.Errorf("%s: something changed", name)
		}
	}
	if _, err := os.Lstat(filepath.Join(d.home, ".config")); err == nil {
		t.Error("records were made")
	}
}
