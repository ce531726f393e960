package jq

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errMore is that a text ends before its value does.
var errMore = errors.New("unfinished")

// A decoder reads JSON values from bytes, as jq does: NaN is taken too, and
// what is no UTF-8 becomes U+FFFD.
type decoder struct {
	m     *machine
	b     []byte
	at    int
	depth int
	last  bool // nothing comes behind b
	keys  map[string]string
	stack *unread
}

// unread are the parts of arrays and objects that are being read: they get
// their own storage when it is known how many they are.
type unread struct {
	keys  []string
	vals  []value
	shape []string // the keys of the last object, which the next one likely has too
}

// maxParse is how deep jq reads.
const maxParse = 10_000

type decodeError struct{ msg string }

func (e *decodeError) Error() string { return e.msg }

func (d *decoder) bad(format string, args ...any) error {
	return &decodeError{fmt.Sprintf(format, args...)}
}

func (d *decoder) space() {
	for d.at < len(d.b) {
		switch d.b[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		case 0x1e: // a record separator of --seq
			d.at++
		case 0xef:
			if d.at == 0 && len(d.b) >= 3 && d.b[1] == 0xbb && d.b[2] == 0xbf {
				d.at += 3
				continue
			}
			return
		default:
			return
		}
	}
}

func (d *decoder) end() error {
	if d.last {
		return d.bad("Unfinished JSON term")
	}
	return errMore
}

// value reads one value.
func (d *decoder) value() (value, error) {
	d.space()
	if d.at >= len(d.b) {
		return nil, d.end()
	}
	switch c := d.b[d.at]; {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"':
		return d.str()
	case c == '-' || c >= '0' && c <= '9' || c == '.' || c == '+':
		return d.number()
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return d.word()
	case c == ':':
		return nil, d.bad("':' not as part of an object")
	case c == ',':
		return nil, d.bad("Expected value before ','")
	case c == '}' || c == ']':
		return nil, d.bad("Unmatched '%c'", c)
	case c == '\'':
		for d.at < len(d.b) && strings.IndexByte(" \t\r\n,:[]{}\"", d.b[d.at]) < 0 {
			d.at++
		}
		if d.at < len(d.b) {
			d.at++
		} else if !d.last {
			return nil, errMore
		}
		return nil, d.bad("Invalid string literal; expected \", but got '")
	}
	return nil, d.bad("Invalid literal")
}

func (d *decoder) down() error {
	if d.depth++; d.depth > maxParse {
		return d.bad("Exceeds depth limit for parsing")
	}
	return nil
}

func (d *decoder) array() (value, error) {
	if err := d.down(); err != nil {
		return nil, err
	}
	d.at++
	d.space()
	if d.at < len(d.b) && d.b[d.at] == ']' {
		d.at++
		d.depth--
		return d.m.list(nil), nil
	}
	u := d.unread()
	base := len(u.vals)
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		d.m.t.Step(1)
		u.vals = append(u.vals, v)
		d.space()
		if d.at >= len(d.b) {
			return nil, d.end()
		}
		switch d.b[d.at] {
		case ',':
			d.at++
		case ']':
			d.at++
			d.depth--
			list := slices.Clone(u.vals[base:])
			u.drop(len(u.keys), base)
			return d.m.list(list), nil
		case ':':
			return nil, d.bad("':' not as part of an object")
		case '}':
			return nil, d.bad("Unmatched '}'")
		default:
			return nil, d.bad("Expected separator between values")
		}
	}
}

func (d *decoder) object() (value, error) {
	if err := d.down(); err != nil {
		return nil, err
	}
	d.at++
	d.space()
	if d.at < len(d.b) && d.b[d.at] == '}' {
		d.at++
		d.depth--
		return d.m.made(&table{}), nil
	}
	u := d.unread()
	keys, base := len(u.keys), len(u.vals)
	for {
		d.space()
		if d.at >= len(d.b) {
			return nil, d.end()
		}
		if d.b[d.at] != '"' {
			if c := d.b[d.at]; c == '}' {
				return nil, d.bad("Objects must consist of key:value pairs")
			}
			if _, err := d.value(); err != nil {
				return nil, err
			}
			return nil, d.bad("Object keys must be strings")
		}
		key, err := d.key()
		if err != nil {
			return nil, err
		}
		d.space()
		if d.at >= len(d.b) {
			return nil, d.end()
		}
		if d.b[d.at] != ':' {
			return nil, d.bad("Objects must consist of key:value pairs")
		}
		d.at++
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		d.m.t.Step(1)
		u.keys, u.vals = append(u.keys, key), append(u.vals, v)
		d.space()
		if d.at >= len(d.b) {
			return nil, d.end()
		}
		switch d.b[d.at] {
		case ',':
			d.at++
		case '}':
			d.at++
			d.depth--
			t := u.table(keys, base)
			u.drop(keys, base)
			return d.m.made(t), nil
		case ']':
			return nil, d.bad("Unmatched ']'")
		default:
			return nil, d.bad("Expected separator between values")
		}
	}
}

func (d *decoder) unread() *unread {
	if d.stack == nil {
		d.stack = &unread{}
	}
	return d.stack
}

// drop takes what has got its own storage off the stack.
func (u *unread) drop(keys, vals int) {
	clear(u.vals[vals:])
	u.keys, u.vals = u.keys[:keys], u.vals[:vals]
}

// table makes the members of an object from the end of the stack. Tables may
// share their keys: whoever adds to them gets other storage.
func (u *unread) table(keys, vals int) *table {
	names := u.keys[keys:]
	if len(names) > many || repeated(names) {
		t := &table{}
		for i, k := range names {
			t.put(k, u.vals[vals+i])
		}
		return t
	}
	if !slices.Equal(u.shape, names) {
		u.shape = slices.Clip(slices.Clone(names))
	}
	return &table{keys: u.shape, vals: slices.Clip(slices.Clone(u.vals[vals:]))}
}

