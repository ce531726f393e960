package printf

import (
	"errors"
	"math"
	"math/big"
	"strings"
)

var errRange = errors.New("out of range")

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// trim takes white space and a sign away.
func trim(s string) (rest string, negative bool) {
	for s != "" && blank(s[0]) {
		s = s[1:]
	}
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:], s[0] == '-'
	}
	return s, false
}

// magnitude reads the digits of a number in C's notation. Without any, all of s
// is the rest.
func magnitude(s string) (n uint64, body, rest string, err error) {
	base := uint64(10)
	i := 0
	switch {
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && hex(s[2]) < 16:
		base, i = 16, 2
	case s != "" && s[0] == '0':
		base = 8
	}
	start := i
	for ; i < len(s); i++ {
		d := hex(s[i])
		if d >= base {
			break
		}
		if n > (math.MaxUint64-d)/base {
			err = errRange
		}
		n = n*base + d
	}
	if err != nil {
		n = math.MaxUint64
	}
	return n, s[start:i], s[i:], err
}

func hex(c byte) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10
	}
	return 16
}

// parseInt reads a number as strtoimax does; rest is what it did not take, all
// of s if there is no number.
func parseInt(s string) (n int64, rest string, err error) {
	t, negative := trim(s)
	abs, body, rest, err := magnitude(t)
	switch {
	case body == "":
		return 0, s, nil
	case negative && (err != nil || abs > 1<<63):
		return math.MinInt64, rest, errRange
	case negative:
		return -int64(abs), rest, nil
	case err != nil || abs > math.MaxInt64:
		return math.MaxInt64, rest, errRange
	}
	return int64(abs), rest, nil
}

// parseUint is parseInt as strtoumax does it.
func parseUint(s string) (n uint64, rest string, err error) {
	t, negative := trim(s)
	abs, body, rest, err := magnitude(t)
	switch {
	case body == "":
		return 0, s, nil
	case err != nil:
		return math.MaxUint64, rest, err
	case negative:
		abs = -abs
	}
	return abs, rest, nil
}

// The x87 format, which is the long double of the originals.
const (
	precision   = 64
	maxExponent = 16384  // of a mantissa in [0.5, 1)
	minExponent = -16381 // of the smallest normal number
)

// long is a long double.
type long struct {
	negative bool
	kind     longKind
	abs      big.Float // of kind finite; zero is its zero
	digits   string    // abs is digits, as they were written, by ten to exp
	exp      int
}

type longKind uint8

const (
	finite longKind = iota
	infinite
	notANumber
)

// parseFloat reads a number as strtold does.
func parseFloat(s string) (v long, rest string, err error) {
	t, negative := trim(s)
	v.negative = negative
	lower := func(n int) string { return strings.ToLower(t[:min(n, len(t))]) }
	switch {
	case lower(8) == "infinity":
		v.kind = infinite
		return v, t[8:], nil
	case lower(3) == "inf":
		v.kind = infinite
		return v, t[3:], nil
	case lower(3) == "nan":
		v.kind = notANumber
		t = t[3:]
		if strings.HasPrefix(t, "(") {
			for i := 1; i < len(t); i++ {
				if c := t[i]; c == ')' {
					return v, t[i+1:], nil
				} else if c != '_' && !('0' <= c && c <= '9') && !('a' <= c|0x20 && c|0x20 <= 'z') {
					break
				}
			}
		}
		return v, t, nil
	case lower(2) == "0x" && len(t) > 2 && (hex(t[2]) < 16 || t[2] == '.' && len(t) > 3 && hex(t[3]) < 16):
		rest, err = v.hexadecimal(t[2:])
		return v, rest, err
	}
	rest, ok, err := v.decimal(t)
	if !ok {
		return long{}, s, nil
	}
	return v, rest, err
}

// mostDigits is how many digits of a number count; a 1 stands for those after
// them, since all that is left to know is whether there were any.
const mostDigits = 12000

