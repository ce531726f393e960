package number

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A directive is one of printf's for a floating point number.
type directive struct {
	minus, plus, space, alt, zero, group bool

	width     int
	precision int // -1 is the default
	verb      byte
}

// append formats f.
func (d *directive) append(b []byte, f *big.Float) []byte {
	sign := ""
	switch {
	case f.Signbit():
		sign = "-"
	case d.plus:
		sign = "+"
	case d.space:
		sign = " "
	}
	zero := d.zero && !d.minus
	var text string
	if f.IsInf() {
		text = "inf"
		zero = false
	} else {
		text = d.digits(new(big.Float).Abs(f))
	}
	if d.verb >= 'A' && d.verb <= 'Z' {
		text = strings.ToUpper(text)
	}
	pad := max(0, d.width-len(sign)-len(text))
	switch {
	case d.minus:
		b = append(append(b, sign...), text...)
		return spaces(b, pad)
	case zero:
		b = append(b, sign...)
		if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
			b = append(b, text[:2]...)
			text = text[2:]
		}
		for range pad {
			b = append(b, '0')
		}
		return append(b, text...)
	}
	b = spaces(b, pad)
	return append(append(b, sign...), text...)
}

func spaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

func (d *directive) digits(f *big.Float) string {
	p := d.precision
	verb := d.verb | 0x20
	if p < 0 && verb != 'a' {
		p = 6
	}
	switch verb {
	case 'f':
		text := f.Text('f', p)
		if d.alt && p == 0 {
			text += "."
		}
		return text
	case 'e':
		text := f.Text('e', p)
		if d.alt && p == 0 {
			text = strings.Replace(text, "e", ".e", 1)
		}
		return text
	case 'g':
		return d.general(f, max(p, 1))
	}
	return hexFloat(f, p, d.alt)
}

// general is %g: %e or %f by the exponent, without zeros at the end.
func (d *directive) general(f *big.Float, p int) string {
	text := f.Text('e', p-1)
	i := strings.LastIndexByte(text, 'e')
	x, _ := strconv.Atoi(text[i+1:])
	trim := func(s string) string {
		if !d.alt && strings.IndexByte(s, '.') >= 0 {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if x < -4 || x >= p {
		return trim(text[:i]) + text[i:]
	}
	return trim(f.Text('f', p-1-x))
}

// hexFloat is %a of a long double: its first digit has four bits.
func hexFloat(f *big.Float, p int, alt bool) string {
	if f.Sign() == 0 {
		text := "0x0"
		if p > 0 {
			text += "." + strings.Repeat("0", p)
		} else if alt {
			text += "."
		}
		return text + "p+0"
	}
	if p >= 0 && p < 15 {
		f = new(big.Float).SetPrec(uint(4 + 4*p)).Set(f)
	}
	m := new(big.Float).SetPrec(command.FloatPrecision)
	e := f.MantExp(m) // f = m * 2^e, m in [0.5, 1)
	m.SetMantExp(m, command.FloatPrecision)
	bits, _ := m.Uint64()
	text := strconv.FormatUint(bits, 16)
	frac := text[1:]
	if p >= 0 {
		frac = (frac + strings.Repeat("0", p))[:p]
	} else {
		frac = strings.TrimRight(frac, "0")
	}
	text = "0x" + text[:1]
	if frac != "" || alt {
		text += "." + frac
	}
	e -= 4
	sign := "+"
	if e < 0 {
		sign, e = "-", -e
	}
	return text + "p" + sign + strconv.Itoa(e)
}
