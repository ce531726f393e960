package calc

func (p *parser) expression() *node {
	p.enter()
	defer func() { p.depth-- }()
	l := p.and()
	for p.accept("||") {
		a, b := l, p.and()
		l = &node{eval: func(m *machine) *decimal {
			x, y := m.value(a), m.value(b)
			return truth(x.n.Sign() != 0 || y.n.Sign() != 0)
		}}
	}
	return l
}

func (p *parser) and() *node {
	l := p.not()
	for p.accept("&&") {
		a, b := l, p.not()
		l = &node{eval: func(m *machine) *decimal {
			x, y := m.value(a), m.value(b)
			return truth(x.n.Sign() != 0 && y.n.Sign() != 0)
		}}
	}
	return l
}

func (p *parser) not() *node {
	if p.tok.kind != "!" {
		return p.relation()
	}
	p.enter()
	defer func() { p.depth-- }()
	p.advance()
	x := p.not()
	return &node{eval: func(m *machine) *decimal { return truth(m.value(x).n.Sign() == 0) }}
}

func (p *parser) relation() *node {
	l := p.assignment()
	for {
		op := p.tok.kind
		switch op {
		case "==", "!=", "<", "<=", ">", ">=":
		default:
			return l
		}
		p.advance()
		a, b := l, p.assignment()
		l = &node{eval: func(m *machine) *decimal {
			x, y := m.value(a), m.value(b)
			c := m.e.cmp(x, y)
			switch op {
			case "==":
				return truth(c == 0)
			case "!=":
				return truth(c != 0)
			case "<":
				return truth(c < 0)
			case "<=":
				return truth(c <= 0)
			case ">":
				return truth(c > 0)
			}
			return truth(c >= 0)
		}}
	}
}

func (p *parser) assignment() *node {
	p.enter()
	defer func() { p.depth-- }()
	l := p.sum()
	op := p.tok.kind
	switch op {
	case "=", "+=", "-=", "*=", "/=", "%=", "^=":
	default:
		return l
	}
	if l.place == nil {
		p.fail()
	}
	p.advance()
	r, at := p.assignment(), l.place
	return &node{assign: true, eval: func(m *machine) *decimal {
		if op == "=" {
			i := m.index(at)
			v := m.value(r)
			m.store(at, i, v)
			return v
		}
		i := m.index(at)
		old := m.load(at, i)
		v := m.binary(op[0], old, m.value(r))
		m.store(at, i, v)
		return v
	}}
}

func (p *parser) binaryNode(op byte, a, b *node) *node {
	return &node{eval: func(m *machine) *decimal {
		x := m.value(a)
		return m.binary(op, x, m.value(b))
	}}
}

func (p *parser) sum() *node {
	l := p.product()
	for p.tok.kind == "+" || p.tok.kind == "-" {
		op := p.tok.kind[0]
		p.advance()
		l = p.binaryNode(op, l, p.product())
	}
	return l
}

func (p *parser) product() *node {
	l := p.power()
	for p.tok.kind == "*" || p.tok.kind == "/" || p.tok.kind == "%" {
		op := p.tok.kind[0]
		p.advance()
		l = p.binaryNode(op, l, p.power())
	}
	return l
}

func (p *parser) power() *node {
	l := p.unary()
	if p.tok.kind != "^" {
		return l
	}
	p.enter()
	defer func() { p.depth-- }()
	p.advance()
	return p.binaryNode('^', l, p.power())
}

func (p *parser) unary() *node {
	switch p.tok.kind {
	case "-":
		p.enter()
		defer func() { p.depth-- }()
		p.advance()
		x := p.unary()
		return &node{eval: func(m *machine) *decimal { return m.e.neg(m.value(x)) }}
	case "++", "--":
		step := int64(1)
		if p.tok.kind == "--" {
			step = -1
		}
		p.advance()
		x := p.primary()
		if x.place == nil {
			p.fail()
		}
		at := x.place
		return &node{eval: func(m *machine) *decimal {
			i := m.index(at)
			v := m.e.add(m.load(at, i), whole(step))
			m.store(at, i, v)
			return v
		}}
	}
	x := p.primary()
	if p.tok.kind == "++" || p.tok.kind == "--" {
		if x.place == nil {
			p.fail()
		}
		step := int64(1)
		if p.tok.kind == "--" {
			step = -1
		}
		p.advance()
		at := x.place
		return &node{eval: func(m *machine) *decimal {
			i := m.index(at)
			old := m.load(at, i)
			m.store(at, i, m.e.add(old, whole(step)))
			return old
		}}
	}
	return x
}

func placed(at *place) *node {
	return &node{place: at, eval: func(m *machine) *decimal { return m.load(at, m.index(at)) }}
}

func (p *parser) primary() *node {
	tok := p.tok
	switch tok.kind {
	case isNumber:
		p.advance()
		return constant(tok.text)
	case "(":
		p.advance()
		x := p.expression()
		p.expect(")")
		return &node{eval: x.eval}
	case "scale", "ibase", "obase", "last", "history":
		p.advance()
		if tok.kind == "scale" && p.accept("(") {
			x := p.expression()
			p.expect(")")
			return &node{eval: func(m *machine) *decimal { return whole(int64(m.value(x).scale)) }}
		}
		return placed(&place{special: tok.kind})
	case "length", "sqrt":
		p.advance()
		p.expect("(")
		x := p.expression()
		p.expect(")")
		return &node{eval: func(m *machine) *decimal { return m.builtin(tok.kind, m.value(x)) }}
	case "read", "random":
		p.advance()
		p.expect("(")
		p.expect(")")
		return &node{eval: func(m *machine) *decimal { return m.outside(tok.kind) }}
	case isName:
		p.advance()
		switch p.tok.kind {
		case "[":
			p.advance()
			x := p.expression()
			p.expect("]")
			return placed(&place{name: tok.text, index: x})
		case "(":
			p.advance()
			return p.call(tok.text)
		}
		return placed(&place{name: tok.text})
	}
	p.fail()
	return nil
}

// An argument is a value, or an array by its name.
type argument struct {
	x     *node
	array string
}

func (p *parser) call(name string) *node {
	var args []argument
	for p.tok.kind != ")" {
		if array, ok := p.wholeArray(); ok {
			args = append(args, argument{array: array})
		} else {
			args = append(args, argument{x: p.expression()})
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return &node{eval: func(m *machine) *decimal { return m.call(name, args) }}
}

// wholeArray reads "name[]" if that is what follows.
func (p *parser) wholeArray() (string, bool) {
	if p.tok.kind != isName {
		return "", false
	}
	name := p.tok
	p.advance()
	if p.tok.kind != "[" {
		p.unread(name)
		return "", false
	}
	p.advance()
	if p.accept("]") {
		return name.text, true
	}
	p.unread(name, token{kind: "["})
	return "", false
}
