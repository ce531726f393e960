package jq

import (
	"math"
	"slices"
	"strings"
)

// A value is nil, a bool, a float64, a *literal, a string, an *array or an
// *object. None of them changes once it is seen, but an array or object hands
// its storage on to the version that is made of it: see array.
type value = any

// A literal is a number whose text says more than a float64 does: jq prints it
// as it was written while nothing was computed with it.
type literal struct {
	f    float64
	text string // in the canonical form
}

// An array is a list of values. The newest version of it owns the storage; an
// older one knows what to undo, and makes a copy when it is looked at again.
// So building a list element by element costs no copies, as in jq, where a
// value that nobody else has is changed in place.
type array struct {
	v     []value
	newer *array // this one has lost its storage to it
	at    int    // what to undo: the element at, or all from at on
	old   value
	cut   bool
	mark  uint32
	depth int32
	from  *origin // of yq: what it is made of
}

// An object is a list of keys and values in the order of their arrival.
type object struct {
	t     *table
	newer *object // as in array
	at    int
	old   value
	cut   bool
	mark  uint32
	depth int32
	from  *origin
}

// A table holds the members of an object.
type table struct {
	keys []string
	vals []value
	idx  map[string]int32 // of many keys only
}

// many is how many keys are worth an index.
const many = 8

// deepest is how deep values may nest, for the sake of Go's stack.
const deepest = 100_000

func depthOf(v value) int32 {
	switch v := v.(type) {
	case *array:
		return v.depth
	case *object:
		return v.depth
	}
	return 0
}

// list makes an array of values that the caller gives away.
func (m *machine) list(v []value) *array {
	a := &array{v: v}
	if v == nil {
		a.v = []value{}
	}
	d := int32(0)
	for _, x := range v {
		d = max(d, depthOf(x))
	}
	a.depth = d + 1
	m.deep(a.depth)
	m.alloc(64 + 16*cap(v))
	return a
}

func (m *machine) deep(d int32) {
	if d > deepest {
		m.t.Bound("nesting", int64(d), deepest)
	}
}

// own gives the elements, which the caller must not change, and must not look
// at anymore after another version was made.
func (a *array) own() []value {
	if a.newer == nil {
		return a.v
	}
	var chain []*array
	x := a
	for x.newer != nil {
		chain = append(chain, x)
		x = x.newer
	}
	v := slices.Clone(x.v)
	for i := len(chain) - 1; i >= 0; i-- {
		if c := chain[i]; c.cut {
			v = v[:c.at]
		} else {
			v[c.at] = c.old
		}
	}
	a.v, a.newer, a.old = v, nil, nil
	return v
}

func (a *array) len() int { return len(a.own()) }

// with gives the array with another element; at the length it is appended.
func (m *machine) with(a *array, i int, x value) *array {
	v := a.own()
	n := &array{depth: max(a.depth, depthOf(x)+1), from: a.from}
	m.deep(n.depth)
	if len(v) < 16 && i < len(v) {
		n.v = slices.Clone(v)
		n.v[i] = x
		m.alloc(64 + 16*len(v))
		return n
	}
	if i == len(v) {
		if cap(v) == len(v) {
			m.alloc(16 * len(v))
		}
		a.at, a.cut = i, true
		n.v = append(v, x)
	} else {
		a.at, a.old, a.cut = i, v[i], false
		v[i] = x
		n.v = v
	}
	m.alloc(80)
	a.newer, a.v = n, nil
	return n
}

// extend gives the array with more elements behind it.
func (m *machine) extend(a *array, more []value) *array {
	v := a.own()
	if len(more) == 0 {
		return a
	}
	n := &array{depth: a.depth, from: a.from}
	for _, x := range more {
		n.depth = max(n.depth, depthOf(x)+1)
	}
	m.deep(n.depth)
	if cap(v)-len(v) < len(more) {
		m.alloc(16 * (len(v) + len(more)))
	}
	m.alloc(64 + 16*len(more))
	a.at, a.cut = len(v), true
	n.v = append(v, more...)
	a.newer, a.v = n, nil
	return n
}

func newObject() *object { return &object{t: &table{}, depth: 1} }

// own gives the table, with the same conditions as array.own.
func (o *object) own() *table {
	if o.newer == nil {
		return o.t
	}
	var chain []*object
	x := o
	for x.newer != nil {
		chain = append(chain, x)
		x = x.newer
	}
	t := x.t.clone()
	for i := len(chain) - 1; i >= 0; i-- {
		if c := chain[i]; c.cut {
			for _, k := range t.keys[c.at:] {
				delete(t.idx, k)
			}
			t.keys, t.vals = t.keys[:c.at], t.vals[:c.at]
		} else {
			t.vals[c.at] = c.old
		}
	}
	o.t, o.newer, o.old = t, nil, nil
	return t
}

func (t *table) clone() *table {
	c := &table{keys: slices.Clone(t.keys), vals: slices.Clone(t.vals)}
	if t.idx != nil {
		c.index()
	}
	return c
}

func (t *table) index() {
	t.idx = make(map[string]int32, len(t.keys))
	for i, k := range t.keys {
		t.idx[k] = int32(i)
	}
}

