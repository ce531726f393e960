package sort

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A decimal is a number as sort -n reads it: digits without zeros in front,
// and digits behind the point without zeros at the end.
type decimal struct {
	negative    bool
	whole, part []byte
}

// parse reads the number at the start of a key; what is none is 0. rest is
// what follows.
func parse(b []byte) (d decimal, rest []byte) {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '-' {
		d.negative = true
		b = b[1:]
	}
	for len(b) > 0 && b[0] == '0' {
		b = b[1:]
	}
	n := digits(b)
	d.whole, b = b[:n], b[n:]
	if len(b) > 0 && b[0] == '.' {
		n = digits(b[1:])
		d.part, b = b[1:1+n], b[1+n:]
		for len(d.part) > 0 && d.part[len(d.part)-1] == '0' {
			d.part = d.part[:len(d.part)-1]
		}
	}
	if len(d.whole) == 0 && len(d.part) == 0 {
		d.negative = false
	}
	return d, b
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

func (d *decimal) magnitude(e *decimal) int {
	if len(d.whole) != len(e.whole) {
		if len(d.whole) < len(e.whole) {
			return -1
		}
		return 1
	}
	if c := bytes.Compare(d.whole, e.whole); c != 0 {
		return c
	}
	return bytes.Compare(d.part, e.part)
}

func (d *decimal) compare(e *decimal) int {
	switch {
	case d.negative && !e.negative:
		return -1
	case !d.negative && e.negative:
		return 1
	case d.negative:
		return e.magnitude(d)
	}
	return d.magnitude(e)
}

// rank gives a number that keeps the order of decimals of up to n digits and
// more or less of others: if two ranks differ, so do the decimals, and in the
// same way. lengths is the greatest number of digits that it knows.
func (d *decimal) rank(lengths uint64) uint64 {
	length := uint64(len(d.whole))
	if length >= lengths {
		return lengths << 50
	}
	r, n := uint64(0), 0
	for _, c := range d.whole {
		if n == 15 {
			break
		}
		r = r*10 + uint64(c-'0')
		n++
	}
	for _, c := range d.part {
		if n == 15 {
			break
		}
		r = r*10 + uint64(c-'0')
		n++
	}
	for ; n < 15; n++ {
		r *= 10
	}
	return length<<50 | r
}

func (d *decimal) prefix() uint64 {
	r := uint64(1)<<63 | d.rank(1<<13-1)
	if d.negative {
		return ^r
	}
	return r
}

// unit ranks the letter behind a number: K before M before G. An i may follow
// and does not count.
func unit(rest []byte) uint64 {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case 'k', 'K':
		return 1
	case 'M':
		return 2
	case 'G':
		return 3
	case 'T':
		return 4
	case 'P':
		return 5
	case 'E':
		return 6
	case 'Z':
		return 7
	case 'Y':
		return 8
	}
	return 0
}

// human reads a number as sort -h does.
func human(b []byte) (d decimal, order int64) {
	d, rest := parse(b)
	order = int64(unit(rest))
	if d.negative {
		return d, -order
	}
	if len(d.whole) == 0 && len(d.part) == 0 {
		order = 0 // nothing of anything is nothing
	}
	return d, order
}

func compareHuman(a, b []byte) int {
	d, x := human(a)
	e, y := human(b)
	if x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return d.compare(&e)
}

func prefixHuman(b []byte) uint64 {
	d, order := human(b)
	if order < 0 {
		order = -order
	}
	r := uint64(1)<<63 | uint64(order)<<59 | d.rank(1<<9-1)
	if d.negative {
		return ^r
	}
	return r
}

// prefixFloat gives a number that has the order of sort -g: what is no number
// first, then not-a-numbers, then by value.
func prefixFloat(b []byte) uint64 {
	text := float(b)
	if text == "" {
		return 0
	}
	if i := len(text) - 3; i >= 0 && text[i]|0x20 == 'n' {
		if text[0] == '-' {
			return 2
		}
		return 1
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		f = 0
	}
	u := math.Float64bits(f)
	switch {
	case f == 0:
		return 1 << 63
	case f < 0:
		return ^u
	}
	return u | 1<<63
}

// compareFloat compares what has the same prefix as a long double.
func compareFloat(a, b []byte) int {
	x, y := float(a), float(b)
	if x == y || x == "" || y == "" {
		return 0
	}
	f, nan, ok := command.ParseFloat(x)
	if !ok || nan {
		return 0
	}
	g, nan, ok := command.ParseFloat(y)
	if !ok || nan {
		return 0
	}
	return f.Cmp(g)
}

// float finds the longest number at the start, as strtod does, or nothing.
func float(b []byte) string {
	for len(b) > 0 && (b[0] == ' ' || b[0] >= '\t' && b[0] <= '\r') {
		b = b[1:]
	}
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		i++
	}
	for _, name := range []string{"infinity", "inf", "nan"} {
		if len(b)-i >= len(name) && strings.EqualFold(string(b[i:i+len(name)]), name) {
			return string(b[:i+len(name)])
		}
	}
	if len(b)-i > 2 && b[i] == '0' && b[i+1]|0x20 == 'x' {
		if n := mantissa(b[i+2:], true); n > 0 {
			end := i + 2 + n
			if power := exponent(b[end:], 'p'); power > 0 {
				return string(b[:end+power])
			}
			return string(b[:end]) + "p0"
		}
	}
	n := mantissa(b[i:], false)
	if n == 0 {
		return ""
	}
	return string(b[:i+n+exponent(b[i+n:], 'e')])
}

// mantissa tells how long digits with at most one point are.
func mantissa(b []byte, hex bool) int {
	dot, any := false, false
	for i, c := range b {
		switch {
		case isDigit(c), hex && c|0x20 >= 'a' && c|0x20 <= 'f':
			any = true
		case c == '.' && !dot:
			dot = true
		case any:
			return i
		default:
			return 0
		}
	}
	if !any {
		return 0
	}
	return len(b)
}

func exponent(b []byte, letter byte) int {
	if len(b) < 2 || b[0]|0x20 != letter {
		return 0
	}
	i := 1
	if b[i] == '-' || b[i] == '+' {
		i++
	}
	n := digits(b[i:])
	if n == 0 {
		return 0
	}
	return i + n
}

// month gives 1 to 12 for the name of a month, else 0.
func month(b []byte) int {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	if len(b) < 3 {
		return 0
	}
	const names = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"
	for m := range 12 {
		if bytes.EqualFold(b[:3], []byte(names[3*m:3*m+3])) {
			return m + 1
		}
	}
	return 0
}
