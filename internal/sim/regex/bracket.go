package regex

import (
	"slices"
	"strings"
	"sync"
)

// An element is one item of a bracket expression.
type element struct {
	c     rune
	class string
	equal bool // an equivalence class, which starts no range, as no class does
	dash  bool // an unquoted -
}

// bracket reads a bracket expression after its [.
func (p *parser) bracket() (*node, error) {
	begin := p.at
	neg := p.at < len(p.src) && p.src[p.at] == '^'
	if neg {
		p.at++
	}
	var spans []span
	var classes []string
	plain := true // nothing but single characters, as the colon check wants
	for first := true; ; first = false {
		if p.at >= len(p.src) {
			return nil, syntaxErrorf(msgBracket)
		}
		if p.src[p.at] == ']' && !first {
			p.at++
			break
		}
		from, err := p.element()
		if err != nil {
			return nil, err
		}
		if from.dash && !first && !p.closes(p.at) {
			return nil, syntaxErrorf(msgRange)
		}
		if p.at < len(p.src) && p.src[p.at] == '-' && !p.closes(p.at+1) {
			p.at++
			if p.at >= len(p.src) {
				return nil, syntaxErrorf(msgBracket)
			}
			to, err := p.element()
			if err != nil {
				return nil, err
			}
			if from.class+to.class != "" || from.equal || to.equal || from.c > to.c && !p.d.emptyRange {
				return nil, syntaxErrorf(msgRange)
			}
			plain = false
			if from.c <= to.c {
				spans = append(spans, span{from.c, to.c})
			}
			continue
		}
		if from.class != "" {
			plain = false
			classes = append(classes, from.class)
			continue
		}
		plain = plain && !from.equal
		spans = append(spans, span{from.c, from.c})
	}
	text := p.src[begin : p.at-1]
	if p.d.colonCheck && plain && len(text) > 2 && text[0] == ':' && text[len(text)-1] == ':' {
		return nil, syntaxErrorf(msgColon)
	}
	return p.bracketNode(spans, classes, neg), nil
}

// bracketNode puts single characters and classes together. The classes hold
// both cases already.
func (p *parser) bracketNode(spans []span, classes []string, neg bool) *node {
	if p.opt.IgnoreCase {
		spans = foldSpans(spans, p.opt.Bytes)
	}
	whole := func(class func(string, bool) []span) []span {
		all := slices.Clone(spans)
		for _, name := range classes {
			all = append(all, class(name, p.opt.Bytes)...)
		}
		all = normalize(all)
		if neg {
			all = complement(all, p.opt.Bytes)
		}
		return p.strip(all, neg && p.dotSkips())
	}
	if p.opt.Bytes || !slices.ContainsFunc(classes, wideClass) {
		return p.setNode(whole(classSpans), false)
	}
	low := whole(func(name string, _ bool) []span { return asciiClass(name) })
	full := sync.OnceValue(func() []span { return whole(classSpans) })
	return &node{kind: kSet, set: newWideSet(low, full)}
}

// closes says whether a ] stands at at.
func (p *parser) closes(at int) bool { return at < len(p.src) && p.src[at] == ']' }

func (p *parser) element() (element, error) {
	c, n := p.opt.decode(p.src[p.at:])
	if c == '[' && p.at+1 < len(p.src) {
		kind := p.src[p.at+1]
		if kind == '.' || kind == '=' || kind == ':' && p.d.classes {
			return p.named(kind)
		}
	}
	if c == '\\' && p.d.escapes && p.at+1 < len(p.src) {
		if e, width := escaped(p.src[p.at+1:]); width > 0 {
			p.at += 1 + width
			return element{c: p.opt.byteChar(e)}, nil
		}
	}
	p.at += n
	return element{c: c, dash: c == '-'}, nil
}

// named reads [:class:], [=c=] or [.c.].
func (p *parser) named(kind byte) (element, error) {
	rest := p.src[p.at+2:]
	end := strings.Index(rest, string([]byte{kind, ']'}))
	if end < 0 {
		return element{}, syntaxErrorf(msgBracket)
	}
	name := rest[:end]
	p.at += end + 4
	if kind == ':' {
		if p.opt.IgnoreCase && (name == "upper" || name == "lower") {
			name = "alpha"
		}
		if name == "word" || asciiClass(name) == nil {
			return element{}, syntaxErrorf(msgClass)
		}
		return element{class: name}, nil
	}
	if name == "" {
		return element{}, syntaxErrorf(msgCollate)
	}
	c, n := p.opt.decode(name)
	if n != len(name) {
		return element{}, syntaxErrorf(msgCollate)
	}
	if kind == '=' {
		return element{c: c, equal: true}, nil
	}
	return element{c: c}, nil
}
