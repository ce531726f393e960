package jq

import (
	"errors"
	"math"
	"slices"
)

// A step is the last step of a path, and those before it.
type step struct {
	up  *step
	key value
}

// list gives a path as an array's elements.
func (s *step) list() []value {
	n := 0
	for x := s; x != nil; x = x.up {
		n++
	}
	list := make([]value, n)
	for x := s; x != nil; x = x.up {
		n--
		list[n] = x.key
	}
	return list
}

// A pathValue is a value that a path expression gives, and where it was found.
type pathValue struct {
	at    *step
	v     value
	loose bool // it was computed, and has no place
}

func (m *machine) badPath(p pathValue) error {
	return failf("Invalid path expression with result %s", m.excerpt(p.v))
}

// down goes one step further.
func (m *machine) go1(p pathValue, key, v value) (pathValue, error) {
	m.alloc(48)
	return pathValue{at: &step{p.at, key}, v: v}, nil
}

// paths computes a path expression.
func (m *machine) paths(n *node, e *env, p pathValue, yield pathFn) error {
	m.push(p.v, e)
	err := m.path(n, e, p, yield)
	m.pop()
	return err
}

// near computes the term of an index.
func (m *machine) near(n *node, e *env, p pathValue, yield pathFn) error {
	if n == nil {
		return yield(p)
	}
	return m.paths(n, e, p, yield)
}

func (m *machine) path(n *node, e *env, p pathValue, yield pathFn) error {
	switch n.op {
	case opIdentity:
		return yield(p)
	case opRecurse:
		return m.recursePaths(p, yield)
	case opField:
		return m.near(n.l, e, p, func(x pathValue) error { return m.stepTo(x, n.str, yield) })
	case opIndex:
		return m.eval(n.r, e, p.v, func(k value) error {
			return m.near(n.l, e, p, func(x pathValue) error { return m.stepTo(x, k, yield) })
		})
	case opSlice:
		return m.bounds(n, e, p.v, func(from, to value) error {
			return m.near(n.l, e, p, func(x pathValue) error {
				if x.loose {
					return m.badAccess(x, "element")
				}
				v, err := m.slice(x.v, from, to)
				if err != nil {
					return err
				}
				t := &table{}
				t.put("start", from)
				t.put("end", to)
				next, err := m.go1(x, m.made(t), v)
				if err != nil {
					return err
				}
				return yield(next)
			})
		})
	case opIterate:
		return m.near(n.l, e, p, func(x pathValue) error { return m.eachPath(x, yield) })
	case opPipe:
		return m.paths(n.l, e, p, func(x pathValue) error { return m.paths(n.r, e, x, yield) })
	case opComma:
		if err := m.paths(n.l, e, p, yield); err != nil {
			return err
		}
		return m.paths(n.r, e, p, yield)
	case opIf:
		return m.eval(n.l, e, p.v, func(c value) error {
			b := n.branch(c)
			if b == nil {
				return yield(p)
			}
			return m.paths(b, e, p, yield)
		})
	case opAlternative:
		return m.alternativePath(n, e, p, yield)
	case opTry:
		return m.tryPath(n, e, p, yield)
	case opOptional:
		return m.optionalPath(n.l, e, p, yield)
	case opDef:
		return m.paths(n.l, &env{up: e, fn: n.def}, p, yield)
	case opBind:
		return m.eval(n.l, e, p.v, func(x value) error {
			if len(n.pats) == 1 && n.pats[0].kind != '$' && m.yq == nil {
				return m.noParts(n.pats[0], e, x)
			}
			return m.bind(n.pats, e, x, func(e *env) error { return m.paths(n.r, e, p, yield) })
		})
	case opCall:
		f, base, arg := m.target(n, e)
		if arg != nil {
			return m.paths(arg, base, p, yield)
		}
		next, simple := m.arguments(f, base, n.list, e)
		if simple {
			return m.paths(f.body, next, p, yield)
		}
		return m.withValues(f, next, 0, p.v, func(e *env) error { return m.paths(f.body, e, p, yield) })
	case opReduce:
		return m.paths(n.r, e, p, func(state pathValue) error {
			s := &state
			err := m.eval(n.l, e, p.v, func(x value) error {
				return m.bind(n.pats, e, x, func(e *env) error {
					if s == nil {
						s = &pathValue{}
					}
					from := *s
					s = nil
					return m.paths(n.x, e, from, func(r pathValue) error {
						s = &r
						return nil
					})
				})
			})
			if err != nil || s == nil {
				return err
			}
			return yield(*s)
		})
	case opForeach:
		return m.paths(n.r, e, p, func(state pathValue) error {
			return m.eval(n.l, e, p.v, func(x value) error {
				return m.bind(n.pats, e, x, func(inner *env) error {
					return m.paths(n.x, inner, state, func(r pathValue) error {
						state = r
						if n.y == nil {
							return yield(r)
						}
						return m.paths(n.y, inner, r, yield)
					})
				})
			})
		})
	case opLabel:
		label := new(int)
		err := m.paths(n.l, &env{up: e, label: label}, p, yield)
		var b *breakError
		if errors.As(err, &b) && b.label == label {
			return nil
		}
		return err
	case opBreak:
		return &breakError{e.at(n.hops).label}
	case opNative:
		if n.native.path != nil {
			return n.native.path(m, n, e, p, yield)
		}
	}
	if m.yq != nil {
		if done, err := m.yq.path(n, e, p, yield); done {
			return err
		}
	}
	// What is computed has a place only if it is what was there.
	return m.eval(n, e, p.v, func(x value) error {
		if !p.loose && (same(x, p.v) || n.op == opNative && unchanged(n.native.name, x, p.v)) {
			return yield(p)
		}
		return yield(pathValue{v: x, loose: true})
	})
}

