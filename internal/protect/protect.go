// Package protect knows the names in a workspace that the host trusts: files
// that git, shells, editors and agents on the host execute or obey later. What
// runs inside a sandbox may not make, change, rename or remove them.
//
// It is pure, uses the standard library only and is small, because it is also
// linked into the program that runs inside the sandbox.
//
// # What it cannot know
//
// A directory anywhere that holds HEAD, objects and refs is a bare repository to git, whose config
// may name programs. The names alone are too common to protect, so the caller of Match looks for
// such a directory: see [Set.BelowGit] and [BareParts]. Below .git what a commit needs
// stays writable, so whoever asks also has to keep symbolic links out of there, through which git on
// the host would write elsewhere: see [Set.InGit].
package protect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Hit is the relation of a path to a Set.
type Hit uint8

const (
	// Miss is a path that is not protected.
	Miss Hit = iota
	// Prefix is a proper beginning of a protected path, such as ".git" or
	// ".git/info" for ".git/info/attributes": a directory that may be made
	// and used, and removed while it is empty. It may not be renamed or
	// replaced, or be anything but a real directory (no link, no file). Else a
	// command could move it away, change it and move it back.
	Prefix
	// Root is the directory of a repository in which a commit writes, such as ".hg". It is
	// like Prefix, and may also not be made: what is in a new one would be obeyed whole.
	Root
	// Protected is a protected path, or below one: it may not be made,
	// written, renamed, removed, linked, or have its mode changed.
	Protected
)

// String returns the hit as a word.
func (h Hit) String() string {
	switch h {
	case Miss:
		return "miss"
	case Prefix:
		return "prefix"
	case Root:
		return "root"
	case Protected:
		return "protected"
	}
	return fmt.Sprintf("hit %d", uint8(h))
}

// A Name is an entry of a list.
type Name struct {
	Text   string // a run of path components: ".git/hooks"
	Reason string // what on the host trusts it

	// Of built-in protected names: the programs that obey it, when they do, and which of
	// their documents or source files say so.
	Program, When, Source string

	// Root means that Match returns Root for it, and not Protected.
	Root bool

	content Content
}

// Bounds of New.
const (
	maxExtra      = 1000
	maxComponents = 16
	maxText       = 1024
)

// A Set is a set of protected names. It is safe for concurrent use.
type Set struct {
	rules   []rule
	byFirst map[string][]int // folded first component to rules
	reasons map[string]string
	git     map[string]bool // folded components that follow ".git" in rules
}

type rule struct {
	text    string
	parts   []part
	root    bool
	content Content
}

// part is one component of a rule, folded.
type part struct {
	any    bool // "*"
	text   string
	stem   string // first six characters of a short name, empty if there is none
	suffix string // its extension, with the dot
}

// New makes a Set of the built-in names and extra, less without. An entry of extra is a sequence of path components
// such as ".envrc" or ".git/hooks", each literal or "*" for any one; the first is literal. An entry of without must be
// the exact text of a built-in one. The limits are 1,000 entries of 16 components.
func New(extra, without []string) (*Set, error) {
	if len(extra) == 0 && len(without) == 0 {
		return builtinSet(), nil
	}
	drop := make(map[string]bool, len(without))
	for _, text := range without {
		if !Builtin(text) {
			return nil, fmt.Errorf("%q is not the text of a built-in protected name", text)
		}
		drop[text] = true
	}
	if len(extra) > maxExtra {
		return nil, fmt.Errorf("more than %d protected names", maxExtra)
	}
	var names []Name
	for _, text := range extra { // first, because no content lets a name of the policy through
		if err := Check(text); err != nil {
			return nil, fmt.Errorf("protected name %q: %w", text, err)
		}
		text = strings.TrimRight(text, "/")
		reason := "protected by the policy"
		if n, ok := named(text); ok && !drop[text] {
			reason = n.Reason
		}
		names = append(names, Name{Text: text, Reason: reason})
	}
	for _, n := range builtin() {
		if !drop[n.Text] {
			n.content = contents()[n.Text]
			names = append(names, n)
		}
	}
	return build(names), nil
}

// Noteworthy returns the set of names that people edit in the course of work and that programs on the host obey later.
// They are not protected; a run reports which of them it changed. Its Match returns Protected for a noteworthy path;
// Prefix has no meaning here.
func Noteworthy() *Set { return build(NoteworthyNames()) }

