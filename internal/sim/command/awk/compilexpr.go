package awk

import (
	"math"
	"strings"
)

// value gives what computes an expression.
func (c *compiler) value(e expr) valueFn {
	c.down()
	defer c.up()
	switch e := e.(type) {
	case *numberLit:
		v := num(e.n)
		return func(*machine) value { return v }
	case *stringLit:
		v := str(e.s)
		return func(*machine) value { return v }
	case *regexLit:
		if e.typed {
			v := value{s: e.s, k: pattern}
			return func(*machine) value { return v }
		}
	case *nameExpr:
		return c.name(e)
	case *indexExpr:
		at := c.element(e)
		return func(m *machine) value {
			x := at(m)
			if x.arr != nil {
				m.fatal("attempt to use an array in a scalar context")
			}
			return x.v
		}
	case *fieldExpr:
		return c.field(e)
	case *binaryExpr:
		if e.op == ' ' {
			s := c.concat(e)
			return func(m *machine) value { return value{s: s(m), k: text} }
		}
	case *condExpr:
		cond, yes, no := c.bool(e.c), c.value(e.yes), c.value(e.no)
		return func(m *machine) value {
			if cond(m) {
				return yes(m)
			}
			return no(m)
		}
	case *assignExpr:
		return c.assign(e)
	case *groupExpr:
		return c.value(e.e)
	case *callExpr:
		return c.call(e)
	case *indirectExpr:
		return c.indirect(e)
	case *builtinExpr:
		return c.builtin(e)
	case *getlineExpr:
		f := c.getline(e)
		return func(m *machine) value { return num(f(m)) }
	case *listExpr:
		return func(m *machine) value {
			m.fatal("a list in parentheses is no value")
			return value{}
		}
	}
	if isTruth(e) {
		f := c.bool(e)
		return func(m *machine) value { return truth(f(m)) }
	}
	f := c.num(e)
	return func(m *machine) value { return value{n: f(m), k: number} }
}

// isTruth tells the expressions that are best computed as truths.
func isTruth(e expr) bool {
	switch e := e.(type) {
	case *regexLit, *logicExpr, *matchExpr, *inExpr:
		return true
	case *unaryExpr:
		return e.op == '!'
	case *binaryExpr:
		switch e.op {
		case '<', '>', tLE, tGE, tEQ, tNE:
			return true
		}
	}
	return false
}

// num gives what computes an expression as a number.
func (c *compiler) num(e expr) numFn {
	c.down()
	defer c.up()
	switch e := e.(type) {
	case *numberLit:
		n := e.n
		return func(*machine) float64 { return n }
	case *unaryExpr:
		f := c.num(e.e)
		switch e.op {
		case '-':
			return func(m *machine) float64 { return -f(m) }
		case '+':
			return f
		}
	case *binaryExpr:
		if f := c.arithmetic(e); f != nil {
			return f
		}
	case *incExpr:
		return c.increment(e)
	case *groupExpr:
		return c.num(e.e)
	case *getlineExpr:
		return c.getline(e)
	case *nameExpr:
		if e.local {
			i, name := e.index, e.name
			return func(m *machine) float64 {
				x := &m.frame[i]
				if x.v.k == number {
					return x.v.n
				}
				return m.scalar(x, name).num()
			}
		}
		if e.index >= hooked && c.m.prog.functions[e.name] == nil {
			g, name := &c.m.globals[e.index], e.name
			return func(m *machine) float64 {
				if g.v.k == number {
					return g.v.n
				}
				return m.scalar(g, name).num()
			}
		}
	}
	if isTruth(e) {
		f := c.bool(e)
		return func(m *machine) float64 {
			if f(m) {
				return 1
			}
			return 0
		}
	}
	f := c.value(e)
	return func(m *machine) float64 {
		v := f(m)
		if v.k == number {
			return v.n
		}
		return v.num()
	}
}

