package printf

import (
	"math/big"
	"strconv"
	"strings"
)

// float appends an argument that is a floating-point number.
func (r *run) float(p *spec, arg string) {
	var v long
	if c, ok := r.charConstant(arg); ok {
		v.digits = strconv.FormatInt(c, 10)
		if c == 0 {
			v.digits = ""
		}
	} else {
		var (
			rest string
			err  error
		)
		v, rest, err = parseFloat(arg)
		r.check(arg, rest, err)
	}
	sign := ""
	switch {
	case v.negative:
		sign = "-"
	case p.plus:
		sign = "+"
	case p.space:
		sign = " "
	}
	var body string
	switch v.kind {
	case infinite, notANumber:
		body = "inf"
		if v.kind == notANumber {
			body = "nan"
		}
		p.zero = false
	default:
		if p.prec > 0 && !r.room(p.prec) {
			return
		}
		body = v.format(p)
	}
	switch p.verb {
	case 'E', 'F', 'G', 'A':
		body = strings.ToUpper(body)
	}
	if p.zero && (p.verb == 'a' || p.verb == 'A') {
		sign += body[:2] // the zeros go after the 0x
		body = body[2:]
	}
	r.pad(p, sign, body)
}

func (v *long) format(p *spec) string {
	prec := p.prec
	switch p.verb {
	case 'a', 'A':
		return v.hexFormat(prec, p.alt)
	}
	if prec < 0 {
		prec = 6
	}
	switch p.verb {
	case 'f', 'F':
		return point(v.fixed(prec), p.alt && prec == 0)
	case 'e', 'E':
		return point(v.exponential(prec), p.alt && prec == 0)
	}
	prec = max(prec, 1)
	s := v.exponential(prec - 1)
	at := strings.IndexByte(s, 'e')
	exp, err := strconv.Atoi(s[at+1:])
	if err != nil {
		exp = 0
	}
	tail := s[at:]
	s = s[:at]
	if -4 <= exp && exp < prec {
		s, tail = v.fixed(prec-1-exp), ""
	}
	switch {
	case p.alt:
		s = point(s, true)
	case strings.IndexByte(s, '.') >= 0:
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + tail
}

// point adds a point to a number that has none, if there must be one.
func point(s string, must bool) string {
	if !must || strings.IndexByte(s, '.') >= 0 {
		return s
	}
	if e := strings.IndexByte(s, 'e'); e >= 0 {
		return s[:e] + "." + s[e:]
	}
	return s + "."
}

// number returns the value.
func (v *long) number() *big.Float {
	if v.digits != "" && v.abs.Sign() == 0 {
		_ = v.value() // what is kept as digits is in range
	}
	if v.abs.Prec() == 0 {
		v.abs.SetPrec(precision)
	}
	return &v.abs
}

// fixed is %f.
func (v *long) fixed(prec int) string {
	digits, whole, ok := v.round(len(v.digits) + v.exp + prec)
	if !ok {
		return v.number().Text('f', prec)
	}
	b := make([]byte, 0, 48)
	for i := range max(whole, 1) {
		b = append(b, digitAt(digits, i-max(1-whole, 0)))
	}
	if prec > 0 {
		b = append(b, '.')
	}
	for i := range prec {
		b = append(b, digitAt(digits, whole+i))
	}
	return string(b)
}

func digitAt(digits []byte, i int) byte {
	if i < 0 || i >= len(digits) {
		return '0'
	}
	return digits[i]
}

// exponential is %e.
func (v *long) exponential(prec int) string {
	digits, whole, ok := v.round(prec + 1)
	if !ok {
		return v.number().Text('e', prec)
	}
	b := make([]byte, 0, 32)
	b = append(b, digits[0])
	if prec > 0 {
		b = append(b, '.')
	}
	for i := range prec {
		b = append(b, digitAt(digits, i+1))
	}
	exp := whole - 1
	b = append(b, 'e', '+')
	if exp < 0 {
		b[len(b)-1] = '-'
		exp = -exp
	}
	if exp < 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendInt(b, int64(exp), 10))
}

// round returns the first digits of the number and how many of them stand
// before the point. It works on the digits as they were written, as long as the
// value, which is the nearest there is, must round to the same ones: it differs
// from them too far behind to be seen, but for a number in the very middle.
func (v *long) round(keep int) (digits []byte, whole int, ok bool) {
	const exact = 18
	n := len(v.digits)
	whole = n + v.exp
	if n == 0 || n > exact || keep < 0 || keep > exact || v.abs.Prec() != 0 {
		return nil, 0, false
	}
	if keep >= n {
		return []byte(v.digits), whole, true
	}
	if v.digits[keep:] == "5" {
		return nil, 0, false
	}
	digits = append(make([]byte, 0, exact+1), v.digits[:keep]...)
	if v.digits[keep] < '5' {
		return digits, whole, true
	}
	for i := keep - 1; i >= 0; i-- {
		if digits[i] != '9' {
			digits[i]++
			return digits, whole, true
		}
		digits[i] = '0'
	}
	return append([]byte{'1'}, digits...), whole + 1, true
}

// hexFormat is %a: the first digit has the top four bits of the mantissa.
func (v *long) hexFormat(prec int, alt bool) string {
	f := v.number()
	if f.Sign() == 0 {
		s := "0x0"
		if prec > 0 || alt {
			s += "." + strings.Repeat("0", max(prec, 0))
		}
		return s + "p+0"
	}
	exp := f.MantExp(nil)
	m, _ := new(big.Float).SetMantExp(f, precision-exp).Uint64()
	if exp < minExponent {
		m >>= uint(minExponent - exp)
		exp = minExponent
	}
	exp -= 4
	lead, rest := m>>60, m<<4>>4
	if prec >= 0 && prec < 15 {
		// To the nearest, and to even in the middle.
		shift := uint(60 - 4*prec)
		unit := uint64(1) << shift
		low := m & (unit - 1)
		m -= low
		if low > unit/2 || low == unit/2 && m&unit != 0 {
			if m+unit < m { // over the top: the digits become 1 0 0 …
				lead, rest = 1, 0
				exp += 4
				m = 0
			} else {
				m += unit
			}
		}
		if m != 0 {
			lead, rest = m>>60, m<<4>>4
		}
	}
	digits := strconv.FormatUint(rest, 16)
	digits = strings.Repeat("0", 15-len(digits)) + digits
	switch {
	case prec < 0:
		digits = strings.TrimRight(digits, "0")
	case prec <= 15:
		digits = digits[:prec]
	default:
		digits += strings.Repeat("0", prec-15)
	}
	s := "0x" + strconv.FormatUint(lead, 16)
	if digits != "" || alt {
		s += "." + digits
	}
	sign := "+"
	if exp < 0 {
		sign = ""
	}
	return s + "p" + sign + strconv.Itoa(exp)
}
