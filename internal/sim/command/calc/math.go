package calc

import "math/big"

// guard is how many digits more than asked for the functions calculate with.
const guard = 12

// A fixed is a number with a fixed number of digits behind the point, for the
// series.
type fixed struct {
	e    *engine
	unit *big.Int
}

func (e *engine) fixed(scale int) *fixed { return &fixed{e, e.pow10(scale)} }

func (f *fixed) mul(a, b *big.Int) *big.Int {
	f.e.cost(len(a.Bits()), len(b.Bits()))
	p := new(big.Int).Mul(a, b)
	return p.Quo(p, f.unit)
}

func (f *fixed) div(a, b *big.Int) *big.Int {
	f.e.cost(len(a.Bits())+len(f.unit.Bits()), len(b.Bits())+1)
	p := new(big.Int).Mul(a, f.unit)
	return p.Quo(p, b)
}

func (f *fixed) small(a *big.Int, n int64) *big.Int {
	f.e.t.Step(1 + len(a.Bits()))
	return new(big.Int).Quo(a, big.NewInt(n))
}

// exp is e^x.
func (e *engine) exp(x *decimal, scale int) *decimal {
	negative := x.n.Sign() < 0
	if negative {
		x = e.neg(x)
	}
	// e^x has about x*0.44 digits before the point.
	power, ok := e.int64(x)
	if !ok || power > 1<<28 {
		if negative {
			return &decimal{new(big.Int), scale}
		}
		e.room(1 << 40)
	}
	digits := int(power)/2 + 1
	e.room(digits + scale)
	halves := 0
	for v := power; v > 0; v >>= 1 {
		halves++
	}
	halves += 4
	f := e.fixed(scale + digits + guard + halves)
	v := e.at(x, scale+digits+guard+halves)
	v = new(big.Int).Rsh(v, uint(halves))
	sum, term := new(big.Int).Set(f.unit), new(big.Int).Set(f.unit)
	for i := int64(1); term.Sign() != 0; i++ {
		term = f.small(f.mul(term, v), i)
		sum.Add(sum, term)
	}
	for range halves {
		sum = f.mul(sum, sum)
	}
	if negative {
		sum = f.div(f.unit, sum)
	}
	return e.cut(&decimal{sum, scale + digits + guard + halves}, scale)
}

// ln is the natural logarithm of what is positive.
func (e *engine) ln(x *decimal, scale int) *decimal {
	work := scale + guard + 8
	// Roots bring it near to 1, and cost half of the digits before the point.
	size := max(0, len(x.n.String())-x.scale)
	work += size/4 + 10
	work = max(work, x.scale+guard)
	f := e.fixed(work)
	v := e.at(x, work)
	times := int64(1)
	low, high := new(big.Int).Quo(new(big.Int).Mul(f.unit, big.NewInt(9)), big.NewInt(10)), new(big.Int).Quo(new(big.Int).Mul(f.unit, big.NewInt(11)), big.NewInt(10))
	if v.Sign() == 0 {
		return whole(0)
	}
	for v.Cmp(low) < 0 || v.Cmp(high) > 0 {
		e.cost(len(v.Bits()), 8*len(v.Bits()))
		v = new(big.Int).Sqrt(new(big.Int).Mul(v, f.unit))
		times *= 2
	}
	y := f.div(new(big.Int).Sub(v, f.unit), new(big.Int).Add(v, f.unit))
	square := f.mul(y, y)
	sum, term := new(big.Int).Set(y), y
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = f.mul(term, square)
		sum.Add(sum, f.small(term, i))
	}
	sum.Mul(sum, big.NewInt(2*times))
	return e.cut(&decimal{sum, work}, scale)
}

// atan of x.
func (e *engine) atan(x *decimal, scale int) *decimal {
	work := max(scale, x.scale) + guard
	f := e.fixed(work)
	return e.cut(&decimal{f.atan(e.at(x, work)), work}, scale)
}

