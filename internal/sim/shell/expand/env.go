package expand

import (
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/arith"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// An Env is the shell whose words are expanded.
type Env interface {
	// Task is where to count, and whose files names match.
	Task() *kernel.Task
	// Variables are the shell's.
	Variables() *variable.Store
	// Flags are the shell's options; the caller may change them.
	Flags() *Flags
	// Params gives $1 and on, Name $0.
	Params() []string
	Name() string
	// Special gives the values of $? $$ $! $- by that character; ok is false
	// where there is none.
	Special(name byte) (value string, ok bool)
	// Substitute runs a command substitution and gives what it wrote, without
	// NULs and the newlines at its end.
	Substitute(c *syntax.CmdSubst) (string, error)
	// Process starts a process substitution and gives the file name for it.
	Process(p *syntax.ProcSubst) (string, error)
	// Warn writes a message to standard error as the shell has them.
	Warn(format string, args ...any)
	// Word parses a text that is one word: quotes or one expansion. It gives
	// nil where it is not.
	Word(s string) *syntax.Word
	// Prompt expands the backslashes of a prompt, for ${x@P}.
	Prompt(s string) string
}

// Flags are the options of a shell that change how words expand.
type Flags struct {
	NoUnset       bool // set -u
	NoGlob        bool // set -f
	NoBrace       bool // set +B
	NullGlob      bool
	FailGlob      bool
	ExtGlob       bool
	NoCaseGlob    bool
	NoCaseMatch   bool
	DotGlob       bool
	GlobStar      bool
	DotDirs       bool // shopt -u globskipdots
	NoPatsub      bool // shopt -u patsub_replacement
	Posix         bool
	AssocOnce     bool // assoc_expand_once
	ExpandAliases bool
}

// An Expander expands the words of one shell.
type Expander struct {
	env   Env
	flags *Flags
	vars  *variable.Store
	task  *kernel.Task
	ifs   separators
	depth int // of expansions within expansions
	free  []*builder
	arith scope

	patterns map[string]*compiled // of the texts that were used last
	exprs    map[string]*arith.Expr
	words    map[wordKey]*Word
	regexes  map[regexKey]*regex.Regexp
	scratch  []string
}

// New makes an expander for a shell.
func New(env Env) *Expander {
	x := &Expander{env: env, flags: env.Flags(), vars: env.Variables(), task: env.Task()}
	x.arith.x = x
	x.ifs.set(" \t\n")
	return x
}

// Bytewise reports whether the locale is C, in which characters are bytes.
func (x *Expander) Bytewise() bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := x.vars.Get(name); ok && v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// charLen gives the length of the first character in the shell's locale.
func (x *Expander) charLen(s string) int {
	n := charLen(s)
	if n > 1 && x.Bytewise() {
		return 1
	}
	return n
}

// charCount counts characters in the shell's locale.
func (x *Expander) charCount(s string) int {
	n := utf8.RuneCountInString(s)
	if n < len(s) && x.Bytewise() {
		return len(s)
	}
	return n
}

// separators is what is known of IFS.
type separators struct {
	value string
	class [256]uint8 // 1 separates, 2 is white space that does
	wide  bool       // there are characters of many bytes
	first string     // joins "$*"
}

const (
	separator = 1 << iota
	space
)

func (s *separators) set(value string) {
	*s = separators{value: value}
	for i := range len(value) {
		c := value[i]
		s.class[c] |= separator
		if c == ' ' || c == '\t' || c == '\n' {
			s.class[c] |= space
		}
		if c >= 0x80 {
			s.wide = true
		}
	}
	if value != "" {
		s.first = value[:charLen(value)]
	}
}

// loadIFS brings the separators up to date.
func (x *Expander) loadIFS() *separators {
	value, ok := x.vars.Get("IFS")
	if !ok {
		value = " \t\n"
	}
	if value != x.ifs.value {
		x.ifs.set(value)
	}
	return &x.ifs
}

// maxDepth bounds expansions that lead to expansions: values that are
// subscripts, prompts, expressions.
const maxDepth = 200

func (x *Expander) enter() error {
	x.depth++
	if x.depth > maxDepth {
		return &Error{Kind: TooDeep, Text: "expansions are nested too deeply"}
	}
	return nil
}

func (x *Expander) leave() { x.depth-- }
