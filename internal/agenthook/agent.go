package agenthook

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// An Event is what an agent calls a hook for.
type Event string

const (
	// Step comes before a command of the shell tool.
	Step Event = "step"
	// Guard comes after all hooks of Step, with the command that will run. It refuses one that Step did not write.
	Guard Event = "guard"
	// End comes when a session has ended.
	End Event = "end"
)

// An Agent is a coding agent whose shell tool can be routed.
type Agent struct {
	Name, Title string

	// Home is the file of the user's settings: below the directory that the variable Variable names, or else below
	// Default, which is below the home directory. Project is the file below a project's directory.
	Variable, Default, Home, Project string

	// Project directory of a session, where the agent tells it by a variable. Empty is where it tells it by its input.
	projectVariable string

	// Keeps tells that a `cd` of one step is there for the next one.
	Keeps bool

	// Opens tells that the agent runs a command outside if it cannot start a hook, as in a directory that it may not enter.
	Opens bool

	// AtStart tells that the agent starts its hooks in the directory in which the session began, but for what strays does.
	// No box takes the right to enter a project's own directory, so there such a hook is always started.
	AtStart bool

	// UserOnly tells that the agent reads a project's hooks only where it was told to trust the project, which Paddock
	// cannot see.
	UserOnly bool

	// Note is said after an installation: what the user has to do, and what is not covered.
	Note string

	tool    func(name string) verdict
	strays  func(Call) bool // tells that a call has the session, or a part of it, go on in another directory; may be nil
	entries func(command func(Event) string) []entry
	answer  func(Call, string, bool) any
}

// A verdict is what becomes of a tool's call.
type verdict int

const (
	passed  verdict = iota // is not a shell
	routed                 // goes into the box
	refused                // is a shell, or reaches one, and cannot be routed
)

// An entry is what a list of a file of settings gets.
type entry struct {
	list  []string // names on the way to the list
	value any
}

// field is a member of an object. Objects keep the order in which they are written here.
type field struct {
	name  string
	value any
}

type object []field

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(f.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// marshal writes JSON without the escapes that are only for HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// Agents returns all agents, by name.
func Agents() []Agent {
	return []Agent{claude(), codex(), copilot(), cursor(), gemini(), opencode()}
}

// Names returns the names of all agents.
func Names() []string {
	var names []string
	for _, a := range Agents() {
		names = append(names, a.Name)
	}
	return names
}

// Named returns the agent of that name.
func Named(name string) (Agent, error) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, fmt.Errorf("%q is no agent with hooks; there are %s: %w", name, strings.Join(Names(), ", "), paddock.Invalid)
	}
	return all[i], nil
}

// UserFile returns the directory of the user's settings, and the file of hooks below it.
func (a Agent) UserFile(home string, lookup func(string) (string, bool)) (dir, file string) {
	dir = filepath.Join(home, a.Default)
	if a.Variable != "" {
		if value, _ := lookup(a.Variable); filepath.IsAbs(value) {
			dir = value
			if a.Variable == "XDG_CONFIG_HOME" {
				dir = filepath.Join(value, filepath.Base(a.Default))
			}
		}
	}
	return dir, a.Home
}

// Plugin tells that the agent's file is a program of ours, and no settings.
func (a Agent) Plugin() bool { return strings.HasSuffix(a.Home, ".js") }

// Strays tells that a call of a tool has the agent go on in another directory than the one in which the session began.
func (a Agent) Strays(c Call) bool { return a.strays != nil && a.strays(c) }

// one passes every tool but those of the names: the first is routed, the others are refused.
func one(routes []string, refuses ...string) func(string) verdict {
	return func(name string) verdict {
		switch {
		case slices.Contains(routes, name):
			return routed
		case slices.Contains(refuses, name):
			return refused
		}
		return passed
	}
}

// The longest time that agents give a hook, in seconds. A hook that is late is one that the agent goes on without, so
// the bound is as long as agents take; a hook of ours asks nobody and takes milliseconds.
const patience = 600

// grouped are the entries of agents that sort hooks by tools.
func grouped(before, after, matcher string, timeout int, named bool) func(func(Event) string) []entry {
	return func(command func(Event) string) []entry {
		hook := func(e Event) object {
			o := object{{"type", "command"}, {"command", command(e)}, {"timeout", timeout}}
			if named {
				o = append(object{{"name", "paddock-" + string(e)}}, o...)
			}
			return o
		}
		list := []entry{{[]string{"hooks", before}, object{{"matcher", matcher}, {"hooks", []object{hook(Step)}}}}}
		if after != "" {
			list = append(list, entry{[]string{"hooks", after}, object{{"hooks", []object{hook(End)}}}})
		}
		return list
	}
}

func claude() Agent {
	return Agent{
		Name: "claude", Title: "Claude Code", Keeps: true, Opens: true, AtStart: true, strays: claudeStrays, projectVariable: "CLAUDE_PROJECT_DIR",
		Variable: "CLAUDE_CONFIG_DIR", Default: ".claude", Home: "settings.json", Project: ".claude/settings.local.json",
		Note:    "Rules of its settings such as Bash(git push:*) see the rewritten command, and match no more: what a step may do is the box's policy.",
		tool:    one([]string{"Bash", "Monitor"}, "PowerShell"),
		entries: grouped("PreToolUse", "SessionEnd", "Bash|Monitor|PowerShell|"+claudeStray, patience, false),
		answer: func(c Call, line string, approve bool) any {
			out := object{{"hookEventName", "PreToolUse"}}
			if approve {
				out = append(out, field{"permissionDecision", "allow"}, field{"permissionDecisionReason", "it runs in a box"})
			}
			return object{{"hookSpecificOutput", append(out, field{"updatedInput", c.with(line)})}}
		},
	}
}

