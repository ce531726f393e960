// Package quote quotes strings in the forms of bash (%q, ${x@Q}, declare -p,
// set, set -x) and of the GNU tools (ls, error messages). Strings are bytes:
// invalid UTF-8 is escaped, never replaced.
package quote

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable reports whether a character can be shown, as the C library says for
// C.UTF-8.
func printable(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r < 0x7f
	}
	return unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Co)
}

// control reports whether s holds something that cannot be shown.
func control(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return true
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !printable(r) {
			return true
		}
		i += n
	}
	return false
}

// meta reports whether the byte at i means something to the shell.
func meta(s string, i int) bool {
	switch s[i] {
	case ' ', '\t', '\n', '!', '"', '$', '&', '\'', '(', ')', '*', ';', '<', '>', '?', '[', '\\', ']', '^', '`', '{', '|', '}':
		return true
	case '#':
		return i == 0
	case '~':
		return i == 0 || s[i-1] == '=' || s[i-1] == ':'
	}
	return false
}

func metas(s string) bool {
	for i := range len(s) {
		if meta(s, i) {
			return true
		}
	}
	return false
}

// Backslash is printf's %q.
func Backslash(s string) string {
	switch {
	case s == "":
		return "''"
	case control(s):
		return ANSI(s)
	}
	b := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if s[i] == ',' || meta(s, i) {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Reuse is ${x@Q}.
func Reuse(s string) string {
	if control(s) {
		return ANSI(s)
	}
	return Single(s)
}

// Value is a value as declare -p shows it.
func Value(s string) string {
	if control(s) {
		return ANSI(s)
	}
	return Double(s)
}

// Subscript is the key of an associative array as declare -p shows it.
func Subscript(s string) string {
	switch {
	case control(s):
		return ANSI(s)
	case s == "", s == "@", s == "*", metas(s):
		return Double(s)
	}
	return s
}

// Listing is a value as set shows it.
func Listing(s string) string {
	switch {
	case control(s):
		return ANSI(s)
	case metas(s):
		return Single(s)
	}
	return s
}

// Trace is a word as set -x shows it.
func Trace(s string) string {
	switch {
	case s == "" || metas(s):
		return Single(s)
	case control(s):
		return ANSI(s)
	}
	return s
}

// Single puts single quotes around s, as alias and trap show things.
func Single(s string) string {
	if s == "'" {
		return `\'`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Double puts double quotes around s.
func Double(s string) string {
	b := make([]byte, 0, len(s)+8)
	b = append(b, '"')
	for i := range len(s) {
		switch s[i] {
		case '"', '$', '\\', '`':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(append(b, '"'))
}

// ANSI is the form $'…'.
func ANSI(s string) string {
	b := make([]byte, 0, len(s)+8)
	b = append(b, "$'"...)
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || !printable(r) {
				for _, x := range []byte(s[i : i+n]) {
					b = octal(b, x)
				}
			} else {
				b = append(b, s[i:i+n]...)
			}
			i += n
			continue
		}
		i++
		switch e := letter(c); {
		case c == 0x1b:
			b = append(b, '\\', 'E')
		case e != 0:
			b = append(b, '\\', e)
		case c == '\\' || c == '\'':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = octal(b, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '\''))
}

// letter returns the letter that stands for a control character.
func letter(c byte) byte {
	switch c {
	case '\a':
		return 'a'
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	case '\v':
		return 'v'
	}
	return 0
}

func octal(b []byte, c byte) []byte {
	return append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
}
