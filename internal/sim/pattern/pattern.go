// Package pattern matches bytes with the shell's patterns: the wildcards of
// case, [[ ]], ${x#…} and ${x/…}, with the extended patterns of bash, and
// pathname expansion.
//
// A pattern comes with its quoting resolved: a backslash takes the meaning from
// the character after it, and Quote puts those backslashes. Characters are
// UTF-8, unless Options.Bytes is set; a byte that is no part of one counts as a
// character of its own, and nothing is ever replaced. Ranges go by code point.
//
// No pattern takes more than time in the order of its length times that of the
// string (times the length again for each level of a nested negation), and what
// is spent beyond one look at the string is counted by the caller's Meter.
package pattern

import (
	"strings"
	"sync"
	"sync/atomic"
)

// Options choose the dialect. The zero value is POSIX.
type Options struct {
	ExtGlob    bool // ?( ) *( ) +( ) @( ) !( )
	IgnoreCase bool // nocasematch, nocaseglob
	Bytes      bool // a character is a byte: the locale C
	Path       bool // only a slash matches a slash, except for a * at the end: GLOBIGNORE
}

// Meter counts work. An error from Step ends the match and is returned as it is.
type Meter interface {
	Step(n int) error
}

// Pattern is a compiled pattern. It may be used by many at once.
type Pattern struct {
	opt    Options
	source string
	shape  shape
	lit    string // of the shapes that have one
	items  sequence
	groups bool // some item is a group
	first  *[4]uint64

	forward, backward lazy
}

// lazy is a program that is made when it is first needed, and the memory that
// the last run of it left for the next.
type lazy struct {
	once  sync.Once
	prog  *program
	spare atomic.Pointer[scratch]
}

// shape is what a pattern can be matched by without looking at its items.
type shape uint8

const (
	general  shape = iota
	literal        // lit
	prefix         // lit*
	suffix         // *lit
	contains       // *lit*
	anything       // *
	plain          // items without groups
)

// Compile never fails: what is malformed means itself.
func Compile(pat string, o Options) *Pattern {
	p := &Pattern{opt: o, source: pat}
	if !HasMeta(pat, o.ExtGlob) {
		lit := Unquote(pat)
		if !o.IgnoreCase {
			p.shape, p.lit = literal, lit
			p.items = sequence{{kind: itemLiteral, lit: lit}}
			return p
		}
	}
	ps := parser{src: pat, opt: o}
	p.items = ps.parse()
	p.groups = ps.groups
	p.shape, p.lit = classify(p.items, p.groups, o)
	p.first = firstBytes(p.items, o)
	return p
}

// String returns the pattern's text.
func (p *Pattern) String() string { return p.source }

func classify(items sequence, groups bool, o Options) (shape, string) {
	switch {
	case groups:
		return general, ""
	case o.IgnoreCase || o.Path:
		return plain, ""
	}
	switch len(items) {
	case 0:
		return literal, ""
	case 1:
		switch items[0].kind {
		case itemLiteral:
			return literal, items[0].lit
		case itemStar:
			return anything, ""
		}
	case 2:
		switch {
		case items[0].kind == itemLiteral && items[1].kind == itemStar:
			return prefix, items[0].lit
		case items[0].kind == itemStar && items[1].kind == itemLiteral:
			return suffix, items[1].lit
		}
	case 3:
		if items[0].kind == itemStar && items[1].kind == itemLiteral && items[2].kind == itemStar {
			return contains, items[1].lit
		}
	}
	return plain, ""
}

// Literal returns the string that the pattern stands for, if it is only one.
func (p *Pattern) Literal() (string, bool) {
	return p.lit, p.shape == literal
}

// Match reports whether the pattern matches the whole of s.
func (p *Pattern) Match(s string, m Meter) (bool, error) {
	switch p.shape {
	case literal:
		return s == p.lit, nil
	case prefix:
		return strings.HasPrefix(s, p.lit), nil
	case suffix:
		return strings.HasSuffix(s, p.lit), nil
	case contains:
		return strings.Contains(s, p.lit), nil
	case anything:
		return true, nil
	case plain:
		return p.matchPlain(s, m)
	}
	_, ok, err := p.scan(s, scan{meter: m, whole: true})
	return ok, err
}

// matchName matches the name of a file: a dot at its start is matched by a dot
// only.
func (p *Pattern) matchName(s string, m Meter) (bool, error) {
	if s == "" || s[0] != '.' {
		return p.Match(s, m)
	}
	_, ok, err := p.scan(s, scan{meter: m, whole: true, period: true})
	return ok, err
}

// ShortestPrefix returns the length of the shortest prefix of s that matches,
// as ${s#pattern} takes it away.
func (p *Pattern) ShortestPrefix(s string, m Meter) (n int, ok bool, err error) {
	switch p.shape {
	case literal, prefix:
		return len(p.lit), strings.HasPrefix(s, p.lit), nil
	case suffix, contains:
		i := strings.Index(s, p.lit)
		return i + len(p.lit), i >= 0, nil
	case anything:
		return 0, true, nil
	}
	return p.scan(s, scan{meter: m, shortest: true})
}