// Versioned returns the set of the built-in names that version control systems obey. They are what a shell's prompt obeys
// in a directory that a link leads to.
func Versioned() *Set { return versioned() }

var versioned = sync.OnceValue(func() *Set {
	var names []Name
	for _, n := range builtin() {
		if n.Reason == whyGit || n.Reason == whyVCS || n.Reason == whyFound || n.Text == ".paddock" { // where brokers write
			n.content = contents()[n.Text]
			names = append(names, n)
		}
	}
	return build(names)
})

// Names lists the built-in protected names.
func Names() []Name { return append([]Name(nil), builtin()...) }

// Split lists the texts of the built-in names: those for which Match returns Protected, and those
// for which it returns Root.
func Split() (names, roots []string) {
	for _, n := range builtin() {
		if n.Root {
			roots = append(roots, n.Text)
		} else {
			names = append(names, n.Text)
		}
	}
	return names, roots
}

// NoteworthyNames lists the noteworthy names.
func NoteworthyNames() []Name { return expand(noteworthyRows(), false) }

// builtin is what nothing in a sandbox may touch. Nobody changes the slice.
var builtin = sync.OnceValue(func() []Name { return append(expand(obeyed(), false), expand(repositories(), true)...) })

// Check checks an entry for New's extra.
func Check(text string) error {
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxText:
		return fmt.Errorf("it is longer than %d bytes", maxText)
	case !utf8.ValidString(text):
		return errors.New("it is not UTF-8")
	case text[0] == '/' || text[0] == '~':
		return errors.New("it is a path from the top; write the end of the path only, it holds at any depth")
	case strings.ContainsAny(text, "\\\x00\n\r"):
		return errors.New("it contains a backslash, a NUL or a line break")
	}
	parts := strings.Split(strings.TrimRight(text, "/"), "/")
	if len(parts) > maxComponents {
		return fmt.Errorf("it has more than %d components", maxComponents)
	}
	for i, p := range parts {
		switch {
		case p == "" || p == "." || p == "..":
			return fmt.Errorf("the component %q is not a name", p)
		case p == "*" && i == 0:
			return errors.New("the first component is \"*\", which would be every directory")
		case p != "*" && strings.ContainsAny(p, "*?[]"):
			return fmt.Errorf("the component %q has a wildcard; only \"*\" alone is known", p)
		case p != "*" && fold(p) == "":
			return fmt.Errorf("the component %q has no character that file systems compare", p)
		}
	}
	return nil
}

// Builtin reports whether text is that of a built-in protected name, which alone can be unprotected.
func Builtin(text string) bool {
	_, ok := named(text)
	return ok
}

func named(text string) (Name, bool) {
	for _, n := range builtin() {
		if n.Text == text {
			return n, true
		}
	}
	return Name{}, false
}

// builtinSet is the Set of the built-in names alone, which a start of a sandbox asks for several times.
var builtinSet = sync.OnceValue(func() *Set {
	names := Names()
	for i := range names {
		names[i].content = contents()[names[i].Text]
	}
	return build(names)
})

func build(names []Name) *Set {
	s := &Set{byFirst: make(map[string][]int, len(names)), reasons: make(map[string]string, len(names)), git: map[string]bool{}}
	for _, n := range names {
		if _, twice := s.reasons[n.Text]; twice {
			continue
		}
		s.reasons[n.Text] = n.Reason
		r := rule{text: n.Text, root: n.Root, content: n.content}
		for _, p := range strings.Split(n.Text, "/") {
			r.parts = append(r.parts, newPart(p))
		}
		if len(r.parts) > 1 && r.parts[0].text == ".git" {
			s.git[r.parts[1].text] = true
		}
		first := r.parts[0].text
		s.byFirst[first] = append(s.byFirst[first], len(s.rules))
		s.rules = append(s.rules, r)
	}
	return s
}

