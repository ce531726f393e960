package expand

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// charLen gives the length of the first character; a byte that is no part of
// one counts as one. Of nothing it is 0.
func charLen(s string) int {
	if s == "" || s[0] < utf8.RuneSelf {
		return min(1, len(s))
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// Unescape reads the escapes of $'...' and of ${x@E}. A NUL ends the text.
func Unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for {
		b = append(b, s[:i]...)
		s = s[i+1:]
		if s == "" {
			return string(append(b, '\\'))
		}
		var end bool
		if b, s, end = unescape(b, s); end {
			return string(b)
		}
		if i = strings.IndexByte(s, '\\'); i < 0 {
			return string(append(b, s...))
		}
	}
}

func unescape(b []byte, s string) (out []byte, rest string, end bool) {
	c := s[0]
	rest = s[1:]
	switch c {
	case 'a':
		return append(b, 7), rest, false
	case 'b':
		return append(b, 8), rest, false
	case 'e', 'E':
		return append(b, 27), rest, false
	case 'f':
		return append(b, 12), rest, false
	case 'n':
		return append(b, 10), rest, false
	case 'r':
		return append(b, 13), rest, false
	case 't':
		return append(b, 9), rest, false
	case 'v':
		return append(b, 11), rest, false
	case '\\', '\'', '"', '?':
		return append(b, c), rest, false
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n, used := digits(s, 3, 8)
		if n&0xff == 0 {
			return b, "", true
		}
		return append(b, byte(n)), s[used:], false
	case 'x':
		if strings.HasPrefix(rest, "{") {
			n, used := digits(rest[1:], len(rest), 16)
			if n&0xff == 0 {
				return b, "", true
			}
			return append(b, byte(n)), strings.TrimPrefix(rest[1+used:], "}"), false
		}
		n, used := digits(rest, 2, 16)
		if used == 0 {
			return append(b, '\\', 'x'), rest, false
		}
		if n == 0 {
			return b, "", true
		}
		return append(b, byte(n)), rest[used:], false
	case 'u', 'U':
		most := 4
		if c == 'U' {
			most = 8
		}
		n, used := digits(rest, most, 16)
		if used == 0 {
			return append(b, '\\', c), rest, false
		}
		if n == 0 {
			return b, "", true
		}
		return AppendRune(b, uint32(n)), rest[used:], false
	case 'c':
		if rest == "" {
			return append(b, '\\', 'c'), rest, false
		}
		n := 1
		if strings.HasPrefix(rest, `\\`) {
			n = 2
		}
		x := rest[0] & 0x1f
		if rest[0] == '?' {
			x = 0x7f
		}
		if x == 0 {
			return b, "", true
		}
		return append(b, x), rest[n:], false
	}
	return append(b, '\\', c), rest, false
}

func digits(s string, most int, base uint64) (n uint64, used int) {
	for used < len(s) && used < most {
		c := s[used]
		var d uint64
		switch {
		case c >= '0' && c <= '9':
			d = uint64(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = uint64(c|0x20-'a') + 10
		default:
			return n, used
		}
		if d >= base {
			return n, used
		}
		n = n*base + d
		used++
	}
	return n, used
}

// AppendRune appends a code point, also one that is no character, in the way
// that UTF-8 was first defined.
func AppendRune(b []byte, n uint32) []byte {
	switch {
	case n < 0x80:
		return append(b, byte(n))
	case n < 0x800:
		return append(b, 0xc0|byte(n>>6), 0x80|byte(n&0x3f))
	case n < 0x10000:
		return append(b, 0xe0|byte(n>>12), 0x80|byte(n>>6&0x3f), 0x80|byte(n&0x3f))
	case n < 0x200000:
		return append(b, 0xf0|byte(n>>18), 0x80|byte(n>>12&0x3f), 0x80|byte(n>>6&0x3f), 0x80|byte(n&0x3f))
	case n < 0x4000000:
		return append(b, 0xf8|byte(n>>24), 0x80|byte(n>>18&0x3f), 0x80|byte(n>>12&0x3f), 0x80|byte(n>>6&0x3f), 0x80|byte(n&0x3f))
	}
	return append(b, 0xfc|byte(n>>30&1), 0x80|byte(n>>24&0x3f), 0x80|byte(n>>18&0x3f), 0x80|byte(n>>12&0x3f), 0x80|byte(n>>6&0x3f), 0x80|byte(n&0x3f))
}
