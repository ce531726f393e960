// Package protect knows the names in a workspace that the host trusts: files
// that git, shells, editors and agents on the host execute or obey later. What
// runs inside a sandbox may not make, change, rename or remove them.
//
// It is pure, uses the standard library only and is small, because it is also
// linked into the program that runs inside the sandbox.
package protect

import "errors"

// A Hit says what a path is to a Set.
type Hit uint8

const (
	// Miss is a path that is not protected.
	Miss Hit = iota
	// Prefix is a proper beginning of a protected path, such as ".git" or
	// ".git/info" for ".git/info/attributes": a directory that may be made
	// and used, and that may not be renamed, removed, replaced, or be
	// anything but a real directory (no link, no file).
	Prefix
	// Protected is a protected path, or below one: it may not be made,
	// written, renamed, removed, linked, or have its mode changed.
	Protected
)

// A Set is protected names. It is safe for many goroutines.
type Set struct {
	rules []rule
}

type rule struct {
	text  string
	parts []string
}

// New gives the built-in names, and extra, but for without. An entry of extra
// is a run of path components such as ".envrc" or ".git/hooks", each literal
// or "*" for any one. An entry of without must be the exact text of a built-in
// one. At most 1,000 entries, 16 components each.
func New(extra, without []string) (*Set, error) { return nil, errors.New("protect: not built yet") }

// Match tells what rel is: a slash-separated path relative to the root of a
// writable mount, at any depth, existing or not. rule is the text of the entry
// that decided, empty for Miss. rel need not be clean or valid UTF-8.
func (s *Set) Match(rel string) (rule string, hit Hit) { return "", Miss }
