package awk

import (
	"unicode/utf8"
)

type (
	valueFn func(*machine) value
	numFn   func(*machine) float64
	strFn   func(*machine) string
	boolFn  func(*machine) bool
	stmtFn  func(*machine) ctl
	argFn   func(*machine, *cell)
	cellFn  func(*machine) *cell
)

// round is what a round of a loop costs, in steps.
const round = 16

// A compiler makes closures of a program, for one machine: they hold its
// global variables.
type compiler struct {
	m       *machine
	level   int
	deepest int
}

// down counts how deep closures call each other; up undoes it.
func (c *compiler) down() {
	c.level++
	c.deepest = max(c.deepest, c.level)
}

func (c *compiler) up() { c.level-- }

func (c *compiler) block(b *blockStmt) stmtFn {
	list := make([]stmtFn, len(b.list))
	for i, s := range b.list {
		list[i] = c.stmt(s)
	}
	switch len(list) {
	case 0:
		return func(*machine) ctl { return goesOn }
	case 1:
		return list[0]
	case 2:
		first, second := list[0], list[1]
		return func(m *machine) ctl {
			if c := first(m); c != goesOn {
				return c
			}
			return second(m)
		}
	}
	return func(m *machine) ctl {
		for _, s := range list {
			if c := s(m); c != goesOn {
				return c
			}
		}
		return goesOn
	}
}

func (c *compiler) stmt(s stmt) stmtFn {
	c.down()
	defer c.up()
	switch s := s.(type) {
	case *exprStmt:
		return c.exprStmt(s.e)
	case *printStmt:
		return c.print(s)
	case *blockStmt:
		return c.block(s)
	case *ifStmt:
		return c.ifStmt(s)
	case *whileStmt:
		return c.loop(nil, s.c, nil, s.body)
	case *forStmt:
		return c.loop(s.init, s.c, s.step, s.body)
	case *doStmt:
		return c.do(s)
	case *eachStmt:
		return c.each(s)
	case *switchStmt:
		return c.switchStmt(s)
	case *deleteStmt:
		return c.delete(s)
	case *exitStmt:
		if s.e == nil {
			return func(*machine) ctl { return exits }
		}
		e := c.num(s.e)
		return func(m *machine) ctl {
			m.status = int(int64(e(m))) & 0xff
			return exits
		}
	case *returnStmt:
		if s.e == nil {
			return func(m *machine) ctl {
				m.ret = value{}
				return returns
			}
		}
		e := c.value(s.e)
		return func(m *machine) ctl {
			m.ret = e(m)
			return returns
		}
	case *jumpStmt:
		how := s.c
		return func(*machine) ctl { return how }
	}
	panic("awk: unknown statement")
}

func (c *compiler) exprStmt(e expr) stmtFn {
	var run stmtFn
	switch e := e.(type) {
	case *incExpr:
		f := c.num(&incExpr{e.l, e.delta, false}) // whose value is not wanted
		run = func(m *machine) ctl {
			f(m)
			return goesOn
		}
	default:
		f := c.value(e)
		run = func(m *machine) ctl {
			f(m)
			if m.pending != 0 {
				m.release()
			}
			return goesOn
		}
	}
	return run
}

func (c *compiler) ifStmt(s *ifStmt) stmtFn {
	cond, yes := c.bool(s.c), c.stmt(s.yes)
	if s.no == nil {
		return func(m *machine) ctl {
			if cond(m) {
				return yes(m)
			}
			return goesOn
		}
	}
	no := c.stmt(s.no)
	return func(m *machine) ctl {
		if cond(m) {
			return yes(m)
		}
		return no(m)
	}
}

func (c *compiler) loop(init stmt, cond expr, step, body stmt) stmtFn {
	var begin, next stmtFn
	if init != nil {
		begin = c.stmt(init)
	}
	test := func(*machine) bool { return true }
	if cond != nil {
		test = c.bool(cond)
	}
	if step != nil {
		next = c.stmt(step)
	}
	run := c.stmt(body)
	return func(m *machine) ctl {
		if begin != nil {
			begin(m)
		}
		for test(m) {
			m.t.Step(8)
			if m.pending != 0 {
				m.release()
			}
			switch c := run(m); c {
			case goesOn, continues:
			case breaks:
				return goesOn
			default:
				return c
			}
			if next != nil {
				next(m)
			}
		}
		return goesOn
	}
}

func (c *compiler) do(s *doStmt) stmtFn {
	run, test := c.stmt(s.body), c.bool(s.c)
	return func(m *machine) ctl {
		for {
			m.t.Step(8)
			switch c := run(m); c {
			case goesOn, continues:
			case breaks:
				return goesOn
			default:
				return c
			}
			if !test(m) {
				return goesOn
			}
			if m.pending != 0 {
				m.release()
			}
		}
	}
}

