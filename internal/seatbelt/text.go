package seatbelt

import (
	"strings"
	"unicode/utf8"
)

// quote writes a string of the profile's language. What is in it has no control characters.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// pattern is an expression for a protected name, in which "*" is any one component.
func pattern(text string) string {
	parts := strings.Split(text, "/")
	for i, p := range parts {
		if p == "*" {
			parts[i] = "[^/]+"
			continue
		}
		parts[i] = expression(p)
	}
	return strings.Join(parts, "/")
}

// other is any character that is not ASCII, and gap is some of them, or none.
const (
	other = "[^ -~/]"
	gap   = other + "*"
)

// expression writes a regular expression that matches a text, and what a file system may take for the same: letters of
// either case, accents as characters of their own or not, ligatures, and characters that are passed over. It does not
// know which they are. Any other characters than ASCII may stand in between, so that rather too much is denied.
func expression(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		if part != "" {
			b.WriteString(gap)
			component(&b, part)
		}
	}
	return b.String()
}

func component(b *strings.Builder, part string) {
	for part != "" {
		n := 1
		switch accented := other + "+" + gap; {
		case part[0] >= utf8.RuneSelf || len(part) > 1 && part[1] >= utf8.RuneSelf:
			// A letter and the accent that follows it may be stored as one character, and one such as ß as ASCII.
			for n < len(part) && part[n] >= utf8.RuneSelf {
				n++
			}
			if strings.ContainsAny(part[:n], asASCII) {
				accented = ""
			}
			b.WriteString("[^/]*" + accented + "[^/]*")
		default:
			n = max(1, ligature(part))
			letters(b, part[:n])
		}
		part = part[n:]
	}
}

// asASCII lists characters that are the same as some of ASCII to a file system.
const asASCII = "ſ\u212aßẞ\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"

// ligature is the number of letters at the beginning that one character may stand for. Zero is none.
func ligature(part string) int {
	low := strings.ToLower(part[:min(3, len(part))])
	for _, l := range []string{"ffi", "ffl", "ff", "fi", "fl", "ss", "st"} {
		if strings.HasPrefix(low, l) && (len(part) == len(l) || part[len(l)] < utf8.RuneSelf) {
			return len(l)
		}
	}
	return 0
}

// letters writes letters for some of which one character may stand.
func letters(b *strings.Builder, text string) {
	if len(text) == 1 {
		letter(b, text[0])
		return
	}
	b.WriteByte('(')
	for i := range len(text) {
		letter(b, text[i])
	}
	b.WriteString("|" + other + "+")
	if len(text) == 3 { // or for two of the three
		b.WriteString("|" + other + "+")
		letter(b, text[2])
		b.WriteByte('|')
		letter(b, text[0])
		b.WriteString(other + "+")
	}
	b.WriteString(")" + gap)
}

// letter writes one character of ASCII, in either case.
func letter(b *strings.Builder, c byte) {
	switch {
	case strings.IndexByte("kKsS", c) >= 0: // there is a long s, and a sign of kelvin
		b.WriteString("([" + string(c|0x20) + string(c&^0x20) + "]|" + other + "+)")
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		b.WriteString("[" + string(c|0x20) + string(c&^0x20) + "]")
	case strings.IndexByte(`\.+*?()|[]{}^$`, c) >= 0:
		b.WriteByte('\\')
		b.WriteByte(c)
	default:
		b.WriteByte(c)
	}
	b.WriteString(gap)
}
