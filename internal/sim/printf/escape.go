package printf

import "unicode/utf8"

// escaped is what a backslash and what follows it stand for.
type escaped struct {
	out     []byte
	size    int    // of the text
	stop    bool   // \c: nothing more is printed
	message string // what is wrong with it
}

// escape reads the escape at the start of s; percentB says that it stands in an
// argument of %b.
func escape(s string, d Dialect, percentB bool) escaped {
	literal := func(n int) escaped { return escaped{out: []byte(s[:n]), size: n} }
	one := func(c byte) escaped { return escaped{out: []byte{c}, size: 2} }
	if len(s) == 1 {
		return literal(1)
	}
	switch c := s[1]; c {
	case 'a':
		return one('\a')
	case 'b':
		return one('\b')
	case 'e':
		return one(0x1b)
	case 'E':
		if d == Bash {
			return one(0x1b)
		}
	case 'f':
		return one('\f')
	case 'n':
		return one('\n')
	case 'r':
		return one('\r')
	case 't':
		return one('\t')
	case 'v':
		return one('\v')
	case '\\':
		return one('\\')
	case '"':
		if d == GNU || !percentB {
			return one(c)
		}
	case '\'', '?':
		if d == Bash && !percentB {
			return one(c)
		}
	case 'c':
		if d == GNU || percentB {
			return escaped{size: 2, stop: true}
		}
	case 'x':
		n, size := digits(s[2:], 16, 2)
		switch {
		case size > 0:
			return escaped{out: []byte{byte(n)}, size: 2 + size}
		case d == GNU:
			return escaped{size: 2, message: "missing hexadecimal number in escape"}
		}
		return escaped{out: []byte(s[:2]), size: 2, message: `missing hex digit for \x`}
	case 'u', 'U':
		return unicodeEscape(s, d)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		start := 1
		if c == '0' && percentB {
			start = 2
		}
		n, size := digits(s[start:], 8, 3)
		return escaped{out: []byte{byte(n)}, size: start + size}
	}
	return literal(2)
}

func unicodeEscape(s string, d Dialect) escaped {
	most := 4
	if s[1] == 'U' {
		most = 8
	}
	n, size := digits(s[2:], 16, most)
	switch {
	case d == GNU && size < most:
		return escaped{size: 2, message: "missing hexadecimal number in escape"}
	case d == GNU && (n < 0xa0 && n != '$' && n != '@' && n != '`' || 0xd800 <= n && n <= 0xdfff):
		return escaped{size: 2, message: "invalid universal character name " + s[:2+size]}
	case size == 0:
		return escaped{out: []byte(s[:2]), size: 2, message: `missing unicode digit for \` + s[1:2]}
	}
	return escaped{out: character(n), size: 2 + size}
}

// character encodes a code point as UTF-8 once did: up to six bytes, surrogates
// too.
func character(n uint32) []byte {
	if n <= utf8.MaxRune && (n < 0xd800 || n > 0xdfff) {
		return utf8.AppendRune(nil, rune(n))
	}
	var tail []byte
	lead := uint32(0x3f)
	for n > lead {
		tail = append([]byte{0x80 | byte(n&0x3f)}, tail...)
		n >>= 6
		lead >>= 1
	}
	return append([]byte{byte(^(lead<<1 | 1)) | byte(n)}, tail...)
}

// digits reads at most so many digits.
func digits(s string, base uint32, most int) (n uint32, size int) {
	for size < len(s) && size < most {
		var d uint32
		switch c := s[size]; {
		case '0' <= c && c <= '9':
			d = uint32(c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			d = uint32(c|0x20-'a') + 10
		default:
			return n, size
		}
		if d >= base {
			return n, size
		}
		n = n*base + d
		size++
	}
	return n, size
}

// unescape expands the escapes of an argument of %b.
func unescape(s string, d Dialect) (out []byte, stop bool, messages []string) {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		e := escape(s[i:], d, true)
		out = append(out, e.out...)
		if e.message != "" {
			messages = append(messages, e.message)
			if d == GNU {
				return out, true, messages
			}
		}
		if e.stop {
			return out, true, messages
		}
		i += e.size
	}
	return out, false, messages
}