func (c *compiler) each(s *eachStmt) stmtFn {
	a, set, run := c.array(s.a), c.setter(s.v), c.stmt(s.body)
	return func(m *machine) ctl {
		keys := m.sorted(a(m))
		size := 16 * len(keys)
		m.t.Grow(size)
		result := goesOn
		for _, key := range keys {
			m.t.Step(8)
			set(m, str(key))
			c := run(m)
			if c == breaks {
				break
			}
			if c != goesOn && c != continues {
				result = c
				break
			}
		}
		m.t.Shrink(size)
		return result
	}
}

func (c *compiler) switchStmt(s *switchStmt) stmtFn {
	type branch struct {
		match func(*machine, value) bool
		run   stmtFn
	}
	e := c.value(s.e)
	branches := make([]branch, len(s.cases))
	otherwise := len(branches)
	for i, k := range s.cases {
		branches[i].run = c.block(&blockStmt{k.body})
		switch l := k.label.(type) {
		case nil:
			otherwise = i
		case *regexLit:
			re := l.s
			branches[i].match = func(m *machine, v value) bool { return m.regex(re).match(m, m.bytesOf(m.str(v))) }
		default:
			label := c.value(l)
			branches[i].match = func(m *machine, v value) bool { return m.compare(v, label(m)) == 0 }
		}
	}
	return func(m *machine) ctl {
		v := e(m)
		at := otherwise
		for i := range branches {
			if branches[i].match != nil && branches[i].match(m, v) {
				at = i
				break
			}
		}
		for ; at < len(branches); at++ {
			switch c := branches[at].run(m); c {
			case goesOn:
			case breaks:
				return goesOn
			default:
				return c
			}
		}
		return goesOn
	}
}

func (c *compiler) delete(s *deleteStmt) stmtFn {
	a := c.array(s.a)
	if s.all {
		return func(m *machine) ctl {
			m.empty(a(m))
			return goesOn
		}
	}
	key := c.subscript(s.subs)
	return func(m *machine) ctl {
		x := a(m)
		v := key(m)
		m.remove(x, m.str(v))
		return goesOn
	}
}

func (c *compiler) print(s *printStmt) stmtFn {
	dest := func(*machine) string { return "" }
	kind := s.to
	if kind != 0 {
		dest = c.str(s.dest)
	}
	if s.format {
		format, args := c.str(s.args[0]), c.values(s.args[1:])
		return func(m *machine) ctl {
			name := dest(m)
			f := format(m)
			list := args(m)
			to := m.sinkOf(kind, name)
			m.buf = m.sprintf(m.buf[:0], f, list)
			to.w.Bytes(m.buf)
			m.trim()
			m.printed(to)
			return goesOn
		}
	}
	if len(s.args) == 0 {
		return func(m *machine) ctl {
			to := m.sinkOf(kind, dest(m))
			if m.made || m.dirty {
				to.w.String(m.record())
			} else {
				to.w.Bytes(m.rec)
			}
			to.w.String(m.ors)
			m.printed(to)
			return goesOn
		}
	}
	if len(s.args) == 1 && s.to == 0 {
		e := c.value(s.args[0])
		return func(m *machine) ctl {
			v := e(m)
			m.write(m.out, v)
			m.out.String(m.ors)
			m.printed(&m.plain)
			return goesOn
		}
	}
	args := c.values(s.args)
	return func(m *machine) ctl {
		name := dest(m)
		list := args(m)
		to := m.sinkOf(kind, name)
		for i := range list {
			if i > 0 {
				to.w.String(m.ofs)
			}
			m.write(to.w, list[i])
		}
		to.w.String(m.ors)
		m.printed(to)
		return goesOn
	}
}

// printed ends a statement that wrote something.
func (m *machine) printed(to *sink) {
	if to.quick || to.std && m.live {
		to.w.Flush()
	}
	if m.pending != 0 {
		m.release()
	}
}

// values evaluates a list. The result is valid until the same place is
// evaluated again, so recursion makes its own.
func (c *compiler) values(list []expr) func(*machine) []value {
	fns := make([]valueFn, len(list))
	for i, e := range list {
		fns[i] = c.value(e)
	}
	kept := make([]value, len(list))
	busy := false
	return func(m *machine) []value {
		dst := kept
		if busy {
			dst = make([]value, len(fns))
		}
		was := busy
		busy = true
		for i, f := range fns {
			dst[i] = f(m)
		}
		busy = was
		return dst
	}
}

