package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// param reads ${ }.
func (p *Parser) param(dq bool) syntax.WordPart {
	start := p.pos
	x := &syntax.ParamExp{Dollar: p.posAt(start)}
	p.pos += 2
	p.joinAt(0)
	ok := p.paramName(x) && p.paramOp(x, dq)
	if ok && p.at(0) == '}' {
		x.Rbrace = p.posAt(p.pos)
		p.pos++
		return x
	}
	// What bash finds wrong when it gets there.
	p.pos = start + 2
	p.parts(mode{dq: dq, close: '}'})
	if p.end() {
		p.unclosed(start, "}")
	}
	text := string(p.src[start+2 : p.pos])
	bad := &syntax.ParamExp{Dollar: x.Dollar, Rbrace: p.posAt(p.pos), Param: &syntax.Lit{Value: text}, Flags: &syntax.Lit{}}
	p.pos++
	return bad
}

// nameLen tells how long the parameter's name is that stands i bytes on.
func (p *Parser) nameLen(i int) int {
	switch c := p.at(i); {
	case nameStart(c):
		n := 1
		for p.joinAt(i + n); nameByte(p.at(i + n)); p.joinAt(i + n) {
			n++
		}
		return n
	case c >= '0' && c <= '9':
		n := 1
		for c := p.at(i + n); c >= '0' && c <= '9'; c = p.at(i + n) {
			n++
		}
		p.joinAt(i + n)
		return n
	case c != 0 && strings.IndexByte("@*#?-$!", c) >= 0:
		return 1
	}
	return 0
}

func (p *Parser) paramName(x *syntax.ParamExp) bool {
	switch p.at(0) {
	case '#':
		p.joinAt(1)
		// ${#name}, if nothing but a subscript follows the name.
		if n := p.nameLen(1); n > 0 {
			next := p.at(1 + n)
			if next == '}' || next == '[' && nameStart(p.at(1)) {
				x.Length = true
				p.pos++
			}
		}
	case '!':
		if n := p.nameLen(1); n > 0 {
			next := p.at(1 + n)
			if nameByte(p.at(1)) || next == '}' {
				x.Excl = true
				p.pos++
			} else if strings.IndexByte("#?@*", p.at(1)) >= 0 {
				// Of these there is indirection too, whatever follows.
				x.Excl = true
				p.pos++
				if strings.IndexByte("#%:-=?+/", next) < 0 {
					return false
				}
			}
		}
	}
	n := p.nameLen(0)
	if n == 0 {
		return false
	}
	indexed := nameStart(p.at(0))
	x.Param = p.lit(n)
	if !indexed {
		return true
	}
	if x.Excl && p.at(1) == '}' {
		switch p.at(0) {
		case '*':
			x.Names = syntax.NamesPrefix
			p.pos++
			return true
		case '@':
			x.Names = syntax.NamesPrefixWords
			p.pos++
			return true
		}
	}
	if p.at(0) != '[' {
		return true
	}
	from := p.pos + 1
	p.pos = from
	if !p.over(']', "") || p.pos == from {
		return false
	}
	end := p.pos
	p.pos = from
	x.Index = p.textWord(end, mode{text: true})
	p.pos = end + 1
	return true
}

