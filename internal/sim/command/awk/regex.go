package awk

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A matcher is a compiled expression. Most are only asked whether or where
// they match, so the groups are compiled when they are wanted.
type matcher struct {
	src    string
	plain  string // all that it matches, where that is one text
	opt    regex.Options
	re     *regex.Regexp
	groups *regex.Regexp
}

// meter lets the work of an expression count as the task's.
type meter struct{ m *machine }

func (x meter) Step(n int) error {
	x.m.searched += n
	x.m.t.Step(64)
	return nil
}

func (x meter) Grow(n int) error {
	x.m.t.Grow(n)
	return nil
}

// pay counts the work of a search from which the next one goes on. The engine
// charges all the text that is left, again and again, where a search needs to
// look at little of it.
func (m *machine) pay(left, used int) {
	m.t.Step(max(m.searched-left>>6, used>>6) + 1)
	m.searched = 0
}

// maxRegexes is how many expressions that a program makes are kept.
const maxRegexes = 200

// regex compiles an expression, or finds it.
func (m *machine) regex(src string) *matcher {
	key := src
	if m.ignoreCase {
		key = "\x00i" + src
	}
	if re, ok := m.regexes[key]; ok {
		return re
	}
	if len(m.regexes) >= maxRegexes {
		clear(m.regexes)
	}
	opt := regex.Options{Flavour: regex.GrepERE, IgnoreCase: m.ignoreCase, Bytes: m.bytes, NoSub: true, Meter: meter{m}}
	m.t.Step(len(src))
	x := &matcher{src: translate(src), opt: opt}
	if x.src != "" && !m.ignoreCase && !strings.ContainsAny(x.src, `\.[]()*+?{}|^$`) && utf8.ValidString(x.src) {
		x.plain = x.src
	}
	re, err := regex.Compile(x.src, opt)
	if err != nil {
		m.fatal("invalid regexp: %s: /%s/", err, src)
	}
	x.re = re
	m.regexes[strings.Clone(key)] = x
	return x
}

func (x *matcher) match(m *machine, b []byte) bool {
	ok, err := x.re.Match(b)
	m.pay(0, 0)
	if err != nil {
		m.fatal("regexp: %s", err)
	}
	return ok
}

func (x *matcher) span(m *machine, b []byte, from int) (int, int) {
	if x.plain != "" { // a search for text pays for what it looked at only
		i := bytes.Index(b[from:], []byte(x.plain))
		if i < 0 {
			m.t.Step(len(b[from:]) >> 6)
			return -1, -1
		}
		m.t.Step(i >> 6)
		return from + i, from + i + len(x.plain)
	}
	a, z, err := x.re.Span(b, from)
	used := z
	if z < 0 {
		used = len(b)
	}
	m.pay(len(b)-from, used-from)
	if err != nil {
		m.fatal("regexp: %s", err)
	}
	return a, z
}

// find is span with groups; the result is valid until the next call.
func (x *matcher) find(m *machine, b []byte, from int) []int {
	if x.groups == nil {
		opt := x.opt
		opt.NoSub = false
		re, err := regex.Compile(x.src, opt)
		if err != nil {
			m.fatal("invalid regexp: %s", err)
		}
		x.groups = re
	}
	regs, err := x.groups.Find(b, from, m.regs)
	used := len(b)
	if regs != nil {
		used = regs[1]
	}
	m.pay(len(b)-from, used-from)
	if err != nil {
		m.fatal("regexp: %s", err)
	}
	if regs != nil {
		m.regs = regs
	}
	return regs
}

// translate writes an expression of awk, where backslashes are C's and count
// in brackets too, as one of grep -E.
func translate(s string) string {
	b := make([]byte, 0, len(s)+8)
	start := true // an operator has nothing to repeat here
	for i := 0; i < len(s); {
		c := s[i]
		switch c {
		case '\\':
			var n int
			b, n = translateEscape(b, s[i+1:])
			i += 1 + n
			start = false
			continue
		case '[':
			var n int
			b, n = translateBracket(b, s[i:])
			i += n
			start = false
			continue
		case '*', '+', '?':
			if start {
				b = append(b, '\\')
			}
			start = false
		case '(', '|':
			start = true
		case '^':
		case '{':
			if start || !interval(s[i:]) {
				b = append(b, '\\')
			}
			start = false
		case ')':
			start = false
		default:
			start = false
		}
		b = append(b, c)
		i++
	}
	return string(b)
}

// interval reports whether a brace opens a repetition.
func interval(s string) bool {
	i := 1
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i > 1 && i < len(s) && s[i] == '}' {
		return true
	}
	if i < len(s) && s[i] == ',' {
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
		return i < len(s) && s[i] == '}' && i > 2
	}
	return false
}

// translateEscape writes what stands behind a backslash, and tells its length.
func translateEscape(b []byte, s string) ([]byte, int) {
	if s == "" {
		return append(b, `\\`...), 0
	}
	switch s[0] {
	case 'y':
		return append(b, `\b`...), 1
	case 'B', '<', '>', '`', '\'', 'w', 'W', 's', 'S':
		return append(b, '\\', s[0]), 1
	case '8', '9':
		return append(b, s[0]), 1
	}
	e, n := escape(s)
	for i := range len(e) {
		b = literal(b, e[i])
	}
	return b, n
}

// literal writes a byte that stands for itself.
func literal(b []byte, c byte) []byte {
	if strings.IndexByte(`\.[]()*+?{}|^$`, c) >= 0 {
		b = append(b, '\\')
	}
	return append(b, c)
}

// translateBracket writes a bracket expression, and tells its length. One that
// does not end is a bracket by itself.
func translateBracket(b []byte, s string) ([]byte, int) {
	begin := len(b)
	b = append(b, '[')
	i := 1
	if i < len(s) && s[i] == '^' {
		b = append(b, '^')
		i++
	}
	for first := true; i < len(s); first = false {
		c := s[i]
		switch {
		case c == ']' && !first:
			return append(b, ']'), i + 1
		case c == '\\' && i+1 < len(s):
			e, n := bracketEscape(s[i+1:])
			b = append(b, e...)
			i += 1 + n
			continue
		case c == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				b = append(b, s[i:i+end+4]...)
				i += end + 4
				continue
			}
			b = append(b, "[.[.]"...)
		case c == ':':
			b = append(b, "[.:.]"...)
		case strings.HasPrefix(s[i:], "---"):
			b = append(b, "[.-.]"...)
			i += 3
			continue
		case c == '-' && (first || i+1 < len(s) && s[i+1] == ']'):
			b = append(b, '-')
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b[:begin], `\[`...), 1
}

func bracketEscape(s string) (string, int) {
	switch s[0] {
	case 'w':
		return "[:alnum:]_", 1
	case 's':
		return "[:space:]", 1
	case 'd':
		return "d", 1
	}
	e, n := escape(s)
	if len(e) == 1 && strings.IndexByte(`]-[^:`, e[0]) >= 0 {
		return "[." + e + ".]", n
	}
	if _, size := utf8.DecodeRuneInString(e); size < len(e) {
		return "", n
	}
	return e, n
}
