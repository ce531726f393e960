package jq

import (
	"errors"
)

// eval computes an expression, and gives each of its values to yield. An error
// of yield ends it.
func (m *machine) eval(n *node, e *env, v value, yield yieldFn) error {
	if n.single {
		r, err := m.one(n, e, v)
		if err != nil {
			return err
		}
		return yield(r)
	}
	m.push(v, e)
	err := m.many(n, e, v, yield)
	m.pop()
	return err
}

// enter notes what a tail call goes on with, in place of what is there.
func (m *machine) enter(v value, e *env) {
	m.frames[len(m.frames)-1] = frame{v, e}
	m.t.Step(round)
}

// many is eval of what may have many values. What stands at the end of it is
// computed without going deeper.
func (m *machine) many(n *node, e *env, v value, yield yieldFn) error {
	for {
		if n.single {
			r, err := m.one(n, e, v)
			if err != nil {
				return err
			}
			return yield(r)
		}
		switch n.op {
		case opPipe:
			if n.l.single {
				x, err := m.one(n.l, e, v)
				if err != nil {
					return err
				}
				v, n = x, n.r
				m.enter(v, e)
				continue
			}
			r := n.r
			return m.eval(n.l, e, v, func(x value) error { return m.eval(r, e, x, yield) })
		case opComma:
			if err := m.eval(n.l, e, v, yield); err != nil {
				return err
			}
			n = n.r
			continue
		case opIf:
			if n.l.single {
				c, err := m.one(n.l, e, v)
				if err != nil {
					return err
				}
				if n = n.branch(c); n == nil {
					return yield(v)
				}
				continue
			}
			return m.eval(n.l, e, v, func(c value) error {
				b := n.branch(c)
				if b == nil {
					return yield(v)
				}
				return m.eval(b, e, v, yield)
			})
		case opDef:
			e = &env{up: e, fn: n.def}
			n = n.l
			m.enter(v, e)
			continue
		case opBind:
			if n.l.single && len(n.pats) == 1 && n.pats[0].kind == '$' {
				x, err := m.one(n.l, e, v)
				if err != nil {
					return err
				}
				e = &env{up: e, v: x}
				n = n.r
				m.enter(v, e)
				continue
			}
			return m.eval(n.l, e, v, func(x value) error {
				return m.bind(n.pats, e, x, func(e *env) error { return m.eval(n.r, e, v, yield) })
			})
		case opCall:
			f, base, arg := m.target(n, e)
			if arg != nil {
				n, e = arg, base
				m.enter(v, e)
				continue
			}
			next, simple := m.arguments(f, base, n.list, e)
			if simple {
				n, e = f.body, next
				m.enter(v, e)
				continue
			}
			return m.withValues(f, next, 0, v, func(e *env) error { return m.eval(f.body, e, v, yield) })
		}
		return m.general(n, e, v, yield)
	}
}

func (n *node) branch(c value) *node {
	if truthy(c) {
		return n.r
	}
	return n.x
}

// target finds what a call means: a function and where it was defined, or an
// argument with its env.
func (m *machine) target(n *node, e *env) (f *function, base *env, arg *node) {
	if n.hops < 0 {
		base, _ = n.v.(*env)
		return n.def, base, nil
	}
	at := e.at(n.hops)
	if at.fn != nil {
		return at.fn, at, nil
	}
	return nil, at.argEnv, at.arg
}

// arguments makes the env of a call. simple is that no argument is a value.
func (m *machine) arguments(f *function, base *env, args []*node, e *env) (next *env, simple bool) {
	simple = true
	m.alloc(112 * len(args))
	for i, a := range args {
		from := e
		if a.op == opCall && a.hops >= 0 && len(a.list) == 0 {
			if x := e.at(a.hops); x.arg != nil { // an argument that is passed on
				a, from = x.arg, x.argEnv
			}
		}
		base = &env{up: base, arg: a, argEnv: from}
		if f.params[i][0] == '$' {
			simple = false
		}
	}
	return base, simple
}

// withValues adds the values of parameters like $x, from the i-th on.
func (m *machine) withValues(f *function, e *env, i int, v value, then func(*env) error) error {
	for i < len(f.params) && f.params[i][0] != '$' {
		i++
	}
	if i == len(f.params) {
		return then(e)
	}
	before := 0 // values that stand between e and the argument
	for _, p := range f.params[:i] {
		if p[0] == '$' {
			before++
		}
	}
	a := e.at(before + len(f.params) - 1 - i)
	return m.eval(a.arg, a.argEnv, v, func(x value) error {
		m.alloc(112)
		return m.withValues(f, &env{up: e, v: x}, i+1, v, then)
	})
}

