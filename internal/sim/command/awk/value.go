package awk

import (
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

type kind uint8

const (
	unset   kind = iota // never assigned: both "" and 0
	number              // n
	text                // s
	maybe               // s of input, which is a number if it looks like one
	numeric             // s of input, which looks like the number n
	pattern             // s is a regular expression
)

// A value is a scalar.
type value struct {
	s string
	n float64
	k kind
}

func num(n float64) value { return value{n: n, k: number} }

func str(s string) value { return value{s: s, k: text} }

func input(s string) value { return value{s: s, k: maybe} }

func truth(b bool) value {
	if b {
		return value{n: 1, k: number}
	}
	return value{k: number}
}

// resolve settles whether input looks like a number.
func (v value) resolve() value {
	if v.k == maybe {
		if n, ok := looksNumeric(v.s); ok {
			return value{v.s, n, numeric}
		}
		return value{s: v.s, k: text}
	}
	return v
}

// num gives the value as a number.
func (v value) num() float64 {
	switch v.k {
	case number, numeric:
		return v.n
	case unset:
		return 0
	}
	return toNumber(v.s)
}

// bool gives the value as a truth.
func (v value) bool() bool {
	switch v.k {
	case number:
		return v.n != 0
	case unset:
		return false
	case text, pattern:
		return v.s != ""
	}
	v = v.resolve()
	if v.k == numeric {
		return v.n != 0
	}
	return v.s != ""
}

// integral reports whether a number is printed as an integer, and which.
func integral(n float64) (int64, bool) {
	i := int64(n)
	return i, float64(i) == n && i != math.MinInt64 && i != math.MaxInt64
}

// appendNumber appends a number as CONVFMT or OFMT has it.
func (m *machine) appendNumber(b []byte, n float64, format string) []byte {
	if i, ok := integral(n); ok {
		return strconv.AppendInt(b, i, 10)
	}
	switch {
	case math.IsNaN(n):
		if math.Signbit(n) {
			return append(b, "-nan"...)
		}
		return append(b, "+nan"...)
	case math.IsInf(n, 1):
		return append(b, "+inf"...)
	case math.IsInf(n, -1):
		return append(b, "-inf"...)
	case n == math.Trunc(n):
		return strconv.AppendFloat(b, n, 'f', 0, 64)
	}
	if format == "%.6g" {
		return appendG(b, n, 6, false, false)
	}
	s := m.sprintf(nil, format, []value{num(n)})
	m.t.Shrink(kernel.Cost(s))
	return append(b, s...)
}

// str gives a value as a string.
func (m *machine) str(v value) string {
	switch v.k {
	case number:
		return m.numStr(v.n)
	case unset:
		return ""
	}
	return v.s
}

func (m *machine) numStr(n float64) string {
	if i, ok := integral(n); ok {
		if i >= 0 && i < 100 {
			return strconv.Itoa(int(i)) // kept by the library
		}
		m.key = strconv.AppendInt(m.key[:0], i, 10)
		return string(m.key)
	}
	return string(m.appendNumber(nil, n, m.convfmt))
}

// compare orders two values: as numbers where both are, else as strings. It
// tells less, equal or greater, or none of them for what is no number.
func (m *machine) compare(a, b value) int {
	a, b = a.resolve(), b.resolve()
	if a.k != text && b.k != text && a.k != pattern && b.k != pattern {
		switch {
		case a.n < b.n:
			return -1
		case a.n > b.n:
			return 1
		case a.n == b.n:
			return 0
		}
		return unordered(a.n, b.n)
	}
	return m.collate(m.str(a), m.str(b))
}

// collate compares strings, by IGNORECASE without regard to case.
func (m *machine) collate(a, b string) int {
	if m.ignoreCase {
		m.fresh(len(a) + len(b))
		a, b = mapCase(a, false), mapCase(b, false)
	}
	return strings.Compare(a, b)
}

// unordered puts NaN above all numbers, as gawk does in comparisons.
func unordered(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	}
	return -1
}

// blank tells the white space that numbers may stand between.
func blank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

// decimal tells how long the number is that s begins with, without sign.
func decimal(s string) int {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	return i
}

// prefix reads the number that s begins with, and tells how long it is.
func prefix(s string) (n float64, length int) {
	i := 0
	for i < len(s) && blank(s[i]) {
		i++
	}
	sign := i
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	// The plain integers that most numbers are.
	v, j := int64(0), i
	for j < len(s) && j-i < 15 && isDigit(s[j]) {
		v = v*10 + int64(s[j]-'0')
		j++
	}
	if j > i && (j == len(s) || s[j] != '.' && s[j] != 'e' && s[j] != 'E' && !isDigit(s[j])) {
		if s[sign] == '-' {
			if v == 0 {
				return math.Copysign(0, -1), j
			}
			v = -v
		}
		return float64(v), j
	}
	length = decimal(s[i:])
	if length == 0 {
		if i > sign && len(s) >= i+3 {
			if n, ok := special(s[sign:]); ok {
				return n, i + 3
			}
		}
		return 0, 0
	}
	n, _ = strconv.ParseFloat(s[sign:i+length], 64) // out of range is infinite, as it should
	return n, i + length
}

// special reads "+inf" and "-nan", which gawk takes with a sign only.
func special(s string) (float64, bool) {
	if len(s) > 4 && isName(s[4]) {
		return 0, false
	}
	switch strings.ToLower(s[1:4]) {
	case "inf":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case "nan":
		if s[0] == '-' {
			return math.Copysign(math.NaN(), -1), true
		}
		return math.NaN(), true
	}
	return 0, false
}

// toNumber gives the number that a string begins with.
func toNumber(s string) float64 {
	n, _ := prefix(s)
	return n
}

// looksNumeric reads a string that is nothing but a number and blanks.
func looksNumeric(s string) (float64, bool) {
	if s == "" {
		return 0, false
	}
	if c := s[0]; c > '9' {
		return 0, false
	}
	n, length := prefix(s)
	if length == 0 {
		return 0, false
	}
	for ; length < len(s); length++ {
		if !blank(s[length]) {
			return 0, false
		}
	}
	return n, true
}
