package jq

// one computes an expression that is single.
func (m *machine) one(n *node, e *env, v value) (value, error) {
	switch n.op {
	case opIdentity:
		return v, nil
	case opLiteral:
		return n.v, nil
	case opField:
		if n.l == nil {
			return m.field(v, n.str)
		}
	case opVar:
		return e.at(n.hops).v, nil
	}
	m.push(v, e)
	r, err := m.oneOf(n, e, v)
	m.pop()
	return r, err
}

func (m *machine) oneOf(n *node, e *env, v value) (value, error) {
	for {
		switch n.op {
		case opPipe:
			x, err := m.one(n.l, e, v)
			if err != nil {
				return nil, err
			}
			v, n = x, n.r
			m.enter(v, e)
			continue
		case opIf:
			c, err := m.one(n.l, e, v)
			if err != nil {
				return nil, err
			}
			if n = n.branch(c); n == nil {
				return v, nil
			}
			continue
		case opBind:
			x, err := m.one(n.l, e, v)
			if err != nil {
				return nil, err
			}
			var next *env
			if err := m.bind(n.pats, e, x, func(e *env) error { next = e; return nil }); err != nil {
				return nil, err
			}
			e, n = next, n.r
			m.enter(v, e)
			continue
		case opDef:
			e = &env{up: e, fn: n.def}
			n = n.l
			m.enter(v, e)
			continue
		}
		return m.simple(n, e, v)
	}
}

// pair computes two operands, the right one first.
func (m *machine) pair(n *node, e *env, v value) (l, r value, err error) {
	if r, err = m.one(n.r, e, v); err != nil {
		return nil, nil, err
	}
	at := len(m.holds)
	m.hold(r)
	l, err = m.one(n.l, e, v)
	m.release(at)
	return l, r, err
}

func (m *machine) simple(n *node, e *env, v value) (value, error) {
	switch n.op {
	case opIdentity:
		return v, nil
	case opLiteral:
		return n.v, nil
	case opVar:
		return e.at(n.hops).v, nil
	case opField:
		x := v
		if n.l != nil {
			var err error
			if x, err = m.one(n.l, e, v); err != nil {
				return nil, err
			}
		}
		return m.field(x, n.str)
	case opIndex:
		k, err := m.one(n.r, e, v)
		if err != nil {
			return nil, err
		}
		x := v
		if n.l != nil {
			if x, err = m.one(n.l, e, v); err != nil {
				return nil, err
			}
		}
		return m.index(x, k)
	case opNegate:
		x, err := m.one(n.l, e, v)
		if err != nil {
			return nil, err
		}
		return negate(m, x)
	case opFormat:
		return m.format(n.str, v)
	case opArray:
		return m.collect(n.l, e, v)
	case opMath:
		l, r, err := m.pair(n, e, v)
		if err != nil {
			return nil, err
		}
		return m.operator(n.str, l, r)
	case opCompare:
		l, r, err := m.pair(n, e, v)
		if err != nil {
			return nil, err
		}
		return m.compared(n.str, l, r)
	case opAnd, opOr:
		l, err := m.one(n.l, e, v)
		if err != nil {
			return nil, err
		}
		if truthy(l) == (n.op == opOr) {
			return n.op == opOr, nil
		}
		r, err := m.one(n.r, e, v)
		return truthy(r), err
	case opObject:
		return m.construct(n.fields, e, v)
	case opUpdate:
		return m.update(n.l, n.r, e, v)
	case opNative:
		var room [3]value
		args := room[:0]
		at := len(m.holds)
		for range n.list {
			args = append(args, nil)
		}
		for i := len(n.list) - 1; i >= 0; i-- {
			x, err := m.one(n.list[i], e, v)
			if err != nil {
				m.release(at)
				return nil, err
			}
			args[i] = x
			m.hold(x)
		}
		m.release(at)
		return n.native.one(m, v, args)
	case opReduce:
		state, err := m.one(n.r, e, v)
		if err != nil {
			return nil, err
		}
		return m.reduce(n, e, v, state)
	}
	// What is left gives its one value the long way.
	var r value
	err := m.general(n, e, v, func(x value) error {
		r = x
		return nil
	})
	return r, err
}

// collect puts all values of an expression into an array.
func (m *machine) collect(n *node, e *env, v value) (value, error) {
	if n == nil {
		return m.list(nil), nil
	}
	a := &array{v: []value{}, depth: 1}
	at := len(m.holds)
	m.hold(a)
	err := m.eval(n, e, v, func(x value) error {
		m.alloc(8)
		if n := len(a.v); n == cap(a.v) {
			// Both are in memory while one is copied to the other.
			size := n + n/4 + 4
			m.alloc(16 * size)
			a.v = append(make([]value, 0, size), a.v...)
		}
		a.v = append(a.v, x)
		a.depth = max(a.depth, depthOf(x)+1)
		return nil
	})
	m.release(at)
	m.deep(a.depth)
	m.alloc(64)
	return a, err
}

// construct makes the one object of a constructor.
func (m *machine) construct(fields []field, e *env, v value) (value, error) {
	t := &table{keys: make([]string, 0, len(fields)), vals: make([]value, 0, len(fields))}
	at := len(m.holds)
	defer func() { m.release(at) }()
	for i := range fields {
		f := &fields[i]
		k, err := m.one(f.key, e, v)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, failf("Object keys must be strings")
		}
		x, err := m.one(f.val, e, v)
		if err != nil {
			return nil, err
		}
		m.hold(x)
		t.put(key, x)
	}
	return m.made(t), nil
}
