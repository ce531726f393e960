package encode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// field appends one value, right-aligned.
func (d *dumpType) field(out, b []byte, width int, order binary.ByteOrder) []byte {
	var buf [40]byte
	text := buf[:0]
	switch d.kind {
	case 'a':
		text = append(text, controlName(b[0]&0x7f)...)
	case 'c':
		text = append(text, charName(b[0])...)
	case 'f':
		text = append(text, floatText(b, order)...)
	default:
		var u uint64
		switch d.size {
		case 1:
			u = uint64(b[0])
		case 2:
			u = uint64(order.Uint16(b))
		case 4:
			u = uint64(order.Uint32(b))
		case 8:
			u = order.Uint64(b)
		}
		shift := 64 - 8*d.size
		switch d.kind {
		case 'd':
			text = strconv.AppendInt(text, int64(u<<shift)>>shift, 10)
		case 'u':
			text = strconv.AppendUint(text, u, 10)
		case 'o':
			text = zeroes(text, u, 8, d.width)
		case 'x':
			text = zeroes(text, u, 16, d.width)
		}
	}
	for i := len(text); i < width; i++ {
		out = append(out, ' ')
	}
	return append(out, text...)
}

func zeroes(b []byte, u uint64, base, width int) []byte {
	s := strconv.FormatUint(u, base)
	for i := len(s); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, s...)
}

func controlName(c byte) string {
	const names = "nulsohstxetxeotenqackbel bs ht nl vt ff cr so sidledc1dc2dc3dc4naksynetbcan emsubesc fs gs rs us sp"
	switch {
	case c <= ' ':
		return strings.TrimLeft(names[3*int(c):3*int(c)+3], " ")
	case c == 127:
		return "del"
	}
	return string(rune(c))
}

func charName(c byte) string {
	switch {
	case c == 0:
		return `\0`
	case c >= 7 && c <= 13:
		return `\` + "abtnvfr"[c-7:c-6]
	case c >= ' ' && c < 127:
		return string(rune(c))
	}
	return fmt.Sprintf("%03o", c)
}

// floatText writes a floating point number with as many digits as it takes to
// read it back, at least those that always survive.
func floatText(b []byte, order binary.ByteOrder) string {
	switch len(b) {
	case 4:
		f := math.Float32frombits(order.Uint32(b))
		return shortest(float64(f), 6, 32)
	case 8:
		return shortest(math.Float64frombits(order.Uint64(b)), 15, 64)
	}
	return longDouble(b, order)
}

func shortest(f float64, digits, size int) string {
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0 && math.Signbit(f):
		return "-0"
	}
	if size == 32 && math.Abs(f) < 0x1p-126 || size == 64 && math.Abs(f) < 0x1p-1022 {
		digits = 1
	}
	for ; ; digits++ {
		s := strconv.FormatFloat(f, 'e', digits-1, 64)
		if g, _ := strconv.ParseFloat(s, size); g == f || digits > 40 {
			return general(s, digits)
		}
	}
}

// general makes %g of %e with as many digits.
func general(s string, digits int) string {
	i := strings.IndexByte(s, 'e')
	mantissa, x := s[:i], s[i+1:]
	e, _ := strconv.Atoi(x)
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	all := strings.Replace(mantissa, ".", "", 1)
	if e < -4 || e >= digits {
		frac := strings.TrimRight(all[1:], "0")
		if frac != "" {
			frac = "." + frac
		}
		return fmt.Sprintf("%s%s%se%+03d", sign, all[:1], frac, e)
	}
	if e < 0 {
		return sign + "0." + strings.Repeat("0", -e-1) + strings.TrimRight(all, "0")
	}
	for len(all) <= e {
		all += "0"
	}
	frac := strings.TrimRight(all[e+1:], "0")
	if frac != "" {
		frac = "." + frac
	}
	return sign + all[:e+1] + frac
}

// longDouble shows the 80-bit numbers of x86, in 16 bytes.
func longDouble(b []byte, order binary.ByteOrder) string {
	var le [16]byte
	copy(le[:], b)
	if order.String() == "BigEndian" {
		for i := range le {
			le[i] = b[15-i]
		}
	}
	m := binary.LittleEndian.Uint64(le[:8])
	se := binary.LittleEndian.Uint16(le[8:])
	sign := ""
	if se>>15 != 0 {
		sign = "-"
	}
	e := int(se & 0x7fff)
	switch {
	case e == 0x7fff && m<<1 == 0:
		return sign + "inf"
	case e == 0x7fff, e > 0 && m>>63 == 0:
		return sign + "nan"
	case m == 0:
		return sign + "0"
	}
	digits := 18
	if e == 0 {
		e, digits = 1, 1
	}
	f := new(big.Float).SetPrec(64).SetUint64(m)
	f.SetMantExp(f, e-16383-63)
	for ; ; digits++ {
		s := f.Text('e', digits-1)
		g, _, err := big.ParseFloat(s, 10, uint(bits.Len64(m)), big.ToNearestEven)
		if err != nil || g.Cmp(f) == 0 || digits > 40 {
			return sign + general(s, digits)
		}
	}
}
