package awk

import (
	"strconv"
	"strings"
)

// A cell is a variable or an element: a scalar, an array, or something that is
// not decided yet.
type cell struct {
	v   value
	arr *array
	ref *cell // of a parameter: what it was given was neither; it may become an array
	own bool  // the array ends with the cell
}

// An element is one of an array.
type element struct {
	cell
	key     string
	deleted bool
}

// An array keeps its elements in the order in which they came.
type array struct {
	m     map[string]*element
	order []*element
	gone  int // deleted ones in order
}

// weight is what an element costs besides its key and value.
const weight = 176

func newArray() *array { return &array{m: map[string]*element{}} }

func (a *array) len() int {
	if a == nil {
		return 0
	}
	return len(a.m)
}

// get gives an element, and makes it if there is none.
func (m *machine) get(a *array, key string) *element {
	e, ok := a.m[key]
	if !ok {
		e = m.add(a, strings.Clone(key))
	}
	return e
}

// getKey is get of the key that m.key holds.
func (m *machine) getKey(a *array) *element {
	e, ok := a.m[string(m.key)]
	if !ok {
		e = m.add(a, string(m.key))
	}
	return e
}

func (m *machine) add(a *array, key string) *element {
	m.t.Bound("array", int64(len(a.m)), m.t.K.Limits.Array)
	m.count(weight + len(key))
	e := &element{key: key}
	a.m[key] = e
	a.order = append(a.order, e)
	return e
}

// numKey puts a number as a subscript into m.key.
func (m *machine) numKey(n float64) {
	if i, ok := integral(n); ok {
		m.key = strconv.AppendInt(m.key[:0], i, 10)
		return
	}
	m.key = m.appendNumber(m.key[:0], n, m.convfmt)
}

// at gives the element for a subscript.
func (m *machine) at(a *array, v value) *element {
	if v.k == number {
		m.numKey(v.n)
		return m.getKey(a)
	}
	return m.get(a, m.str(v))
}

// has reports whether there is an element.
func (m *machine) has(a *array, v value) bool {
	if v.k == number {
		m.numKey(v.n)
		_, ok := a.m[string(m.key)]
		return ok
	}
	_, ok := a.m[m.str(v)]
	return ok
}

// remove deletes an element.
func (m *machine) remove(a *array, key string) {
	e, ok := a.m[key]
	if !ok {
		return
	}
	delete(a.m, key)
	e.deleted = true
	a.gone++
	m.forget(&e.cell)
	m.count(-weight - len(key))
	if a.gone > 32 && a.gone > len(a.order)/2 {
		a.compact()
	}
}

func (a *array) compact() {
	kept := a.order[:0]
	for _, e := range a.order {
		if !e.deleted {
			kept = append(kept, e)
		}
	}
	clear(a.order[len(kept):])
	a.order, a.gone = kept, 0
	if cap(a.order) > 64 && cap(a.order) > 4*len(a.order) {
		a.order = append([]*element(nil), a.order...)
		m := make(map[string]*element, len(a.order)) // a map never shrinks
		for _, e := range a.order {
			m[e.key] = e
		}
		a.m = m
	}
}

// empty deletes all elements.
func (m *machine) empty(a *array) {
	for _, e := range a.order {
		if !e.deleted {
			e.deleted = true
			m.forget(&e.cell)
			m.count(-weight - len(e.key))
		}
	}
	m.t.Step(len(a.order) >> 3)
	a.m, a.order, a.gone = map[string]*element{}, nil, 0
}

// forget gives back what a cell holds.
func (m *machine) forget(c *cell) {
	if len(c.v.s) > small {
		m.count(-len(c.v.s))
	}
	c.v = value{}
	if c.arr != nil {
		m.down()
		m.empty(c.arr)
		m.level--
		m.count(-weight)
		c.arr = nil
	}
}

// keys gives the keys, of which a loop wants to know even as elements go.
func (m *machine) keys(a *array) []string {
	m.t.Step(len(a.m) >> 3)
	keys := make([]string, 0, len(a.m))
	for _, e := range a.order {
		if !e.deleted {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// put assigns to an element.
func (m *machine) put(a *array, key string, v value) {
	m.set(&m.get(a, key).cell, v)
}

// array gives the array that a cell is, and makes it one if nothing is decided.
func (m *machine) array(c *cell, name string) *array {
	if c.arr != nil {
		return c.arr
	}
	if c.ref != nil {
		m.down()
		c.arr = m.array(c.ref, name)
		m.level--
		c.ref = nil
		return c.arr
	}
	if c.v.k != unset {
		m.fatal("attempt to use scalar `%s' as an array", name)
	}
	c.arr, c.own = newArray(), true
	m.count(weight)
	return c.arr
}

// scalar reads a cell.
func (m *machine) scalar(c *cell, name string) value {
	if c.arr != nil {
		m.fatal("attempt to use array `%s' in a scalar context", name)
	}
	return c.v
}

// small is how long a string may be that is not counted by itself.
const small = 32

// set assigns to a cell.
func (m *machine) set(c *cell, v value) {
	if v.k == maybe && len(v.s)*4 < len(m.line) && len(m.line) > 512 {
		v.s = strings.Clone(v.s) // lest it keep the whole record
	}
	if d := counted(v.s) - counted(c.v.s); d != 0 {
		m.count(d)
	}
	c.v = v
	c.ref = nil
}

func counted(s string) int {
	if len(s) > small {
		return len(s)
	}
	return 0
}
