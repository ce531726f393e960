// Package policy turns what people write into a paddock.Spec: Paddock's own
// policy files, the settings file of Anthropic's sandbox-runtime, and the
// modes known from Codex. It also explains what a spec allows and why.
//
// It is pure: no network, no environment, no clock. It reads no file but those
// of the fs.FS that the caller hands in, and that only to expand globs and to
// tell what exists.
//
// Nothing is ever ignored. A key that is not known, a value that is not
// understood and a rule that a tier cannot enforce are [Problem]s with the
// place where they stand; all of them are told at once, not only the first.
package policy

import (
	"io/fs"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds on what is read; past them a document is refused, never cut.
const (
	MaxDocument = 1 << 20 // bytes of a policy or settings file
	MaxProblems = 20      // problems told of one document
	MaxPath     = 4096    // bytes of a path
	MaxRules    = 1000    // entries of any one list
)

// Host is what the caller knows and this package does not look up.
type Host struct {
	// Home is the absolute path that "~" stands for. Empty: "~" is refused.
	Home string

	// Dir is the absolute directory that the caller works in: what the
	// workspace "." stands for, and what relative paths of the settings file
	// of sandbox-runtime are relative to.
	Dir string

	// Env looks up a variable of the caller's environment, for
	// environment.pass. Nil has none.
	Env func(name string) (string, bool)

	// Secret reads a file that holds a secret and nothing else, by its absolute
	// path: at most limit bytes, else an error. Nil: secrets from files are
	// refused.
	Secret func(name string, limit int) ([]byte, error)

	// WithoutSecrets leaves secrets without their values: for who only looks at
	// what a policy says. No sandbox can be made of such a spec.
	WithoutSecrets bool

	// Files is the host's file tree, rooted at "/" (os.DirFS("/")). Globs
	// are expanded in it. Nil: globs are refused.
	Files fs.FS
}

// A File is a policy as it was written. Read and ReadSRT make it; the caller
// may look at it and Apply it, and does not change it.
type File struct {
	Name    string // as given to Read, for messages
	Version int    // 1

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

	Audit        []paddock.AuditKind
	AllowMissing []paddock.Control

	// Notes are what the file says that is probably not meant, or has no
	// effect. They are for telling, and are no errors.
	Notes []Problem

	at      map[string]Position
	rules   []draft  // network.rules as written
	groups  []group  // network.groups
	origins []int    // of each of Network.Rules: its index in the file
	sources []string // of each of Network.Secrets: where its value comes from
	literal bool     // paths of file rules are never globs
	dir     string   // working directory; empty is the workspace's
}

// A Position is a place in a document, counted from 1. The zero Position is
// unknown.
type Position struct {
	Line, Column int
}

// Timeout gives limits.timeout; zero is none.
func (f *File) Timeout() time.Duration { return f.Limits.Lifetime }

// Where gives "name:line:column" of a key such as "limits.memory" or
// "mounts[2]", or of the nearest key above it, or the name alone.
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