// general computes what neither is single nor ends in another expression.
func (m *machine) general(n *node, e *env, v value, yield yieldFn) error {
	switch n.op {
	case opRecurse:
		return m.recurse(v, yield)
	case opField:
		return m.eval(n.l, e, v, func(x value) error {
			r, err := m.field(x, n.str)
			if err != nil {
				return err
			}
			return yield(r)
		})
	case opNegate:
		return m.eval(n.l, e, v, func(x value) error {
			r, err := negate(m, x)
			if err != nil {
				return err
			}
			return yield(r)
		})
	case opIndex:
		return m.eval(n.r, e, v, func(k value) error {
			return m.term(n.l, e, v, func(x value) error {
				r, err := m.index(x, k)
				if err != nil {
					return err
				}
				return yield(r)
			})
		})
	case opSlice:
		return m.bounds(n, e, v, func(from, to value) error {
			return m.term(n.l, e, v, func(x value) error {
				r, err := m.slice(x, from, to)
				if err != nil {
					return err
				}
				return yield(r)
			})
		})
	case opIterate:
		return m.term(n.l, e, v, func(x value) error { return m.each(x, yield) })
	case opString:
		return m.str(n.list, len(n.list)-1, "", e, v, yield)
	case opObject:
		return m.object(n.fields, &table{}, e, v, yield)
	case opMath:
		return m.eval(n.r, e, v, func(r value) error {
			return m.eval(n.l, e, v, func(l value) error {
				x, err := m.operator(n.str, l, r)
				if err != nil {
					return err
				}
				return yield(x)
			})
		})
	case opCompare:
		return m.eval(n.r, e, v, func(r value) error {
			return m.eval(n.l, e, v, func(l value) error {
				x, err := m.compared(n.str, l, r)
				if err != nil {
					return err
				}
				return yield(x)
			})
		})
	case opAnd, opOr:
		return m.eval(n.l, e, v, func(l value) error {
			if truthy(l) == (n.op == opOr) {
				return yield(n.op == opOr)
			}
			return m.eval(n.r, e, v, func(r value) error { return yield(truthy(r)) })
		})
	case opAlternative:
		return m.alternative(n, e, v, yield)
	case opAssign:
		return m.eval(n.r, e, v, func(x value) error {
			r, err := m.assign(n.l, e, v, func(value) (value, error) { return x, nil })
			if err != nil {
				return err
			}
			return yield(r)
		})
	case opArithmetic:
		return m.eval(n.r, e, v, func(x value) error {
			r, err := m.assign(n.l, e, v, func(old value) (value, error) { return m.operate(n.str, old, x) })
			if err != nil {
				return err
			}
			return yield(r)
		})
	case opTry:
		return m.try(n, e, v, yield)
	case opOptional:
		return m.optional(n.l, e, v, yield)
	case opReduce:
		return m.eval(n.r, e, v, func(state value) error {
			r, err := m.reduce(n, e, v, state)
			if err != nil {
				return err
			}
			return yield(r)
		})
	case opForeach:
		return m.foreach(n, e, v, yield)
	case opLabel:
		label := new(int)
		err := m.eval(n.l, &env{up: e, label: label}, v, yield)
		var b *breakError
		if errors.As(err, &b) && b.label == label {
			return nil
		}
		return err
	case opBreak:
		return &breakError{e.at(n.hops).label}
	case opNative:
		if n.native.gen != nil {
			return n.native.gen(m, n, e, v, yield)
		}
		return m.values(n.list, nil, e, v, func(args []value) error {
			r, err := n.native.one(m, v, args)
			if err != nil {
				return err
			}
			return yield(r)
		})
	}
	panic("jq: unknown expression")
}

// term computes what an index applies to; nil is the input.
func (m *machine) term(n *node, e *env, v value, yield yieldFn) error {
	if n == nil {
		return yield(v)
	}
	return m.eval(n, e, v, yield)
}

// values computes arguments, the last one in the outermost loop.
func (m *machine) values(list []*node, rest []value, e *env, v value, then func([]value) error) error {
	if len(list) == 0 {
		return then(rest)
	}
	last := len(list) - 1
	return m.eval(list[last], e, v, func(x value) error {
		args := append([]value{x}, rest...)
		n := len(m.holds)
		m.hold(x)
		err := m.values(list[:last], args, e, v, then)
		m.release(n)
		return err
	})
}

