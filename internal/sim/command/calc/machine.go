package calc

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A machine is what a program of bc works on.
type machine struct {
	t *kernel.Task
	e *engine
	w *wrapper

	scale     int
	ibase     int
	obase     *big.Int
	last      *decimal
	vars      map[string]*decimal
	arrays    map[string]*array
	functions map[string]*function
	library   bool // the functions of -l are there

	result *decimal
	calls  int
	held   int64 // elements of arrays
	random *rand.Rand
	input  func() (string, bool) // a line for read()
}

// An array holds what was stored in it.
type array struct{ v map[int64]*decimal }

// A runtime error ends the statements of a line.
type runtimeError struct{ text string }

func fail(format string, args ...any) { panic(runtimeError{fmt.Sprintf(format, args...)}) }

func newMachine(t *kernel.Task, w *wrapper) *machine {
	return &machine{
		t: t, e: &engine{t: t}, w: w, ibase: 10, obase: big.NewInt(10), last: whole(0),
		vars: map[string]*decimal{}, arrays: map[string]*array{}, functions: map[string]*function{},
		random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // random() of bc is for games
	}
}

// value calculates what has to be a value.
func (m *machine) value(x *node) *decimal {
	m.t.Step(1)
	v := x.eval(m)
	if v == nil {
		fail("Void expression with a value")
	}
	return v
}

func (m *machine) show(v *decimal) {
	m.last = v
	m.w.write(m.e.show(v, m.obase) + "\n")
}

func (m *machine) binary(op byte, a, b *decimal) *decimal {
	switch op {
	case '+':
		return m.e.add(a, b)
	case '-':
		return m.e.sub(a, b)
	case '*':
		return m.e.mul(a, b, m.scale)
	case '/':
		if b.n.Sign() == 0 {
			fail("Divide by zero")
		}
		return m.e.div(a, b, m.scale)
	case '%':
		if b.n.Sign() == 0 {
			fail("Modulo by zero")
		}
		_, r := m.e.rem(a, b, m.scale)
		return r
	}
	if b.scale > 0 && m.e.cmp(b, m.e.cut(b, 0)) != 0 {
		m.warn("non-zero scale in exponent")
	}
	n, ok := m.e.int64(b)
	if !ok {
		fail("exponent too large in raise")
	}
	v := m.e.pow(a, n, m.scale)
	if v == nil {
		fail("Divide by zero")
	}
	return v
}

func (m *machine) warn(text string) {
	m.t.Errorf("Runtime warning: %s", text)
}

// size is what a value takes.
func size(v *decimal) int {
	if v == nil {
		return 0
	}
	return 64 + 8*len(v.n.Bits())
}

func (m *machine) keep(old, v *decimal) {
	m.t.Grow(size(v))
	m.t.Shrink(size(old))
}

// index calculates the index of a place; 0 if it has none.
func (m *machine) index(at *place) int64 {
	if at.index == nil {
		return 0
	}
	i, ok := m.e.int64(m.value(at.index))
	if !ok || i < 0 || i > 16777215 {
		fail("Array %s subscript out of bounds.", at.name)
	}
	return i
}

func (m *machine) load(at *place, i int64) *decimal {
	switch at.special {
	case "":
	case "scale":
		return whole(int64(m.scale))
	case "ibase":
		return whole(int64(m.ibase))
	case "obase":
		return &decimal{n: m.obase}
	case "last":
		return m.last
	default:
		return whole(0)
	}
	var v *decimal
	if at.index != nil {
		if a := m.arrays[at.name]; a != nil {
			v = a.v[i]
		}
	} else {
		v = m.vars[at.name]
	}
	if v == nil {
		return whole(0)
	}
	return v
}

func (m *machine) store(at *place, i int64, v *decimal) {
	switch at.special {
	case "scale":
		n, ok := m.e.int64(v)
		switch {
		case v.n.Sign() < 0:
			m.warn("negative scale, set to 0")
			n = 0
		case !ok || n > 2147483647:
			m.warn("scale too large, set to 2147483647")
			n = 2147483647
		}
		m.scale = int(n)
		return
	case "ibase":
		n, ok := m.e.int64(v)
		switch {
		case v.n.Sign() < 0 || ok && n < 2:
			m.warn("ibase too small, set to 2")
			n = 2
		case !ok || n > 36:
			m.warn("ibase too large, set to 36")
			n = 36
		}
		m.ibase = int(n)
		return
	case "obase":
		n, ok := m.e.int64(v)
		switch {
		case v.n.Sign() < 0 || ok && n < 2:
			m.warn("obase too small, set to 2")
			n = 2
		case !ok || n > 2147483647:
			m.warn("obase too large, set to 2147483647")
			n = 2147483647
		}
		m.obase = big.NewInt(n)
		return
	case "last":
		m.last = v
		return
	case "history":
		return
	}
	if at.index == nil {
		m.keep(m.vars[at.name], v)
		m.vars[at.name] = v
		return
	}
	a := m.arrays[at.name]
	if a == nil {
		m.t.Grow(128)
		a = &array{map[int64]*decimal{}}
		m.arrays[at.name] = a
	}
	old, known := a.v[i]
	if !known {
		m.held++
		m.t.Bound("array", m.held, m.t.K.Limits.Array)
		m.t.Grow(64)
	}
	m.keep(old, v)
	a.v[i] = v
}

