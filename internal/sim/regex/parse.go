package regex

import (
	"fmt"
	"unicode/utf8"
)

// The words of glibc's regcomp.
const (
	msgParen    = `Unmatched ( or \(`
	msgClose    = `Unmatched ) or \)`
	msgBracket  = `Unmatched [, [^, [:, [., or [=`
	msgBrace    = `Unmatched \{`
	msgContent  = `Invalid content of \{\}`
	msgRange    = `Invalid range end`
	msgRepeat   = `Invalid preceding regular expression`
	msgBackref  = `Invalid back reference`
	msgClass    = `Invalid character class name`
	msgCollate  = `Invalid collation character`
	msgTrailing = `Trailing backslash`
	msgTooBig   = `Regular expression too big`
	msgColon    = `character class syntax is [[:space:]], not [:space:]`
)

const (
	maxDepth  = 500
	maxRepeat = 32767
)

func syntaxErrorf(format string, args ...any) error {
	return &SyntaxError{Msg: fmt.Sprintf(format, args...)}
}

type parser struct {
	src      string
	at       int
	opt      *Options
	d        dialect
	base     int // number of groups of the patterns before this one
	groups   int // so far, of this pattern
	done     uint16
	depth    int
	names    []string // Perl: by number, with base
	warnings []string
	sep      rune // what no character of a match is, or noChar
	perl     perlFlags
	refs     []reference
}

type tokenKind uint8

const (
	tEnd tokenKind = iota
	tChar
	tAny
	tStar
	tPlus
	tQuestion
	tOpenBrace
	tCloseBrace
	tOpen
	tClose
	tAlt
	tBracket
	tAnchor
	tBackref
	tClass
)

type token struct {
	kind  tokenKind
	c     rune // tChar and tBackref (a digit)
	text  string
	op    assertion
	class string
	neg   bool
}

// decode gives the character at the start of s: itself if valid, else the
// first byte.
func (o *Options) decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf || o.Bytes {
		return rune(s[0]), 1
	}
	c, n := utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && n == 1 {
		return rawByte + rune(s[0]), 1
	}
	return c, n
}

// token reads the token at p.at, as it is after an operator that lets ^ be an
// anchor (start) or not, and returns where the next one begins.
func (p *parser) token(at int, start bool) (token, int, error) {
	if at >= len(p.src) {
		return token{kind: tEnd}, at, nil
	}
	if p.src[at] == '\\' {
		return p.escape(at)
	}
	c, n := p.opt.decode(p.src[at:])
	t := token{kind: tChar, c: c, text: p.src[at : at+n]}
	next := at + n
	switch c {
	case '*':
		t.kind = tStar
	case '.':
		t.kind = tAny
	case '[':
		t.kind = tBracket
	case '+', '?':
		if p.d.barePlus {
			t.kind = tPlus
			if c == '?' {
				t.kind = tQuestion
			}
		}
	case '(', ')', '|':
		if p.d.bareGroup {
			t.kind = groupToken(c)
		}
	case '{', '}':
		if p.d.bareInterval {
			t.kind = tOpenBrace
			if c == '}' {
				t.kind = tCloseBrace
			}
		}
	case '^':
		if p.d.anchors || start || at == 0 {
			t.kind, t.op = tAnchor, p.begin()
		}
	case '$':
		if p.d.anchors || p.dollarEnds(next) {
			t.kind, t.op = tAnchor, p.end()
		}
	}
	return t, next, nil
}

func groupToken(c rune) tokenKind {
	switch c {
	case '(':
		return tOpen
	case ')':
		return tClose
	default:
		return tAlt
	}
}

// dollarEnds says whether a $ before at is an anchor in the basic syntax.
func (p *parser) dollarEnds(at int) bool {
	if at >= len(p.src) {
		return true
	}
	return p.src[at] == '\\' && at+1 < len(p.src) && (p.src[at+1] == ')' || p.src[at+1] == '|')
}

func (p *parser) begin() assertion {
	if p.opt.Multiline && !p.opt.Lines {
		return aBeginLine
	}
	return aBeginText
}

func (p *parser) end() assertion {
	if p.opt.Multiline && !p.opt.Lines {
		return aEndLine
	}
	return aEndText
}