func (f *fixed) atan(v *big.Int) *big.Int {
	negative := v.Sign() < 0
	v = new(big.Int).Abs(v)
	one := f.unit
	var base *big.Int // to subtract the result from, for what is greater than 1
	if v.Cmp(one) > 0 {
		base = f.halfPi()
		v = f.div(one, v)
	}
	// atan x = 2 atan(x / (1 + sqrt(1 + x²)))
	doubles := uint(0)
	limit := f.small(one, 8)
	for v.Cmp(limit) > 0 {
		root := new(big.Int).Sqrt(new(big.Int).Mul(new(big.Int).Add(one, f.mul(v, v)), one))
		f.e.cost(len(root.Bits()), 8*len(root.Bits()))
		v = f.div(v, root.Add(root, one))
		doubles++
	}
	square := f.mul(v, v)
	sum, term := new(big.Int).Set(v), v
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = new(big.Int).Neg(f.mul(term, square))
		sum.Add(sum, f.small(term, i))
	}
	sum.Lsh(sum, doubles)
	if base != nil {
		sum.Sub(base, sum)
	}
	if negative {
		sum.Neg(sum)
	}
	return sum
}

// halfPi is pi/2 by Machin's formula.
func (f *fixed) halfPi() *big.Int {
	inverse := func(n int64) *big.Int {
		term := f.small(f.unit, n)
		sum := new(big.Int).Set(term)
		for i := int64(3); term.Sign() != 0; i += 2 {
			term = f.small(term, -n*n)
			sum.Add(sum, f.small(term, i))
		}
		return sum
	}
	a := inverse(5)
	a.Mul(a, big.NewInt(4))
	a.Sub(a, inverse(239))
	return a.Mul(a, big.NewInt(2))
}

// sin is the sine of x, or with quarter the cosine.
func (e *engine) sin(x *decimal, scale int, quarter bool) *decimal {
	size := max(0, len(x.n.String())-x.scale)
	work := max(scale, x.scale) + guard + size
	e.room(work)
	f := e.fixed(work)
	v := e.at(x, work)
	half := f.halfPi()
	turns := new(big.Int)
	turns.Add(v, f.small(half, 2))
	turns.Div(turns, half)
	rest := new(big.Int).Sub(v, new(big.Int).Mul(turns, half))
	quadrant := new(big.Int).And(turns, big.NewInt(3)).Int64()
	if quarter {
		quadrant = (quadrant + 1) & 3
	}
	square := f.mul(rest, rest)
	term, i := new(big.Int).Set(rest), int64(2)
	if quadrant&1 == 1 {
		term, i = new(big.Int).Set(f.unit), 1
	}
	sum := new(big.Int).Set(term)
	for ; term.Sign() != 0; i += 2 {
		term = new(big.Int).Neg(f.small(f.mul(term, square), i*(i+1)))
		sum.Add(sum, term)
	}
	if quadrant >= 2 {
		sum.Neg(sum)
	}
	return e.cut(&decimal{sum, work}, scale)
}

// bessel is the Bessel function of a whole order.
func (e *engine) bessel(order int64, x *decimal, scale int) *decimal {
	negative := false
	if order < 0 {
		order = -order
		negative = order%2 == 1
	}
	if order > 1<<16 {
		e.room(1 << 40)
	}
	size, _ := e.int64(x)
	if size < 0 {
		size = -size
	}
	e.room(int(min(size, 1<<40)))
	work := scale + guard + int(size) + int(order)/2 + x.scale
	f := e.fixed(work)
	v := e.at(x, work)
	half := f.small(v, 2)
	term := new(big.Int).Set(f.unit)
	for i := int64(1); i <= order; i++ {
		term = f.small(f.mul(term, half), i)
	}
	sum := new(big.Int).Set(term)
	square := f.mul(half, half)
	for i := int64(1); term.Sign() != 0; i++ {
		term = new(big.Int).Neg(f.small(f.small(f.mul(term, square), i), order+i))
		sum.Add(sum, term)
	}
	if negative {
		sum.Neg(sum)
	}
	return e.cut(&decimal{sum, work}, scale)
}
