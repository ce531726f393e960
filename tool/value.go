package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of JSON from outside. The number of values bounds memory: an empty list takes two
// bytes of text and forty of memory.
const (
	maxArgumentBytes = 8 << 20
	maxGrantBytes    = 64 << 10
	maxDepth         = 64
	maxValues        = 1 << 16
	maxDigits        = 400 // of a number, and the size of its exponent
)

// A JSON value is one of nil, bool, string, number, []any, map[string]any. A number is its
// text, which parse has checked; this is exact, and takes little memory.
type number string

// parse reads one JSON text. It is stricter than encoding/json where leniency lets a
// checker and a reader disagree: a repeated name, a byte that is not UTF-8 and half of a
// surrogate pair are errors. So is a number that would be costly to compare.
func parse(text []byte, limit int) (any, error) {
	if len(text) > limit {
		return nil, fmt.Errorf("longer than %d bytes", limit)
	}
	p := parser{text: text}
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", p.at, err)
	}
	p.space()
	if p.at < len(p.text) {
		return nil, fmt.Errorf("at byte %d: more after the value", p.at)
	}
	return v, nil
}

type parser struct {
	text   []byte
	at     int
	values int
}

var errEnd = errors.New("the text ends early")

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next skips space and returns the next byte, or zero at the end.
func (p *parser) next() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	if p.values++; p.values > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	switch c := p.next(); {
	case p.at == len(p.text):
		return nil, errEnd
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	word := p.text[p.at:min(len(p.text), p.at+5)]
	switch {
	case bytes.HasPrefix(word, []byte("true")):
		p.at += 4
		return true, nil
	case bytes.HasPrefix(word, []byte("false")):
		p.at += 5
		return false, nil
	case bytes.HasPrefix(word, []byte("null")):
		p.at += 4
		return nil, nil
	}
	return nil, errors.New("not a JSON value")
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	members := map[string]any{}
	if p.next() == '}' {
		p.at++
		return members, nil
	}
	for {
		if p.next() != '"' {
			return nil, errors.New("a name in quotes is expected")
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("%s is there twice", short(name))
		}
		if p.next() != ':' {
			return nil, errors.New("a colon is expected")
		}
		p.at++
		if members[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		done, err := p.more('}')
		if err != nil {
			return nil, err
		}
		if done {
			return members, nil
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.at++
	elements := []any{}
	if p.next() == ']' {
		p.at++
		return elements, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
		done, err := p.more(']')
		if err != nil {
			return nil, err
		}
		if done {
			return elements, nil
		}
	}
}

// more reads what follows an element: a comma, or the closing byte.
func (p *parser) more(closing byte) (done bool, err error) {
	switch c := p.next(); {
	case p.at == len(p.text):
		return false, errEnd
	case c == ',':
		p.at++
		return false, nil
	case c == closing:
		p.at++
		return true, nil
	}
	return false, fmt.Errorf("a comma or %q is expected", closing)
}

func (p *parser) str() (string, error) {
	p.at++
	var b strings.Builder
	start := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			b.Write(p.text[start:p.at])
			p.at++
			if s := b.String(); utf8.ValidString(s) {
				return s, nil
			}
			return "", errors.New("a string that is not UTF-8")
		case c < ' ':
			return "", errors.New("a control byte in a string")
		case c == '\\':
			b.Write(p.text[start:p.at])
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			start = p.at
		default:
			p.at++
		}
	}
	return "", errEnd
}

func (p *parser) escape() (rune, error) {
	if p.at+1 >= len(p.text) {
		return 0, errEnd
	}
	c := p.text[p.at+1]
	p.at += 2
	if c == 'u' {
		return p.unicode()
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(from, c)
	if i < 0 {
		return 0, errors.New("an unknown escape in a string")
	}
	return rune(to[i]), nil
}

func (p *parser) unicode() (rune, error) {
	high, err := p.hex()
	if err != nil || !utf16.IsSurrogate(high) {
		return high, err
	}
	if !strings.HasPrefix(string(p.text[p.at:min(len(p.text), p.at+2)]), `\u`) {
		return 0, errors.New("half of a surrogate pair")
	}
	p.at += 2
	low, err := p.hex()
	if err != nil {
		return 0, err
	}
	r := utf16.DecodeRune(high, low)
	if r == utf8.RuneError {
		return 0, errors.New("half of a surrogate pair")
	}
	return r, nil
}

func (p *parser) hex() (rune, error) {
	if p.at+4 > len(p.text) {
		return 0, errEnd
	}
	n, err := strconv.ParseUint(string(p.text[p.at:p.at+4]), 16, 16)
	if err != nil {
		return 0, errors.New(`four hexadecimal digits are expected after \u`)
	}
	p.at += 4
	return rune(n), nil
}

func (p *parser) number() (any, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at-start > maxDigits {
		return nil, fmt.Errorf("a number of more than %d digits", maxDigits)
	}
	return parseNumber(string(p.text[start:p.at]))
}

// parseNumber checks text against the grammar of JSON numbers, and checks that the exact
// value is small enough to compute with.
func parseNumber(text string) (number, error) {
	s := strings.TrimPrefix(text, "-")
	whole := digits(s)
	ok := whole == 1 || whole > 1 && s[0] != '0'
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		ok = ok && n > 0
		s = s[1+n:]
	}
	exponent := ""
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		ok = ok && n > 0
		exponent, s = s[:n], s[n:]
	}
	if !ok || s != "" {
		return "", fmt.Errorf("%s is not a number", short(text))
	}
	if e, err := strconv.Atoi("0" + exponent); len(text) > maxDigits || err != nil || e > maxDigits {
		return "", fmt.Errorf("%s is too large or too long a number", short(text))
	}
	return number(text), nil
}

// digits counts the decimal digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// rat returns the exact value. The text must have passed parseNumber.
func (n number) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// compare orders two numbers by their exact values.
func (n number) compare(other number) int {
	a, errA := strconv.ParseInt(string(n), 10, 64)
	b, errB := strconv.ParseInt(string(other), 10, 64)
	if errA == nil && errB == nil {
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	return n.rat().Cmp(other.rat())
}

// integer returns the exact value if it is a whole number in any notation: 100, 100.0 and
// 1e2 are the same.
func (n number) integer() (*big.Int, bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return big.NewInt(i), true
	}
	r := n.rat()
	return r.Num(), r.IsInt()
}

// encode writes v in canonical form: names sorted, no space, UTF-8 unescaped. Equal values
// have equal text.
func encode(v any) json.RawMessage { return appendValue(nil, v) }

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(append(appendString(b, name), ':'), v[name])
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// maxShown is how much of a value an error shows: enough to recognise it, but too little to
// reveal much of a secret.
const maxShown = 48

// short returns s in quotes, cut to maxShown bytes.
func short(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}

// show returns a value for an error: scalars shortened, others by type.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return short(v)
	case number:
		if len(v) > maxShown {
			return string(v[:maxShown]) + "…"
		}
		return string(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("an object of %d", len(v))
	default:
		return string(encode(v))
	}
}

// kindOf returns v's type in the terms of JSON Schema.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// equal compares two scalars, including their types. Lists and objects equal nothing.
func equal(a, b any) bool {
	switch a := a.(type) {
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case number:
		b, ok := b.(number)
		return ok && a.compare(b) == 0
	default:
		return false
	}
}