// Rules lists the texts of the set for which Match returns Protected.
func (s *Set) Rules() []string {
	texts := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		if !r.root {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// BelowGit reports whether a name of the set may begin with ".git" and this component. Such a
// name is also protected in a bare repository, whose directory may have any name: see
// [Set.Match], which wants it with ".git" in the place of the directory.
func (s *Set) BelowGit(comp string) bool {
	return strings.IndexByte(comp, '~') >= 0 || s.git[fold(comp)]
}

// GitNames lists what the set protects below ".git", up to a wildcard: "hooks", "info/attributes",
// "worktrees".
func (s *Set) GitNames() []string {
	var names []string
	for _, r := range s.rules {
		below, ok := strings.CutPrefix(r.text, ".git/")
		below, _, _ = strings.Cut(below, "/*")
		if ok && !slices.Contains(names, below) {
			names = append(names, below)
		}
	}
	return names
}

// BareParts returns what makes a directory a bare repository to git: all of one of the lists.
func BareParts() [][]string { return [][]string{{"HEAD", "objects", "refs"}, {"HEAD", "commondir"}} }

// IsBarePart reports whether a component is one of the names in BareParts.
func IsBarePart(comp string) bool {
	switch fold(comp) {
	case "head", "objects", "refs", "commondir":
		return true
	}
	return strings.IndexByte(comp, '~') >= 0
}

// InGit reports whether a path is below a directory ".git", of whatever depth.
func (s *Set) InGit(rel string) bool {
	comps, _ := split(rel)
	git := newPart(".git")
	for i := range len(comps) - 1 {
		if git.match(comps[i]) {
			return true
		}
	}
	return false
}

// Same reports whether the most lenient file system takes two components for the same name. The
// empty component is no name.
func Same(a, b string) bool { return a != "" && b != "" && fold(a) == fold(b) }

// Reason says what on the host trusts a name. rule is a text that Match returned.
func (s *Set) Reason(rule string) string {
	if rule == upward {
		return "a path that goes upward cannot be judged"
	}
	return s.reasons[rule]
}

// upward is the rule that hits a path with "..".
const upward = ".."

// Match compares rel, a slash-separated path relative to the root of a writable mount, with the set. The path may have
// any depth and need not exist. rule is the text of the entry that decided, empty for Miss. rel need not be clean or
// valid UTF-8. A path with ".." is Protected, because its target depends on links.
//
// Below ".git/modules" each directory is taken for a repository.
//
// Match compares names as the most lenient file system would: see fold.
func (s *Set) Match(rel string) (rule string, hit Hit) {
	comps, up := split(rel)
	if up {
		return upward, Protected
	}
	return s.match(comps)
}

func (s *Set) match(comps []string) (rule string, hit Hit) {
	judged := false // what was found is judged by content, and a name that is not would decide
	for i := range comps {
		for _, k := range s.candidates(comps[i]) {
			r := &s.rules[k]
			found := r.match(comps[i:])
			if found == Protected && r.content == Modules {
				if text, h := s.modules(r, comps[i+len(r.parts):]); h == Protected {
					if !judged {
						rule, hit, judged = text, h, true
					}
				} else if hit == Miss && h == Prefix {
					rule, hit = text, h
				}
				continue
			}
			switch found {
			case Protected:
				if r.content == None {
					return r.text, Protected
				}
				if !judged {
					rule, hit, judged = r.text, Protected, true
				}
			case Root:
				if !judged {
					rule, hit = r.text, Root
				}
			case Prefix:
				if hit == Miss {
					rule, hit = r.text, Prefix
				}
			}
		}
	}
	return rule, hit
}

// candidates gives the rules whose first component may be c.
func (s *Set) candidates(c string) []int {
	found := s.byFirst[c]
	if strings.IndexByte(c, '~') < 0 {
		return found
	}
	found = append([]int(nil), found...)
	for k := range s.rules {
		if p := &s.rules[k].parts[0]; p.text != c && p.match(c) {
			found = append(found, k)
		}
	}
	return found
}

// match compares from the first of comps on, which byFirst found.
func (r *rule) match(comps []string) Hit {
	for i := range r.parts {
		if i == len(comps) {
			return Prefix
		}
		if !r.parts[i].match(comps[i]) {
			return Miss
		}
	}
	switch {
	case !r.root:
		return Protected
	case len(comps) == len(r.parts):
		return Root
	}
	return Miss
}

// split gives the components of rel, folded. A backslash separates too,
// because it does on the systems that a workspace may be shared with.
func split(rel string) (comps []string, up bool) {
	for rel != "" {
		comp := rel
		if i := strings.IndexAny(rel, `/\`); i >= 0 {
			comp, rel = rel[:i], rel[i+1:]
		} else {
			rel = ""
		}
		switch comp {
		case "", ".":
		case "..":
			return nil, true
		default:
			comps = append(comps, fold(comp))
		}
	}
	return comps, false
}
