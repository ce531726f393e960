package agenttest

import (
	"encoding/json"
	"maps"
	"strings"
)

// A Verb is what a turn asks an agent to do. The zero value only says something, which ends the agent's work.
type Verb int

// What models ask for.
const (
	say Verb = iota
	shell
	write
	edit
	read
	wait
	served
)

// A Turn is one answer of a scripted model.
type Turn struct {
	verb      Verb
	path      string
	text, old string
	args      map[string]any
}

// Say ends the agent's work with these words.
func Say(words string) Turn { return Turn{verb: say, text: words} }

// Shell has the agent run a command with its tool for commands.
func Shell(command string) Turn { return Turn{verb: shell, text: command} }

// Write has the agent make a file with its tool for that. The path is absolute.
func Write(path, text string) Turn { return Turn{verb: write, path: path, text: text} }

// Edit has the agent replace a text of a file with its tool for that. The path is absolute.
func Edit(path, old, text string) Turn { return Turn{verb: edit, path: path, old: old, text: text} }

// Read has the agent read a file with its tool for that. The path is absolute.
func Read(path string) Turn { return Turn{verb: read, path: path} }

// Serve has the agent call a tool of the server "paddock" of the Model Context Protocol.
func Serve(tool string, arguments map[string]any) Turn {
	return Turn{verb: served, text: tool, args: arguments}
}

// Wait answers nothing until the agent gives up the request, as a slow model does that a user interrupts.
func Wait() Turn { return Turn{verb: wait} }

// A call is what an answer asks for: a tool of the agent by its own name, with arguments or, for tools whose input
// is free text, with that text.
type call struct {
	name string
	args map[string]any
	free string
}

type args = map[string]any

// A tool is one that an agent offers for a verb.
type tool struct {
	name string
	call func(t Turn) args
}

// tools lists, for each verb, the names under which agents offer it, with what they take.
func tools(v Verb) []tool {
	switch v {
	case shell:
		return []tool{
			{"Bash", func(t Turn) args { return args{"command": t.text, "description": "Run what was asked for"} }}, // Claude Code
			{"exec_command", func(t Turn) args { return args{"cmd": t.text} }},                                      // Codex
			{"run_shell_command", func(t Turn) args { return args{"command": t.text, "description": "Run it"} }},    // Gemini CLI
			{"bash", func(t Turn) args { return args{"command": t.text, "description": "Run what was asked for"} }}, // OpenCode, Copilot, pi
		}
	case write:
		return []tool{
			{"Write", func(t Turn) args { return args{"file_path": t.path, "content": t.text} }},
			{"write_file", func(t Turn) args { return args{"file_path": t.path, "content": t.text} }},
			{"create", func(t Turn) args { return args{"path": t.path, "file_text": t.text} }},
			// OpenCode and pi have the same name with other arguments. Which a request wants, its schema tells.
			{"write", func(t Turn) args { return args{"filePath": t.path, "path": t.path, "content": t.text} }},
		}
	case edit:
		return []tool{
			{"Edit", func(t Turn) args { return args{"file_path": t.path, "old_string": t.old, "new_string": t.text} }},
			{"replace", func(t Turn) args {
				return args{"file_path": t.path, "old_string": t.old, "new_string": t.text, "instruction": "Replace it"}
			}},
			{"edit", func(t Turn) args {
				return args{
					"filePath": t.path, "oldString": t.old, "newString": t.text, // OpenCode
					"path": t.path, "old_str": t.old, "new_str": t.text, // Copilot
					"edits": []args{{"oldText": t.old, "newText": t.text}}, // pi
				}
			}},
		}
	case read:
		return []tool{
			{"Read", func(t Turn) args { return args{"file_path": t.path} }},
			{"read_file", func(t Turn) args { return args{"file_path": t.path} }},
			{"view", func(t Turn) args { return args{"path": t.path} }},
			{"read", func(t Turn) args { return args{"filePath": t.path, "path": t.path} }},
			{"exec_command", func(t Turn) args { return args{"cmd": "cat '" + t.path + "'"} }}, // Codex has no tool for it
		}
	}
	return nil
}

// An offer says of each tool that a request offers which arguments it takes; nil takes any.
type offer map[string]map[string]bool

// schema is as much of a tool's JSON schema as matters here.
type schema struct {
	Properties map[string]any
}

// add notes that a tool is offered.
func (o offer) add(name string, s schema) {
	var takes map[string]bool
	for key := range s.Properties {
		if takes == nil {
			takes = map[string]bool{}
		}
		takes[key] = true
	}
	o[name] = takes
}

// has tells whether a tool is offered.
func (o offer) has(name string) bool {
	_, ok := o[name]
	return ok
}

// callFor returns the call that carries out a turn with the tools that a request offers, or nil where it has none.
func callFor(t Turn, o offer) *call {
	for _, one := range tools(t.verb) {
		if !o.has(one.name) {
			continue
		}
		given := one.call(t)
		maps.DeleteFunc(given, func(key string, _ any) bool { return o[one.name] != nil && !o[one.name][key] })
		return &call{name: one.name, args: given}
	}
	if t.verb == served {
		return servedCall(t, o)
	}
	p := patch(t)
	switch {
	case p != "" && o.has("apply_patch"):
		return &call{name: "apply_patch", args: args{"input": p}, free: p}
	case p != "" && o.has("exec"):
		return program("text(await tools.apply_patch(" + quote(p) + "));\n")
	case o.has("exec") && t.verb == shell:
		return program(untilItEnds(t.text))
	case o.has("exec") && t.verb == read:
		return program(untilItEnds("cat '" + t.path + "'"))
	}
	return nil
}

// servedCall returns the call of a server's tool, under the name that the agent gives it.
func servedCall(t Turn, o offer) *call {
	name := "mcp__paddock__" + t.text
	switch {
	case o.has(name):
		return &call{name: name, args: t.args}
	case o.has("exec"):
		return program("text(await tools." + name + "(" + encode(t.args) + "));\n")
	}
	return nil
}

// program returns a call of Codex's tool that runs a program, which calls its other tools.
func program(text string) *call {
	return &call{name: "exec", free: "// @exec: {\"yield_time_ms\": 600000}\n" + text}
}

// untilItEnds returns a program that runs a command. A call of a tool returns after some seconds, and the command goes on.
func untilItEnds(command string) string {
	return "let r = await tools.exec_command({cmd: " + quote(command) + ", yield_time_ms: 30000});\n" +
		"while (r && typeof r.session_id === 'number') r = await tools.write_stdin({session_id: r.session_id, chars: '', yield_time_ms: 30000});\n" +
		"text(r);\n"
}

// quote returns a text as a literal of JavaScript.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // any text can be written so
	}
	return string(literal)
}

// patch returns a turn that changes a file as Codex's patches say it.
func patch(t Turn) string {
	var b strings.Builder
	lines := func(sign, text string) {
		for line := range strings.Lines(text) {
			b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	b.WriteString("*** Begin Patch\n")
	switch t.verb {
	case write:
		b.WriteString("*** Add File: " + t.path + "\n")
		lines("+", t.text)
	case edit:
		b.WriteString("*** Update File: " + t.path + "\n@@\n")
		lines("-", t.old)
		lines("+", t.text)
	default:
		return ""
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}
