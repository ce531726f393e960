package calc

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A decimal is n / 10^scale. It does not change.
type decimal struct {
	n     *big.Int
	scale int
}

func whole(v int64) *decimal { return &decimal{n: big.NewInt(v)} }

func truth(b bool) *decimal {
	if b {
		return whole(1)
	}
	return whole(0)
}

// An engine calculates, and counts what that costs.
type engine struct {
	t     *kernel.Task
	cache []*big.Int // powers of ten
}

// mostScale bounds the digits behind the point, and those of a number.
const mostScale = 1 << 26

// room ends the task if a number would get too many digits.
func (e *engine) room(digits int) {
	e.t.Bound("string", int64(digits), min(e.t.K.Limits.String, mostScale))
}

// cost counts a multiplication or division of numbers of so many words.
func (e *engine) cost(a, b int) {
	const most = 1 << 40
	e.t.Step(1 + int(min(int64(a)*int64(b)>>4, most)))
}

func (e *engine) pow10(n int) *big.Int {
	if n < len(e.cache) && e.cache[n] != nil {
		return e.cache[n]
	}
	e.room(n)
	e.cost(n/19, n/19)
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
	if n < 256 {
		for len(e.cache) <= n {
			e.cache = append(e.cache, nil)
		}
		e.cache[n] = p
	}
	return p
}

// at gives the digits of d with scale digits behind the point; what is behind
// them is cut off.
func (e *engine) at(d *decimal, scale int) *big.Int {
	switch {
	case scale == d.scale:
		return d.n
	case scale > d.scale:
		p := e.pow10(scale - d.scale)
		e.cost(len(d.n.Bits()), len(p.Bits()))
		return new(big.Int).Mul(d.n, p)
	}
	p := e.pow10(d.scale - scale)
	e.cost(len(d.n.Bits()), len(p.Bits()))
	return new(big.Int).Quo(d.n, p)
}

func (e *engine) cut(d *decimal, scale int) *decimal {
	if d.scale <= scale {
		return d
	}
	return &decimal{e.at(d, scale), scale}
}

func (e *engine) add(a, b *decimal) *decimal {
	s := max(a.scale, b.scale)
	e.cost(1, len(a.n.Bits())+len(b.n.Bits()))
	return &decimal{new(big.Int).Add(e.at(a, s), e.at(b, s)), s}
}

func (e *engine) neg(a *decimal) *decimal { return &decimal{new(big.Int).Neg(a.n), a.scale} }

func (e *engine) sub(a, b *decimal) *decimal { return e.add(a, e.neg(b)) }

func (e *engine) mul(a, b *decimal, scale int) *decimal {
	e.cost(len(a.n.Bits()), len(b.n.Bits()))
	e.room((len(a.n.Bits()) + len(b.n.Bits())) * 19)
	p := &decimal{new(big.Int).Mul(a.n, b.n), a.scale + b.scale}
	return e.cut(p, min(p.scale, max(scale, a.scale, b.scale)))
}

// div divides; b is not 0.
func (e *engine) div(a, b *decimal, scale int) *decimal {
	// a.n/10^as / (b.n/10^bs) * 10^scale
	x, y := a.n, b.n
	if k := scale + b.scale - a.scale; k >= 0 {
		x = new(big.Int).Mul(x, e.pow10(k))
	} else {
		y = new(big.Int).Mul(y, e.pow10(-k))
	}
	e.cost(len(x.Bits()), len(y.Bits())+1)
	return &decimal{new(big.Int).Quo(x, y), scale}
}

// rem gives what is left of a division with scale digits; b is not 0.
func (e *engine) rem(a, b *decimal, scale int) (quo, rem *decimal) {
	s := max(a.scale, b.scale+scale)
	quo = e.div(a, b, scale)
	p := &decimal{new(big.Int).Mul(quo.n, b.n), quo.scale + b.scale}
	e.cost(len(quo.n.Bits()), len(b.n.Bits()))
	return quo, e.cut(e.sub(a, p), s)
}

// pow raises to a whole power.
func (e *engine) pow(a *decimal, power int64, scale int) *decimal {
	if power == 0 {
		return whole(1)
	}
	n, negative := power, power < 0
	if negative {
		n = -n
	} else if s := a.scale; n < mostScale && int64(s)*n < int64(max(scale, s)) {
		scale = s * int(n)
	} else {
		scale = max(scale, s)
	}
	bits := a.n.BitLen()
	if bits > 1 || a.scale > 0 {
		digits := int64(max(bits/3, a.scale)+1) * min(n, mostScale)
		e.room(int(min(digits, 1<<40)))
		words := int(min(digits/19, 1<<24))
		e.cost(words, words)
	}
	if bits <= 1 && a.scale == 0 && n > 2 {
		n = 2 - n&1 // of 0, 1 and -1
	}
	p := &decimal{new(big.Int).Exp(a.n, big.NewInt(n), nil), a.scale * int(n)}
	if negative {
		if p.n.Sign() == 0 {
			return nil
		}
		return e.div(whole(1), p, scale)
	}
	return e.cut(p, scale)
}

// sqrt gives the root of what is not negative.
func (e *engine) sqrt(a *decimal, scale int) *decimal {
	s := max(scale, a.scale)
	x := e.at(a, 2*s)
	e.cost(len(x.Bits()), 8*len(x.Bits()))
	return &decimal{new(big.Int).Sqrt(x), s}
}