// same reports whether two values are the very same.
func same(a, b value) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case *array:
		y, ok := b.(*array)
		return ok && x == y
	case *object:
		y, ok := b.(*object)
		return ok && x == y
	}
	return false
}

// unchanged reports whether a function that gives its input back, where there
// is nothing to do, has done so: jq takes that for the input itself.
func unchanged(name string, a, b value) bool {
	switch name {
	case "tostring", "tonumber", "abs", "ltrimstr", "rtrimstr", "trimstr", "ltrim", "rtrim", "trim":
	default:
		return false
	}
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return ok && x == y
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	return ok1 && ok2 && x == y
}

func (m *machine) badAccess(p pathValue, what string) error {
	return failf("Invalid path expression near attempt to access %s of %s", what, m.excerpt(p.v))
}

// noParts tells that a path expression cannot take a value apart by a pattern:
// to jq, what the pattern reads would be steps of the path.
func (m *machine) noParts(p *pattern, e *env, v value) error {
	at := pathValue{v: v}
	if p.kind == '[' {
		return m.badAccess(at, "element "+m.excerpt(float64(len(p.list)-1)))
	}
	return m.eval(p.pairs[0].key, e, v, func(k value) error {
		return m.badAccess(at, "element "+m.excerpt(k))
	})
}

func (m *machine) stepTo(p pathValue, k value, yield pathFn) error {
	if p.loose {
		return m.badAccess(p, "element "+m.excerpt(k))
	}
	v, err := m.index(p.v, k)
	if err != nil {
		return err
	}
	next, err := m.go1(p, k, v)
	if err != nil {
		return err
	}
	return yield(next)
}

