package awk

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A verb is a piece of a format: text, or a conversion.
type verb struct {
	text                            string // of a conversion, as it was written
	conv                            byte   // 0 is text
	minus, plus, space, zero, sharp bool
	group                           bool // the flag '
	width, prec                     int  // -1 is none
	starWidth, starPrec             bool
	arg, widthArg, precArg          int // n$ of them; 0 is the next
}

// maxFormats is how many bytes of formats are kept.
const maxFormats = 256 << 10

// verbs reads a format.
func (m *machine) verbs(format string) []verb {
	if list, ok := m.formats[format]; ok {
		return list
	}
	if m.formatCost > maxFormats {
		clear(m.formats)
		m.t.Shrink(m.formatCost)
		m.formatCost = 0
	}
	limit := m.t.K.Limits.String // a verb is of two bytes at least
	var list []verb
	s := format
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			list = append(kernel.Room(m.t, "string", limit, list, 1), verb{text: s[:i]})
			s = s[i:]
			continue
		}
		v, n := readVerb(s)
		list = append(kernel.Room(m.t, "string", limit, list, 1), v)
		s = s[n:]
	}
	m.t.Grow(len(format))
	m.formatCost += len(format) + kernel.Cost(list)
	m.formats[strings.Clone(format)] = list
	return list
}

func readVerb(s string) (verb, int) {
	v := verb{width: -1, prec: -1}
	i := 1
	number := func() (n int, ok bool) {
		from := i
		for i < len(s) && isDigit(s[i]) {
			n = min(n*10+int(s[i]-'0'), 1<<30)
			i++
		}
		return n, i > from
	}
	star := func(at *int) {
		i++
		mark := i
		if n, ok := number(); ok && i < len(s) && s[i] == '$' {
			*at = n
			i++
			return
		}
		i = mark
	}
	mark := i
	if n, ok := number(); ok && i < len(s) && s[i] == '$' {
		v.arg = n
		i++
	} else {
		i = mark
	}
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case ' ':
			v.space = true
		case '0':
			v.zero = true
		case '#':
			v.sharp = true
		case '\'':
			v.group = true
		default:
			break flags
		}
	}
	if i < len(s) && s[i] == '*' {
		v.starWidth = true
		star(&v.widthArg)
	} else if n, ok := number(); ok {
		v.width = n
	}
	if i < len(s) && s[i] == '.' {
		i++
		v.prec = 0
		if i < len(s) && s[i] == '*' {
			v.starPrec = true
			star(&v.precArg)
		} else if n, ok := number(); ok {
			v.prec = n
		}
	}
	for i < len(s) && strings.IndexByte("hlLqjzt", s[i]) >= 0 {
		i++
	}
	if i >= len(s) {
		return verb{text: s}, len(s)
	}
	v.conv = s[i]
	v.text = s[:i+1]
	if strings.IndexByte("diouxXeEfFgGaAcs%", v.conv) < 0 {
		return verb{text: s[:i+1]}, i + 1
	}
	return v, i + 1
}

// sprintf appends what a format makes of values to a text that is from room, or nil.
func (m *machine) sprintf(b []byte, format string, args []value) []byte {
	next := 0
	take := func(at int) value {
		if at > 0 {
			next = max(next, at-1)
			at--
		} else {
			at = next
			next++
		}
		if at >= len(args) {
			m.fatal("not enough arguments to satisfy format string\n\t`%s'", format)
		}
		return args[at]
	}
	for _, v := range m.verbs(format) {
		if v.conv == 0 {
			b = append(m.room(b, len(v.text)), v.text...)
			continue
		}
		if v.starWidth {
			v.width = clampInt(take(v.widthArg).num())
			if v.width < 0 {
				v.minus, v.width = true, -v.width
			}
		}
		if v.starPrec {
			v.prec = max(-1, clampInt(take(v.precArg).num()))
		}
		if v.conv == '%' {
			b = append(m.room(b, 1), '%')
			continue
		}
		n := max(0, v.width, v.prec)
		m.t.Bound("string", int64(len(b)+n), m.t.K.Limits.String)
		m.t.Step(1 + n>>6)
		arg := take(v.arg)
		n += n/3 + longestNumber
		switch {
		case v.conv == 's' && v.prec >= 0:
			n += min(len(arg.s), utf8.UTFMax*v.prec)
		case v.conv == 's':
			n += len(arg.s)
		}
		b = kernel.Room(m.t, "string", m.t.K.Limits.String+int64(n), b, n) // not all of it may be used
		had := cap(b)
		b = m.convert(b, &v, arg)
		m.t.Grow(cap(b) - had) // what was longer than it looked
	}
	m.t.Bound("string", int64(len(b)), m.t.K.Limits.String)
	return b
}

