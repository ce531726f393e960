package jq

import (
	"strconv"
	"unicode/utf8"
)

// A style is how values are written.
type style struct {
	indent string // of one level; empty is all on one line
	sort   bool
	ascii  bool
	colors []string // nil is none: null, false, true, numbers, strings, arrays, objects, keys
}

const hexDigits = "0123456789abcdef"

// appendString appends a string as JSON.
func appendString(b []byte, s string, ascii bool) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			case '\r':
				b = append(b, '\\', 'r')
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if ascii {
			b = append(b, s[from:i]...)
			if r >= 0x10000 {
				r -= 0x10000
				b = appendU(b, 0xd800+r>>10)
				b = appendU(b, 0xdc00+r&0x3ff)
			} else {
				b = appendU(b, r)
			}
			from = i + n
		} else if r == utf8.RuneError && n == 1 {
			b = append(b, s[from:i]...)
			b = utf8.AppendRune(b, utf8.RuneError)
			from = i + 1
		}
		i += n
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// punctuation is how much is written beside strings and indentation, at most: numbers, colors, commas.
const punctuation = 128

// quote is appendString that pays before it appends.
func (m *machine) quote(b []byte, s string, ascii bool) []byte {
	n := 6 * len(s)
	if len(s) > 256 {
		n = quotedLen(s, ascii)
	}
	return appendString(m.room(b, n+punctuation), s, ascii)
}

// quotedLen is how long a string becomes, at most.
func quotedLen(s string, ascii bool) int {
	n := 2 + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == 0x7f, ascii && c >= utf8.RuneSelf:
			n += 5
		case c == '"', c == '\\':
			n++
		}
	}
	if !utf8.ValidString(s) {
		n += 2 * len(s)
	}
	return n
}

func appendU(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// tooDeep is how deep jq prints; what is deeper it leaves out.
const tooDeep = 10_000

// encode appends a value as JSON.
func (m *machine) encode(b []byte, v value, s *style, level int) []byte {
	if s.colors != nil {
		return m.encodeColored(b, v, s, level)
	}
	b = m.room(b, punctuation)
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return appendFloat(b, v)
	case *literal:
		return append(m.room(b, len(v.text)), v.text...)
	case string:
		m.t.Step(len(v) >> 6)
		return m.quote(b, v, s.ascii)
	}
	m.t.Step(1)
	if level > tooDeep {
		return append(b, "<skipped: too deep>"...)
	}
	if a, ok := v.(*array); ok {
		list := a.own()
		if len(list) == 0 {
			return append(b, "[]"...)
		}
		b = append(b, '[')
		for i, x := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = m.newline(b, s, level+1)
			b = m.encode(b, x, s, level+1)
		}
		b = m.newline(b, s, level)
		return append(b, ']')
	}
	o, _ := v.(*object)
	t := o.own()
	if len(t.keys) == 0 {
		return append(b, "{}"...)
	}
	var order []int
	if s.sort {
		order = t.sorted()
	}
	b = append(b, '{')
	for i := range t.keys {
		k := i
		if order != nil {
			k = order[i]
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = m.newline(b, s, level+1)
		b = m.quote(b, t.keys[k], s.ascii)
		b = append(b, ':')
		if s.indent != "" {
			b = append(b, ' ')
		}
		b = m.encode(b, t.vals[k], s, level+1)
	}
	b = m.newline(b, s, level)
	return append(b, '}')
}

func (m *machine) newline(b []byte, s *style, level int) []byte {
	if s.indent == "" {
		return b
	}
	b = append(m.room(b, 1+level*len(s.indent)), '\n')
	for range level {
		b = append(b, s.indent...)
	}
	return b
}

// The places of colors.
const (
	cNull = iota
	cFalse
	cTrue
	cNumber
	cString
	cArray
	cObject
	cKey
)

func (m *machine) encodeColored(b []byte, v value, s *style, level int) []byte {
	m.t.Step(1)
	b = m.room(b, punctuation)
	const reset = "\x1b[0m"
	bare := *s
	bare.colors = nil
	scalar := func(color int) []byte {
		b = append(b, s.colors[color]...)
		b = m.encode(b, v, &bare, level)
		return append(b, reset...)
	}
	switch k := kind(v); k {
	case 0, 1, 2, 3, 4:
		return scalar(k)
	case 5:
		a, _ := v.(*array)
		list := a.own()
		c := s.colors[cArray]
		b = append(append(b, c...), '[')
		if len(list) == 0 {
			return append(append(b, ']'), reset...)
		}
		for i, x := range list {
			if i > 0 {
				b = append(append(append(b, c...), ','), ""...)
			}
			b = m.newline(b, s, level+1)
			if s.indent == "" || i > 0 {
				b = append(b, reset...)
			} else {
				b = append(b, reset...)
			}
			b = m.encodeColored(b, x, s, level+1)
		}
		b = append(b, c...)
		b = m.newline(b, s, level)
		b = append(b, c...)
		return append(append(b, ']'), reset...)
	}
	o, _ := v.(*object)
	t := o.own()
	c := s.colors[cObject]
	b = append(append(b, c...), '{')
	if len(t.keys) == 0 {
		return append(append(b, '}'), reset...)
	}
	order := t.sorted()
	for i := range t.keys {
		k := i
		if s.sort {
			k = order[i]
		}
		if i > 0 {
			b = append(append(b, c...), ',')
		}
		b = m.newline(b, s, level+1)
		b = append(b, reset...)
		b = append(b, s.colors[cKey]...)
		b = m.quote(b, t.keys[k], s.ascii)
		b = append(b, reset...)
		b = append(append(b, c...), ':')
		if s.indent != "" {
			b = append(b, ' ')
		}
		b = append(b, reset...)
		b = m.encodeColored(b, t.vals[k], s, level+1)
	}
	b = append(b, c...)
	b = m.newline(b, s, level)
	b = append(b, c...)
	return append(append(b, '}'), reset...)
}

// text writes a value as tojson does.
func (m *machine) text(v value) string {
	b := m.encode(nil, v, &style{}, 0)
	m.alloc(len(b))
	return string(b)
}

// toString is tostring: strings are themselves.
func (m *machine) toString(v value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return m.text(v)
}
