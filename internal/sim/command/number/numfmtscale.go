package number

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// rounded rounds to an integer.
func (n *numfmt) rounded(v *big.Float) *big.Float {
	whole, _ := v.Int(nil)
	w := new(big.Float).SetPrec(command.FloatPrecision).SetInt(whole)
	c := v.Cmp(w)
	up := false
	switch n.round {
	case "up":
		up = c > 0
	case "down":
		if c < 0 {
			return w.Sub(w, long(1))
		}
	case "from-zero":
		if c < 0 {
			return w.Sub(w, long(1))
		}
		up = c > 0
	case "nearest":
		d := new(big.Float).SetPrec(command.FloatPrecision).Sub(v, w)
		if d.Sign() < 0 && d.Cmp(long(-0.5)) <= 0 {
			return w.Sub(w, long(1))
		}
		up = d.Sign() > 0 && d.Cmp(long(0.5)) >= 0
	}
	if up {
		w.Add(w, long(1))
	}
	if w.Sign() == 0 && v.Signbit() {
		w.Neg(w)
	}
	return w
}

// exponent divides by base until what is left is smaller.
func exponent(v *big.Float, base float64) (*big.Float, int) {
	x := new(big.Float).SetPrec(command.FloatPrecision).Set(v)
	abs, b := new(big.Float), long(base)
	power := 0
	for abs.Abs(x).Cmp(b) >= 0 && power < 6000 {
		power++
		x.Quo(x, b)
	}
	return x, power
}

func (n *numfmt) format(v *big.Float, precision int) (string, error) {
	if n.precision >= 0 {
		precision = n.precision
	}
	_, x := exponent(v, 10)
	g := &directive{precision: -1, verb: 'g'}
	switch {
	case n.to == "none" && x+precision > mostUnscaled && precision > 0:
		return "", fmt.Errorf("value/precision too large to be printed: '%s/%d' (consider using --to)", g.append(nil, v), precision)
	case n.to == "none" && x+precision > mostUnscaled:
		return "", fmt.Errorf("value too large to be printed: '%s' (consider using --to)", g.append(nil, v))
	case x > mostDigits-1:
		return "", fmt.Errorf("value too large to be printed: '%s' (cannot handle values > 999Y)", g.append(nil, v))
	}
	text := n.human(v, precision) + n.suffix
	if pad := n.width - len(text); pad > 0 {
		if n.left {
			text += strings.Repeat(" ", pad)
		} else {
			text = strings.Repeat(" ", pad) + text
		}
	}
	return n.before + text + n.after, nil
}

func (n *numfmt) human(v *big.Float, precision int) string {
	d := &directive{zero: n.zeros > 0, width: n.zeros, precision: precision, verb: 'f'}
	if n.to == "none" {
		p := power10(precision)
		v.Mul(v, p)
		v = n.rounded(v)
		return string(d.append(nil, v.Quo(v, p)))
	}
	base := 1024.0
	if n.to == "si" {
		base = 1000
	}
	v, power := exponent(v, base)
	abs := new(big.Float)
	adjust := 0
	switch {
	case n.precision >= 0:
		adjust = min(power*3, n.precision)
	case abs.Abs(v).Cmp(long(10)) < 0:
		adjust = 1
	}
	p := power10(adjust)
	v.Mul(v, p)
	v = n.rounded(v)
	v.Quo(v, p)
	if abs.Abs(v).Cmp(long(base)) >= 0 {
		v.Quo(v, long(base))
		power++
	}
	d.precision = 0
	switch {
	case n.precision >= 0:
		d.precision = n.precision
	case v.Sign() != 0 && abs.Abs(v).Cmp(long(10)) < 0 && power > 0:
		d.precision = 1
	}
	text := string(d.append(nil, v))
	if power > 0 {
		text += "KMGTPEZY"[min(power, 8)-1 : min(power, 8)]
		if n.to == "iec-i" {
			text += "i"
		}
	}
	return text
}