// str gives what computes an expression as a string.
func (c *compiler) str(e expr) strFn {
	c.down()
	defer c.up()
	switch e := e.(type) {
	case *stringLit:
		s := e.s
		return func(*machine) string { return s }
	case *binaryExpr:
		if e.op == ' ' {
			return c.concat(e)
		}
	case *groupExpr:
		return c.str(e.e)
	}
	f := c.value(e)
	return func(m *machine) string {
		v := f(m)
		if v.k >= text {
			return v.s
		}
		return m.str(v)
	}
}

// bool gives what computes an expression as a truth.
func (c *compiler) bool(e expr) boolFn {
	c.down()
	defer c.up()
	switch e := e.(type) {
	case *regexLit:
		if !e.typed {
			re := c.constant(e.s)
			return func(m *machine) bool { return re(m).match(m, m.recordBytes()) }
		}
	case *unaryExpr:
		if e.op == '!' {
			f := c.bool(e.e)
			return func(m *machine) bool { return !f(m) }
		}
	case *logicExpr:
		l, r := c.bool(e.l), c.bool(e.r)
		if e.or {
			return func(m *machine) bool { return l(m) || r(m) }
		}
		return func(m *machine) bool { return l(m) && r(m) }
	case *matchExpr:
		return c.match(e)
	case *inExpr:
		key, a := c.subscript(e.subs), c.array(e.a)
		return func(m *machine) bool {
			v := key(m)
			return m.has(a(m), v)
		}
	case *binaryExpr:
		if f := c.comparison(e); f != nil {
			return f
		}
	case *groupExpr:
		return c.bool(e.e)
	case *numberLit:
		b := e.n != 0
		return func(*machine) bool { return b }
	}
	f := c.value(e)
	return func(m *machine) bool { return f(m).bool() }
}

// recordBytes gives the record to look at.
func (m *machine) recordBytes() []byte {
	if !m.made && !m.dirty {
		return m.rec
	}
	return m.bytesOf(m.record())
}

// constant gives what finds a constant expression, which is compiled when it
// is first wanted.
func (c *compiler) constant(src string) func(*machine) *matcher {
	var re [2]*matcher
	return func(m *machine) *matcher {
		i := 0
		if m.ignoreCase {
			i = 1
		}
		if re[i] == nil {
			re[i] = m.regex(src)
		}
		return re[i]
	}
}

// pattern gives what finds the expression that an operand of ~ is.
func (c *compiler) pattern(e expr) func(*machine) *matcher {
	if g, ok := e.(*groupExpr); ok {
		return c.pattern(g.e)
	}
	if r, ok := e.(*regexLit); ok {
		return c.constant(r.s)
	}
	f := c.str(e)
	var last string
	var re *matcher
	var fold bool
	return func(m *machine) *matcher {
		s := f(m)
		if re == nil || s != last || fold != m.ignoreCase {
			last, fold, re = strings.Clone(s), m.ignoreCase, m.regex(s)
		}
		return re
	}
}

func (c *compiler) match(e *matchExpr) boolFn {
	not, re := e.not, c.pattern(e.r)
	if f, ok := e.l.(*fieldExpr); ok {
		if n, ok := f.e.(*numberLit); ok && n.n == 0 {
			return func(m *machine) bool { return re(m).match(m, m.recordBytes()) != not }
		}
	}
	l := c.str(e.l)
	return func(m *machine) bool {
		s := l(m)
		x := re(m)
		return x.match(m, m.bytesOf(s)) != not
	}
}

func (c *compiler) name(e *nameExpr) valueFn {
	name, i := e.name, e.index
	switch {
	case e.local:
		return func(m *machine) value {
			x := &m.frame[i]
			if x.arr == nil {
				return x.v
			}
			return m.scalar(x, name)
		}
	case c.m.prog.functions[name] != nil:
		return func(m *machine) value {
			m.fatal("function `%s' used as a variable", name)
			return value{}
		}
	case i <= vFNR:
		return func(m *machine) value { return m.special(i) }
	}
	g := &c.m.globals[i]
	return func(m *machine) value {
		if g.arr == nil {
			return g.v
		}
		return m.scalar(g, name)
	}
}

