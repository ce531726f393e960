package parse

import "strings"

// arithEnd finds the "))" that ends what starts at from; -1 is none.
func (p *Parser) arithEnd(from int) int {
	save := p.pos
	p.pos = from
	ok := p.over(')', "")
	end := p.pos
	next := byte(0)
	if ok {
		p.joinAt(1)
		next = p.at(1)
	}
	p.pos = save
	if !ok || next != ')' {
		return -1
	}
	return end
}

// over moves to the closing byte, or one of stops on the level where it
// started, past everything that is quoted or nested. False is the end of the
// input.
func (p *Parser) over(closing byte, stops string) bool {
	p.enter()
	defer p.leave()
	var open byte
	switch closing {
	case ')':
		open = '('
	case ']':
		open = '['
	case '}':
		open = '{'
	}
	level, quest, steps := 0, 0, 0
	for !p.end() {
		if steps++; steps&1023 == 0 && p.opt.Step != nil {
			p.opt.Step(64)
		}
		c := p.src[p.pos]
		switch {
		case c == closing && level == 0:
			return true
		case level == 0 && quest == 0 && stops != "" && strings.IndexByte(stops, c) >= 0:
			return true
		case c == ':' && quest > 0 && level == 0:
			quest--
		case c == '?' && stops != "" && level == 0:
			quest++
		case c == closing:
			level--
		case c == open && open != '{':
			level++
		case c == '(' && stops != "" && open != '(':
			// Of a slice: ${a:(x):y}.
			p.pos++
			if !p.over(')', "") {
				return false
			}
		case c == '\\':
			p.pos++
		case c == '\'':
			if !p.overTo('\'') {
				return false
			}
		case c == '`':
			if !p.overTo('`') {
				return false
			}
		case c == '"':
			if !p.overQuote() {
				return false
			}
		case c == '$':
			switch p.at(1) {
			case '(':
				p.pos += 2
				if !p.over(')', "") {
					return false
				}
			case '{':
				p.pos += 2
				if !p.over('}', "") {
					return false
				}
			}
		}
		p.pos++
	}
	return false
}

// overTo moves to the next quote of the kind.
func (p *Parser) overTo(q byte) bool {
	p.pos++
	for !p.end() {
		switch c := p.src[p.pos]; {
		case c == q:
			return true
		case c == '\\' && q == '`':
			p.pos++
		}
		p.pos++
	}
	return false
}

// overQuote moves to the end of a string in double quotes.
func (p *Parser) overQuote() bool {
	p.pos++
	for !p.end() {
		switch p.src[p.pos] {
		case '"':
			return true
		case '\\':
			p.pos++
		case '`':
			if !p.overTo('`') {
				return false
			}
		case '$':
			closing := byte(0)
			switch p.at(1) {
			case '(':
				closing = ')'
			case '{':
				closing = '}'
			}
			if closing != 0 {
				p.pos += 2
				if !p.over(closing, "") {
					return false
				}
			}
		}
		p.pos++
	}
	return false
}
