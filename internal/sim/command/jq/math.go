package jq

import (
	"math"
	"strings"
)

// numeric finds the functions of numbers.
func numeric(name string, arity int) oneFn {
	switch arity {
	case 0:
		if f := math1(name); f != nil {
			return func(m *machine, v value, _ []value) (value, error) {
				x, ok := number(v)
				if !ok {
					return nil, m.wrongType(v, "number required")
				}
				m.alloc(8)
				return f(x), nil
			}
		}
		return special(name)
	case 2:
		if f := math2(name); f != nil {
			return func(m *machine, _ value, args []value) (value, error) {
				x, ok1 := number(args[0])
				y, ok2 := number(args[1])
				if !ok1 {
					return nil, m.wrongType(args[0], "number required")
				}
				if !ok2 {
					return nil, m.wrongType(args[1], "number required")
				}
				m.alloc(8)
				return f(x, y), nil
			}
		}
	case 3:
		if name == "fma" {
			return func(m *machine, _ value, args []value) (value, error) {
				var f [3]float64
				for i := range f {
					x, ok := number(args[i])
					if !ok {
						return nil, m.wrongType(args[i], "number required")
					}
					f[i] = x
				}
				return math.FMA(f[0], f[1], f[2]), nil
			}
		}
	}
	return nil
}

func math1(name string) func(float64) float64 {
	switch name {
	case "floor":
		return math.Floor
	case "ceil":
		return math.Ceil
	case "round":
		return math.Round
	case "sqrt":
		return math.Sqrt
	case "fabs":
		return math.Abs
	case "trunc":
		return math.Trunc
	case "rint", "nearbyint":
		return math.RoundToEven
	case "sin":
		return math.Sin
	case "cos":
		return math.Cos
	case "tan":
		return math.Tan
	case "asin":
		return math.Asin
	case "acos":
		return math.Acos
	case "atan":
		return math.Atan
	case "sinh":
		return math.Sinh
	case "cosh":
		return math.Cosh
	case "tanh":
		return math.Tanh
	case "asinh":
		return math.Asinh
	case "acosh":
		return math.Acosh
	case "atanh":
		return math.Atanh
	case "exp":
		return math.Exp
	case "exp2":
		return math.Exp2
	case "exp10", "pow10":
		return func(x float64) float64 { return math.Pow(10, x) }
	case "expm1":
		return math.Expm1
	case "log":
		return math.Log
	case "log2":
		return math.Log2
	case "log10":
		return math.Log10
	case "log1p":
		return math.Log1p
	case "logb":
		return math.Logb
	case "cbrt":
		return math.Cbrt
	case "gamma", "lgamma", "lgamma_r":
		return func(x float64) float64 { g, _ := math.Lgamma(x); return g }
	case "tgamma":
		return math.Gamma
	case "j0":
		return math.J0
	case "j1":
		return math.J1
	case "y0":
		return math.Y0
	case "y1":
		return math.Y1
	case "significand":
		return func(x float64) float64 {
			if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
				return x
			}
			f, _ := math.Frexp(x)
			return 2 * f
		}
	}
	return nil
}

func math2(name string) func(x, y float64) float64 {
	switch name {
	case "pow":
		return math.Pow
	case "atan2":
		return math.Atan2
	case "fmod":
		return math.Mod
	case "fmin":
		return func(x, y float64) float64 {
			if math.IsNaN(x) || y < x {
				return y
			}
			return x
		}
	case "fmax":
		return func(x, y float64) float64 {
			if math.IsNaN(x) || y > x {
				return y
			}
			return x
		}
	case "fdim":
		return math.Dim
	case "hypot":
		return math.Hypot
	case "copysign":
		return math.Copysign
	case "nextafter", "nexttoward":
		return math.Nextafter
	case "drem":
		return math.Remainder
	case "ldexp", "scalb", "scalbln":
		return func(x, y float64) float64 { return math.Ldexp(x, int(max(-1<<20, min(1<<20, y)))) }
	}
	return nil
}

func special(name string) oneFn {
	number1 := func(f func(m *machine, x float64) value) oneFn {
		return func(m *machine, v value, _ []value) (value, error) {
			x, ok := number(v)
			if !ok {
				return nil, m.wrongType(v, "number required")
			}
			return f(m, x), nil
		}
	}
	switch name {
	case "infinite":
		return func(*machine, value, []value) (value, error) { return math.Inf(1), nil }
	case "nan":
		return func(*machine, value, []value) (value, error) { return math.NaN(), nil }
	case "isinfinite":
		return number1(func(_ *machine, x float64) value { return math.IsInf(x, 0) })
	case "isnan":
		return number1(func(_ *machine, x float64) value { return math.IsNaN(x) })
	case "isnormal":
		return number1(func(_ *machine, x float64) value {
			return !math.IsNaN(x) && !math.IsInf(x, 0) && math.Abs(x) >= 2.2250738585072014e-308
		})
	case "frexp":
		return number1(func(m *machine, x float64) value {
			f, e := math.Frexp(x)
			return m.list([]value{f, float64(e)})
		})
	case "modf":
		return number1(func(m *machine, x float64) value {
			if math.IsInf(x, 0) {
				return m.list([]value{math.Copysign(0, x), x})
			}
			i, f := math.Modf(x)
			return m.list([]value{f, i})
		})
	case "abs":
		return func(m *machine, v value, _ []value) (value, error) {
			switch x := v.(type) {
			case float64:
				if x < 0 {
					return -x, nil
				}
				return v, nil
			case *literal:
				if x.f < 0 {
					return &literal{-x.f, strings.TrimPrefix(x.text, "-")}, nil
				}
				return v, nil
			}
			return v, nil
		}
	}
	return nil
}