// paramOp reads what follows the name.
func (p *Parser) paramOp(x *syntax.ParamExp, dq bool) bool {
	c := p.at(0)
	if x.Length || x.Names != 0 || c == '}' {
		return true
	}
	d := p.at(1)
	switch c {
	case ':':
		switch d {
		case '-', '=', '?', '+':
			p.pos += 2
			p.expansion(x, defaultOp(d, true), mode{dq: dq, close: '}'})
			return true
		}
		p.pos++
		return p.slice(x)
	case '-', '=', '?', '+':
		p.pos++
		p.expansion(x, defaultOp(c, false), mode{dq: dq, close: '}'})
	case '#':
		p.patternOp(x, d == '#', syntax.RemSmallPrefix, syntax.RemLargePrefix)
	case '%':
		p.patternOp(x, d == '%', syntax.RemSmallSuffix, syntax.RemLargeSuffix)
	case '^':
		p.patternOp(x, d == '^', syntax.UpperFirst, syntax.UpperAll)
	case ',':
		p.patternOp(x, d == ',', syntax.LowerFirst, syntax.LowerAll)
	case '~':
		p.patternOp(x, d == '~', expand.ToggleFirst, expand.ToggleAll)
	case '/':
		p.replace(x, d == '/', dq)
	case '@':
		if d == 0 || d == '}' || p.at(2) != '}' {
			return false
		}
		p.pos++
		x.Exp = &syntax.Expansion{Op: syntax.OtherParamOps, Word: &syntax.Word{Parts: []syntax.WordPart{p.lit(1)}}}
	default:
		return false
	}
	return true
}

func defaultOp(c byte, colon bool) syntax.ParExpOperator {
	var plain, null syntax.ParExpOperator
	switch c {
	case '-':
		plain, null = syntax.DefaultUnset, syntax.DefaultUnsetOrNull
	case '=':
		plain, null = syntax.AssignUnset, syntax.AssignUnsetOrNull
	case '?':
		plain, null = syntax.ErrorUnset, syntax.ErrorUnsetOrNull
	default:
		plain, null = syntax.AlternateUnset, syntax.AlternateUnsetOrNull
	}
	if colon {
		return null
	}
	return plain
}

func (p *Parser) expansion(x *syntax.ParamExp, op syntax.ParExpOperator, m mode) {
	x.Exp = &syntax.Expansion{Op: op, Word: p.optional(m)}
}

// optional reads a word that may be missing: nil is an empty one.
func (p *Parser) optional(m mode) *syntax.Word {
	parts := p.parts(m)
	if len(parts) == 0 {
		return nil
	}
	return &syntax.Word{Parts: parts}
}

func (p *Parser) patternOp(x *syntax.ParamExp, twice bool, one, two syntax.ParExpOperator) {
	p.pos++
	op := one
	if twice {
		p.pos++
		op = two
	}
	p.expansion(x, op, mode{close: '}', extglob: true})
}

func (p *Parser) replace(x *syntax.ParamExp, all, dq bool) {
	p.pos++
	if all {
		p.pos++
	}
	r := &syntax.Replace{All: all}
	x.Repl = r
	// A slash may be the first byte of the pattern.
	if p.at(0) == '/' {
		start := p.pos
		p.pos++
		r.Orig = p.optional(mode{close: '}', slash: true, extglob: true})
		slash := &syntax.Lit{ValuePos: p.posAt(start), Value: "/"}
		if r.Orig == nil {
			r.Orig = &syntax.Word{Parts: []syntax.WordPart{slash}}
		} else {
			r.Orig.Parts = append([]syntax.WordPart{slash}, r.Orig.Parts...)
		}
	} else {
		r.Orig = p.optional(mode{close: '}', slash: true, extglob: true})
	}
	if p.at(0) != '/' {
		return
	}
	p.pos++
	_ = dq
	r.With = p.optional(mode{close: '}'})
}

// slice reads the offset and length after a colon.
func (p *Parser) slice(x *syntax.ParamExp) bool {
	x.Slice = &syntax.Slice{}
	from := p.pos
	if !p.over('}', ":") || p.pos == from && p.at(0) == '}' {
		return false
	}
	end := p.pos
	p.pos = from
	x.Slice.Offset = p.textWord(end, mode{dq: true, arith: true, text: true})
	if p.at(0) != ':' {
		return true
	}
	p.pos++
	from = p.pos
	if !p.over('}', "") {
		return false
	}
	end = p.pos
	p.pos = from
	x.Slice.Length = p.textWord(end, mode{dq: true, arith: true, text: true})
	return true
}
