// Package regex is the regular-expression engine of all tools and of the shell.
//
// It reads the POSIX syntaxes with GNU's extensions in the variants of the
// tools, and the part of PCRE that people write. It works on bytes: characters
// are UTF-8 where valid, other bytes match only themselves, NUL is ordinary.
//
// A search takes time linear in the text and bounded memory, unless the
// pattern has back-references, lookaround or atomic groups; those are searched
// by backtracking, which is charged to the caller's Meter and ends with an
// error when it is exhausted. A pattern whose program would be too big is
// refused as glibc would refuse it if it could.
//
// POSIX flavours find the leftmost-longest match and set the groups as glibc
// does: by the first way, in order of preference, that ends where the match
// ends. Known differences from glibc: where anchors or \b stand inside repeated
// or optional groups glibc sets some groups by an order of its own; on some
// repetitions of groups that can be empty it loops or crashes; and \B matches
// for it at some ends of texts where it does not here.
package regex

import "errors"

// Flavour is the syntax and the rule of choice among matches.
type Flavour uint8

// The flavours. All but Perl choose the leftmost match and the longest of
// those; Perl takes the first that its preferences lead to.
const (
	// BRE is the basic syntax as sed reads it. \n, \t, \xHH, \dNNN, \oNNN, \cX,
	// \a, \f, \r and \v stand for their characters, in brackets too.
	BRE Flavour = iota
	// ERE is the extended syntax as sed -E reads it, with the same escapes.
	ERE
	// Shell is ERE as regcomp reads it, for [[ =~ ]].
	Shell
	// GrepBRE is BRE as grep -G reads it.
	GrepBRE
	// GrepERE is ERE as grep -E reads it: an operator without an operand and a
	// brace that opens no interval are ordinary.
	GrepERE
	// Emacs is the default of find -regex.
	Emacs
	// Expr is BRE as expr, nl, csplit and tac read it.
	Expr
	// Literal takes every byte of the pattern for itself: grep -F.
	Literal
	// Perl is the part of PCRE that people write: grep -P.
	Perl
)

// Options says how to read a pattern and what it is matched against. The zero
// value is sed without flags.
type Options struct {
	Flavour    Flavour
	IgnoreCase bool
	// Multiline lets ^ and $ match at newlines too, and keeps . and negated
	// brackets off a newline (in Perl only ^ and $ change): sed's M. Without it
	// . and negated brackets do match a newline, except in Perl.
	Multiline bool
	// Lines says that each line of a subject is a subject of its own, which
	// lets FindLine search a whole buffer. No match
	// contains the separator, and ^, $, \`
	// and \' match at the ends of each line. Pass single lines or whole buffers
	// alike to every method.
	Lines bool
	// NULSep says that NUL, not newline, ends a line where Lines is set; . and
	// negated brackets then match a newline.
	NULSep bool
	// WholeLine matches nothing but the whole subject or line: grep -x.
	WholeLine bool
	// Word matches only what is not next to a word character on either side,
	// at the cost of a shorter match where that helps: grep -w.
	Word bool
	// Bytes makes every byte a character, as in the C locale. Otherwise
	// characters are UTF-8, and an invalid byte is matched by itself only,
	// never by . or a bracket.
	Bytes bool
	// NoSub says that nobody will ask for submatches: Find then gives the
	// span of the match alone.
	NoSub bool
	// Meter is charged for the work. Without one, backtracking is bounded by a
	// constant and the linear engines by nothing.
	Meter Meter
}

// Meter counts work. One step is one move of the backtracker, one instruction
// put into a state of the automaton, or 16 bytes of text run through it. An
// error ends the search and comes back from it unchanged.
//
// Grow counts bytes of memory that a search by backtracking holds beyond a
// small amount, and a negative number gives bytes back. All are given back when
// the search ends.
type Meter interface {
	Step(n int) error
	Grow(n int) error
}

// ErrBacktrack is what a search ends with when there is no Meter and the
// pattern needs more backtracking than is sane.
var ErrBacktrack = errors.New("exceeded PCRE's backtracking limit")

// SyntaxError is a pattern that cannot be compiled. Its text is what the GNU
// tools print for it, to stand after the tool's own name.
type SyntaxError struct {
	Msg string
}

func (e *SyntaxError) Error() string { return e.Msg }