func (m *machine) builtin(name string, v *decimal) *decimal {
	if name == "length" {
		return whole(int64(m.e.length(v)))
	}
	if v.n.Sign() < 0 {
		fail("Square root of a negative number")
	}
	return m.e.sqrt(v, m.scale)
}

// outside gives what comes from elsewhere.
func (m *machine) outside(name string) *decimal {
	if name == "random" {
		return whole(int64(m.random.Int32()))
	}
	s, ok := m.input()
	if !ok {
		fail("read(): end of input")
	}
	l := &lexer{t: m.t, back: -1, complain: func(string) {}}
	l.get = func() (byte, bool) {
		if s == "" {
			return 0, false
		}
		c := s[0]
		s = s[1:]
		return c, true
	}
	tok := l.token()
	sign := ""
	if tok.kind == "-" {
		sign, tok = "-", l.token()
	}
	if tok.kind != isNumber {
		return whole(0)
	}
	return m.e.parse(sign+tok.text, m.ibase)
}

// call calls a function. Its parameters and automatic variables take the place
// of those of the same name, and give them back.
func (m *machine) call(name string, args []argument) *decimal {
	f := m.functions[name]
	if f == nil {
		if m.library && len(args) > 0 {
			if v, ok := m.math(name, args); ok {
				return v
			}
		}
		fail("Function %s not defined.", name)
	}
	if len(args) != len(f.params) {
		fail("Parameter number mismatch")
	}
	m.calls++
	m.t.Bound("calls", int64(m.calls), m.t.K.Limits.Calls)
	vars, arrays := m.bind(f, args)
	defer m.unbind(vars, arrays)
	m.result = whole(0)
	block(f.body)(m)
	v := m.result
	m.result = nil
	m.calls--
	if f.void {
		return nil
	}
	if v == nil {
		return whole(0)
	}
	return v
}

// unbind gives the names back what bind took away.
func (m *machine) unbind(vars map[string]*decimal, arrays map[string]*array) {
	for n, old := range vars {
		m.vars[n] = old
	}
	for n, old := range arrays {
		if old == nil {
			delete(m.arrays, n)
		} else {
			m.arrays[n] = old
		}
	}
}

// bind gives parameters and automatic variables their values, and what they
// stand in the place of.
func (m *machine) bind(f *function, args []argument) (vars map[string]*decimal, arrays map[string]*array) {
	vars, arrays = map[string]*decimal{}, map[string]*array{}
	type bound struct {
		v *decimal
		a *array
	}
	values := make([]bound, len(args))
	for i, arg := range args {
		switch p := f.params[i]; {
		case p.array != (arg.array != ""):
			fail("Parameter type mismatch, parameter %s.", p.name)
		case p.array:
			a := m.arrays[arg.array]
			if a == nil {
				a = &array{map[int64]*decimal{}}
				m.arrays[arg.array] = a
			}
			if !p.reference {
				copied := make(map[int64]*decimal, len(a.v))
				for k, v := range a.v {
					m.t.Step(1)
					copied[k] = v
				}
				m.held += int64(len(a.v))
				m.t.Bound("array", m.held, m.t.K.Limits.Array)
				a = &array{copied}
			}
			values[i].a = a
		default:
			values[i].v = m.value(arg.x)
		}
	}
	hide := func(p param, b bound) {
		if p.array {
			if _, done := arrays[p.name]; !done {
				arrays[p.name] = m.arrays[p.name]
			}
			if b.a == nil {
				b.a = &array{map[int64]*decimal{}}
			}
			m.arrays[p.name] = b.a
			return
		}
		if _, done := vars[p.name]; !done {
			vars[p.name] = m.vars[p.name]
		}
		m.vars[p.name] = b.v
	}
	for i, p := range f.params {
		hide(p, values[i])
	}
	for _, p := range f.autos {
		b := bound{}
		if !p.array {
			b.v = whole(0)
		}
		hide(p, b)
	}
	return vars, arrays
}

// math is the library of -l.
func (m *machine) math(name string, args []argument) (*decimal, bool) {
	want := 1
	switch name {
	case "s", "c", "a", "l", "e":
	case "j":
		want = 2
	default:
		return nil, false
	}
	if len(args) != want {
		fail("Parameter number mismatch")
	}
	for _, arg := range args {
		if arg.array != "" {
			fail("Parameter type mismatch, parameter x.")
		}
	}
	x := m.value(args[len(args)-1].x)
	m.e.room(2*m.scale + len(x.n.Bits())*20)
	switch name {
	case "s":
		return m.e.sin(x, m.scale, false), true
	case "c":
		return m.e.sin(x, m.scale, true), true
	case "a":
		return m.e.atan(x, m.scale), true
	case "e":
		return m.e.exp(x, m.scale), true
	case "l":
		if x.n.Sign() <= 0 {
			v := m.e.sub(whole(1), &decimal{n: m.e.pow10(m.scale)})
			return &decimal{m.e.at(v, m.scale), m.scale}, true
		}
		return m.e.ln(x, m.scale), true
	}
	n, ok := m.e.int64(m.value(args[0].x))
	if !ok {
		fail("order of j too large")
	}
	return m.e.bessel(n, x, m.scale), true
}
