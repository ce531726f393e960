package regex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// perlClassEscape reads an escape that stands for a character or a class of
// them, in brackets or out of them.
func (p *parser) perlClassEscape() (spans []span, class bool, err error) {
	c := p.src[p.at+1]
	p.at += 2
	neg := false
	switch c {
	case 'd', 'D':
		spans, neg = asciiClass("digit"), c == 'D'
	case 'w', 'W':
		spans, neg = wordSpans(), c == 'W'
	case 's', 'S':
		spans, neg = asciiClass("space"), c == 'S'
	case 'h', 'H':
		spans, neg = []span{{'\t', '\t'}, {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x180e, 0x180e},
			{0x2000, 0x200a}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}}, c == 'H'
	case 'v', 'V':
		spans, neg = []span{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}, c == 'V'
	case 'N':
		spans, neg = []span{{'\n', '\n'}}, true
	case 'p', 'P':
		if spans, neg, err = p.perlProperty(); err != nil {
			return nil, false, err
		}
		neg = neg != (c == 'P')
	default:
		p.at--
		r, err := p.perlNumber()
		return []span{{r, r}}, false, err
	}
	if neg {
		spans = complement(spans, p.opt.Bytes)
	}
	return spans, true, nil
}

// perlNumber reads an escape for one character, after its backslash.
func (p *parser) perlNumber() (rune, error) {
	c, width := p.opt.decode(p.src[p.at:])
	p.at += width
	switch c {
	case 'a':
		return '\a', nil
	case 'e':
		return 0x1b, nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'c':
		if p.at >= len(p.src) {
			return 0, syntaxErrorf(`\c at end of pattern`)
		}
		c := p.src[p.at]
		p.at++
		if 'a' <= c && c <= 'z' {
			c -= 32
		}
		return rune(c ^ 0x40), nil
	case 'x':
		return p.perlDigits(16, 2, 0)
	case 'o':
		return p.perlDigits(8, 0, 0)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return p.perlDigits(8, 2, c-'0')
	}
	if c < utf8.RuneSelf && isLetter(byte(c)) {
		return 0, syntaxErrorf(pcreUnknown)
	}
	return c, nil
}

// perlDigits reads a number in braces or of so many digits behind value.
func (p *parser) perlDigits(base, digits int, value rune) (rune, error) {
	braced := p.at < len(p.src) && p.src[p.at] == '{' && (digits != 2 || base == 16)
	if braced {
		p.at++
		digits = 8
	}
	n := 0
	for ; n < digits && p.at < len(p.src); n++ {
		d := hexDigit(p.src[p.at])
		if d < 0 || d >= base {
			break
		}
		value = min(value*rune(base)+rune(d), unicode.MaxRune+1)
		p.at++
	}
	if braced || digits == 0 {
		if n == 0 || p.at >= len(p.src) || p.src[p.at] != '}' {
			return 0, syntaxErrorf(pcreBrace)
		}
		p.at++
	}
	if value > unicode.MaxRune || 0xd800 <= value && value < 0xe000 {
		return 0, syntaxErrorf(`character code point value in \x{} or \o{} is too large`)
	}
	return value, nil
}

// perlProperty reads a letter or a name in braces after \p.
func (p *parser) perlProperty() (spans []span, neg bool, err error) {
	if p.at >= len(p.src) {
		return nil, false, syntaxErrorf(`malformed \P or \p sequence`)
	}
	name := p.src[p.at : p.at+1]
	p.at++
	if name == "{" {
		end := strings.IndexByte(p.src[p.at:], '}')
		if end < 0 {
			return nil, false, syntaxErrorf(`malformed \P or \p sequence`)
		}
		name = p.src[p.at : p.at+end]
		p.at += end + 1
		if neg = strings.HasPrefix(name, "^"); neg {
			name = name[1:]
		}
	}
	switch name {
	case "Any":
		return universe(false), neg, nil
	case "L&":
		return normalize(tableSpans(nil, unicode.Lu, unicode.Ll, unicode.Lt)), neg, nil
	case "Xan", "Xwd":
		spans = tableSpans(nil, unicode.L, unicode.N)
		if name == "Xwd" {
			spans = append(spans, span{'_', '_'})
		}
		return normalize(spans), neg, nil
	case "Xsp", "Xps":
		return normalize(tableSpans(nil, unicode.White_Space)), neg, nil
	}
	table, ok := unicode.Categories[name]
	if !ok {
		table, ok = unicode.Scripts[name]
	}
	if !ok {
		return nil, false, syntaxErrorf(pcreProperty)
	}
	return normalize(tableSpans(nil, table)), neg, nil
}

// perlBracket reads a class after its [.
func (p *parser) perlBracket() (*node, error) {
	neg := p.at < len(p.src) && p.src[p.at] == '^'
	if neg {
		p.at++
	}
	var chars, classes []span
	quoted := false
	for first := true; ; first = false {
		if p.at >= len(p.src) {
			return nil, syntaxErrorf(pcreClass)
		}
		rest := p.src[p.at:]
		switch {
		case strings.HasPrefix(rest, `\E`):
			p.at += 2
			quoted = false
			continue
		case !quoted && strings.HasPrefix(rest, `\Q`):
			p.at += 2
			quoted = true
			continue
		case !quoted && rest[0] == ']' && !first:
			p.at++
			if p.perl.fold {
				chars = foldSpans(chars, p.opt.Bytes)
			}
			spans := normalize(append(chars, classes...))
			if neg {
				spans = complement(spans, p.opt.Bytes)
			}
			return p.setNode(spans, false), nil
		}
		spans, class, err := p.perlElement(quoted)
		if err != nil {
			return nil, err
		}
		if class {
			classes = append(classes, spans...)
			continue
		}
		if quoted || !strings.HasPrefix(p.src[p.at:], "-") || p.closes(p.at+1) || p.at+1 >= len(p.src) {
			chars = append(chars, spans...)
			continue
		}
		p.at++
		to, class, err := p.perlElement(false)
		if err != nil {
			return nil, err
		}
		if class {
			chars = append(chars, spans[0], span{'-', '-'})
			classes = append(classes, to...)
			continue
		}
		if spans[0].lo > to[0].lo {
			return nil, syntaxErrorf(pcreRange)
		}
		chars = append(chars, span{spans[0].lo, to[0].lo})
	}
}

func (p *parser) perlElement(quoted bool) (spans []span, class bool, err error) {
	c, width := p.opt.decode(p.src[p.at:])
	if quoted || c != '\\' && c != '[' {
		p.at += width
		return []span{{c, c}}, false, nil
	}
	if c == '\\' {
		switch {
		case p.at+1 >= len(p.src):
			return nil, false, syntaxErrorf(pcreEnd)
		case p.src[p.at+1] == 'b':
			p.at += 2
			return []span{{'\b', '\b'}}, false, nil
		}
		return p.perlClassEscape()
	}
	if name, ok := strings.CutPrefix(p.src[p.at:], "[:"); ok {
		if end := strings.Index(name, ":]"); end >= 0 && !strings.ContainsAny(name[:end], `]\`) {
			p.at += end + 4
			name, neg := strings.CutPrefix(name[:end], "^")
			if p.perl.fold && (name == "upper" || name == "lower") {
				name = "alpha"
			}
			if spans = asciiClass(name); spans == nil {
				return nil, false, syntaxErrorf(pcreClassName)
			}
			if neg {
				spans = complement(spans, p.opt.Bytes)
			}
			return spans, true, nil
		}
	}
	p.at++
	return []span{{'[', '['}}, false, nil
}