// mantissa reads digits with a point between them: the digits without leading
// zeros, and how many of them, less those left out, stand after the point.
func mantissa(s string, base uint64) (digits []byte, scale, size int) {
	point, more := false, false
	i := 0
	any := false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if hex(c) >= base {
			break
		}
		any = true
		switch {
		case len(digits) == 0 && c == '0':
		case len(digits) < mostDigits:
			digits = append(digits, c)
		default:
			more = more || c != '0'
			scale--
		}
		if point {
			scale++
		}
	}
	if !any {
		return nil, 0, 0
	}
	if more {
		digits = append(digits, '1')
		scale++
	}
	return digits, scale, i
}

// exponent reads an exponent after the letter c.
func exponent(s string, c byte) (n, size int) {
	if s == "" || s[0]|0x20 != c {
		return 0, 0
	}
	i, negative := 1, false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	start := i
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		n = min(n*10+int(s[i]-'0'), 1<<40)
	}
	if i == start {
		return 0, 0
	}
	if negative {
		n = -n
	}
	return n, i
}

func (v *long) decimal(s string) (rest string, ok bool, err error) {
	digits, scale, size := mantissa(s, 10)
	if size == 0 {
		return s, false, nil
	}
	exp, n := exponent(s[size:], 'e')
	rest = s[size+n:]
	exp -= scale
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exp++
	}
	v.digits, v.exp = string(digits), exp
	switch {
	case len(digits) == 0:
		v.exp = 0
		return rest, true, nil
	case exp+len(digits) > 5000:
		v.kind = infinite
		return rest, true, errRange
	case exp+len(digits) < -5000:
		v.digits, v.exp = "", 0
		return rest, true, errRange
	}
	if len(digits) <= 18 && -19 < exp && exp+len(digits) <= 19 {
		return rest, true, nil // abs is worked out when it is needed
	}
	return rest, true, v.value()
}

// value works out abs from the digits.
func (v *long) value() error {
	if v.digits == "" {
		return nil
	}
	num, _ := new(big.Int).SetString(v.digits, 10)
	den := big.NewInt(1)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(v.exp, -v.exp))), nil)
	if v.exp >= 0 {
		num.Mul(num, power)
	} else {
		den = power
	}
	return v.quotient(num, den)
}

// quotient sets abs to the nearest number there is.
func (v *long) quotient(num, den *big.Int) error {
	exact := func(n *big.Int) *big.Float { return new(big.Float).SetPrec(uint(max(n.BitLen(), 1))).SetInt(n) }
	x, y := exact(num), exact(den)
	v.abs.SetPrec(precision).SetMode(big.ToNearestEven).Quo(x, y)
	switch exp := v.abs.MantExp(nil); {
	case exp > maxExponent:
		v.kind = infinite
		return errRange
	case exp < minExponent:
		// A denormal number has fewer bits; below them all there is only zero.
		bits := precision - (minExponent - exp)
		if bits < 1 {
			v.abs, v.digits = big.Float{}, ""
			return errRange
		}
		v.abs.SetPrec(0).SetPrec(uint(bits)).Quo(x, y)
		if v.abs.Acc() != big.Exact {
			v.abs.SetPrec(precision)
			return errRange
		}
		v.abs.SetPrec(precision)
	}
	return nil
}

func (v *long) hexadecimal(s string) (rest string, err error) {
	digits, scale, size := mantissa(s, 16)
	exp, n := exponent(s[size:], 'p')
	rest = s[size+n:]
	if len(digits) == 0 {
		return rest, nil
	}
	exp -= 4 * scale
	switch bits := exp + 4*len(digits); {
	case bits > 20000:
		v.kind = infinite
		return rest, errRange
	case bits < -20000:
		return rest, errRange
	}
	num, _ := new(big.Int).SetString(string(digits), 16)
	den := big.NewInt(1)
	if exp >= 0 {
		num.Lsh(num, uint(exp))
	} else {
		den.Lsh(den, uint(-exp))
	}
	return rest, v.quotient(num, den)
}
