package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Hints of tools, for clients that ask their user.
func readOnly() mcp.ToolAnnotations {
	closed := false
	return mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}
}

func making() mcp.ToolAnnotations {
	no, closed := false, false
	return mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &closed}
}

func changing(idempotent bool) mcp.ToolAnnotations {
	yes, closed := true, false
	return mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: idempotent, OpenWorldHint: &closed}
}

// running is the hint of commands, which reach what the sandbox may.
func (s *Server) running() mcp.ToolAnnotations {
	yes, open := true, s.o.Offer.AnyHost || s.o.Offer.Spec.Policy.Network.Mode != ""
	return mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &open}
}

// instructions tell a model what is offered here.
func (s *Server) instructions() string {
	var t strings.Builder
	t.WriteString("Sandboxes: isolated Linux computers for commands and code. ")
	if s.o.Single {
		fmt.Fprintf(&t, "There is one, with %s in it; changes there are real, and sandbox_undo brings back what was before. ", oneLine(s.o.Offer.Directory[0].Source))
	} else if len(s.o.Offer.Directory) > 0 {
		fmt.Fprintf(&t, "The user's directory is %s; a sandbox has it only if asked (directory: read, overlay for changes that stay inside, or write). ", oneLine(s.o.Offer.Directory[0].Source))
	}
	switch hosts := s.o.Offer.hosts(); {
	case s.o.Offer.AnyHost:
		t.WriteString("A sandbox reaches only the hosts that it was made with. ")
	case len(hosts) > 0:
		fmt.Fprintf(&t, "Hosts that can be reached: %s. ", oneLine(enough(hosts, 20)))
	case s.o.Offer.Spec.Policy.Network.Mode == "":
		t.WriteString("There is no network. ")
	}
	if names := secretNames(s.o.Offer.Spec.Policy.Network.Secrets); len(names) > 0 && !s.o.Single {
		fmt.Fprintf(&t, "Secrets that a sandbox can have, by name: %s. ", oneLine(enough(names, 20)))
	}
	t.WriteString("What was refused is in results: tell the user, because only the user can allow it.")
	return t.String()
}

func (s *Server) addTools() {
	boxFields := schema{
		{name: "sandbox", kind: "string", need: true}, {name: "tier", kind: "string"}, {name: "state", kind: "string"},
		{name: "directory", kind: "string"}, {name: "undo", kind: "boolean"},
	}
	if !s.o.Single {
		add(s, "sandbox_create", "Make a sandbox.", making(), s.createFields(), boxFields, create)
		add(s, "sandbox_list", "List sandboxes.", readOnly(), nil, schema{{name: "sandboxes", kind: "array"}, {name: "more", kind: "integer"}}, list)
	}
	s.addRun()
	if !s.o.Single {
		add(s, "sandbox_process", "Read output of a process, write to its input, end it, or list processes.", changing(false), s.about(
			field{name: "process", kind: "integer"},
			field{name: "action", kind: "string", about: "default output", enum: actions()},
			field{name: "input", kind: "string", about: "for write"},
			field{name: "offset", kind: "integer", about: "byte of output; default: the newest"},
			field{name: "limit", kind: "integer", about: "bytes"},
			field{name: "wait", kind: "number", about: "seconds to wait for its end first"},
		), schema{
			{name: "process", kind: "integer"}, {name: "cause", kind: "string"}, {name: "exit", kind: "integer"}, {name: "reason", kind: "string"},
			{name: "output", kind: "string"}, {name: "offset", kind: "integer"}, {name: "next", kind: "integer"}, {name: "total", kind: "integer"},
			{name: "processes", kind: "strings"},
		}, process)
	}
	s.addFiles()
	if !s.o.Single {
		add(s, "sandbox_changes", "What was changed in the writable directory: steps and a diff.", readOnly(), s.about(
			field{name: "since", kind: "integer", about: "step after which"},
			field{name: "paths", kind: "strings"},
			field{name: "offset", kind: "integer", about: "byte of the diff"},
			field{name: "limit", kind: "integer", about: "bytes"},
		), schema{{name: "steps", kind: "strings"}, {name: "diff", kind: "string"}, {name: "next", kind: "integer"}, {name: "total", kind: "integer"}}, changes)
	}
	add(s, "sandbox_undo", "Bring back files from before steps: the last one, these, or all back to one.", changing(false), s.about(
		field{name: "steps", kind: "integers"},
		field{name: "to", kind: "integer", about: "this step and all after it"},
		field{name: "paths", kind: "strings", about: "only these"},
	), schema{{name: "step", kind: "integer"}, {name: "undone", kind: "integers"}, {name: "restored", kind: "strings"}, {name: "conflicts", kind: "strings"}, {name: "more", kind: "integer"}}, undo)
	if !s.o.Single {
		add(s, "sandbox_fork", "Copy a sandbox with its files, to try something.", making(), s.about(
			field{name: "name", kind: "string"}, field{name: "keep", kind: "boolean"},
		), boxFields, fork)
		add(s, "sandbox_kill", "Remove a sandbox.", changing(true), s.about(), schema{{name: "sandbox", kind: "string"}}, kill)
	}
}