// longestNumber is how long a number is without its padding, with room for what groups its digits.
const longestNumber = 512

func clampInt(n float64) int {
	return int(max(-1<<30, min(1<<30, n)))
}

func (m *machine) convert(b []byte, v *verb, arg value) []byte {
	switch v.conv {
	case 's':
		return m.padString(b, v, m.outStr(arg))
	case 'c':
		arg = arg.resolve()
		switch arg.k {
		case number, numeric:
			var s [8]byte
			v.prec = -1
			return m.padString(b, v, string(m.character(s[:0], math.Trunc(arg.n))))
		case unset:
			return m.padString(b, v, "")
		}
		s := arg.s
		if s != "" {
			s = s[:m.charLen(s)]
		}
		v.prec = -1
		return m.padString(b, v, s)
	case 'd', 'i', 'o', 'u', 'x', 'X':
		n := arg.num()
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return appendSpecial(b, v, n)
		}
		return appendInt(b, v, n)
	}
	return appendFloat(b, v, arg.num())
}

// outStr gives a value as a string for %s, where numbers are as CONVFMT says.
func (m *machine) outStr(v value) string { return m.str(v) }

func (m *machine) padString(b []byte, v *verb, s string) []byte {
	if v.prec >= 0 && v.prec < len(s) {
		s = s[:m.offset(s, v.prec)]
	}
	if v.width <= 0 {
		return append(b, s...)
	}
	pad := v.width - m.chars(s)
	if !v.minus {
		b = spaces(b, pad, ' ')
	}
	b = append(b, s...)
	if v.minus {
		b = spaces(b, pad, ' ')
	}
	return b
}

func spaces(b []byte, n int, c byte) []byte {
	for ; n > 0; n-- {
		b = append(b, c)
	}
	return b
}

func appendSpecial(b []byte, v *verb, n float64) []byte {
	s := "+inf"
	switch {
	case math.IsNaN(n) && math.Signbit(n):
		s = "-nan"
	case math.IsNaN(n):
		s = "+nan"
	case n < 0:
		s = "-inf"
	}
	w := *v
	w.zero = false
	return place(b, &w, "", s)
}

// place pads a number: sign and prefix, then digits.
func place(b []byte, v *verb, sign, digits string) []byte {
	pad := v.width - len(sign) - len(digits)
	switch {
	case pad <= 0:
		return append(append(b, sign...), digits...)
	case v.minus:
		return spaces(append(append(b, sign...), digits...), pad, ' ')
	case v.zero:
		return append(spaces(append(b, sign...), pad, '0'), digits...)
	}
	return append(append(spaces(b, pad, ' '), sign...), digits...)
}

func appendInt(b []byte, v *verb, n float64) []byte {
	n = math.Trunc(n)
	neg := n < 0
	if neg && (v.conv == 'd' || v.conv == 'i') {
		n = -n
	}
	base := 10
	switch v.conv {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
	}
	var digits string
	switch {
	case n < 0 && n >= -1<<63:
		digits = strconv.FormatUint(uint64(int64(n)), base)
	case n < 0:
		// gawk prints what has no unsigned form as a float.
		w := *v
		w.conv = 'f'
		w.prec = 0
		return appendFloat(b, &w, n)
	case n < 1<<63:
		digits = strconv.FormatInt(int64(n), base)
	default:
		i, _ := new(big.Float).SetFloat64(n).Int(nil)
		digits = i.Text(base)
	}
	if v.conv == 'X' {
		digits = strings.ToUpper(digits)
	}
	w := *v
	if v.prec >= 0 {
		w.zero = false
		if v.prec == 0 && n == 0 {
			digits = ""
		}
		if len(digits) < v.prec {
			digits = strings.Repeat("0", v.prec-len(digits)) + digits
		}
	}
	sign := ""
	switch v.conv {
	case 'd', 'i':
		switch {
		case neg:
			sign = "-"
		case v.plus:
			sign = "+"
		case v.space:
			sign = " "
		}
		if v.group {
			digits = thousands(digits)
		}
	case 'o':
		if v.sharp && !strings.HasPrefix(digits, "0") {
			digits = "0" + digits
		}
	case 'x', 'X':
		if v.sharp && n != 0 {
			sign = "0" + string(v.conv)
		}
	}
	return place(b, &w, sign, digits)
}