// bounds computes the ends of a slice.
func (m *machine) bounds(n *node, e *env, v value, then func(from, to value) error) error {
	from := func(yield yieldFn) error {
		if n.x == nil {
			return yield(nil)
		}
		return m.eval(n.x, e, v, yield)
	}
	return from(func(a value) error {
		if n.y == nil {
			return then(a, nil)
		}
		return m.eval(n.y, e, v, func(b value) error { return then(a, b) })
	})
}

func (m *machine) each(x value, yield yieldFn) error {
	switch x := x.(type) {
	case *array:
		for i := range x.len() {
			m.t.Step(1)
			if err := yield(x.own()[i]); err != nil {
				return err
			}
		}
		return nil
	case *object:
		for i := range x.len() {
			m.t.Step(1)
			if err := yield(x.own().vals[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return failf("Cannot iterate over %s", m.describe(x))
}

func (m *machine) recurse(v value, yield yieldFn) error {
	m.push(v, nil)
	defer m.pop()
	if err := yield(v); err != nil {
		return err
	}
	if kind(v) < 5 {
		return nil
	}
	return m.each(v, func(x value) error { return m.recurse(x, yield) })
}

// str joins the parts of a string, the last of them in the outermost loop.
func (m *machine) str(parts []*node, i int, tail string, e *env, v value, yield yieldFn) error {
	if i < 0 {
		return yield(tail)
	}
	return m.eval(parts[i], e, v, func(x value) error {
		s, err := m.join2(m.toString(x), tail)
		if err != nil {
			return err
		}
		return m.str(parts, i-1, s, e, v, yield)
	})
}

func (m *machine) join2(a, b string) (string, error) {
	n := len(a) + len(b)
	m.t.Bound("string", int64(n), m.t.K.Limits.String)
	m.t.Step(n >> 4)
	m.alloc(16 + n)
	return a + b, nil
}

// object makes all objects of a constructor; the first member is in the
// outermost loop.
func (m *machine) object(fields []field, t *table, e *env, v value, yield yieldFn) error {
	if len(fields) == 0 {
		return yield(m.made(t))
	}
	f := &fields[0]
	return m.eval(f.key, e, v, func(k value) error {
		key, ok := k.(string)
		if !ok {
			return failf("Object keys must be strings")
		}
		return m.eval(f.val, e, v, func(x value) error {
			n := len(m.holds)
			m.hold(x)
			next := t.clone()
			m.alloc(48 * (len(t.keys) + 1))
			next.put(key, x)
			err := m.object(fields[1:], next, e, v, yield)
			m.release(n)
			return err
		})
	})
}

// alternative is a // b: the values of a that count as true, or else those of
// b.
func (m *machine) alternative(n *node, e *env, v value, yield yieldFn) error {
	found := false
	err := m.eval(n.l, e, v, func(x value) error {
		if !truthy(x) {
			return nil
		}
		found = true
		if err := yield(x); err != nil {
			return &passedError{err}
		}
		return nil
	})
	var own *jqError
	switch p, passed := err.(*passedError); {
	case passed:
		return p.err
	case found && errors.As(err, &own):
		return nil
	case err != nil && !errors.As(err, &own):
		return err
	case found:
		return nil
	}
	return m.eval(n.r, e, v, yield)
}

func (m *machine) try(n *node, e *env, v value, yield yieldFn) error {
	depth, holds := len(m.frames), len(m.holds)
	err := m.eval(n.l, e, v, func(x value) error {
		if err := yield(x); err != nil {
			return &passedError{err}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	for len(m.frames) > depth {
		m.pop()
	}
	m.release(holds)
	if p, ok := err.(*passedError); ok {
		return p.err
	}
	own, ok := err.(*jqError)
	if !ok {
		return err
	}
	if isBreak(own.v) {
		return nil
	}
	if n.r == nil {
		return nil
	}
	return m.eval(n.r, e, own.v, yield)
}

// optional computes an access whose last step gives nothing where it fails.
func (m *machine) optional(n *node, e *env, v value, yield yieldFn) error {
	give := func(r value, err error) error {
		if _, failed := err.(*jqError); failed {
			return nil
		}
		if err != nil {
			return err
		}
		return yield(r)
	}
	switch n.op {
	case opIndex:
		return m.eval(n.r, e, v, func(k value) error {
			return m.term(n.l, e, v, func(x value) error { return give(m.index(x, k)) })
		})
	case opSlice:
		return m.bounds(n, e, v, func(from, to value) error {
			return m.term(n.l, e, v, func(x value) error { return give(m.slice(x, from, to)) })
		})
	case opIterate:
		return m.term(n.l, e, v, func(x value) error {
			if kind(x) < 5 {
				return nil
			}
			return m.each(x, yield)
		})
	}
	return m.term(n.l, e, v, func(x value) error { return give(m.field(x, n.str)) })
}

// isBreak tells the error that ends a try without its handler.
func isBreak(v value) bool {
	o, ok := v.(*object)
	if !ok {
		return false
	}
	_, ok = o.get("__jq")
	return ok
}

// reduce folds the values of an expression into a state.
func (m *machine) reduce(n *node, e *env, v, state value) (value, error) {
	at := len(m.holds)
	m.hold(state)
	err := m.eval(n.l, e, v, func(x value) error {
		return m.bind(n.pats, e, x, func(e *env) error {
			s := state
			if n.x.single {
				m.holds[at] = nil
				r, err := m.one(n.x, e, s)
				if err != nil {
					return err
				}
				state = r
			} else {
				state = nil
				if err := m.eval(n.x, e, s, func(r value) error {
					state = r
					return nil
				}); err != nil {
					return err
				}
			}
			m.holds[at] = state
			return nil
		})
	})
	m.release(at)
	return state, err
}

func (m *machine) foreach(n *node, e *env, v value, yield yieldFn) error {
	return m.eval(n.r, e, v, func(state value) error {
		at := len(m.holds)
		m.hold(state)
		err := m.eval(n.l, e, v, func(x value) error {
			return m.bind(n.pats, e, x, func(inner *env) error {
				return m.eval(n.x, inner, state, func(r value) error {
					state = r
					m.holds[at] = r
					if n.y == nil {
						return yield(r)
					}
					return m.eval(n.y, inner, r, yield)
				})
			})
		})
		m.release(at)
		return err
	})
}

// bind takes a value apart by a pattern, or by the first of several for which
// what follows has no error.
func (m *machine) bind(list []*pattern, e *env, v value, then func(*env) error) error {
	m.alloc(112)
	if len(list) == 1 {
		return m.match(list[0], e, v, then)
	}
	names := alternatives(list)
	var last error
	for i, p := range list {
		if i == 0 {
			q := *p
			q.list = p.list[1:]
			p = &q
		}
		last = m.match(p, e, v, func(inner *env) error {
			found := map[string]value{}
			x := inner
			for _, name := range p.vars {
				if _, ok := found[name]; !ok {
					found[name] = x.v
				}
				x = x.up
			}
			next := e
			for _, name := range names {
				next = &env{up: next, v: found[name]}
			}
			return then(next)
		})
		var own *jqError
		if last == nil || !errors.As(last, &own) {
			return last
		}
	}
	return last
}

func (m *machine) match(p *pattern, e *env, v value, then func(*env) error) error {
	switch p.kind {
	case '$':
		return then(&env{up: e, v: v})
	case '[':
		if v != nil && kind(v) != 5 {
			return failf("Cannot index %s with number", typeName(v))
		}
		return m.matchList(p.list, 0, e, v, then)
	}
	return m.matchPairs(p.pairs, e, v, then)
}

func (m *machine) matchList(list []*pattern, i int, e *env, v value, then func(*env) error) error {
	if i == len(list) {
		return then(e)
	}
	x, err := m.index(v, float64(i))
	if err != nil {
		return err
	}
	return m.match(list[i], e, x, func(e *env) error { return m.matchList(list, i+1, e, v, then) })
}

func (m *machine) matchPairs(pairs []patternPair, e *env, v value, then func(*env) error) error {
	if len(pairs) == 0 {
		return then(e)
	}
	p := &pairs[0]
	return m.eval(p.key, e, v, func(k value) error {
		if _, ok := k.(string); !ok {
			return failf("Cannot index %s with %s", typeName(v), typeName(k))
		}
		x, err := m.index(v, k)
		if err != nil {
			return err
		}
		inner := e
		if p.name != "" {
			inner = &env{up: e, v: x}
		}
		rest := func(e *env) error { return m.matchPairs(pairs[1:], e, v, then) }
		if p.val == nil {
			return rest(inner)
		}
		return m.match(p.val, inner, x, rest)
	})
}