// array gives what finds the array that an expression names.
func (c *compiler) array(e expr) func(*machine) *array {
	c.down()
	defer c.up()
	switch e := e.(type) {
	case *nameExpr:
		name, i := e.name, e.index
		if c.m.prog.functions[name] != nil && !e.local {
			return func(m *machine) *array {
				m.fatal("function `%s' used as an array", name)
				return nil
			}
		}
		if e.local {
			return func(m *machine) *array { return m.array(&m.frame[i], name) }
		}
		if i < hooked {
			return func(m *machine) *array {
				m.fatal("attempt to use scalar `%s' as an array", name)
				return nil
			}
		}
		v := &c.m.globals[i]
		return func(m *machine) *array {
			if v.arr != nil {
				return v.arr
			}
			return m.array(v, name)
		}
	case *indexExpr:
		at := c.element(e)
		return func(m *machine) *array { return m.array(at(m), "element") }
	case *groupExpr:
		return c.array(e.e)
	}
	return func(m *machine) *array {
		m.fatal("attempt to use a scalar value as an array")
		return nil
	}
}

// element gives what finds an element, and makes it.
func (c *compiler) element(e *indexExpr) cellFn {
	a, key := c.array(e.base), c.subscript(e.subs)
	return func(m *machine) *cell {
		x := a(m)
		return &m.at(x, key(m)).cell
	}
}

// subscript gives the value of subscripts, which are one string where there
// are several.
func (c *compiler) subscript(subs []expr) valueFn {
	if len(subs) == 1 {
		return c.value(subs[0])
	}
	fns := make([]strFn, len(subs))
	for i, e := range subs {
		fns[i] = c.str(e)
	}
	return func(m *machine) value {
		parts := make([]string, len(fns))
		n := 0
		for i, f := range fns {
			parts[i] = f(m)
			n += len(parts[i]) + len(m.subsep)
		}
		m.t.Bound("string", int64(n), m.t.K.Limits.String)
		b := make([]byte, 0, n)
		for i, p := range parts {
			if i > 0 {
				b = append(b, m.subsep...)
			}
			b = append(b, p...)
		}
		m.fresh(len(b))
		return str(string(b))
	}
}

// setter gives what assigns to an lvalue.
func (c *compiler) setter(e expr) func(*machine, value) {
	switch e := e.(type) {
	case *nameExpr:
		name, i := e.name, e.index
		if e.local {
			return func(m *machine, v value) {
				if m.frame[i].arr != nil {
					m.fatal("attempt to use array `%s' in a scalar context", name)
				}
				m.set(&m.frame[i], v)
			}
		}
		if c.m.prog.functions[name] != nil {
			return func(m *machine, _ value) { m.fatal("function `%s' used as a variable", name) }
		}
		if i < hooked {
			return func(m *machine, v value) { m.setSpecial(i, v) }
		}
		g := &c.m.globals[i]
		return func(m *machine, v value) {
			if g.arr != nil {
				m.fatal("attempt to use array `%s' in a scalar context", name)
			}
			m.set(g, v)
		}
	case *indexExpr:
		at := c.element(e)
		return func(m *machine, v value) {
			x := at(m)
			if x.arr != nil {
				m.fatal("attempt to use an array in a scalar context")
			}
			m.set(x, v)
		}
	case *fieldExpr:
		i := c.num(e.e)
		return func(m *machine, v value) { m.setField(m.fieldIndex(i(m)), v) }
	case *groupExpr:
		return c.setter(e.e)
	}
	return func(m *machine, _ value) { m.fatal("cannot assign to an expression") }
}

// argument gives what puts an argument of a function into its parameter.
func (c *compiler) argument(e expr) argFn {
	var at cellFn
	var name string
	switch x := e.(type) {
	case *nameExpr:
		name = x.name
		i := x.index
		switch {
		case x.local:
			at = func(m *machine) *cell { return &m.frame[i] }
		case i >= hooked && c.m.prog.functions[name] == nil:
			g := &c.m.globals[i]
			at = func(*machine) *cell { return g }
		}
	case *indexExpr:
		at = c.element(x)
	}
	if at == nil {
		v := c.value(e)
		return func(m *machine, to *cell) { m.set(to, v(m)) }
	}
	return func(m *machine, to *cell) {
		from := at(m)
		switch {
		case from.arr != nil:
			to.arr = from.arr
		case from.v.k == unset:
			to.ref = from
			if from.ref != nil {
				to.ref = from.ref
			}
		default:
			m.set(to, from.v)
		}
	}
}

// character writes what %c makes of a number.
func (m *machine) character(b []byte, n float64) []byte {
	if m.bytes || n < 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return append(b, byte(int64(n)))
	}
	return utf8.AppendRune(b, rune(n))
}