// claudeStray are the tools of Claude Code that can lead into a working tree of git of its own: always, or for another
// agent if they are asked to.
const claudeStray = "EnterWorktree|Agent|Task|Workflow"

func claudeStrays(c Call) bool {
	asks := func(name string) bool { return c.args[name] != nil }
	switch c.Tool {
	case "EnterWorktree":
		return true
	case "Agent", "Task":
		return asks("isolation")
	case "Workflow": // a program that calls Agent
		return asks("name") || asks("scriptPath") || strings.Contains(text(c.args, "script"), "isolation")
	}
	return false
}

func codex() Agent {
	return Agent{
		Name: "codex", Title: "Codex", Opens: true, UserOnly: true, Variable: "CODEX_HOME", Default: ".codex", Home: "hooks.json", Project: ".codex/hooks.json",
		Note:    "Codex runs no hook before you trust it: start codex, open /hooks, and trust this one. Until then steps run outside.",
		tool:    one([]string{"Bash"}),
		entries: grouped("PreToolUse", "", "Bash", patience, false),
		answer: func(c Call, line string, _ bool) any {
			// Without "allow" Codex takes no other input. Its own questions stay.
			return object{{"hookSpecificOutput", object{{"hookEventName", "PreToolUse"}, {"permissionDecision", "allow"}, {"updatedInput", c.with(line)}}}}
		},
	}
}

func gemini() Agent {
	return Agent{
		Name: "gemini", Title: "Gemini CLI", Opens: true, AtStart: true, projectVariable: "GEMINI_PROJECT_DIR",
		Default: ".gemini", Home: "settings.json", Project: ".gemini/settings.json",
		Note:    "Rules of its settings for commands see the rewritten one.",
		tool:    one([]string{"run_shell_command"}),
		entries: grouped("BeforeTool", "SessionEnd", "run_shell_command", patience*1000, true),
		answer: func(c Call, line string, approve bool) any {
			out := object{}
			if approve {
				out = append(out, field{"decision", "allow"})
			}
			return append(out, field{"hookSpecificOutput", object{{"hookEventName", "BeforeTool"}, {"tool_input", c.with(line)}}})
		},
	}
}

func cursor() Agent {
	return Agent{
		Name: "cursor", Title: "Cursor", projectVariable: "CURSOR_PROJECT_DIR",
		Default: ".cursor", Home: "hooks.json", Project: ".cursor/hooks.json",
		Note: "Never tried with the real Cursor. A command that its preToolUse hook did not rewrite is refused.",
		tool: one([]string{"Shell"}),
		entries: func(command func(Event) string) []entry {
			hook := func(e Event, more ...field) object {
				return append(object{{"command", command(e)}, {"timeout", patience}}, more...)
			}
			return []entry{
				{[]string{"hooks", "preToolUse"}, hook(Step, field{"matcher", "Shell"}, field{"failClosed", true})},
				{[]string{"hooks", "beforeShellExecution"}, hook(Guard, field{"failClosed", true})},
				{[]string{"hooks", "sessionEnd"}, hook(End)},
			}
		},
		answer: func(c Call, line string, approve bool) any {
			if c.Event == Guard {
				if approve {
					return object{{"permission", "allow"}}
				}
				return object{{"permission", "ask"}}
			}
			return object{{"permission", "allow"}, {"updated_input", c.with(line)}}
		},
	}
}

func copilot() Agent {
	return Agent{
		Name: "copilot", Title: "Copilot CLI", Variable: "COPILOT_HOME", Default: ".copilot", Home: "hooks/paddock.json", Project: ".github/hooks/paddock.json",
		Keeps: true, UserOnly: true,
		Note: "Writing into a shell that runs already (write_bash) is refused, because that could be the host's.",
		tool: one([]string{"bash"}, "powershell", "write_bash", "write_powershell"),
		entries: func(command func(Event) string) []entry {
			hook := func(e Event) object {
				return object{{"type", "command"}, {"bash", command(e)}, {"timeoutSec", patience}}
			}
			return []entry{{[]string{"hooks", "preToolUse"}, hook(Step)}, {[]string{"hooks", "sessionEnd"}, hook(End)}}
		},
		answer: func(c Call, line string, approve bool) any {
			out, vscode := object{}, object{{"hookEventName", "PreToolUse"}}
			if approve {
				out, vscode = append(out, field{"permissionDecision", "allow"}), append(vscode, field{"permissionDecision", "allow"})
			}
			if c.snake {
				return object{{"hookSpecificOutput", append(vscode, field{"updatedInput", c.with(line)})}}
			}
			return append(out, field{"modifiedArgs", c.with(line)})
		},
	}
}

func opencode() Agent {
	return Agent{
		Name: "opencode", Title: "OpenCode", Variable: "XDG_CONFIG_HOME", Default: ".config/opencode", Home: "plugins/paddock.js", Project: ".opencode/plugins/paddock.js",
		Note:   "OpenCode goes on without a plug-in that it cannot load. Rules of its settings for commands see the rewritten one.",
		tool:   one([]string{"bash"}),
		answer: func(_ Call, line string, _ bool) any { return object{{"command", line}} },
	}
}