func (e *engine) cmp(a, b *decimal) int {
	s := max(a.scale, b.scale)
	e.cost(1, len(a.n.Bits())+len(b.n.Bits()))
	return e.at(a, s).Cmp(e.at(b, s))
}

// length counts digits.
func (e *engine) length(a *decimal) int {
	n := len(e.text(a)) - strings.Count(e.text(a), "-") - strings.Count(e.text(a), ".")
	return max(n, 1, a.scale)
}

func (e *engine) text(a *decimal) string {
	e.cost(len(a.n.Bits()), len(a.n.Bits()))
	return a.String()
}

// String writes a decimal as the calculators do: without a zero before the
// point.
func (d *decimal) String() string {
	if d.n.Sign() == 0 {
		return "0"
	}
	s := d.n.String()
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if d.scale == 0 {
		return sign + s
	}
	if len(s) < d.scale {
		s = strings.Repeat("0", d.scale-len(s)) + s
	}
	return sign + s[:len(s)-d.scale] + "." + s[len(s)-d.scale:]
}

// int64 gives the whole part; ok is false if it is too large.
func (e *engine) int64(a *decimal) (n int64, ok bool) {
	x := e.at(a, 0)
	return x.Int64(), x.IsInt64()
}

// parse reads a number in a base: its digits may be greater than the base, and
// are the greatest there is then, but for a number of a single digit.
func (e *engine) parse(s string, base int) *decimal {
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	head, tail, _ := strings.Cut(s, ".")
	e.cost(len(s)/19, len(s)/19)
	if base == 10 && strings.Trim(s, "0123456789.") == "" {
		n, ok := new(big.Int).SetString("0"+head+tail, 10)
		if !ok {
			n = new(big.Int)
		}
		if negative {
			n.Neg(n)
		}
		return &decimal{n, len(tail)}
	}
	b := big.NewInt(int64(base))
	single := len(head)+len(tail) == 1
	digits := func(s string) *big.Int {
		n := new(big.Int)
		for i := range len(s) {
			v := digit(s[i])
			if v >= base && !single {
				v = base - 1
			}
			n.Mul(n, b)
			n.Add(n, big.NewInt(int64(v)))
			e.t.Step(1 + len(n.Bits()))
		}
		return n
	}
	d := &decimal{n: digits(head)}
	if tail != "" {
		f := e.div(&decimal{n: digits(tail)}, &decimal{n: new(big.Int).Exp(b, big.NewInt(int64(len(tail))), nil)}, len(tail))
		d = e.add(d, f)
	}
	if negative {
		d = e.neg(d)
	}
	return d
}

func digit(c byte) int {
	if c >= '0' && c <= '9' {
		return int(c - '0')
	}
	return int(c-'A') + 10
}

// show writes a number in a base. Up to 16 its digits are letters; above, each
// is a number of its own.
func (e *engine) show(d *decimal, base *big.Int) string {
	if base.Cmp(big.NewInt(10)) == 0 || d.n.Sign() == 0 {
		return e.text(d)
	}
	var b strings.Builder
	if d.n.Sign() < 0 {
		b.WriteByte('-')
	}
	letters := base.Cmp(big.NewInt(16)) <= 0
	width := len(new(big.Int).Sub(base, big.NewInt(1)).String())
	put := func(v *big.Int, space bool) {
		if letters {
			b.WriteByte("0123456789ABCDEF"[v.Int64()])
			return
		}
		if space {
			b.WriteByte(' ')
		}
		s := v.String()
		b.WriteString(strings.Repeat("0", width-len(s)) + s)
	}
	abs := new(big.Int).Abs(d.n)
	unit := e.pow10(d.scale)
	head, frac := new(big.Int).QuoRem(abs, unit, new(big.Int))
	var digits []*big.Int
	for words := len(head.Bits()); head.Sign() > 0; words = len(head.Bits()) {
		e.t.Step(1 + words)
		r := new(big.Int)
		head, r = new(big.Int).QuoRem(head, base, r)
		digits = append(digits, r)
		e.room(len(digits))
	}
	for i := len(digits) - 1; i >= 0; i-- {
		put(digits[i], true)
	}
	if d.scale > 0 {
		b.WriteByte('.')
		space := false
		// As many digits as the decimal ones need.
		for power := big.NewInt(1); power.Cmp(unit) < 0; power.Mul(power, base) {
			e.t.Step(1 + len(frac.Bits()))
			frac.Mul(frac, base)
			v, r := new(big.Int).QuoRem(frac, unit, new(big.Int))
			frac = r
			put(v, space)
			space = true
		}
	}
	return b.String()
}

// A wrapper writes text on lines of limited length, as the calculators do with
// long numbers.
type wrapper struct {
	width  int // 0 is no limit
	column int
	out    func(string)
}

func (w *wrapper) write(s string) {
	if w.width == 0 {
		w.out(s)
		return
	}
	start := 0
	for i := range len(s) {
		if s[i] == '\n' {
			w.column = 0
			continue
		}
		w.column++
		if w.column == w.width-1 {
			w.out(s[start:i] + "\\\n")
			start, w.column = i, 1
		}
	}
	w.out(s[start:])
}

// lineLength reads the length of lines from the environment.
func lineLength(t *kernel.Task, name string) int {
	s := t.Getenv(name)
	if s == "" {
		return 70
	}
	n, err := strconv.Atoi(s)
	if err != nil || n != 0 && n < 3 {
		return 70
	}
	return n
}
