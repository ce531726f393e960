package command

import (
	"math/big"
	"strings"
)

// FloatPrecision is the mantissa of a long double in bits: tools of the C
// library calculate with it.
const FloatPrecision = 64

// ParseFloat parses all of s as strtold does; leading blanks are skipped. A
// value outside the range of a long double becomes infinite or 0.
func ParseFloat(s string) (f *big.Float, nan, ok bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	switch lower := strings.ToLower(s); {
	case lower == "inf" || lower == "infinity":
		return new(big.Float).SetInf(negative), false, true
	case lower == "nan" || strings.HasPrefix(lower, "nan(") && strings.HasSuffix(lower, ")"):
		return nil, true, true
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x':
		if !floatShape(s[2:], true) {
			return nil, false, false
		}
		if !strings.ContainsAny(s, "pP") {
			s += "p0"
		}
	case !floatShape(s, false):
		return nil, false, false
	}
	if huge, tiny := floatExtreme(s); huge || tiny {
		f = new(big.Float).SetPrec(FloatPrecision)
		if huge {
			f.SetInf(negative)
		} else if negative {
			f.Neg(f)
		}
		return f, false, true
	}
	f, _, err := big.ParseFloat(s, 0, FloatPrecision, big.ToNearestEven)
	if err != nil {
		f, _, err = big.ParseFloat(strings.TrimLeft(s, "0"), 10, FloatPrecision, big.ToNearestEven)
		if err != nil {
			return nil, false, false
		}
	}
	switch e := f.MantExp(nil); {
	case f.Sign() != 0 && e > 16384:
		f.SetInf(false)
	case f.Sign() != 0 && e < -16445:
		f.SetInt64(0)
	}
	if negative {
		f.Neg(f)
	}
	return f, false, true
}

// floatExtreme tells numbers whose exponents nobody should calculate with.
func floatExtreme(s string) (huge, tiny bool) {
	i := strings.LastIndexAny(s, "eEpP")
	if i < 0 || len(s) > 1 && s[1]|0x20 == 'x' && s[i]|0x20 == 'e' {
		return false, false
	}
	digits, negative := strings.CutPrefix(s[i+1:], "-")
	if len(strings.TrimLeft(digits, "+0")) <= 5 {
		return false, false
	}
	if strings.Trim(s[:i], "0.xX") == "" {
		return false, true
	}
	return !negative, negative
}

// floatShape tells digits with at most one point and an exponent.
func floatShape(s string, hex bool) bool {
	digits, dot, i := 0, false, 0
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', hex && c|0x20 >= 'a' && c|0x20 <= 'f':
			digits++
		case c == '.' && !dot:
			dot = true
		default:
			goto end
		}
	}
end:
	if digits == 0 {
		return false
	}
	if i == len(s) {
		return true
	}
	if c := s[i] | 0x20; hex && c != 'p' || !hex && c != 'e' {
		return false
	}
	i++
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	if i == len(s) {
		return false
	}
	for ; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
