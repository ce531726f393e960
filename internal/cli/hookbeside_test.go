package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const rivalHook = `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"rewriter"}]}]}}`

// A link is no reason to look away: a project's is refused, and a user's own is followed.
func TestSettingsBehindALinkAreNotMissed(t *testing.T) {
	for what, plant := range map[string]func(d hookHome) (name, to string){
		"a file out of the project": func(d hookHome) (string, string) {
			Plant(t, filepath.Join(d.project, "conf/settings.json"), `{"disableAllHooks": true}`, 0o644)
			return filepath.Join(d.project, ".claude/settings.json"), "/proc/self/cwd/conf/settings.json"
		},
		"a file in the project": func(d hookHome) (string, string) {
			return filepath.Join(d.project, ".claude/settings.json"), "../later.json"
		},
		"a directory": func(d hookHome) (string, string) {
			Plant(t, filepath.Join(d.home, "elsewhere/settings.json"), `{"disableAllHooks": true}`, 0o644)
			return filepath.Join(d.project, ".claude"), filepath.Join(d.home, "elsewhere")
		},
		"the user's file": func(d hookHome) (string, string) {
			Plant(t, filepath.Join(d.home, "dotfiles/claude.json"), rivalHook, 0o644)
			return filepath.Join(d.home, ".claude/settings.json"), "../dotfiles/claude.json"
		},
	} {
		d := newHookHome(t)
		name, to := plant(d)
		makeDir(t, filepath.Dir(name))
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		args := []string{"hooks", "install", "claude", "--accept-fail-open", "--yes"}
		if strings.HasPrefix(what, "the user") {
			args = append(args, "--project")
		}
		if status, out := d.run(args...); status == 0 {
			t.Errorf("%s: installed\n%s", what, out)
		}
	}
}

// An agent reads the settings of the session's directory, so a step in a subdirectory looks there too.
func TestSettingsOfASubdirectoryRefuseAStep(t *testing.T) {
	for beside, refused := range map[string]bool{rivalHook: true, `{}`: false} {
		d := newHookHome(t)
		sub := makeDir(t, filepath.Join(d.project, "sub"))
		deeper := makeDir(t, filepath.Join(sub, "deeper"))
		Plant(t, filepath.Join(sub, ".claude/settings.json"), beside, 0o644)
		for _, dir := range []string{sub, deeper} {
			input := `{"session_id":"s","cwd":"` + dir + `","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"true"}}`
			v := invoke(dir, map[string]string{"HOME": d.home, "CLAUDE_PROJECT_DIR": dir}, nil, "hook", "call", "claude", "step", named(t, d.project), "--")
			v.App.Stdin = strings.NewReader(input)
			if status := v.Run(t.Context()); (status != 0) != refused {
				t.Errorf("%s in %s: status %d\n%s", beside, dir, status, v.Stderr.String())
			}
		}
	}
}