// LongestPrefix is ShortestPrefix for ${s##pattern}.
func (p *Pattern) LongestPrefix(s string, m Meter) (n int, ok bool, err error) {
	switch p.shape {
	case literal:
		return len(p.lit), strings.HasPrefix(s, p.lit), nil
	case prefix:
		return len(s), strings.HasPrefix(s, p.lit), nil
	case suffix:
		i := strings.LastIndex(s, p.lit)
		return i + len(p.lit), i >= 0, nil
	case contains:
		return len(s), strings.Contains(s, p.lit), nil
	case anything:
		return len(s), true, nil
	}
	return p.scan(s, scan{meter: m})
}

// ShortestSuffix returns the length of the shortest suffix of s that matches,
// as ${s%pattern} takes it away.
func (p *Pattern) ShortestSuffix(s string, m Meter) (n int, ok bool, err error) {
	switch p.shape {
	case literal, suffix:
		return len(p.lit), strings.HasSuffix(s, p.lit), nil
	case prefix, contains:
		i := strings.LastIndex(s, p.lit)
		return len(s) - i, i >= 0, nil
	case anything:
		return 0, true, nil
	}
	return p.scan(s, scan{meter: m, shortest: true, backward: true})
}

// LongestSuffix is ShortestSuffix for ${s%%pattern}.
func (p *Pattern) LongestSuffix(s string, m Meter) (n int, ok bool, err error) {
	switch p.shape {
	case literal:
		return len(p.lit), strings.HasSuffix(s, p.lit), nil
	case suffix:
		return len(s), strings.HasSuffix(s, p.lit), nil
	case prefix:
		i := strings.Index(s, p.lit)
		return len(s) - i, i >= 0, nil
	case contains:
		return len(s), strings.Contains(s, p.lit), nil
	case anything:
		return len(s), true, nil
	}
	return p.scan(s, scan{meter: m, backward: true})
}

// Find returns the leftmost match in s that begins at from or later, and of
// those at the same place the longest: what ${s/pattern/…} replaces. A pattern
// that matches the empty string may return start == end. After such a match the
// next search begins one character on (Size), and after any other at end; a
// search that would begin at len(s) is not made, unless s is empty.
func (p *Pattern) Find(s string, from int, m Meter) (start, end int, ok bool, err error) {
	if s == "" && p.groups && p.source[0] != '*' {
		return 0, 0, false, nil // as in bash, which gives up on an empty string early
	}
	rest := s[from:]
	switch p.shape {
	case literal:
		i := strings.Index(rest, p.lit)
		return from + i, from + i + len(p.lit), i >= 0, nil
	case prefix:
		i := strings.Index(rest, p.lit)
		return from + i, len(s), i >= 0, nil
	case suffix:
		i := strings.LastIndex(rest, p.lit)
		return from, from + i + len(p.lit), i >= 0, nil
	case contains:
		return from, len(s), strings.Contains(rest, p.lit), nil
	case anything:
		return from, len(s), true, nil
	}
	start, end, ok, err = p.find(rest, m)
	return from + start, from + end, ok, err
}

// Size returns the length of the first character of s in bytes.
func Size(s string) int {
	_, n := (Options{}).decode(s)
	return n
}

func (p *Pattern) size(s string) int {
	_, n := p.opt.decode(s)
	return n
}

// HasMeta reports whether the text is more than a literal: whether it holds an
// unquoted wildcard. A bracket that nothing closes is none.
func HasMeta(pat string, extGlob bool) bool {
	open := false
	for i := 0; i < len(pat); i++ {
		switch pat[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			open = true
		case ']':
			if open {
				return true
			}
		case '+', '@', '!':
			if extGlob && i+1 < len(pat) && pat[i+1] == '(' {
				return true
			}
		}
	}
	return false
}

// Quote returns a pattern that matches s only.
func Quote(s string) string {
	n := 0
	for i := range len(s) {
		if special(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+n)
	for i := range len(s) {
		if special(s[i]) {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

func special(c byte) bool {
	switch c {
	case '*', '?', '[', ']', '\\', '!', '^', '-', '(', ')', '|', '+', '@', '.', ':', '=':
		return true
	}
	return false
}

// Unquote takes the backslashes away: the string that a pattern without
// wildcards stands for. A backslash at the end stands for itself.
func Unquote(pat string) string {
	i := strings.IndexByte(pat, '\\')
	if i < 0 {
		return pat
	}
	b := make([]byte, 0, len(pat))
	b = append(b, pat[:i]...)
	for ; i < len(pat); i++ {
		if pat[i] == '\\' && i+1 < len(pat) {
			i++
		}
		b = append(b, pat[i])
	}
	return string(b)
}
