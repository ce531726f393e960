package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest bounds a piece of foreign text on one line of the terminal, in runes.
const longest = 300

// OneLine makes untrusted text (a path from inside, a reason, an error message) safe to print on
// one line of a terminal. The result cannot move the cursor, change a colour, write to the
// clipboard, reorder neighbouring text, or imitate a line of Paddock's. Removed characters appear
// as escapes. Long text is shortened.
func OneLine(s string) string { return OneLineOf(s, longest) }

// OneLineOf is OneLine with a maximum length in runes.
func OneLineOf(s string, most int) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); n++ {
		if n == most {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1, r < 0x80 && !unicode.IsPrint(r):
			c := s[i]
			switch c {
			case '\n':
				b.WriteString(`\n`)
			case '\t':
				b.WriteString(`\t`)
			case '\r':
				b.WriteString(`\r`)
			default:
				b.WriteString(`\x`)
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		case unicode.IsPrint(r):
			b.WriteString(s[i : i+size])
		default: // C1 controls, bidirectional marks, invisible and unassigned characters
			b.WriteString(`\u{`)
			started := false
			for shift := 20; shift >= 0; shift -= 4 {
				d := (r >> shift) & 15
				if d != 0 || started || shift == 0 {
					b.WriteByte(hex[d])
					started = true
				}
			}
			b.WriteByte('}')
		}
		i += size
	}
	return b.String()
}
