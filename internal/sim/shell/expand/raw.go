package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxNesting bounds brackets within brackets of text that is parsed while a
// script runs.
const maxNesting = 500

// rawQuoted takes apart text that is known only now, as it stands within double
// quotes.
func (k *compiler) rawQuoted(s string) { k.scan(s, true) }

// scan takes apart text that is known only now, as it stands outside of quotes
// or within.
func (k *compiler) scan(s string, quoted bool) {
	if k.depth++; k.depth > maxSyntax {
		return
	}
	defer func() { k.depth-- }()
	start := 0
	flush := func(i int) {
		if i > start {
			if quoted {
				k.quotedText(s[start:i])
			} else {
				k.add(part{text: s[start:i]})
			}
		}
	}
	for i := 0; i < len(s); {
		end := 0
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			if quoted {
				i += 2
				continue
			}
			flush(i)
			end = i + 1 + charLen(s[i+1:])
			k.add(part{text: s[i+1 : end], quoted: true, escaped: true})
		case c == '\'' && !quoted:
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				i++
				continue
			}
			flush(i)
			end = i + n + 2
			k.add(part{text: s[i+1 : end-1], quoted: true})
		case c == '"' && !quoted, c == '$', c == '`':
			end = extent(s, i)
			if end <= i+1 {
				i++
				continue
			}
			w := k.word(s[i:end])
			if w == nil {
				i++
				continue
			}
			flush(i)
			if quoted {
				k.quotedParts(w.Parts)
			} else {
				k.unquotedParts(w.Parts)
			}
		default:
			i++
			continue
		}
		i, start = end, end
	}
	flush(len(s))
}

// word parses quotes or an expansion, or gives nil.
func (k *compiler) word(s string) *syntax.Word {
	if k.parse == nil || !shallow(s) {
		return nil
	}
	return k.parse(s)
}

func shallow(s string) bool {
	depth, ticks := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '[':
			if depth++; depth > maxNesting {
				return false
			}
		case ')', '}', ']':
			if depth > 0 {
				depth--
			}
		case '`':
			if ticks++; ticks > 4*maxNesting {
				return false
			}
		}
	}
	return true
}

// extent gives the end of the quotes or the expansion that begin at i.
func extent(s string, i int) int {
	switch s[i] {
	case '"':
		return skipDouble(s, i+1)
	case '`':
		for j := i + 1; j < len(s); j++ {
			switch s[j] {
			case '\\':
				j++
			case '`':
				return j + 1
			}
		}
		return i
	}
	if i+1 >= len(s) {
		return i
	}
	switch c := s[i+1]; {
	case c == '{':
		return skipTo(s, i+2, '}')
	case c == '(':
		return skipTo(s, i+2, ')')
	case c == '[':
		return skipTo(s, i+2, ']')
	case c == '\'':
		for j := i + 2; j < len(s); j++ {
			switch s[j] {
			case '\\':
				j++
			case '\'':
				return j + 1
			}
		}
		return i
	case c == '"':
		return skipDouble(s, i+2)
	case c >= '0' && c <= '9', strings.IndexByte("@*#?$!-", c) >= 0:
		return i + 2
	case nameStart(c):
		j := i + 2
		for j < len(s) && nameByte(s[j]) {
			j++
		}
		return j
	}
	return i
}

func nameStart(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func nameByte(c byte) bool { return nameStart(c) || c >= '0' && c <= '9' }

// skipDouble gives the end of a string in double quotes, of which i is inside.
func skipDouble(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '`':
			end := extent(s, i)
			if end <= i {
				return 0
			}
			i = end - 1
		case '$':
			if i+1 < len(s) && (s[i+1] == '(' || s[i+1] == '{') {
				end := extent(s, i)
				if end <= i {
					return 0
				}
				i = end - 1
			}
		}
	}
	return 0
}

// skipTo gives the place after the bracket that closes one that is open at i,
// or 0.
func skipTo(s string, i int, closing byte) int {
	stack := []byte{closing}
	for ; i < len(s); i++ {
		c := s[i]
		top := stack[len(stack)-1]
		switch {
		case c == top:
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return i + 1
			}
		case c == '"' && top == '"':
		case c == '\\':
			i++
		case c == '\'' && top != '"':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return 0
			}
			i += n + 1
		case c == '"':
			stack = append(stack, '"')
		case c == '$' && i+1 < len(s) && (s[i+1] == '(' || s[i+1] == '{'):
			i++
			if s[i] == '(' {
				stack = append(stack, ')')
			} else {
				stack = append(stack, '}')
			}
		case c == '(' && top == ')':
			stack = append(stack, ')')
		case c == '`' && top != '`':
			n := strings.IndexByte(s[i+1:], '`')
			if n < 0 {
				return 0
			}
			i += n + 1
		}
	}
	return 0
}
