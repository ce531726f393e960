package jq

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// parseNumber reads the text of a JSON number, which is well formed.
func parseNumber(s string) value {
	if len(s) <= 15 {
		i, neg := 0, false
		if s[0] == '-' {
			i, neg = 1, true
		}
		n, ok := int64(0), i < len(s)
		for ; i < len(s); i++ {
			c := s[i] - '0'
			if c > 9 {
				ok = false
				break
			}
			n = n*10 + int64(c)
		}
		if ok {
			if !neg {
				return float64(n)
			}
			if n != 0 {
				return float64(-n)
			}
			return math.Copysign(0, -1)
		}
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range is infinite, as it should
	if plainDecimal(s) {
		var room [40]byte
		if math.Abs(f) < 1<<53 && string(appendFloat(room[:0], f)) == s {
			return f
		}
		return &literal{f, strings.Clone(s)}
	}
	text := canonicalText(s)
	if text == "" || math.Abs(f) < 1<<53 && text == string(appendFloat(nil, f)) {
		return f
	}
	return &literal{f, strings.Clone(text)}
}

// plainDecimal reports whether a number is in the canonical form as it stands.
func plainDecimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, fraction, ok := strings.Cut(s, ".")
	if !ok || whole == "" || fraction == "" || whole[0] == '0' && (len(whole) > 1 || strings.HasPrefix(fraction, "00000")) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '.' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// canonicalText writes a decimal number as the decimal library does that jq
// keeps literals with: digits as they were given, an exponent only where it is
// positive or the number is small. It is empty where the number is out of
// that library's range.
func canonicalText(s string) string {
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimLeft(s, "+-")
	mantissa, e, has := s, 0, false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n > 999_999_999 || n < -999_999_999 {
			return ""
		}
		e, has = n, true
	}
	_ = has
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	e -= len(fraction)
	if digits == "" {
		digits = "0"
	}
	adjusted := e + len(digits) - 1
	if adjusted > 999_999_999 || adjusted < -999_999_999 {
		return ""
	}
	var b []byte
	if neg {
		b = append(b, '-')
	}
	switch {
	case e <= 0 && adjusted >= -6:
		point := len(digits) + e
		switch {
		case e == 0:
			b = append(b, digits...)
		case point > 0:
			b = append(append(append(b, digits[:point]...), '.'), digits[point:]...)
		default:
			b = append(b, "0."...)
			for range -point {
				b = append(b, '0')
			}
			b = append(b, digits...)
		}
	default:
		b = append(b, digits[0])
		if len(digits) > 1 {
			b = append(append(b, '.'), digits[1:]...)
		}
		b = append(b, 'E')
		if adjusted >= 0 {
			b = append(b, '+')
		}
		b = strconv.AppendInt(b, int64(adjusted), 10)
	}
	return string(b)
}

// canonical gives the text of a number.
func canonical(v value) string {
	if l, ok := v.(*literal); ok {
		return l.text
	}
	f, _ := v.(float64)
	return string(appendFloat(nil, f))
}

// compareText compares two decimal numbers by their texts.
func compareText(a, b string) int {
	na, nb := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	da, ea := significant(a)
	db, eb := significant(b)
	sign := 1
	switch {
	case da == "" && db == "":
		return 0
	case na && !nb:
		return -1
	case nb && !na:
		return 1
	case na:
		sign = -1
	}
	switch {
	case da == "":
		return -sign
	case db == "":
		return sign
	case ea != eb:
		if ea < eb {
			return -sign
		}
		return sign
	}
	return sign * strings.Compare(da, db)
}

// significant gives the digits of a number without zeros at the ends, and the
// exponent of the first.
func significant(s string) (digits string, exponent int) {
	s = strings.TrimLeft(s, "+-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(s[i+1:]) // canonicalText has read it
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits = whole + fraction
	exponent += len(whole)
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	return strings.TrimRight(trimmed, "0"), exponent
}

// appendFloat appends a number as jq prints what it has computed: the shortest
// text that is the number, at most 17 digits.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "null"...)
	case math.IsInf(f, 1):
		f = math.MaxFloat64
	case math.IsInf(f, -1):
		f = -math.MaxFloat64
	}
	if i := int64(f); float64(i) == f && i > -1e15 && i < 1e15 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, i, 10)
	}
	var room [32]byte
	e := strconv.AppendFloat(room[:0], f, 'e', -1, 64)
	if e[0] == '-' {
		b = append(b, '-')
		e = e[1:]
	}
	at := bytes.IndexByte(e, 'e')
	x, _ := strconv.Atoi(string(e[at+1:])) // it is a number: AppendFloat wrote it
	digits := append([]byte{e[0]}, e[min(2, at):at]...)
	point := x + 1
	switch {
	case f == 0:
		return append(b, '0')
	case point <= -5+1 || point > len(digits)+15:
		b = append(b, digits[0])
		if len(digits) > 1 {
			b = append(append(b, '.'), digits[1:]...)
		}
		b = append(b, 'e')
		if x < 0 {
			b = append(b, '-')
			x = -x
		} else {
			b = append(b, '+')
		}
		if x < 10 {
			b = append(b, '0')
		}
		return strconv.AppendInt(b, int64(x), 10)
	case point <= 0:
		b = append(b, "0."...)
		for range -point {
			b = append(b, '0')
		}
		return append(b, digits...)
	case point >= len(digits):
		b = append(b, digits...)
		for range point - len(digits) {
			b = append(b, '0')
		}
		return b
	}
	return append(append(append(b, digits[:point]...), '.'), digits[point:]...)
}