func (c *compiler) field(e *fieldExpr) valueFn {
	if n, ok := e.e.(*numberLit); ok && n.n >= 0 && n.n < 1000 && n.n == math.Trunc(n.n) {
		i := int(n.n)
		if i == 0 {
			return func(m *machine) value { return value{s: m.record(), k: m.lineIs} }
		}
		return func(m *machine) value {
			if !m.split {
				m.ensure()
			}
			if i > m.nf {
				return value{k: maybe}
			}
			return m.fields[i-1]
		}
	}
	if n, ok := e.e.(*nameExpr); ok && !n.local && n.index == vNF {
		return func(m *machine) value {
			m.ensure()
			return m.field(m.nf)
		}
	}
	i := c.num(e.e)
	return func(m *machine) value { return m.field(m.fieldIndex(i(m))) }
}

// concat joins all parts of a chain at once.
func (c *compiler) concat(e *binaryExpr) strFn {
	var parts []strFn
	var at expr = e
	for {
		b, ok := at.(*binaryExpr)
		if !ok || b.op != ' ' {
			parts = append(parts, c.str(at))
			break
		}
		parts = append(parts, c.str(b.r))
		at = b.l
	}
	if len(parts) == 2 {
		r, l := parts[0], parts[1]
		return func(m *machine) string {
			a := l(m)
			s := a + r(m)
			if len(s) >= large {
				m.fresh(len(s))
			}
			return s
		}
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	kept := make([]string, len(parts))
	busy := false
	return func(m *machine) string {
		list := kept
		if busy {
			list = make([]string, len(parts))
		}
		was := busy
		busy = true
		n := 0
		for i, f := range parts {
			list[i] = f(m)
			n += len(list[i])
		}
		busy = was
		if n >= large {
			m.fresh(n)
		}
		return strings.Join(list, "")
	}
}

func (c *compiler) arithmetic(e *binaryExpr) numFn {
	switch e.op {
	case '+', '-', '*', '/', '%', tPow:
	default:
		return nil
	}
	l, r := c.num(e.l), c.num(e.r)
	line := e.line
	switch e.op {
	case '+':
		if n, ok := e.r.(*numberLit); ok {
			k := n.n
			return func(m *machine) float64 { return l(m) + k }
		}
		return func(m *machine) float64 { a := l(m); return a + r(m) }
	case '-':
		return func(m *machine) float64 { a := l(m); return a - r(m) }
	case '*':
		return func(m *machine) float64 { a := l(m); return a * r(m) }
	case '/':
		return func(m *machine) float64 { a := l(m); return m.divide(a, r(m), line) }
	case '%':
		return func(m *machine) float64 {
			a := l(m)
			b := r(m)
			if i, j := int64(a), int64(b); j != 0 && i > 0 && float64(i) == a && float64(j) == b {
				return float64(i % j)
			}
			return m.modulo(a, b, line)
		}
	}
	return func(m *machine) float64 { a := l(m); return power(a, r(m)) }
}

func (m *machine) divide(a, b float64, line int) float64 {
	if b == 0 {
		m.fatal("division by zero attempted at line %d", line)
	}
	return a / b
}

func (m *machine) modulo(a, b float64, line int) float64 {
	if b == 0 {
		m.fatal("division by zero attempted in `%%' at line %d", line)
	}
	return math.Mod(a, b)
}

// power multiplies where the exponent is a small integer, which is exact where
// the result is.
func power(a, b float64) float64 {
	if b >= 0 && b <= 64 && b == math.Trunc(b) {
		r := 1.0
		for n := int(b); n > 0; n >>= 1 {
			if n&1 != 0 {
				r *= a
			}
			a *= a
		}
		return r
	}
	return math.Pow(a, b)
}

func (c *compiler) comparison(e *binaryExpr) boolFn {
	switch e.op {
	case '<', '>', tLE, tGE, tEQ, tNE:
	default:
		return nil
	}
	l := c.value(e.l)
	if n, ok := e.r.(*numberLit); ok {
		if f := compareTo(e.op, l, n.n); f != nil {
			return f
		}
	}
	r := c.value(e.r)
	order := func(m *machine) int {
		a := l(m)
		b := r(m)
		if a.k == number && b.k == number {
			switch {
			case a.n < b.n:
				return -1
			case a.n > b.n:
				return 1
			case a.n == b.n:
				return 0
			}
		}
		return m.compare(a, b)
	}
	switch e.op {
	case '<':
		return func(m *machine) bool { return order(m) < 0 }
	case '>':
		return func(m *machine) bool { return order(m) > 0 }
	case tLE:
		return func(m *machine) bool { return order(m) <= 0 }
	case tGE:
		return func(m *machine) bool { return order(m) >= 0 }
	case tEQ:
		return func(m *machine) bool { return order(m) == 0 }
	}
	return func(m *machine) bool { return order(m) != 0 }
}

// compareTo compares to a constant number.
func compareTo(op tok, l valueFn, n float64) boolFn {
	k := num(n)
	order := func(m *machine) int {
		v := l(m)
		if v.k == maybe {
			v = v.resolve()
		}
		if v.k == text || v.k == pattern || math.IsNaN(v.n) {
			return m.compare(v, k)
		}
		switch {
		case v.n < n:
			return -1
		case v.n > n:
			return 1
		}
		return 0
	}
	switch op {
	case '<':
		return func(m *machine) bool { return order(m) < 0 }
	case '>':
		return func(m *machine) bool { return order(m) > 0 }
	case tLE:
		return func(m *machine) bool { return order(m) <= 0 }
	case tGE:
		return func(m *machine) bool { return order(m) >= 0 }
	case tEQ:
		return func(m *machine) bool { return order(m) == 0 }
	}
	return func(m *machine) bool { return order(m) != 0 }
}

// operate computes an assignment's operator.
func operate(op byte) func(m *machine, a, b float64, line int) float64 {
	switch op {
	case '+':
		return func(_ *machine, a, b float64, _ int) float64 { return a + b }
	case '-':
		return func(_ *machine, a, b float64, _ int) float64 { return a - b }
	case '*':
		return func(_ *machine, a, b float64, _ int) float64 { return a * b }
	case '/':
		return (*machine).divide
	case '%':
		return (*machine).modulo
	}
	return func(_ *machine, a, b float64, _ int) float64 { return power(a, b) }
}

func (c *compiler) assign(e *assignExpr) valueFn {
	if e.op == 0 {
		r := c.value(e.r)
		if at := c.place(e.l); at != nil {
			return func(m *machine) value {
				v := r(m)
				m.set(at(m), v)
				return v
			}
		}
		if f, ok := e.l.(*fieldExpr); ok {
			i := c.num(f.e)
			return func(m *machine) value {
				v := r(m)
				m.setField(m.fieldIndex(i(m)), v)
				return v
			}
		}
		set := c.setter(e.l)
		return func(m *machine) value {
			v := r(m)
			set(m, v)
			return v
		}
	}
	f, line := operate(e.op), e.line
	r := c.num(e.r)
	if at := c.place(e.l); at != nil {
		if e.op == '+' {
			return func(m *machine) value {
				b := r(m)
				x := at(m)
				n := x.v.num() + b
				if x.v.k == number {
					x.v.n = n
				} else {
					m.set(x, num(n))
				}
				return num(n)
			}
		}
		return func(m *machine) value {
			b := r(m)
			x := at(m)
			v := num(f(m, x.v.num(), b, line))
			m.set(x, v)
			return v
		}
	}
	if fe, ok := e.l.(*fieldExpr); ok {
		i := c.num(fe.e)
		return func(m *machine) value {
			at := m.fieldIndex(i(m))
			b := r(m)
			v := num(f(m, m.field(at).num(), b, line))
			m.setField(at, v)
			return v
		}
	}
	get, set := c.value(e.l), c.setter(e.l)
	return func(m *machine) value {
		b := r(m)
		v := num(f(m, get(m).num(), b, line))
		set(m, v)
		return v
	}
}

// place gives what finds the cell of an lvalue that is one, and no array.
func (c *compiler) place(e expr) cellFn {
	switch e := e.(type) {
	case *groupExpr:
		return c.place(e.e)
	case *nameExpr:
		name, i := e.name, e.index
		if e.local {
			return func(m *machine) *cell {
				x := &m.frame[i]
				if x.arr != nil {
					m.scalar(x, name)
				}
				return x
			}
		}
		if i < hooked || c.m.prog.functions[name] != nil {
			return nil
		}
		g := &c.m.globals[i]
		return func(m *machine) *cell {
			if g.arr != nil {
				m.scalar(g, name)
			}
			return g
		}
	case *indexExpr:
		at := c.element(e)
		return func(m *machine) *cell {
			x := at(m)
			if x.arr != nil {
				m.fatal("attempt to use an array in a scalar context")
			}
			return x
		}
	}
	return nil
}

func (c *compiler) increment(e *incExpr) numFn {
	delta, post := e.delta, e.post
	if at := c.place(e.l); at != nil {
		return func(m *machine) float64 {
			x := at(m)
			if x.v.k == number {
				old := x.v.n
				x.v.n = old + delta
				if post {
					return old
				}
				return old + delta
			}
			old := x.v.num()
			m.set(x, num(old+delta))
			if post {
				return old
			}
			return old + delta
		}
	}
	if f, ok := e.l.(*fieldExpr); ok {
		i := c.num(f.e)
		return func(m *machine) float64 {
			at := m.fieldIndex(i(m))
			old := m.field(at).num()
			m.setField(at, num(old+delta))
			if post {
				return old
			}
			return old + delta
		}
	}
	get, set := c.num(e.l), c.setter(e.l)
	return func(m *machine) float64 {
		old := get(m)
		set(m, num(old+delta))
		if post {
			return old
		}
		return old + delta
	}
}

func (c *compiler) call(e *callExpr) valueFn {
	f := c.m.prog.functions[e.name]
	index, line := f.index, e.line
	args := make([]argFn, len(e.args))
	for i, a := range e.args {
		args[i] = c.argument(a)
	}
	return func(m *machine) value { return m.call(&m.funcs[index], args, line) }
}

func (c *compiler) indirect(e *indirectExpr) valueFn {
	name, line := c.str(e.fn), e.line
	args := make([]argFn, len(e.args))
	for i, a := range e.args {
		args[i] = c.argument(a)
	}
	simple := c.values(e.args)
	return func(m *machine) value {
		s := name(m)
		if f := m.prog.functions[s]; f != nil {
			return m.call(&m.funcs[f.index], args, line)
		}
		v, ok := m.simple(builtinOf(s), simple(m))
		if !ok {
			m.fatal("function called indirectly through `%s' does not exist", s)
		}
		return v
	}
}

func (c *compiler) getline(e *getlineExpr) numFn {
	var set func(*machine, value)
	missed := func(*machine) {}
	if e.lv != nil {
		set = c.setter(e.lv)
		if x, ok := e.lv.(*indexExpr); ok { // its subscript is computed even where there is no record
			at := c.element(x)
			missed = func(m *machine) { at(m) }
		}
	}
	if e.from == 0 {
		return func(m *machine) float64 {
			if set != nil && !m.made && m.in.r != nil {
				m.record() // which the reader is about to overwrite
			}
			rec, ok := m.nextRecord()
			if !ok {
				missed(m)
				return 0
			}
			if set != nil {
				m.fresh(len(rec))
				set(m, input(string(rec)))
			} else {
				m.setRecord(rec)
			}
			return 1
		}
	}
	src, from := c.str(e.src), e.from
	return func(m *machine) float64 {
		r := m.readerOf(from, src(m))
		if r == nil {
			missed(m)
			return -1
		}
		if !m.made {
			m.record()
		}
		rec, result := m.getline(r)
		if result != 1 {
			missed(m)
			return result
		}
		if from != '<' {
			m.nr++
		}
		if set == nil {
			m.setRecord(rec)
			return 1
		}
		m.fresh(len(rec))
		set(m, input(string(rec)))
		return 1
	}
}