// createFields has what can be asked for here, and nothing else.
func (s *Server) createFields() schema {
	fields := schema{{name: "name", kind: "string"}}
	o := s.o.Offer
	if len(o.Directory) > 0 {
		fields = append(fields, field{name: "directory", kind: "string", about: "the user's directory; default none", enum: []string{shownNone, shownRead, shownOverlay, shownWrite}})
	}
	switch {
	case o.AnyHost:
		fields = append(fields, field{name: "hosts", kind: "strings", about: "that it may reach; default none"})
	case len(o.hosts()) > 0:
		fields = append(fields, field{name: "hosts", kind: "strings", about: "of those offered; default all"})
	}
	if len(o.Spec.Policy.Network.Secrets) > 0 {
		fields = append(fields, field{name: "secrets", kind: "strings", about: "names; each is a variable inside, put into requests outside"})
	}
	return append(fields, field{name: "keep", kind: "boolean", about: "stay when the session ends"})
}

func (s *Server) addRun() {
	fields := s.about(
		field{name: "command", kind: "string", about: "for shell, or code: variables stay, plots are shown", need: true},
		field{name: "language", kind: "string", about: "default shell", enum: slices.Concat([]string{shellLanguage}, languages())},
		field{name: "directory", kind: "string"},
		field{name: "timeout", kind: "number", about: "seconds; default 120, in background none"},
	)
	if !s.o.Single {
		fields = append(fields, field{name: "background", kind: "boolean", about: "do not wait"})
	}
	add(s, "sandbox_run", "Run a shell command or code. Tells exit, output, changed files and what was refused.", s.running(), fields, schema{
		{name: "exit", kind: "integer"}, {name: "cause", kind: "string"}, {name: "reason", kind: "string"}, {name: "stdout", kind: "string"}, {name: "stderr", kind: "string"},
		{name: "process", kind: "integer"}, {name: "cut", kind: "integer"}, {name: "changed", kind: "strings"}, {name: "refused", kind: "strings"},
	}, run)
}

func (s *Server) addFiles() {
	add(s, "file_read", "Read lines of a text file, see an image, or list a directory.", readOnly(), s.about(
		field{name: "path", kind: "string", need: true},
		field{name: "offset", kind: "integer", about: "first line"},
		field{name: "limit", kind: "integer", about: "lines"},
	), schema{{name: "path", kind: "string"}, {name: "kind", kind: "string"}, {name: "text", kind: "string"}, {name: "size", kind: "integer"}, {name: "next", kind: "integer"}}, read)
	add(s, "file_write", "Write a file, or edit it: replace old by content.", changing(false), s.about(
		field{name: "path", kind: "string", need: true},
		field{name: "content", kind: "string", need: true},
		field{name: "old", kind: "string", about: "exact text that is there once"},
		field{name: "all", kind: "boolean", about: "replace each"},
		field{name: "append", kind: "boolean"},
	), schema{{name: "path", kind: "string"}, {name: "bytes", kind: "integer"}, {name: "replaced", kind: "integer"}}, write)
}