func (t *table) find(key string) int {
	if t.idx != nil {
		if i, ok := t.idx[key]; ok {
			return int(i)
		}
		return -1
	}
	for i, k := range t.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// put adds or replaces in a table that nobody else has.
func (t *table) put(key string, v value) {
	if i := t.find(key); i >= 0 {
		t.vals[i] = v
		return
	}
	t.keys = append(t.keys, key)
	t.vals = append(t.vals, v)
	switch {
	case t.idx != nil:
		t.idx[key] = int32(len(t.keys) - 1)
	case len(t.keys) > many:
		t.index()
	}
}

func (o *object) get(key string) (value, bool) {
	t := o.own()
	if i := t.find(key); i >= 0 {
		return t.vals[i], true
	}
	return nil, false
}

func (o *object) len() int { return len(o.own().keys) }

// sorted gives the indexes of members in the order of their keys.
func (t *table) sorted() []int {
	order := make([]int, len(t.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(t.keys[a], t.keys[b]) })
	return order
}

// made finishes an object whose table the caller gives away.
func (m *machine) made(t *table) *object {
	o := &object{t: t}
	d := int32(0)
	for _, x := range t.vals {
		d = max(d, depthOf(x))
	}
	o.depth = d + 1
	m.deep(o.depth)
	m.alloc(128 + 32*cap(t.keys) + 40*len(t.idx))
	return o
}

// set gives the object with another member.
func (m *machine) set(o *object, key string, v value) *object {
	t := o.own()
	n := &object{depth: max(o.depth, depthOf(v)+1), from: o.from}
	m.deep(n.depth)
	if len(t.keys) <= many {
		c := &table{keys: append(make([]string, 0, len(t.keys)+1), t.keys...), vals: append(make([]value, 0, len(t.vals)+1), t.vals...)}
		c.put(key, v)
		n.t = c
		m.alloc(144 + 32*len(c.keys))
		return n
	}
	i := t.find(key)
	if i < 0 {
		o.at, o.cut = len(t.keys), true
		m.alloc(200 + len(key))
	} else {
		o.at, o.old, o.cut = i, t.vals[i], false
		m.alloc(96)
	}
	t.put(key, v)
	n.t = t
	o.newer, o.t = n, nil
	return n
}

// without gives the object without a member.
func (m *machine) without(o *object, gone func(string) bool) *object {
	t := o.own()
	c := &table{}
	for i, k := range t.keys {
		if !gone(k) {
			c.put(k, t.vals[i])
		}
	}
	n := m.made(c)
	n.from = o.from
	return n
}

// number gives a value as a number.
func number(v value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case *literal:
		return v.f, true
	}
	return 0, false
}

// truthy reports whether a value counts as true.
func truthy(v value) bool { return v != nil && v != false }

// kind orders the kinds of values as jq does.
func kind(v value) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case float64, *literal:
		return 3
	case string:
		return 4
	case *array:
		return 5
	}
	return 6
}

// typeName names the type of a value.
func typeName(v value) string {
	switch kind(v) {
	case 0:
		return "null"
	case 1, 2:
		return "boolean"
	case 3:
		return "number"
	case 4:
		return "string"
	case 5:
		return "array"
	}
	return "object"
}

// compare orders two values.
func (m *machine) compare(a, b value) int {
	m.t.Step(1)
	ka, kb := kind(a), kind(b)
	if ka != kb {
		return ka - kb
	}
	switch ka {
	case 3:
		return compareNumbers(a, b)
	case 4:
		x, _ := a.(string)
		y, _ := b.(string)
		return strings.Compare(x, y)
	case 5:
		x, _ := a.(*array)
		y, _ := b.(*array)
		if x == y {
			return 0
		}
		v, w := x.own(), y.own()
		for i := range min(len(v), len(w)) {
			if c := m.compare(v[i], w[i]); c != 0 {
				return c
			}
		}
		return len(v) - len(w)
	case 6:
		x, _ := a.(*object)
		y, _ := b.(*object)
		if x == y {
			return 0
		}
		return m.compareObjects(x.own(), y.own())
	}
	return 0
}

// compareObjects compares the sets of keys first, then the values.
func (m *machine) compareObjects(x, y *table) int {
	a, b := x.sorted(), y.sorted()
	m.t.Step(len(a) + len(b))
	for i := range min(len(a), len(b)) {
		if c := strings.Compare(x.keys[a[i]], y.keys[b[i]]); c != 0 {
			return c
		}
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	for i := range a {
		if c := m.compare(x.vals[a[i]], y.vals[b[i]]); c != 0 {
			return c
		}
	}
	return 0
}

func compareNumbers(a, b value) int {
	x, _ := number(a)
	y, _ := number(b)
	switch {
	case x < y || math.IsNaN(x):
		return -1
	case x > y:
		return 1
	case x == y:
		_, la := a.(*literal)
		_, lb := b.(*literal)
		if la && lb {
			return compareText(canonical(a), canonical(b))
		}
		return 0
	}
	return 1 // of something to NaN
}
