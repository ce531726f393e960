package cli

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenthook"
)

// A hookHome is a home with a project, for the hooks of agents.
type hookHome struct{ home, project string }

func newHookHome(t *testing.T) hookHome {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := hookHome{filepath.Join(dir, "home"), filepath.Join(dir, "home", "project")}
	if err := os.MkdirAll(d.project, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// run runs a command in the project, and gives its status and all that it wrote.
func (d hookHome) run(args ...string) (int, string) {
	v := invoke(d.project, map[string]string{"HOME": d.home}, nil, args...)
	status := v.Run(context.Background())
	return status, v.Stdout.String() + v.Stderr.String()
}

func (d hookHome) must(t *testing.T, args ...string) string {
	t.Helper()
	status, out := d.run(args...)
	if status != 0 {
		t.Fatalf("%v: status %d\n%s", args, status, out)
	}
	return out
}

// look gives the files and directories of the home, but for the records.
func (d hookHome) look(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, d.home)
		if name == "/.config/paddock" {
			return filepath.SkipDir
		}
		if name == "/.config" { // made for the records
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		all[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const ownSettings = "{\n\t// mine\n\t\"a\": 1, /* b */\n\t\"hooks\": {\"PreToolUse\": []},\n}\n"

func TestHooksAreTakenOutToTheByte(t *testing.T) {
	t.Parallel()
	for _, agent := range agenthook.Agents() {
		for _, project := range []bool{false, true} {
			for _, there := range []bool{false, true} {
				if there && agent.Plugin() || project && agent.UserOnly {
					continue
				}
				d := newHookHome(t)
				path := filepath.Join(d.home, agent.Default, agent.Home)
				more := []string{agent.Name, "--yes"}
				if project {
					path, more = filepath.Join(d.project, agent.Project), append(more, "--project")
				}
				if there {
					Plant(t, path, ownSettings, 0o640)
				}
				before := d.look(t)
				out := d.must(t, append([]string{"hooks", "install", "--accept-fail-open", "--memory", "2G"}, more...)...)
				if !strings.Contains(out, "+++ "+path) || !strings.Contains(out, "hook call "+agent.Name) {
					t.Errorf("%s: the change was not shown:\n%s", path, out)
				}
				if maps.Equal(d.look(t), before) {
					t.Errorf("%s: nothing changed", path)
				}
				if out := d.must(t, append([]string{"hooks", "install", "--accept-fail-open", "--memory=2G"}, more...)...); !strings.Contains(out, "already") {
					t.Errorf("%s: the same again says\n%s", path, out)
				}
				d.must(t, append([]string{"hooks", "install", "--accept-fail-open", "--memory=3G", "--allow=example.com"}, more...)...)
				if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("2G")) || bytes.Contains(data, []byte("2.0")) {
					t.Errorf("%s: %v; there are two\n%s", path, err, data)
				}
				if out := d.must(t, "hooks", "ls"); !strings.Contains(out, agent.Name) || !strings.Contains(out, "installed") {
					t.Errorf("hooks ls says\n%s", out)
				}
				d.must(t, append([]string{"hooks", "remove"}, more...)...)
				if after := d.look(t); !maps.Equal(after, before) {
					t.Errorf("%s: there was\n%q\nand there is\n%q", path, before, after)
				}
			}
		}
	}
}

func TestAFileThatChangedMeanwhileLosesTheHooksAlone(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	path := filepath.Join(d.home, ".claude/settings.json")
	Plant(t, path, ownSettings, 0o600)
	d.must(t, "hooks", "install", "claude", "-y", "--accept-fail-open")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	Plant(t, path, strings.Replace(string(data), `"a": 1`, `"a": 2`, 1), 0o600)
	if out := d.must(t, "hooks", "ls"); !strings.Contains(out, "installed, the file changed since") {
		t.Errorf("hooks ls says\n%s", out)
	}
	d.must(t, "hooks", "remove", "claude", "-y")
	data, err = os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "paddock") || !strings.Contains(string(data), `"a": 2, /* b */`) || !strings.Contains(string(data), "// mine") {
		t.Errorf("%v; left is\n%s", err, data)
	}
	if out := d.must(t, "hooks", "remove", "claude", "-y"); !strings.Contains(out, "there are no hooks") {
		t.Errorf("a second time says\n%s", out)
	}
}

func TestNothingChangesUnasked(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	path := filepath.Join(d.home, ".claude/settings.json")
	Plant(t, path, ownSettings, 0o600)
	elsewhere := filepath.Join(filepath.Dir(d.home), "dotfiles")
	Plant(t, filepath.Join(elsewhere, "hooks.json"), "{}\n", 0o600)
	for _, dir := range []string{".codex", ".gemini"} {
		if err := os.MkdirAll(filepath.Join(d.home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		".codex/hooks.json": filepath.Join(elsewhere, "hooks.json"), ".cursor": elsewhere, ".gemini/settings.json": filepath.Join(elsewhere, "gone"),
		"project/.gemini": elsewhere, "project/.github": "../.claude",
	} {
		if err := os.Symlink(target, filepath.Join(d.home, name)); err != nil {
			t.Fatal(err)
		}
	}
	Plant(t, filepath.Join(d.home, ".config/opencode/plugins/paddock.js"), "// mine\n", 0o600)
	before := d.look(t)
	for _, args := range [][]string{
		{"claude"}, {"nobody", "-y"}, {"codex", "-y"}, {"cursor", "-y"}, {"gemini", "-y"}, {"gemini", "--project", "-y"}, {"copilot", "--project", "-y"}, {"opencode", "-y"},
		{"claude", "-y", "--memory", "1"}, {"claude", "-y", "--read", "relative"}, {"claude", "-y", "--workspace", "/"}, {"claude", "-y", "--tier", "none"}, {"claude", "-y", "--allow", "a b"},
	} {
		status, out := d.run(append([]string{"hooks", "install", "--accept-fail-open"}, args...)...)
		if status != 125 {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
		if after := d.look(t); !maps.Equal(after, before) {
			t.Errorf("%v changed something:\n%q", args, after)
		}
	}
	d.must(t, "hooks", "install", "codex", "-y", "--follow", "--accept-fail-open")
	if info, err := os.Lstat(filepath.Join(d.home, ".codex/hooks.json")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	d.must(t, "hooks", "remove", "codex", "-y", "--follow")
	if data, err := os.ReadFile(filepath.Join(elsewhere, "hooks.json")); err != nil || string(data) != "{}\n" {
		t.Errorf("%v; left is %q", err, data)
	}
}

func TestAHookThatCannotAnswerRefuses(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	step := func(input string, args ...string) (int, string, string) {
		v := invoke(d.project, map[string]string{"HOME": d.home}, nil, append([]string{"hook", "call"}, args...)...)
		v.App.Stdin = strings.NewReader(input)
		return v.Run(context.Background()), v.Stdout.String(), v.Stderr.String()
	}
	good := `{"session_id":"s","cwd":"` + d.project + `","tool_name":"Bash","tool_input":{"command":"ls; '"}}`
	word := named(t, d.project)
	status, out, errs := step(good, "claude", "step", word, "--", "--memory=2G")
	if status != 0 || errs != "" || !strings.Contains(out, "hook shell --box hook-claude-") || !strings.Contains(out, "-- 'ls; %27'") {
		t.Errorf("status %d, %s, %s", status, out, errs)
	}
	for _, c := range [][]string{
		{"", "claude", "step", word, "--"}, {good, "claude", "step", "--"}, {good, "claude", "step"}, {good, "nobody", "step", "--"}, {good, "claude", "other", "--"}, {good}, {good, "claude", "step", "--", "'"},
	} {
		status, out, errs := step(c[0], c[1:]...)
		if status == 0 || out != "" || errs == "" {
			t.Errorf("%q: status %d, %q, %q", c, status, out, errs)
		}
	}
}

func TestAStepOutsideOfItsProjectIsRefused(t *testing.T) {
	t.Parallel()
	d := newHookHome(t)
	v := invoke(d.home, map[string]string{"HOME": d.home}, nil, "hook", "shell", "--box", "a", "--workspace", d.project, "--inode", inode(t, d.project), "--agent", "claude", "--", "ls")
	if status := v.Run(context.Background()); status != 125 || !strings.Contains(v.Stderr.String(), "is outside of the project") {
		t.Errorf("status %d, %s", status, v.Stderr.String())
	}
}