// thousands would put separators between digits; the C locale has none.
func thousands(s string) string { return s }

// appendFloat appends as C's printf does.
func appendFloat(b []byte, v *verb, n float64) []byte {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return appendSpecial(b, v, n)
	}
	prec := v.prec
	if prec < 0 {
		prec = 6
	}
	sign := ""
	switch {
	case math.Signbit(n):
		sign, n = "-", -n
	case v.plus:
		sign = "+"
	case v.space:
		sign = " "
	}
	var room [64]byte
	var d []byte
	switch v.conv {
	case 'f', 'F':
		d = strconv.AppendFloat(room[:0], n, 'f', prec, 64)
		if v.sharp && prec == 0 {
			d = append(d, '.')
		}
	case 'e', 'E':
		d = strconv.AppendFloat(room[:0], n, 'e', prec, 64)
		if v.sharp && prec == 0 {
			d = append(append([]byte{d[0], '.'}, d[1:]...), ""...)
		}
	case 'g', 'G':
		d = appendG(room[:0], n, prec, v.sharp, false)
	default:
		if v.prec < 0 {
			prec = -1
		}
		d = hexFloat(n, prec)
	}
	digits := string(d)
	if v.conv == 'E' || v.conv == 'G' || v.conv == 'A' || v.conv == 'F' {
		digits = strings.ToUpper(digits)
	}
	if (v.conv == 'a' || v.conv == 'A') && len(digits) > 2 {
		sign += digits[:2]
		digits = digits[2:]
	}
	return place(b, v, sign, digits)
}

// hexFloat writes as %a does: one digit before the point, an exponent of at
// least one digit.
func hexFloat(n float64, prec int) []byte {
	d := strconv.AppendFloat(nil, n, 'x', prec, 64)
	i := bytes.IndexByte(d, 'p')
	if i >= 0 && len(d) == i+4 && d[i+2] == '0' {
		d = append(d[:i+2], d[i+3])
	}
	return d
}

// appendG appends as %g does.
func appendG(b []byte, n float64, prec int, sharp, _ bool) []byte {
	if prec == 0 {
		prec = 1
	}
	if n == 0 {
		if math.Signbit(n) {
			b = append(b, '-')
		}
		b = append(b, '0')
		if sharp && prec > 1 {
			b = spaces(append(b, '.'), prec-1, '0')
		}
		return b
	}
	var room [64]byte
	e := strconv.AppendFloat(room[:0], n, 'e', prec-1, 64)
	at := bytes.LastIndexByte(e, 'e')
	x, _ := strconv.Atoi(string(e[at+1:])) // it is a number: AppendFloat wrote it
	if x < -4 || x >= prec {
		if !sharp {
			return append(append(b, trimZeros(e[:at])...), e[at:]...)
		}
		if prec == 1 {
			return append(append(append(b, e[:at]...), '.'), e[at:]...)
		}
		return append(b, e...)
	}
	from := len(b)
	b = strconv.AppendFloat(b, n, 'f', prec-1-x, 64)
	switch {
	case !sharp:
		return b[:from+len(trimZeros(b[from:]))]
	case prec-1-x == 0:
		return append(b, '.')
	}
	return b
}

// trimZeros takes the zeros off the end of a fraction.
func trimZeros(b []byte) []byte {
	for _, c := range b {
		if c == '.' {
			n := len(b)
			for b[n-1] == '0' {
				n--
			}
			if b[n-1] == '.' {
				n--
			}
			return b[:n]
		}
	}
	return b
}

// upper and lower change the case of letters, and leave other bytes alone.
func mapCase(s string, upper bool) string {
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			return mapRunes(s, upper)
		}
		if upper && c >= 'a' && c <= 'z' || !upper && c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				c := b[i]
				if c >= utf8.RuneSelf {
					return mapRunes(s, upper)
				}
				if upper && c >= 'a' && c <= 'z' || !upper && c >= 'A' && c <= 'Z' {
					b[i] = c ^ 0x20
				}
			}
			return string(b)
		}
	}
	return s
}
