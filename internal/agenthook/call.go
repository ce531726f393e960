package agenthook

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// MaxInput is the longest input of a hook, in bytes.
const MaxInput = 16 << 20

// A Call is what an agent tells a hook.
type Call struct {
	Event   Event
	Tool    string // what the agent calls it
	Command string
	Session string
	Project string // absolute path
	Sub     bool   // of an agent that another one started

	// Loose tells that Project is a directory of the tool's call, which a model chooses, and so no word on the project.
	Loose bool

	// Inode is that of the project's directory, where the user named it.
	Inode string

	args  map[string]json.RawMessage
	snake bool // names are written as Claude Code does
}

// with gives the tool's input with another command.
func (c Call) with(line string) map[string]json.RawMessage {
	text, err := marshal(line)
	if err != nil {
		panic("agenthook: a string is no JSON") // it always is
	}
	args := make(map[string]json.RawMessage, len(c.args))
	for name, value := range c.args {
		args[name] = value
	}
	args["command"] = text
	return args
}

// Read reads a hook's input. lookup looks up the variables that the agent gave the hook.
func (a Agent) Read(event Event, data []byte, lookup func(string) (string, bool)) (Call, error) {
	c := Call{Event: event}
	bad := func(what string) (Call, error) {
		return Call{}, fmt.Errorf("the input of %s's hook: %s: %w", a.Title, what, paddock.Invalid)
	}
	if !utf8.Valid(data) {
		return bad("it is not UTF-8")
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(data, &in); err != nil || in == nil {
		return bad("it is no JSON object")
	}
	c.snake = in["tool_name"] != nil || in["session_id"] != nil
	c.Session = text(in, "session_id", "sessionId", "conversation_id")
	if c.Session == "" {
		return bad("it names no session")
	}
	c.Sub = text(in, "agent_id") != ""
	c.Project, c.Loose = a.project(in, lookup)
	if !filepath.IsAbs(c.Project) || strings.ContainsRune(c.Project, 0) {
		return bad("it names no directory")
	}
	c.Project = filepath.Clean(c.Project)
	switch event {
	case End:
		return c, nil
	case Guard:
		c.Command = text(in, "command")
	case Step:
		c.Tool = text(in, "tool_name", "toolName")
		if c.Tool == "" {
			return bad("it names no tool")
		}
		c.args = arguments(in)
		if a.tool(c.Tool) == passed {
			return c, nil
		}
		if c.args == nil {
			return bad("the tool has no input")
		}
		c.Command = text(c.args, "command")
	default:
		return bad("there is no event " + string(event))
	}
	switch {
	case a.tool(c.Tool) == refused:
	case strings.TrimSpace(c.Command) == "":
		return bad("there is no command in it")
	case strings.ContainsRune(c.Command, 0):
		return bad("there is a zero byte in the command")
	}
	return c, nil
}

func (a Agent) project(in map[string]json.RawMessage, lookup func(string) (string, bool)) (dir string, loose bool) {
	if a.projectVariable != "" {
		if dir, _ := lookup(a.projectVariable); dir != "" {
			return dir, false
		}
	}
	var roots []string
	if json.Unmarshal(in["workspace_roots"], &roots) == nil && len(roots) > 0 {
		return roots[0], false
	}
	return text(in, "cwd"), true
}

// text gives the first of some members that is a text.
func text(in map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(in[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// arguments gives the tool's input: an object, or one that is written in a text.
func arguments(in map[string]json.RawMessage) map[string]json.RawMessage {
	for _, name := range []string{"tool_input", "toolArgs"} {
		raw := bytes.TrimSpace(in[name])
		var inner string
		if json.Unmarshal(raw, &inner) == nil && inner != "" {
			raw = []byte(inner)
		}
		var args map[string]json.RawMessage
		if json.Unmarshal(raw, &args) == nil && args != nil {
			return args
		}
	}
	return nil
}

// Box gives the ID of the sandbox for a session, a project and a choice of flags.
func (a Agent) Box(c Call, flags []string) paddock.ID {
	h := sha256.New()
	for _, part := range append([]string{a.Name, c.Session, c.Project}, flags...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return paddock.ID("hook-" + a.Name + "-" + hex.EncodeToString(h.Sum(nil)[:10]))
}

// Answer gives what the agent is told: to run, instead of the command, the program's call "hook shell" with the command
// as its last word. flags say what box it is. Nil lets a tool be that is no shell.
func (a Agent) Answer(c Call, program string, flags []string, approve bool) ([]byte, error) {
	switch a.tool(c.Tool) {
	case refused:
		return nil, fmt.Errorf("the tool %s of %s cannot be routed into a box, so it is refused: %w", c.Tool, a.Title, paddock.Denied)
	case passed:
		if c.Event == Step {
			return nil, nil
		}
	}
	words := []string{"hook", "shell", "--box", string(a.Box(c, flags)), "--workspace", c.Project, "--agent", a.Name}
	if c.Inode != "" {
		words = append(words, "--inode", c.Inode)
	}
	if a.Keeps && !c.Sub {
		words = append(words, "--keep")
	}
	words = append(append(words, flags...), "--")
	prefix, err := Line(program, words...)
	if err != nil {
		return nil, err
	}
	line := c.Command
	if c.Event == Guard {
		rest, ours := strings.CutPrefix(line, prefix+" ")
		if !ours {
			return nil, fmt.Errorf("the command was not routed into a box, so it is refused: %w", paddock.Denied)
		}
		if _, err := unquote(rest); err != nil {
			return nil, err
		}
	} else if line, err = Line(program, append(words, c.Command)...); err != nil {
		return nil, err
	}
	if len(line) > MaxCommand {
		return nil, fmt.Errorf("the command is too long for a step in a box (%d bytes); write it into a file, and run that: %w", len(c.Command), paddock.Invalid)
	}
	out, err := marshal(a.answer(c, line, approve))
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}