func repeated(names []string) bool {
	for i, k := range names {
		for _, other := range names[:i] {
			if k == other {
				return true
			}
		}
	}
	return false
}

// key reads a key; the same ones share their memory.
func (d *decoder) key() (string, error) {
	for i := d.at + 1; i < len(d.b) && i < d.at+64; i++ {
		switch c := d.b[i]; {
		case c == '"':
			raw := d.b[d.at+1 : i]
			d.at = i + 1
			if k, ok := d.keys[string(raw)]; ok {
				return k, nil
			}
			k := string(raw)
			if d.keys == nil || len(d.keys) > 4096 {
				d.keys = map[string]string{}
			}
			d.keys[k] = k
			d.m.alloc(len(k) + 16)
			return k, nil
		case c == '\\' || c >= utf8.RuneSelf:
			return d.str2()
		}
	}
	return d.str2()
}

func (d *decoder) str() (value, error) {
	s, err := d.str2()
	return s, err
}

func (d *decoder) str2() (string, error) {
	from := d.at + 1
	valid := true
	for i := from; i < len(d.b); i++ {
		switch c := d.b[i]; {
		case c == '"':
			raw := d.b[from:i]
			d.at = i + 1
			d.m.alloc(16 + len(raw))
			if !valid && !utf8.Valid(raw) {
				return strings.ToValidUTF8(replaceEach(raw), "\ufffd"), nil
			}
			return string(raw), nil
		case c == '\\':
			return d.escaped(from, i)
		case c >= utf8.RuneSelf:
			valid = false
		}
	}
	return "", d.end()
}

// replaceEach puts U+FFFD in place of each run of bytes that is no character.
func replaceEach(b []byte) string {
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 {
			out = append(out, "\ufffd"...)
			b = b[1:]
			// The rest of a character that is cut off counts as the same.
			for len(b) > 0 && b[0]&0xc0 == 0x80 {
				b = b[1:]
			}
			continue
		}
		out = append(out, b[:n]...)
		b = b[n:]
	}
	return string(out)
}

// escaped reads a string that has escapes; the first is at i.
func (d *decoder) escaped(from, i int) (string, error) {
	out := append(make([]byte, 0, i-from+32), d.b[from:i]...)
	for i < len(d.b) {
		c := d.b[i]
		switch {
		case c == '"':
			d.at = i + 1
			d.m.alloc(16 + len(out))
			if !utf8.Valid(out) {
				return replaceEach(out), nil
			}
			return string(out), nil
		case c != '\\':
			out = append(out, c)
			i++
			continue
		}
		if i+1 >= len(d.b) {
			return "", d.end()
		}
		switch e := d.b[i+1]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := d.hex(i + 2)
			if !ok {
				if i+6 > len(d.b) {
					return "", d.end()
				}
				return "", d.bad("Invalid escape")
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if r < 0xdc00 && i+3 < len(d.b) && d.b[i+2] == '\\' && d.b[i+3] == 'u' {
					if low, ok := d.hex(i + 4); ok && low >= 0xdc00 && low < 0xe000 {
						r = utf16.DecodeRune(r, low)
						i += 6
					}
				}
			}
			out = utf8.AppendRune(out, r) // a surrogate by itself is U+FFFD
		default:
			return "", d.bad("Invalid escape")
		}
		i += 2
	}
	return "", d.end()
}

func (d *decoder) hex(i int) (rune, bool) {
	if i+4 > len(d.b) {
		return 0, false
	}
	var r rune
	for _, c := range d.b[i : i+4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}

// token gives the bytes up to a delimiter.
func (d *decoder) token() ([]byte, error) {
	i := d.at
	for i < len(d.b) && strings.IndexByte(" \t\r\n,:[]{}\"\x1e", d.b[i]) < 0 {
		i++
	}
	if i == len(d.b) && !d.last {
		return nil, errMore
	}
	w := d.b[d.at:i]
	d.at = i
	return w, nil
}

func (d *decoder) number() (value, error) {
	w, err := d.token()
	if err != nil {
		return nil, err
	}
	s := string(w)
	if !wellFormed(s) {
		if l := strings.ToLower(strings.TrimLeft(s, "+-")); l == "nan" {
			return math.NaN(), nil
		} else if l == "infinity" {
			if s[0] == '-' {
				return math.Inf(-1), nil
			}
			return math.Inf(1), nil
		}
		return nil, d.bad("Invalid numeric literal")
	}
	d.m.alloc(8)
	return parseNumber(s), nil
}

// wellFormed reports whether jq takes a text for a number: it lets pass more
// than JSON does.
func wellFormed(s string) bool {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digits := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
		digits++
	}
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
			digits++
		}
	}
	if digits == 0 {
		return false
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		n := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == n {
			return false
		}
	}
	return i == len(s)
}

func (d *decoder) word() (value, error) {
	w, err := d.token()
	if err != nil {
		return nil, err
	}
	switch string(w) {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "nan", "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	}
	if w[0] == 'n' || w[0] == 't' || w[0] == 'f' {
		return nil, d.bad("Invalid literal")
	}
	return nil, d.bad("Invalid numeric literal")
}

// position counts lines and columns as jq does in what it says.
func (d *decoder) position() (line, column int) {
	at := min(d.at, len(d.b))
	line = 1
	for i := range at {
		column++
		if d.b[i] == '\n' {
			line++
			column = 0
		}
	}
	return line, column
}
