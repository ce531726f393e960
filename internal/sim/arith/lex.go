package arith

import (
	"slices"
	"strings"
)

// token is a kind of token. Operators of one character are that character.
type token uint8

const (
	tokEnd  token = 0
	tokName token = iota + 128
	tokNumber
	tokEQ
	tokNE
	tokLE
	tokGE
	tokAnd
	tokOr
	tokShl
	tokShr
	tokPow
	tokAssign // op=
	tokPreInc
	tokPreDec
	tokPostInc
	tokPostDec
)

// mistake records an error, unless there is one: the first counts. From then on
// the parser makes no more code, and its loops end.
func (p *parser) mistake(message string) {
	p.mistakeIn(p.text, message)
}

// mistakeIn is mistake for an expression of which only a part had been read.
func (p *parser) mistakeIn(text, message string) {
	if p.bad == nil {
		p.bad = &Error{Expr: strings.TrimLeft(text, " \t"), Message: message, Token: text[min(p.start, len(text)):]}
	}
	p.tok = tokEnd
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func letter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func (p *parser) at(i int) byte {
	if i < len(p.text) {
		return p.text[i]
	}
	return 0
}

// advance reads the next token.
func (p *parser) advance() {
	if p.bad != nil {
		return
	}
	i := p.pos
	for i < len(p.text) && blank(p.text[i]) {
		i++
	}
	if i >= len(p.text) {
		p.pos, p.tok = i, tokEnd
		return
	}
	p.start = i
	switch c := p.text[i]; {
	case letter(c):
		p.word(i)
	case digit(c):
		p.number(i)
	default:
		p.operator(i, c)
	}
}

// word reads a name and its subscript.
func (p *parser) word(i int) {
	for i < len(p.text) && (letter(p.text[i]) || digit(p.text[i])) {
		i++
	}
	name := p.text[p.start:i]
	subFrom, subTo := -1, 0
	if p.at(i) == '[' {
		end := p.closing(i)
		if end < 0 {
			p.mistake("bad array subscript")
			return
		}
		subFrom, subTo = i+1, end
		i = end + 1
	}
	p.name, p.subFrom, p.subTo = name, subFrom, subTo
	after := p.tok
	p.pos, p.tok = i, tokName
	if p.peeking {
		return
	}
	p.peek()
	if after == tokName || after == tokNumber || after == ')' {
		p.touch()
	}
}

// peek looks at the token after a name, as bash does before it reads the
// variable: a token that is none is an error before anything else happens.
func (p *parser) peek() {
	if p.pos <= p.peeked || p.bad != nil {
		return
	}
	q := parser{text: p.text, base: p.base, brackets: p.brackets, pos: p.pos, tok: tokName, stepped: p.stepped, peeking: true}
	for q.tok == tokName {
		q.stepped = q.stepped && q.pos == p.pos
		q.advance()
	}
	p.peeked, p.brackets = q.pos, q.brackets
	if q.bad != nil {
		p.start = q.start
		p.mistake("")
		p.bad = q.bad
	}
}

// touch evaluates a name that stands where none may: bash finds that out only
// after it has read the variable.
func (p *parser) touch() {
	if p.bad != nil || p.assigned() {
		return
	}
	slots := p.slots
	p.load(true)
	p.emit(opPop, 0, 0)
	p.push(-1)
	p.slots = slots
}

// assigned reports whether an assignment follows, which makes the value of the
// name before it needless.
func (p *parser) assigned() bool {
	i := p.pos
	for i < len(p.text) && blank(p.text[i]) {
		i++
	}
	return p.at(i) == '=' && p.at(i+1) != '='
}

// closing returns where the bracket that opens at i is closed, or -1.
func (p *parser) closing(i int) int {
	if p.brackets == nil {
		p.brackets = pair(p.text)
	}
	if end, ok := p.brackets.close[int32(i+p.base)]; ok && int(end)-p.base < len(p.text) {
		return int(end) - p.base
	}
	return -1
}

// brackets is what is known of the brackets of a text, all from one pass, since
// hostile text may nest them deeply.
type brackets struct {
	close  map[int32]int32 // where each is closed
	quotes []int32         // where the characters are that must be expanded
}

func pair(text string) *brackets {
	b := &brackets{close: map[int32]int32{}}
	var open []int32
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[':
			open = append(open, int32(i))
		case ']':
			if n := len(open); n > 0 {
				b.close[open[n-1]] = int32(i)
				open = open[:n-1]
			}
		case '\\', '\'', '"', '$', '`':
			if len(open) == 0 {
				continue
			}
			b.quotes = append(b.quotes, int32(i))
			if c == '\\' {
				i++
			} else if end := strings.IndexByte(text[i+1:], c); end >= 0 && (c == '\'' || c == '"') {
				i += end + 1
			}
		}
	}
	return b
}