func (m *machine) eachPath(p pathValue, yield pathFn) error {
	if p.loose && kind(p.v) >= 5 {
		return failf("Invalid path expression near attempt to iterate through %s", m.excerpt(p.v))
	}
	m.alloc(48)
	switch x := p.v.(type) {
	case *array:
		for i := range x.len() {
			m.t.Step(1)
			m.alloc(48)
			if err := yield(pathValue{at: &step{p.at, float64(i)}, v: x.own()[i]}); err != nil {
				return err
			}
		}
		return nil
	case *object:
		for i := range x.len() {
			m.t.Step(1)
			m.alloc(64)
			t := x.own()
			if err := yield(pathValue{at: &step{p.at, t.keys[i]}, v: t.vals[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	return failf("Cannot iterate over %s", m.describe(p.v))
}

func (m *machine) recursePaths(p pathValue, yield pathFn) error {
	m.push(p.v, nil)
	defer m.pop()
	if err := yield(p); err != nil {
		return err
	}
	if kind(p.v) < 5 {
		return nil
	}
	return m.eachPath(p, func(x pathValue) error { return m.recursePaths(x, yield) })
}

func (m *machine) alternativePath(n *node, e *env, p pathValue, yield pathFn) error {
	found := false
	err := m.paths(n.l, e, p, func(x pathValue) error {
		if !truthy(x.v) {
			return nil
		}
		found = true
		if err := yield(x); err != nil {
			return &passedError{err}
		}
		return nil
	})
	var own *jqError
	switch q, passed := err.(*passedError); {
	case passed:
		return q.err
	case err != nil && !errors.As(err, &own):
		return err
	case found:
		return nil
	}
	return m.paths(n.r, e, p, yield)
}

func (m *machine) tryPath(n *node, e *env, p pathValue, yield pathFn) error {
	err := m.paths(n.l, e, p, func(x pathValue) error {
		if err := yield(x); err != nil {
			return &passedError{err}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if q, ok := err.(*passedError); ok {
		return q.err
	}
	own, ok := err.(*jqError)
	if !ok {
		return err
	}
	if n.r == nil || isBreak(own.v) {
		return nil
	}
	return m.eval(n.r, e, own.v, func(x value) error { return yield(pathValue{v: x, loose: true}) })
}

// optionalPath is path of an access whose last step gives nothing where it fails.
func (m *machine) optionalPath(n *node, e *env, p pathValue, yield pathFn) error {
	try := func(last *node, e *env, x pathValue) error {
		return m.tryPath(&node{op: opTry, l: last}, e, x, yield)
	}
	switch n.op {
	case opIndex:
		return m.eval(n.r, e, p.v, func(k value) error {
			return m.near(n.l, e, p, func(x pathValue) error {
				return try(&node{op: opIndex, r: &node{op: opLiteral, single: true, v: k}}, e, x)
			})
		})
	case opSlice:
		return m.bounds(n, e, p.v, func(from, to value) error {
			return m.near(n.l, e, p, func(x pathValue) error {
				return try(&node{op: opSlice, x: &node{op: opLiteral, single: true, v: from}, y: &node{op: opLiteral, single: true, v: to}}, e, x)
			})
		})
	case opIterate:
		return m.near(n.l, e, p, func(x pathValue) error { return try(&node{op: opIterate}, e, x) })
	}
	return m.near(n.l, e, p, func(x pathValue) error { return try(&node{op: opField, str: n.str}, e, x) })
}

// allPaths gives the paths of an expression.
func (m *machine) allPaths(n *node, e *env, v value, yield func([]value) error) error {
	if m.yq != nil {
		m.yq.strict++
		defer func() { m.yq.strict-- }()
	}
	return m.paths(n, e, pathValue{v: v}, func(p pathValue) error {
		if p.loose {
			return m.badPath(p)
		}
		return yield(p.at.list())
	})
}

// assign replaces what is at the paths.
func (m *machine) assign(n *node, e *env, v value, f func(value) (value, error)) (value, error) {
	at := len(m.holds)
	m.hold(v)
	state := v
	err := m.allPaths(n, e, v, func(path []value) error {
		old, err := m.getpath(state, path)
		if err != nil {
			return err
		}
		x, err := f(old)
		if err != nil {
			return err
		}
		m.hold(x)
		state, err = m.setpath(state, path, x)
		m.release(at + 1)
		m.holds[at] = state
		return err
	})
	m.release(at)
	return state, err
}

// update is |=: each place gets the first value that the expression has for
// what is there; places that get none go.
func (m *machine) update(l, r *node, e *env, v value) (value, error) {
	at := len(m.holds)
	m.hold(v)
	state := v
	var gone []value
	err := m.allPaths(l, e, v, func(path []value) error {
		old, err := m.getpath(state, path)
		if err != nil {
			return err
		}
		found := false
		var x value
		err = m.eval(r, e, old, func(y value) error {
			x, found = y, true
			return errStop
		})
		if err != nil && !errors.Is(err, errStop) {
			return unpass(err)
		}
		if !found {
			gone = append(gone, m.list(path))
			return nil
		}
		state, err = m.setpath(state, path, x)
		m.holds[at] = state
		return err
	})
	m.release(at)
	if err == nil && len(gone) > 0 {
		state, err = m.delpaths(state, gone)
	}
	return state, err
}

// unpass gives what is in a passedError.
func unpass(err error) error {
	if p, ok := err.(*passedError); ok {
		return p.err
	}
	return err
}

func (m *machine) getpath(v value, path []value) (value, error) {
	if len(path) > tooDeep {
		return nil, failf("Path too deep")
	}
	for _, k := range path {
		if v == nil {
			return nil, nil
		}
		var err error
		if v, err = m.index(v, k); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (m *machine) setpath(v value, path []value, x value) (value, error) {
	if len(path) == 0 {
		return x, nil
	}
	if len(path) > tooDeep {
		return nil, failf("Path too deep")
	}
	m.push(v, nil)
	defer m.pop()
	k := path[0]
	old, err := m.index(v, k)
	if err != nil {
		return nil, err
	}
	inner, err := m.setpath(old, path[1:], x)
	if err != nil {
		return nil, err
	}
	return m.setKey(v, k, inner)
}

// setKey puts a value at one step.
func (m *machine) setKey(v, k, x value) (value, error) {
	if m.yq != nil {
		var err error
		if k, err = yqKey(v, k); err != nil {
			return nil, err
		}
	}
	switch k := k.(type) {
	case string:
		switch o := v.(type) {
		case nil:
			t := &table{}
			t.put(k, x)
			return m.made(t), nil
		case *object:
			return m.set(o, k, x), nil
		}
	case float64, *literal:
		f, _ := number(k)
		switch a := v.(type) {
		case nil:
			return m.setIndex(&array{v: []value{}, depth: 1}, f, x)
		case *array:
			return m.setIndex(a, f, x)
		}
	case *object:
		if v == nil || kind(v) == 5 {
			return m.setSlice(v, k, x)
		}
		if kind(v) == 4 {
			return nil, failf("Cannot update string slices")
		}
		return nil, failf("Cannot update field at object index of %s", typeName(v))
	case *array:
		if v == nil || kind(v) == 5 {
			return nil, failf("Cannot update field at array index of array")
		}
	}
	return nil, m.cannotIndex(v, k)
}

func (m *machine) setIndex(a *array, f float64, x value) (value, error) {
	if math.IsNaN(f) {
		return nil, failf("Cannot set array element at NaN index")
	}
	n := a.len()
	i := math.Trunc(f)
	if i < 0 {
		i += float64(n)
		if i < 0 {
			return nil, failf("Out of bounds negative array index")
		}
	}
	if i > 536870911 {
		return nil, failf("Array index too large")
	}
	at := int(i)
	if at > n {
		m.t.Bound("array", int64(at), max(m.t.K.Limits.Array, int64(n)))
		a = m.extend(a, make([]value, at-n))
	}
	return m.with(a, at, x), nil
}

// ends reads the ends of a slice of so many elements.
func ends(n int, from, to value) (int, int, bool) {
	a, b := 0.0, float64(n)
	if from != nil {
		f, ok := number(from)
		if !ok {
			return 0, 0, false
		}
		if !math.IsNaN(f) {
			a = f
		}
	}
	if to != nil {
		f, ok := number(to)
		if !ok {
			return 0, 0, false
		}
		if !math.IsNaN(f) {
			b = f
		}
	}
	if a < 0 {
		a += float64(n)
	}
	if b < 0 {
		b += float64(n)
	}
	a = min(max(math.Floor(a), 0), float64(n))
	b = min(max(math.Ceil(b), a), float64(n))
	return int(a), int(b), true
}

func (m *machine) setSlice(v value, k *object, x value) (value, error) {
	list, _ := v.(*array)
	if list == nil {
		list = &array{v: []value{}, depth: 1}
	}
	with, ok := x.(*array)
	if !ok {
		return nil, failf("A slice of an array can only be assigned another array")
	}
	from, _ := k.get("start")
	to, _ := k.get("end")
	a, b, ok := ends(list.len(), from, to)
	if !ok {
		return nil, failf("Start and end indices of an array slice must be numbers")
	}
	if b-a == with.len() && b-a < list.len()/2 {
		for i, y := range slices.Clone(with.own()) {
			m.t.Step(1)
			list = m.with(list, a+i, y)
		}
		return list, nil
	}
	old := list.own()
	m.t.Step(len(old) >> 3)
	n := make([]value, 0, len(old)-(b-a)+with.len())
	n = append(n, old[:a]...)
	n = append(n, with.own()...)
	return m.list(append(n, old[b:]...)), nil
}

// delpaths deletes what is at paths, the last ones first, and those that are
// of the same place together: indexes count in what was there before.
func (m *machine) delpaths(v value, paths []value) (value, error) {
	list := slices.Clone(paths)
	for _, p := range list {
		a, ok := p.(*array)
		if !ok {
			return nil, failf("Path must be specified as an array")
		}
		if a.len() > tooDeep {
			return nil, failf("Path too deep")
		}
	}
	slices.SortStableFunc(list, m.compare)
	for i := len(list) - 1; i >= 0; {
		a, _ := list[i].(*array)
		path := a.own()
		if len(path) == 0 {
			return nil, nil
		}
		parent := path[:len(path)-1]
		keys := []value{path[len(path)-1]}
		for i--; i >= 0; i-- {
			b, _ := list[i].(*array)
			other := b.own()
			if len(other) != len(path) || !slices.EqualFunc(other[:len(other)-1], parent, func(x, y value) bool { return m.compare(x, y) == 0 }) {
				break
			}
			keys = append(keys, other[len(other)-1])
		}
		var err error
		if v, err = m.delpath(v, parent, keys); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (m *machine) delpath(v value, path, keys []value) (value, error) {
	if v == nil {
		return nil, nil
	}
	if len(path) == 0 {
		return m.delKeys(v, keys)
	}
	m.push(v, nil)
	defer m.pop()
	old, err := m.index(v, path[0])
	if err != nil {
		return nil, err
	}
	if old == nil {
		return v, nil
	}
	inner, err := m.delpath(old, path[1:], keys)
	if err != nil {
		return nil, err
	}
	return m.setKey(v, path[0], inner)
}

// delKeys deletes members or elements.
func (m *machine) delKeys(v value, keys []value) (value, error) {
	switch x := v.(type) {
	case *object:
		gone := map[string]bool{}
		for _, k := range keys {
			key, ok := k.(string)
			if !ok {
				return nil, failf("Cannot delete %s field of object", typeName(k))
			}
			if _, there := x.get(key); there {
				gone[key] = true
			}
		}
		if len(gone) == 0 {
			return v, nil
		}
		m.t.Step(x.len() >> 3)
		return m.without(x, func(s string) bool { return gone[s] }), nil
	case *array:
		return m.delElements(x, keys)
	}
	if _, ok := keys[0].(string); ok {
		return nil, failf("Cannot delete field at object index of %s", typeName(v))
	}
	return nil, failf("Cannot delete field at array index of %s", typeName(v))
}

func (m *machine) delElements(x *array, keys []value) (value, error) {
	n := x.len()
	m.alloc(n)
	gone := make([]bool, n)
	any := false
	for _, k := range keys {
		switch k := k.(type) {
		case float64, *literal:
			f, _ := number(k)
			i := math.Trunc(f) // as jq has it, that of -0.5 is the end
			if f < 0 {
				i += float64(n)
			}
			if i >= 0 && i < float64(n) {
				gone[int(i)], any = true, true
			}
		case *object:
			from, _ := k.get("start")
			to, _ := k.get("end")
			a, b, ok := ends(n, from, to)
			if !ok {
				return nil, failf("Start and end indices of an array slice must be numbers")
			}
			for i := a; i < b; i++ {
				gone[i], any = true, true
			}
		default:
			return nil, failf("Cannot delete %s element of array", typeName(k))
		}
	}
	if !any {
		return x, nil
	}
	m.t.Step(n >> 3)
	list := make([]value, 0, n)
	for i, y := range x.own() {
		if !gone[i] {
			list = append(list, y)
		}
	}
	a := m.list(list)
	a.from = x.from
	return a, nil
}
