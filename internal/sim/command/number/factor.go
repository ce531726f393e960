package number

import (
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var factorSpec = command.Spec{Name: "factor", Synopsis: "[NUMBER]...", About: "Print the prime factors of each specified integer NUMBER."}

func runFactor(t *kernel.Task) int {
	a, status, ok := factorSpec.Parse(t)
	if !ok {
		return status
	}
	f := &factoring{t: t, w: command.Stdout(t)}
	if len(a.Operands) > 0 {
		for _, s := range a.Operands {
			if !f.show(s) {
				status = 1
			}
		}
		return status
	}
	bad := false
	ok = command.EachFile(t, []string{"-"}, func(_ string, r *command.Reader) {
		for line, ok := r.Record('\n'); ok; line, ok = r.Record('\n') {
			for _, word := range strings.FieldsFunc(string(line), func(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == 0 }) {
				bad = !f.show(word) || bad
			}
		}
	}) == 0
	if bad || !ok {
		return 1
	}
	return 0
}

type factoring struct {
	t *kernel.Task
	w *command.Writer
}

func (f *factoring) show(s string) bool {
	digits := strings.TrimPrefix(strings.TrimLeft(s, " "), "+")
	if !digitsOnly(digits) {
		f.t.Errorf("%s is not a valid positive integer", command.Quote(s))
		return false
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		digits = "0"
	}
	f.w.String(digits + ":")
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		for _, p := range f.small(n) {
			f.w.Bytes(strconv.AppendUint(append(f.w.Space(), ' '), p, 10))
		}
		f.w.Byte('\n')
		return true
	}
	effort(f.t, len(digits)/19, len(digits)/19)
	n, _ := new(big.Int).SetString(digits, 10)
	for _, p := range f.large(n) {
		f.w.String(" " + p.String())
	}
	f.w.Byte('\n')
	return true
}

// small gives the prime factors in order.
func (f *factoring) small(n uint64) []uint64 {
	var list []uint64
	if n < 2 {
		return nil
	}
	for p := uint64(2); p < 1000 && p*p <= n; p++ {
		for n%p == 0 {
			list = append(list, p)
			n /= p
		}
	}
	if n > 1 {
		list = f.split(n, list)
	}
	slices.Sort(list)
	return list
}

func (f *factoring) split(n uint64, list []uint64) []uint64 {
	for n > 1 {
		if n < 1000*1000 || new(big.Int).SetUint64(n).ProbablyPrime(0) {
			return append(list, n)
		}
		d := f.rho(n)
		list = f.split(d, list)
		n /= d
	}
	return list
}

func mulmod(a, b, m uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, r := bits.Div64(hi%m, lo, m)
	return r
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// rho finds a factor of a composite number by Pollard's method, in Brent's
// form.
func (f *factoring) rho(n uint64) uint64 {
	for c := uint64(1); ; c++ {
		step := func(x uint64) uint64 {
			x = mulmod(x, x, n)
			if x >= n-c {
				return x - (n - c)
			}
			return x + c
		}
		x, y, q, g := uint64(2), uint64(2), uint64(1), uint64(1)
		var saved uint64
		for r := 1; g == 1; r *= 2 {
			x = y
			for range r {
				y = step(y)
			}
			for k := 0; k < r && g == 1; k += 128 {
				saved = y
				for range min(128, r-k) {
					y = step(y)
					q = mulmod(q, x-min(x, y)+y-min(x, y), n)
				}
				f.t.Step(128)
				g = gcd(q, n)
			}
		}
		if g == n {
			for g = 1; g == 1; {
				saved = step(saved)
				g = gcd(max(x, saved)-min(x, saved), n)
				f.t.Step(1)
			}
		}
		if g != n && g != 0 {
			return g
		}
	}
}

// large gives the prime factors of a number that is no machine word.
func (f *factoring) large(n *big.Int) []*big.Int {
	var list []*big.Int
	words := len(n.Bits())
	rest := new(big.Int).Set(n)
	var m big.Int
	for p := int64(2); p < 10000; p++ {
		d := big.NewInt(p)
		f.t.Step(1 + words)
		for {
			q, r := new(big.Int).QuoRem(rest, d, &m)
			if r.Sign() != 0 {
				break
			}
			f.t.Step(1 + words)
			list = append(list, d)
			rest = q
		}
	}
	list = f.splitLarge(rest, list)
	slices.SortFunc(list, func(a, b *big.Int) int { return a.Cmp(b) })
	return list
}

func (f *factoring) splitLarge(n *big.Int, list []*big.Int) []*big.Int {
	one := big.NewInt(1)
	for n.Cmp(one) > 0 {
		if n.IsUint64() {
			for _, p := range f.small(n.Uint64()) {
				list = append(list, new(big.Int).SetUint64(p))
			}
			return list
		}
		words := len(n.Bits())
		effort(f.t, words*words, 64*words)
		if n.ProbablyPrime(10) {
			return append(list, n)
		}
		d := f.rhoLarge(n)
		list = f.splitLarge(d, list)
		n = new(big.Int).Quo(n, d)
	}
	return list
}

func (f *factoring) rhoLarge(n *big.Int) *big.Int {
	words := len(n.Bits())
	one := big.NewInt(1)
	for c := int64(1); ; c++ {
		add := big.NewInt(c)
		step := func(x *big.Int) {
			x.Mul(x, x)
			x.Add(x, add)
			x.Mod(x, n)
		}
		x, y, q, g := big.NewInt(2), big.NewInt(2), big.NewInt(1), big.NewInt(1)
		saved, diff := new(big.Int), new(big.Int)
		for r := 1; g.Cmp(one) == 0; r *= 2 {
			x.Set(y)
			for range r {
				step(y)
				f.t.Step(1 + words*words)
			}
			for k := 0; k < r && g.Cmp(one) == 0; k += 128 {
				saved.Set(y)
				for range min(128, r-k) {
					step(y)
					q.Mul(q, diff.Sub(x, y).Abs(diff))
					q.Mod(q, n)
					f.t.Step(16 + 8*words*words)
				}
				g.GCD(nil, nil, q, n)
			}
		}
		if g.Cmp(n) == 0 {
			for g.Set(one); g.Cmp(one) == 0; {
				step(saved)
				f.t.Step(1 + words*words)
				g.GCD(nil, nil, diff.Sub(x, saved).Abs(diff), n)
			}
		}
		if g.Cmp(n) != 0 && g.Sign() != 0 {
			return g
		}
	}
}
