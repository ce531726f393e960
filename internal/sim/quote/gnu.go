package quote

import (
	"strings"
	"unicode/utf8"
)

// Shell is how the GNU tools show a name that a shell shall read back, with
// quotes only where they are needed: coreutils' printf %q, ls on a terminal.
func Shell(s string) string {
	if !needs(s, true) {
		return s
	}
	return Name(s)
}

// Name is Shell with quotes always: the names in most messages.
func Name(s string) string {
	if strings.IndexByte(s, '\'') >= 0 && doubles(s) {
		return `"` + s + `"`
	}
	b := make([]byte, 0, len(s)+8)
	b = append(b, '\'')
	escaped := twice(s)
	for i := 0; i < len(s); {
		c := s[i]
		n := 1
		plain := ' ' <= c && c < 0x7f
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			plain = !(r == utf8.RuneError && n == 1) && printable(r)
		}
		switch {
		case c == '\'':
			b = append(b, `'\''`...)
			escaped = false
		case plain:
			if escaped {
				b = append(b, "''"...)
				escaped = false
			}
			b = append(b, s[i:i+n]...)
		default:
			if !escaped {
				b = append(b, "'$'"...)
				escaped = true
			}
			for _, x := range []byte(s[i : i+n]) {
				if e := letter(x); e != 0 {
					b = append(b, '\\', e)
				} else {
					b = octal(b, x)
				}
			}
		}
		i += n
	}
	return string(append(b, '\''))
}

// twice reports whether the original goes over a string twice, and begins the
// second time as if it were in the middle of an escape, because it ended so.
func twice(s string) bool {
	if s == "" || strings.IndexByte(s, '\'') < 0 {
		return false
	}
	last := s[len(s)-1]
	r, n := utf8.DecodeLastRuneInString(s)
	return last < ' ' || last == 0x7f || r == utf8.RuneError && n == 1
}

// needs reports whether a shell would take s for something else. With escape
// set, what cannot be shown counts too.
func needs(s string, escape bool) bool {
	switch s {
	case "", "{", "}":
		return true
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case ' ', '!', '"', '$', '&', '\'', '(', ')', '*', ';', '<', '=', '>', '?', '[', '\\', '^', '`', '|', '\t', '\n', '\r':
			return true
		case '#', '~':
			if i == 0 {
				return true
			}
		}
	}
	return escape && control(s)
}

// doubles reports whether s, which holds a single quote, can stand between
// double quotes as it is.
func doubles(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '#' || c == '~':
			if i > 0 {
				return false
			}
		case c == '{' || c == '}':
			return false
		case c == ' ' || c == '\'':
		case needs(s[i:i+1], false):
			return false
		}
	}
	return !control(s)
}

// Plain is ls --quoting-style=shell: Shell without escapes.
func Plain(s string) string {
	if !needs(s, false) {
		return s
	}
	return PlainName(s)
}

// PlainName is ls --quoting-style=shell-always: Name without escapes.
func PlainName(s string) string {
	if strings.IndexByte(s, '\'') >= 0 && doubles(s) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// C is ls --quoting-style=c: a string constant of C.
func C(s string) string { return constant(s, `"`, `"`, "\"") }

// Escape is ls --quoting-style=escape: C without the quotes around it.
func Escape(s string) string { return constant(s, "", "", " ") }

// Message is how the tools quote what is not a name in their messages, with
// ASCII quotes.
func Message(s string) string { return constant(s, "'", "'", "'") }

// Curly is Message with the quotes of a UTF-8 locale.
func Curly(s string) string { return constant(s, "‘", "’", "’") }

// ASCII puts the quotes of [Message] in the place of those that [Curly] has put
// into a message, as the tools write it in the locale C.
func ASCII(message string) string {
	const left, right = "‘", "’"
	b := make([]byte, 0, len(message))
	for {
		i := strings.Index(message, left)
		if i < 0 {
			return string(append(b, message...))
		}
		b = append(b, message[:i]...)
		message = message[i+len(left):]
		end := 0
		for end < len(message) && !strings.HasPrefix(message[end:], right) {
			if message[end] == '\\' {
				end++ // what stands behind it is escaped
			}
			end++
		}
		if end >= len(message) { // no quotes
			b = append(b, left...)
			continue
		}
		b = append(b, '\'')
		for i := 0; i < end; i++ {
			c := message[i]
			switch {
			case c == '\\' && message[i+1] < utf8.RuneSelf:
				b = append(b, c, message[i+1])
				i++
			case c == '\\': // before a quote, of which the bytes follow
			case c == '\'':
				b = append(b, '\\', c)
			case c >= utf8.RuneSelf:
				b = octal(b, c)
			default:
				b = append(b, c)
			}
		}
		b = append(b, '\'')
		message = message[end+len(right):]
	}
}

// constant escapes as C does, and what is in special besides.
func constant(s, left, right, special string) string {
	b := make([]byte, 0, len(s)+8)
	b = append(b, left...)
	for i := 0; i < len(s); {
		c := s[i]
		n := 1
		plain := ' ' <= c && c < 0x7f
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			plain = !(r == utf8.RuneError && n == 1) && printable(r)
		}
		switch {
		case c == '\\':
			b = append(b, `\\`...)
		case s[i:i+n] == special:
			b = append(append(b, '\\'), special...)
		case plain:
			b = append(b, s[i:i+n]...)
		default:
			for _, x := range []byte(s[i : i+n]) {
				if e := letter(x); e != 0 {
					b = append(b, '\\', e)
				} else {
					b = octal(b, x)
				}
			}
		}
		i += n
	}
	return string(append(b, right...))
}