// quoted reports whether there is something to expand in a part of the text.
func (p *parser) quoted(from, to int) bool {
	list := p.brackets.quotes
	i, _ := slices.BinarySearch(list, int32(from+p.base))
	return i < len(list) && int(list[i]) < to+p.base
}

// number reads a constant: decimal, octal, hexadecimal or base#digits.
func (p *parser) number(i int) {
	end := i
	for end < len(p.text) && figure(p.text[end]) {
		end++
	}
	n, message := constant(p.text[i:end])
	if message != "" {
		p.mistakeIn(p.text[:end], message)
		return
	}
	p.num, p.pos, p.tok = n, end, tokNumber
}

func figure(c byte) bool { return letter(c) || digit(c) || c == '#' || c == '@' }

// constant returns the value of a constant; too large a one wraps.
func constant(s string) (n int64, message string) {
	base, found := int64(10), false
	switch {
	case len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x':
		base, found, s = 16, true, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, found, s = 8, true, s[1:]
	}
	for i := range len(s) {
		c := s[i]
		if c == '#' {
			switch {
			case found || n == 0:
				return 0, "invalid number"
			case n < 2 || n > 64:
				return 0, "invalid arithmetic base"
			case i+1 == len(s) || s[i+1] == '#':
				return 0, "invalid integer constant"
			}
			base, found, n = n, true, 0
			continue
		}
		d := figureValue(c, base)
		if d >= base {
			return 0, "value too great for base"
		}
		n = n*base + d
	}
	return n, ""
}

func figureValue(c byte, base int64) int64 {
	switch {
	case digit(c):
		return int64(c - '0')
	case 'a' <= c && c <= 'z':
		return int64(c-'a') + 10
	case 'A' <= c && c <= 'Z':
		if base <= 36 {
			return int64(c-'A') + 10
		}
		return int64(c-'A') + 36
	case c == '@':
		return 62
	}
	return 63
}

// operator reads an operator.
func (p *parser) operator(i int, c byte) {
	c1 := p.at(i + 1)
	two := func(t token) {
		p.pos, p.tok = i+2, t
	}
	switch {
	case c == '=' && c1 == '=':
		two(tokEQ)
	case c == '!' && c1 == '=':
		two(tokNE)
	case c == '>' && c1 == '=':
		two(tokGE)
	case c == '<' && c1 == '=':
		two(tokLE)
	case c == '<' && c1 == '<' || c == '>' && c1 == '>':
		t, op := tokShl, opShl
		if c == '>' {
			t, op = tokShr, opShr
		}
		two(t)
		if p.at(i+2) == '=' {
			p.pos, p.tok, p.assign = i+3, tokAssign, op
		}
	case c == '&' && c1 == '&':
		two(tokAnd)
	case c == '|' && c1 == '|':
		two(tokOr)
	case c == '*' && c1 == '*':
		two(tokPow)
	case (c == '+' || c == '-') && c1 == c:
		p.twin(i, c)
	case c1 == '=' && binary(c) != 0:
		two(tokAssign)
		p.assign = binary(c)
	default:
		if !operators(c) {
			if p.tok == tokEnd || p.tok < 128 || p.tok > tokNumber && p.tok < tokPostInc {
				p.mistake("syntax error: operand expected")
			} else {
				p.mistake("syntax error: invalid arithmetic operator")
			}
			return
		}
		p.pos, p.tok = i+1, token(c)
	}
}

// twin reads ++ and --, which may be two signs instead.
func (p *parser) twin(i int, c byte) {
	pre, post := tokPreInc, tokPostInc
	if c == '-' {
		pre, post = tokPreDec, tokPostDec
	}
	p.pos = i + 2
	switch {
	case p.tok == tokName && p.stepped:
		p.mistake(string([]byte{c, c}) + ": assignment requires lvalue")
		return
	case p.tok == tokName:
		p.tok = post
		return
	}
	next := p.pos
	for next < len(p.text) && blank(p.text[next]) {
		next++
	}
	if letter(p.at(next)) {
		p.tok = pre
		return
	}
	p.pos, p.tok = i+1, token(c)
}

func operators(c byte) bool {
	switch c {
	case '=', '>', '<', '+', '-', '*', '/', '%', '!', '(', ')', '&', '|', '^', '~', ',', '?', ':':
		return true
	}
	return false
}

// binary returns the operation of the operators that have an assignment of
// their own.
func binary(c byte) opcode {
	switch c {
	case '*':
		return opMul
	case '/':
		return opDiv
	case '%':
		return opMod
	case '+':
		return opAdd
	case '-':
		return opSub
	case '&':
		return opBand
	case '^':
		return opXor
	case '|':
		return opBor
	}
	return 0
}