func (p *parser) escape(at int) (token, int, error) {
	if at+1 >= len(p.src) {
		return token{}, at, syntaxErrorf(msgTrailing)
	}
	c, n := p.opt.decode(p.src[at+1:])
	next := at + 1 + n
	t := token{kind: tChar, c: c, text: p.src[at:next]}
	switch c {
	case '|', '(', ')':
		if !p.d.bareGroup {
			t.kind = groupToken(c)
		}
	case '+', '?':
		if !p.d.barePlus {
			t.kind = tPlus
			if c == '?' {
				t.kind = tQuestion
			}
		}
	case '{', '}':
		if p.d.interval && !p.d.bareInterval {
			t.kind = tOpenBrace
			if c == '}' {
				t.kind = tCloseBrace
			}
		}
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.kind = tBackref
	case '<':
		t.kind, t.op = tAnchor, aWordStart
	case '>':
		t.kind, t.op = tAnchor, aWordEnd
	case 'b':
		t.kind, t.op = tAnchor, aWordEdge
	case 'B':
		t.kind, t.op = tAnchor, aNotWordEdge
	case '`':
		t.kind, t.op = tAnchor, aBeginText
	case '\'':
		t.kind, t.op = tAnchor, aEndText
	case 'w', 'W':
		t.kind, t.class, t.neg = tClass, "word", c == 'W'
	case 's', 'S':
		t.kind, t.class, t.neg = tClass, "space", c == 'S'
	default:
		if p.d.escapes {
			if e, width := escaped(p.src[at+1:]); width > 0 {
				t.c = p.opt.byteChar(e)
				return t, at + 1 + width, nil
			}
		}
		if isWord(c, true) || c >= utf8.RuneSelf {
			p.warnings = append(p.warnings, `stray \ before `+p.src[at+1:next])
		}
	}
	return t, next, nil
}

// byteChar gives the character that a byte written as a number is.
func (o *Options) byteChar(b byte) rune {
	if b < utf8.RuneSelf || o.Bytes {
		return rune(b)
	}
	return rawByte + rune(b)
}

// escaped reads what sed takes for a character after a backslash, and how many
// bytes of s that is.
func escaped(s string) (byte, int) {
	switch s[0] {
	case 'a':
		return '\a', 1
	case 'f':
		return '\f', 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'v':
		return '\v', 1
	case 'c':
		if len(s) > 1 && s[1] < utf8.RuneSelf {
			c := s[1]
			if 'a' <= c && c <= 'z' {
				c -= 32
			}
			return c ^ 0x40, 2
		}
	case 'd':
		return number(s, 10, 3)
	case 'o':
		return number(s, 8, 3)
	case 'x':
		return number(s, 16, 2)
	}
	return 0, 0
}

func number(s string, base, digits int) (byte, int) {
	v, n := 0, 0
	for n < digits && n+1 < len(s) {
		d := hexDigit(s[n+1])
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
		n++
	}
	if n == 0 {
		return 0, 0
	}
	return byte(v), n + 1
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// posix reads a whole pattern of a POSIX flavour.
func (p *parser) posix() (*node, error) {
	n, t, err := p.alternatives(true)
	if err != nil {
		return nil, err
	}
	if t.kind == tClose {
		return nil, syntaxErrorf(msgClose)
	}
	return n, nil
}

// alternatives reads up to the end or an unread closing parenthesis.
func (p *parser) alternatives(top bool) (*node, token, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, token{}, syntaxErrorf(msgTooBig)
	}
	var branches []*node
	before, all := p.done, p.done
	for {
		p.done = before
		n, t, err := p.branch(top)
		if err != nil {
			return nil, t, err
		}
		all |= p.done
		branches = append(branches, n)
		if t.kind != tAlt {
			p.done = all
			return alt(branches...), t, nil
		}
	}
}

// branch reads a sequence up to and with a |, or up to the end or a closing
// parenthesis that is read but belongs to the caller.
func (p *parser) branch(top bool) (*node, token, error) {
	var seq []*node
	start := true
	for {
		t, next, err := p.token(p.at, start)
		if err != nil {
			return nil, t, err
		}
		if t.kind == tEnd {
			return cat(seq...), t, nil
		}
		if t.kind == tAlt || t.kind == tClose && (!top || !p.d.strayClose) {
			p.at = next
			return cat(seq...), t, nil
		}
		p.at = next
		n, repeatable, err := p.atom(t, start)
		if err != nil {
			return nil, t, err
		}
		start = t.kind == tAnchor
		if n == nil {
			start = true
			continue
		}
		if repeatable {
			if n, err = p.repeats(n); err != nil {
				return nil, t, err
			}
		}
		seq = append(seq, n)
	}
}

// atom reads what an operator may follow. It returns nil for an operator that
// stands where there is nothing to repeat and is passed over.
func (p *parser) atom(t token, start bool) (n *node, repeatable bool, err error) {
	switch t.kind {
	case tOpen:
		n, err = p.group()
		return n, true, err
	case tBracket:
		n, err = p.bracket()
		return n, true, err
	case tAny:
		return p.setNode(universe(p.opt.Bytes), p.dotSkips()), true, nil
	case tClass:
		return p.bracketNode(nil, []string{t.class}, t.neg), true, nil
	case tBackref:
		g := int(t.c - '0')
		if p.done&(1<<g) == 0 {
			return nil, false, syntaxErrorf(msgBackref)
		}
		return &node{kind: kBackref, group: p.base + g, fold: p.opt.IgnoreCase}, true, nil
	case tAnchor:
		return assert(t.op), false, nil
	case tStar, tPlus, tQuestion, tOpenBrace:
		return p.stray(t, start)
	default:
		return p.char(t.c), true, nil
	}
}

