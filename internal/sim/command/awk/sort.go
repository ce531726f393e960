package awk

import (
	"slices"
	"strconv"
	"strings"
)

// sorted gives the keys of an array in the order that PROCINFO["sorted_in"]
// asks for.
func (m *machine) sorted(a *array) []string {
	keys := m.keys(a)
	e, ok := m.globals[vPROCINFO].arr.m["sorted_in"]
	if !ok {
		return keys
	}
	m.order(a, keys, m.str(e.v))
	return keys
}

// order sorts keys by a way of gawk's, or by a function of the program.
func (m *machine) order(a *array, keys []string, how string) {
	if how == "" || how == "@unsorted" {
		return
	}
	m.t.Step(len(keys) * 4)
	var cmp func(x, y string) int
	switch {
	case how == "@ind_str_asc" || how == "@ind_str_desc":
		cmp = m.collate
	case how == "@ind_num_asc" || how == "@ind_num_desc":
		cmp = func(x, y string) int {
			if c := orderFloat(toNumber(x), toNumber(y)); c != 0 {
				return c
			}
			return strings.Compare(x, y)
		}
	case strings.HasPrefix(how, "@val_"):
		kind := strings.TrimPrefix(how, "@val_")
		cmp = func(x, y string) int {
			if c := m.orderValue(&a.m[x].cell, &a.m[y].cell, kind); c != 0 {
				return c
			}
			return strings.Compare(x, y)
		}
	default:
		f := m.prog.functions[how]
		if f == nil {
			m.fatal("sort comparison function `%s' is not defined", how)
		}
		cmp = m.compareBy(a, f)
	}
	if strings.HasPrefix(how, "@") && strings.HasSuffix(how, "_desc") {
		up := cmp
		cmp = func(x, y string) int { return up(y, x) }
	}
	slices.SortStableFunc(keys, func(x, y string) int {
		m.t.Step(1)
		return cmp(x, y)
	})
}

func (m *machine) compareBy(a *array, f *function) func(x, y string) int {
	fn := &m.funcs[f.index]
	give := func(e *element) argFn {
		return func(m *machine, to *cell) {
			if e.arr != nil {
				to.arr = e.arr
				return
			}
			m.set(to, e.v)
		}
	}
	key := func(s string) argFn { return func(m *machine, to *cell) { m.set(to, input(s)) } }
	return func(x, y string) int {
		ex, ey := a.m[x], a.m[y]
		if ex == nil || ey == nil {
			return 0
		}
		args := []argFn{key(x), give(ex), key(y), give(ey)}
		n := m.call(fn, args[:min(len(args), len(f.params))], 0).num()
		switch {
		case n < 0:
			return -1
		case n > 0:
			return 1
		}
		return 0
	}
}

func orderFloat(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// orderValue orders elements: numbers before strings before arrays, unless
// they are all to be taken as one kind.
func (m *machine) orderValue(x, y *cell, kind string) int {
	if x.arr != nil || y.arr != nil {
		switch {
		case x.arr != nil && y.arr != nil:
			return 0
		case x.arr != nil:
			return 1
		}
		return -1
	}
	a, b := x.v.resolve(), y.v.resolve()
	switch {
	case strings.HasPrefix(kind, "str"):
		return m.collate(m.str(a), m.str(b))
	case strings.HasPrefix(kind, "num"):
		if c := orderFloat(a.num(), b.num()); c != 0 {
			return c
		}
		return m.collate(m.str(a), m.str(b))
	}
	na, nb := a.k != text, b.k != text
	switch {
	case na && nb:
		return orderFloat(a.num(), b.num())
	case na:
		return -1
	case nb:
		return 1
	}
	return m.collate(a.s, b.s)
}

// asort sorts the values of an array, asorti its keys.
func (c *compiler) asort(e *builtinExpr) valueFn {
	from := c.array(e.args[0])
	to := from
	if len(e.args) > 1 {
		to = c.array(e.args[1])
	}
	how := func(*machine) string { return "" }
	if len(e.args) > 2 {
		how = c.str(e.args[2])
	}
	byKey := e.f == fAsorti
	return func(m *machine) value {
		a := from(m)
		h := how(m)
		if h == "" {
			if h = "@val_type_asc"; byKey {
				h = "@ind_str_asc"
			}
		}
		keys := m.keys(a)
		m.fresh(64 * len(keys))
		if byKey && h != "@ind_str_asc" {
			m.order(a, keys, h)
		} else {
			m.order(a, keys, h)
		}
		cells := make([]cell, len(keys))
		for i, k := range keys {
			if byKey {
				cells[i].v = str(k)
			} else {
				cells[i] = a.m[k].cell
			}
		}
		// Arrays within move along.
		dst := to(m)
		if dst == a {
			for _, k := range keys {
				if x := a.m[k]; x.arr != nil && !byKey {
					x.arr = nil
				}
			}
		}
		m.empty(dst)
		for i := range cells {
			x := m.get(dst, strconv.Itoa(i+1))
			if cells[i].arr != nil {
				if dst != a {
					m.fatal("asort: arrays within arrays are not copied")
				}
				x.arr, x.own = cells[i].arr, true
				continue
			}
			m.set(&x.cell, cells[i].v)
		}
		return num(float64(len(cells)))
	}
}
