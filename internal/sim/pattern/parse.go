package pattern

import "unicode/utf8"

type itemKind uint8

const (
	itemLiteral itemKind = iota
	itemAny              // ?
	itemStar             // *
	itemSet              // [ ]
	itemGroup            // ?( ) and the like
)

// item is one element of a pattern.
type item struct {
	kind itemKind
	op   byte // of a group
	lit  string
	set  *set
	alts []sequence
}

type sequence []item

// maxDepth bounds how deep groups nest; a parenthesis deeper down means itself.
const maxDepth = 200

type parser struct {
	src    string
	opt    Options
	close  map[int]int // where the parenthesis opened at the key is closed
	depth  int
	groups bool
}

func (p *parser) parse() sequence {
	if p.opt.ExtGlob {
		p.pair()
	}
	return p.sequence(0, len(p.src))
}

// pair finds which parenthesis closes which, once for the whole text, so that
// groups that are never closed cost nothing extra.
func (p *parser) pair() {
	var open []int
	for i := 0; i < len(p.src); i++ {
		switch p.src[i] {
		case '\\':
			i++
		case '[':
			if end := bracketEnd(p.src, i); end > 0 {
				i = end - 1
			}
		case '(':
			open = append(open, i)
		case ')':
			if n := len(open); n > 0 {
				if p.close == nil {
					p.close = map[int]int{}
				}
				p.close[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
}

func (p *parser) sequence(from, to int) sequence {
	var (
		seq sequence
		lit []byte
	)
	flush := func() {
		if len(lit) > 0 {
			seq = append(seq, item{kind: itemLiteral, lit: string(lit)})
			lit = lit[:0]
		}
	}
	for i := from; i < to; {
		c := p.src[i]
		if g, end, ok := p.group(i, to); ok {
			flush()
			seq = append(seq, g)
			i = end
			continue
		}
		if p.opt.ExtGlob && i+1 < to && p.src[i+1] == '(' && operator(c) {
			// A group that nothing closes means itself, and so does all after it.
			lit = append(lit, p.src[i:to]...)
			break
		}
		switch c {
		case '*':
			flush()
			if n := len(seq); n == 0 || seq[n-1].kind != itemStar {
				seq = append(seq, item{kind: itemStar})
			}
			i++
		case '?':
			flush()
			seq = append(seq, item{kind: itemAny})
			i++
		case '[':
			end := bracketEnd(p.src[:to], i)
			if end < 0 {
				lit = append(lit, c)
				i++
				continue
			}
			flush()
			seq = append(seq, item{kind: itemSet, set: parseSet(p.src[i:end], p.opt)})
			i = end
		case '\\':
			if i+1 < to {
				i++
			}
			lit = append(lit, p.src[i])
			i++
		default:
			lit = append(lit, c)
			i++
		}
	}
	flush()
	return seq
}

// group parses a group that begins at i.
func (p *parser) group(i, to int) (item, int, bool) {
	if p.close == nil || i+1 >= to || p.src[i+1] != '(' || p.depth >= maxDepth || !operator(p.src[i]) {
		return item{}, 0, false
	}
	end, ok := p.close[i+1]
	if !ok || end >= to {
		return item{}, 0, false
	}
	p.groups = true
	p.depth++
	g := item{kind: itemGroup, op: p.src[i]}
	start, nest := i+2, 0
	for j := start; j < end; j++ {
		switch p.src[j] {
		case '\\':
			j++
		case '[':
			if e := bracketEnd(p.src[:end], j); e > 0 {
				j = e - 1
			}
		case '(':
			nest++
		case ')':
			nest--
		case '|':
			if nest == 0 {
				g.alts = append(g.alts, p.sequence(start, j))
				start = j + 1
			}
		}
	}
	g.alts = append(g.alts, p.sequence(start, end))
	p.depth--
	return g, end + 1, true
}

// operator reports whether a parenthesis after c begins a group.
func operator(c byte) bool {
	switch c {
	case '?', '*', '+', '@', '!':
		return true
	}
	return false
}

// noRune is the base of the values of bytes that are no part of a character.
const noRune = utf8.MaxRune + 1

// decode returns the first character of s.
func (o Options) decode(s string) (c rune, n int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	if o.Bytes {
		return noRune + rune(s[0]), 1
	}
	c, n = utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && n == 1 {
		return noRune + rune(s[0]), 1
	}
	return c, n
}

// decodeLast returns the last character of s.
func (o Options) decodeLast(s string) (c rune, n int) {
	last := s[len(s)-1]
	if last < utf8.RuneSelf {
		return rune(last), 1
	}
	if o.Bytes {
		return noRune + rune(last), 1
	}
	c, n = utf8.DecodeLastRuneInString(s)
	if c == utf8.RuneError && n == 1 {
		return noRune + rune(last), 1
	}
	return c, n
}
