// Package policy parses policies into a paddock.Spec: Paddock's own policy files, the settings file of Anthropic's
// sandbox-runtime, and the modes known from Codex. It also explains what a spec allows and why.
//
// It is pure: no network, no environment, no clock. It reads no file except in the fs.FS of the caller, and there only
// to expand globs and to test whether a file exists.
//
// It ignores nothing. An unknown key, a value that it does not understand and a rule that a tier cannot enforce are
// each a [Problem] with a position, and it reports all problems at once.
package policy

import (
	"io/fs"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

// Limits of a document. A document beyond them is refused, never cut.
const (
	MaxDocument = 1 << 20 // bytes of a policy or settings file
	MaxProblems = 20      // problems told of one document
	MaxPath     = 4096    // bytes of a path
	MaxRules    = 1000    // entries of any one list
)

// Host holds the facts about the caller that this package does not look up.
type Host struct {
	// Home is the absolute path of "~". If empty, "~" is refused.
	Home string

	// Dir is the caller's absolute working directory. The workspace "." is this directory, and relative paths in the
	// settings file of sandbox-runtime are relative to it.
	Dir string

	// Env looks up a variable of the caller's environment for environment.pass. Nil has none.
	Env func(name string) (string, bool)

	// Secret reads a file that holds one secret, by its absolute path. More than limit bytes are an error. If nil,
	// secrets from files are refused.
	Secret func(name string, limit int) ([]byte, error)

	// WithoutSecrets leaves the values of secrets empty, for callers that only examine a policy. No sandbox can be made
	// of such a spec.
	WithoutSecrets bool

	// Files is the host's file tree, rooted at "/" (os.DirFS("/")), in which globs are expanded. If nil, globs are
	// refused.
	Files fs.FS
}

// A File is a policy as it was written. Read and ReadSRT make it. The caller may read and Apply it, and must not change
// it.
type File struct {
	Name    string // as given to Read, for messages
	Version int    // 1
	Digest  string // of the document: "sha256:" and hexadecimal digits

	Tier      paddock.Tier
	Root      paddock.Root // Path may begin with "~/"
	User      string
	Workspace string // absolute, "~/…", or "." for the caller's directory; empty is none asked
	Mounts    []paddock.Mount
	Set       map[string]string // environment.set
	Pass      []string          // environment.pass: names
	Limits    paddock.Limits    // Lifetime is limits.timeout
	Files     paddock.FilePolicy
	Network   paddock.NetworkPolicy

	KeyAgents    []paddock.KeyAgent // forward_agent, without sockets
	Audit        []paddock.AuditKind
	AllowMissing []paddock.Control
	Monitor      *Monitor // nil if the file does not say
	Budget       allowance.Budget

	// Notes are settings that are probably a mistake or have no effect. They are not errors.
	Notes []Problem

	at      map[string]Position
	rules   []draft  // network.rules as written
	groups  []group  // network.groups
	origins []int    // of each of Network.Rules: its index in the file
	sources []string // of each of Network.Secrets: where its value comes from
	literal bool     // paths of file rules are never globs
	dir     string   // working directory; empty is the workspace's
}

// A Position is a line and column of a document, from 1. The zero Position is unknown.
type Position struct {
	Line, Column int
}

// Timeout returns limits.timeout. Zero means none.
func (f *File) Timeout() time.Duration { return f.Limits.Lifetime }

// Where returns "name:line:column" of a key such as "limits.memory" or "mounts[2]", or of the nearest key above it, or
// the name alone.
func (f *File) Where(key string) string {
	p := f.position(key)
	return place(f.Name, p.Line, p.Column)
}

// position gives the place of key, or of the nearest key above it.
func (f *File) position(key string) Position {
	for {
		if p, ok := f.at[key]; ok || key == "" {
			return p
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// problem is about a key of the file.
func (f *File) problem(key, text, hint string) Problem {
	p := f.position(key)
	return Problem{Line: p.Line, Column: p.Column, Key: key, Text: text, Hint: hint}
}