// Regexp is a compiled pattern. It keeps the automaton that it builds while
// matching, so one goroutine at a time may use it; Copy gives another one its
// own.
type Regexp struct {
	opt      Options
	root     *node
	groups   int
	names    []string
	warnings []string

	engine
}

// Compile reads a pattern. An error is a *SyntaxError, or that of the Meter.
func Compile(pattern string, opt Options) (*Regexp, error) {
	return CompileAny([]string{pattern}, opt)
}

// CompileAny reads several patterns of which any may match, as grep's -e and
// -f give them; with none, nothing matches. Back-references count the groups
// of their own pattern; Find gives the groups of all, one pattern's after the
// other's.
func CompileAny(patterns []string, opt Options) (*Regexp, error) {
	r := &Regexp{opt: opt}
	branches := make([]*node, 0, len(patterns))
	for _, pattern := range patterns {
		p := &parser{src: pattern, opt: &r.opt, d: opt.Flavour.dialect(), base: r.groups, sep: noChar}
		if sep := opt.separator(); sep >= 0 {
			p.sep = rune(sep)
		}
		n, err := p.parse()
		if err != nil {
			return nil, err
		}
		branches = append(branches, n)
		r.groups += p.groups
		r.names = append(r.names, p.names...)
		r.warnings = append(r.warnings, p.warnings...)
	}
	r.root = &node{kind: kFail}
	if len(branches) > 0 {
		r.root = alt(branches...)
	}
	if opt.Word {
		r.root = cat(assert(aNoWordBefore), r.root, assert(aNoWordAfter))
	}
	if opt.WholeLine {
		r.root = cat(assert(aBeginText), r.root, assert(aEndText))
	}
	size := r.root.size()
	if size > maxSize {
		return nil, syntaxErrorf(msgTooBig)
	}
	r.engine = newEngine(r.root, &r.opt, r.groups)
	if err := r.gauge.step(size); err != nil {
		return nil, err
	}
	return r, nil
}

func (p *parser) parse() (*node, error) {
	switch p.opt.Flavour {
	case Perl:
		return p.parsePerl()
	case Literal:
		var seq []*node
		for p.at < len(p.src) {
			c, n := p.opt.decode(p.src[p.at:])
			seq = append(seq, p.char(c))
			p.at += n
		}
		return cat(seq...), nil
	default:
		return p.posix()
	}
}

// Copy returns a Regexp for the same pattern that may be used at the same
// time, charged to another meter.
func (r *Regexp) Copy(m Meter) *Regexp {
	c := &Regexp{opt: r.opt, root: r.root, groups: r.groups, names: r.names, warnings: r.warnings}
	c.opt.Meter = m
	c.engine = newEngine(c.root, &c.opt, c.groups)
	return c
}

// Groups returns the number of groups in the pattern.
func (r *Regexp) Groups() int { return r.groups }

// Names returns the names of the groups of a Perl pattern, that of group 1
// first, empty where a group has none.
func (r *Regexp) Names() []string { return r.names }

// Warnings returns what grep would warn about in the pattern, without "grep:
// warning: ".
func (r *Regexp) Warnings() []string { return r.warnings }

// Match reports whether b contains a match.
func (r *Regexp) Match(b []byte) (bool, error) { return r.exists(b) }

// Span finds the first match that starts at or after from, which stands between
// characters. What stands before
// from is context: it decides about ^, \< and \b. start is -1 when there is
// none.
func (r *Regexp) Span(b []byte, from int) (start, end int, err error) {
	return r.span(b, from, false)
}

// Find is Span with submatches: it appends to dst[:0] the start and end of the
// match and of each group, -1 for a group that took no part, and returns nil
// when there is no match.
func (r *Regexp) Find(b []byte, from int, dst []int) ([]int, error) {
	return r.find(b, from, dst, false)
}

// FindAt is Find for a match that starts exactly at from: expr's colon.
func (r *Regexp) FindAt(b []byte, from int, dst []int) ([]int, error) {
	return r.find(b, from, dst, true)
}

// FindLine finds the first line at or after from, which is the start of a
// line, that contains a match, and returns where it starts and where its text
// ends (at the separator or the end of b). start is -1 when there is none.
// Options.Lines must be set.
func (r *Regexp) FindLine(b []byte, from int) (start, end int, err error) {
	return r.line(b, from)
}