// stray deals with an operator that has nothing to repeat.
func (p *parser) stray(t token, start bool) (*node, bool, error) {
	if t.kind == tOpenBrace && p.d.refuseDouble || p.d.refuseStray {
		return nil, false, syntaxErrorf(msgRepeat)
	}
	if !p.d.operators {
		return p.char(t.c), true, nil
	}
	what := t.text
	if t.kind == tOpenBrace {
		what = "{...}"
		at := p.at
		if _, _, ok, err := p.interval(); err != nil {
			return nil, false, err
		} else if !ok {
			p.at = at
			return p.char('{'), true, nil
		}
	}
	if start {
		p.warnings = append(p.warnings, what+" at start of expression")
	}
	return nil, false, nil
}

// repeats wraps n into the operators that follow it.
func (p *parser) repeats(n *node) (*node, error) {
	for count := 0; ; count++ {
		t, next, err := p.token(p.at, false)
		if err != nil {
			if p.src[p.at] == '\\' && p.at+1 == len(p.src) {
				return nil, err
			}
			return n, nil
		}
		least, most := 0, -1
		switch t.kind {
		case tStar:
		case tPlus:
			least = 1
		case tQuestion:
			most = 1
		case tOpenBrace:
		default:
			return n, nil
		}
		if count > 0 && p.d.refuseDouble && (t.kind == tStar || t.kind == tOpenBrace) {
			return nil, syntaxErrorf(msgRepeat)
		}
		before := p.at
		p.at = next
		if t.kind == tOpenBrace {
			var ok bool
			least, most, ok, err = p.interval()
			if err != nil {
				return nil, err
			}
			if !ok {
				p.at = before
				open, err := p.brace()
				return cat(n, open), err
			}
		}
		if count > maxDepth {
			return nil, syntaxErrorf(msgTooBig)
		}
		n = repeat(n, least, most)
	}
}

// brace takes the { that opened no interval for itself.
func (p *parser) brace() (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, syntaxErrorf(msgTooBig)
	}
	p.at++
	return p.repeats(p.char('{'))
}

func repeat(n *node, least, most int) *node {
	if n.kind == kRepeat && n.min == 0 && n.max < 0 && least <= 1 && most != 0 && !n.lazy {
		return n // a** and a*+ are a*
	}
	return &node{kind: kRepeat, min: least, max: most, sub: []*node{n}}
}

// interval reads what follows an opening brace. ok is false when it is no
// interval and the flavour takes that for ordinary characters.
func (p *parser) interval() (least, most int, ok bool, err error) {
	least, most = p.count(), -1
	switch {
	case p.at < len(p.src) && p.src[p.at] == ',':
		p.at++
		least = max(least, 0)
		most = p.count()
	case least >= 0:
		most = least
	}
	closed := false
	t, next, terr := p.token(p.at, false)
	if terr == nil && t.kind == tCloseBrace {
		closed = true
		p.at = next
	}
	switch {
	case !closed && p.d.ordinary:
		return 0, 0, false, nil
	case !closed && (terr != nil || t.kind == tEnd):
		return 0, 0, false, syntaxErrorf(msgBrace)
	case !closed, least < 0, most >= 0 && least > most:
		return 0, 0, false, syntaxErrorf(msgContent)
	case max(least, most) > maxRepeat:
		return 0, 0, false, syntaxErrorf(msgTooBig)
	}
	return least, most, true, nil
}

// count reads digits, -1 for none.
func (p *parser) count() int {
	v := -1
	for p.at < len(p.src) && '0' <= p.src[p.at] && p.src[p.at] <= '9' {
		v = min(max(v, 0)*10+int(p.src[p.at]-'0'), maxRepeat+1)
		p.at++
	}
	return v
}

func (p *parser) group() (*node, error) {
	p.groups++
	g := p.groups
	n, t, err := p.alternatives(false)
	if err != nil {
		return nil, err
	}
	if t.kind != tClose {
		return nil, syntaxErrorf(msgParen)
	}
	if g <= 9 {
		p.done |= 1 << g
	}
	return &node{kind: kGroup, group: p.base + g, sub: []*node{n}}, nil
}

// dotSkips says whether . and what is negated keep off newlines.
func (p *parser) dotSkips() bool { return p.opt.Multiline && !p.opt.Lines }

func (p *parser) setNode(spans []span, skipNewline bool) *node {
	spans = p.strip(spans, skipNewline)
	if len(spans) == 0 {
		return &node{kind: kFail}
	}
	return &node{kind: kSet, set: newSet(spans)}
}

// strip takes out what no match may contain.
func (p *parser) strip(spans []span, skipNewline bool) []span {
	if skipNewline {
		spans = without(spans, '\n')
	}
	if p.sep != noChar {
		spans = without(spans, p.sep)
	}
	return spans
}

func (p *parser) char(c rune) *node {
	spans := []span{{c, c}}
	if p.opt.IgnoreCase {
		spans = foldSpans(spans, p.opt.Bytes)
	}
	return p.setNode(spans, false)
}
