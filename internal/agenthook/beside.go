package agenthook

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// Beside gives the files, below the user's directory of settings and below a project, that can hold what takes the effect
// from our hooks. A name may be a pattern of package filepath.
func (a Agent) Beside() (user, project []string) {
	switch a.Name {
	case "claude":
		return []string{"settings.json"}, []string{".claude/settings.json", ".claude/settings.local.json"}
	case "codex":
		return []string{"hooks.json", "config.toml"}, []string{".codex/hooks.json", ".codex/config.toml"}
	case "copilot":
		return []string{"hooks/*.json", "config.json", "settings.json"},
			[]string{".github/hooks/*.json", ".github/copilot/settings.json", ".github/copilot/settings.local.json", ".claude/settings.json", ".claude/settings.local.json"}
	case "opencode":
		return []string{"plugins/*", "plugin/*"}, []string{".opencode/plugins/*", ".opencode/plugin/*"}
	}
	return []string{filepath.Base(a.Home)}, []string{a.Project}
}

// Events before a command that another hook can answer instead of ours.
var deciding = []string{"PreToolUse", "preToolUse", "PermissionRequest", "permissionRequest", "BeforeTool", "beforeShellExecution"}

var (
	offTOML    = regexp.MustCompile(`hooks["']?\s*=\s*false`)
	escaped    = regexp.MustCompile(`\\[uUx]`)
	hookedTOML = regexp.MustCompile(`hooks"?[ \t]*\.[ \t]*"?(PreToolUse|PermissionRequest)|PreToolUse"?[ \t]*=`)
)

// switchesTOML reports whether a file of TOML may switch hooks off: in whatever table, and by whatever spelling of the name.
func switchesTOML(file []byte) bool { return offTOML.Match(file) || escaped.Match(file) }

// Beats gives why our hooks have no effect, or may have none, beside what is in a file of Beside. Empty is no reason.
func (a Agent) Beats(name string, file []byte) string {
	switch {
	case strings.HasSuffix(name, ".toml"):
		switch {
		case switchesTOML(file):
			return "it may switch hooks off"
		case hookedTOML.Match(file):
			return "it has another hook for the same tool"
		}
		return ""
	case a.Plugin():
		if strings.HasPrefix(string(file), pluginMark) || !strings.Contains(string(file), "tool.execute.before") {
			return ""
		}
		return "it is another hook for the same tool"
	case len(strings.TrimSpace(string(file))) == 0:
		return ""
	}
	root, err := settingsfile.Parse(file)
	if err != nil {
		return "it cannot be read, so what hooks it has is not known"
	}
	for at, off := range map[string]bool{"/disableAllHooks": true, "/hooksConfig/enabled": false, "/hooks/enabled": false, "/tools/enableHooks": false} {
		if v := under(&root, at); v != nil {
			if l, ok := v.Value.(hujson.Literal); ok && l.String() == fmt.Sprint(off) {
				return fmt.Sprintf("%s is %t in it, so the agent calls no hook", strings.ReplaceAll(at[1:], "/", "."), off)
			}
		}
	}
	for _, name := range []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CONFIG_DIR"} {
		if under(&root, "/env/"+name) != nil {
			return "it sets " + name + ", with which the agent may call no hook"
		}
	}
	for _, at := range []string{"/hooks/disabled", "/hooksConfig/disabled"} {
		if v := under(&root, at); v != nil && strings.Contains(v.String(), "paddock") {
			return "it switches Paddock's hook off"
		}
	}
	for _, event := range deciding {
		v := under(&root, "/hooks/"+event)
		if v == nil {
			continue
		}
		list, ok := v.Value.(*hujson.Array)
		if !ok || slices.ContainsFunc(list.Elements, a.rivals) {
			return "it has another hook for the same tool (" + event + "), whose answer can beat this one"
		}
	}
	return ""
}

// under gives the value at a path. Of several members with one name it is the last, as agents read it.
func under(v *hujson.Value, path string) *hujson.Value {
	for name := range strings.SplitSeq(path[1:], "/") {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		if v = settingsfile.Member(o, name); v == nil {
			return nil
		}
	}
	return v
}

// rivals tells whether an element of an event's list may be a hook that is not ours, for a tool of ours.
func (a Agent) rivals(v hujson.Value) bool {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return true
	}
	if m := settingsfile.Member(o, "matcher"); m != nil {
		l, _ := m.Value.(hujson.Literal)
		if !slices.ContainsFunc(shells, func(name string) bool { return a.tool(name) != passed && matches(l.String(), name) }) {
			return false
		}
	}
	if a.is(o) {
		return false
	}
	inner := settingsfile.Member(o, "hooks")
	if inner == nil {
		return true
	}
	group, ok := inner.Value.(*hujson.Array)
	return !ok || slices.ContainsFunc(group.Elements, func(v hujson.Value) bool {
		h, ok := v.Value.(*hujson.Object)
		return !ok || !a.is(h)
	})
}

var (
	nameOfTool = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	toolsOfMCP = regexp.MustCompile(`^mcp__[A-Za-z0-9_.*-]*$`)
)

// matches reports whether a matcher may match a tool. Some agents read it as a pattern that need not begin or end with the
// name, others as names divided by bars, commas or blanks. So only names that are no part of the tool's surely do not match,
// and the tools of MCP servers, whose prefix no tool for commands has.
func matches(matcher, tool string) bool {
	for text := range strings.SplitSeq(matcher, "|") {
		name := nameOfTool.MatchString(text) && !strings.Contains(tool, text)
		if !name && !toolsOfMCP.MatchString(text) {
			return true
		}
	}
	return false
}

// shells are the names of all tools that an agent has for commands.
var shells = []string{"Bash", "Monitor", "PowerShell", "run_shell_command", "Shell", "bash", "powershell", "write_bash", "write_powershell"}
