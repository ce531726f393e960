package awk

// expr reads an expression of the lowest precedence.
func (p *parser) expr() expr {
	p.down()
	defer p.up()
	return p.ternary()
}

func (p *parser) ternary() expr {
	c := p.or()
	if p.kind != '?' {
		return c
	}
	p.down()
	defer p.up()
	p.next()
	p.skipLines()
	yes := p.ternary()
	p.skipLines()
	p.expect(':')
	p.skipLines()
	return &condExpr{c, yes, p.ternary()}
}

func (p *parser) or() expr {
	l := p.and()
	for p.kind == tOr {
		p.next()
		p.skipLines()
		p.chain()
		l = &logicExpr{true, l, p.and()}
	}
	return l
}

func (p *parser) and() expr {
	l := p.in()
	for p.kind == tAnd {
		p.next()
		p.skipLines()
		p.chain()
		l = &logicExpr{false, l, p.in()}
	}
	return l
}

// chain counts an operator of a chain, which nests to the left without any
// nesting in the text.
func (p *parser) chain() {
	if p.chained++; p.chained > maxChain {
		p.fail("syntax error: too many operators")
	}
}

func (p *parser) in() expr {
	l := p.match()
	for p.kind == tIn && p.noIn == 0 {
		p.next()
		p.chain()
		subs := []expr{l}
		if list, ok := l.(*listExpr); ok {
			subs = list.list
		}
		l = &inExpr{subs, p.arrayRef()}
	}
	return l
}

func (p *parser) match() expr {
	l := p.compare()
	for p.kind == '~' || p.kind == tNoMatch {
		not := p.kind == tNoMatch
		p.next()
		p.chain()
		l = &matchExpr{not, l, p.compare()}
	}
	return l
}

func (p *parser) compare() expr {
	l := p.concat()
	for {
		switch p.kind {
		case '<', tLE, tEQ, tNE, tGE:
		case '>':
			if p.noGT > 0 {
				return l
			}
		case '|', tCoproc:
			mark := p.lexer
			from := p.kind
			p.next()
			if p.kind != tGetline {
				p.lexer = mark
				return l
			}
			p.next()
			p.chain()
			l = &getlineExpr{from: from, src: l, lv: p.getlineTarget()}
			l = p.concatFrom(p.additiveFrom(p.multiplicativeFrom(l)))
			continue
		default:
			return l
		}
		op, line := p.kind, p.begun
		p.next()
		p.chain()
		l = &binaryExpr{op, l, p.concat(), line}
	}
}

// concat reads expressions side by side.
func (p *parser) concat() expr { return p.concatFrom(p.additive()) }

func (p *parser) concatFrom(l expr) expr {
	for p.operand() {
		line := p.begun
		p.chain()
		l = &binaryExpr{' ', l, p.additive(), line}
	}
	return l
}

// operand reports whether the token begins an operand of a concatenation.
func (p *parser) operand() bool {
	switch p.kind {
	case tNumber, tString, tTypedRegex, tName, tFuncName, tBuiltin, '$', '!', '(', '-', '+', tInc, tDec, '@':
		return true
	}
	return false
}

func (p *parser) additive() expr { return p.additiveFrom(p.multiplicative()) }

func (p *parser) additiveFrom(l expr) expr {
	for p.kind == '+' || p.kind == '-' {
		op, line := p.kind, p.begun
		p.next()
		p.chain()
		l = &binaryExpr{op, l, p.multiplicative(), line}
	}
	return l
}

func (p *parser) multiplicative() expr { return p.multiplicativeFrom(p.unary()) }

func (p *parser) multiplicativeFrom(l expr) expr {
	for p.kind == '*' || p.kind == '/' || p.kind == '%' {
		op, line := p.kind, p.begun
		p.next()
		p.chain()
		l = &binaryExpr{op, l, p.unary(), line}
	}
	return l
}

func (p *parser) unary() expr {
	switch p.kind {
	case '!', '-', '+':
		p.down()
		defer p.up()
		op := byte(p.kind)
		p.next()
		return &unaryExpr{op, p.unary()}
	}
	return p.power()
}

func (p *parser) power() expr {
	l := p.postfix(false)
	if p.kind != tPow {
		return l
	}
	line := p.begun
	p.next()
	p.down()
	defer p.up()
	return &binaryExpr{tPow, l, p.exponent(), line}
}

func (p *parser) exponent() expr {
	switch p.kind {
	case '!', '-', '+':
		p.down()
		defer p.up()
		op := byte(p.kind)
		p.next()
		return &unaryExpr{op, p.exponent()}
	}
	return p.power()
}

// isLvalue reports whether something can be assigned to.
func isLvalue(e expr) bool {
	switch e.(type) {
	case *nameExpr, *indexExpr, *fieldExpr:
		return true
	}
	return false
}

// postfix reads an operand with what is assigned to it or added behind it.
// bare is the operand of $ and its like, which an assignment does not belong
// to.
func (p *parser) postfix(bare bool) expr {
	e := p.primary()
	if !isLvalue(e) {
		return e
	}
	switch {
	case (p.kind == tInc || p.kind == tDec) && !bare:
		return p.inc(e)
	case p.kind == tAssign && !bare:
		p.down()
		defer p.up()
		op, line := p.op, p.begun
		p.next()
		p.skipLines()
		return &assignExpr{op, e, p.ternary(), line}
	}
	return e
}

// inc reads what is added behind an lvalue.
func (p *parser) inc(e expr) expr {
	delta := 1.0
	if p.kind == tDec {
		delta = -1
	}
	p.next()
	return &incExpr{e, delta, true}
}

func (p *parser) primary() expr {
	switch p.kind {
	case tNumber:
		n := p.num
		p.next()
		return &numberLit{n}
	case tString:
		s := p.text
		p.next()
		return &stringLit{s}
	case '/':
		p.regex()
		return p.literal(false)
	case tAssign:
		if p.op == '/' {
			p.at = p.start + 1
			p.regex()
			return p.literal(false)
		}
	case tTypedRegex:
		return p.literal(true)
	case '$':
		p.down()
		defer p.up()
		p.next()
		switch p.kind {
		case tInc, tDec:
			return &fieldExpr{p.prefix()}
		case '-', '+', '!':
			return &fieldExpr{p.unary()}
		case '$':
			e := p.primary()
			if p.kind == tInc || p.kind == tDec {
				e = p.inc(e) // $$a++ is $($a++)
			}
			return &fieldExpr{e}
		}
		return &fieldExpr{p.postfix(true)}
	case tInc, tDec:
		return p.prefix()
	case tName:
		return p.named()
	case tFuncName:
		name, line := p.text, p.begun
		if _, local := p.locals[name]; local {
			p.fail("attempt to use non-function `" + name + "' in function call")
		}
		if _, ok := p.called[name]; !ok {
			p.called[name] = line
		}
		p.next()
		return &callExpr{name, p.arguments(), line}
	case '@':
		p.next()
		if p.kind != tFuncName {
			p.unexpected()
		}
		fn, line := p.variable(p.text), p.begun
		p.next()
		return &indirectExpr{fn, p.arguments(), line}
	case tBuiltin:
		return p.builtin()
	case tGetline:
		p.next()
		g := &getlineExpr{lv: p.getlineTarget()}
		if p.kind == '<' {
			p.next()
			p.down()
			g.from, g.src = '<', p.postfix(true)
			p.up()
		}
		return g
	case '(':
		return p.group()
	case '-', '+', '!':
		return p.unary()
	}
	p.unexpected()
	return nil
}

func (p *parser) literal(typed bool) expr {
	s := p.text
	p.next()
	return &regexLit{s, typed}
}

// prefix reads ++x or --x.
func (p *parser) prefix() expr {
	p.down()
	defer p.up()
	delta := 1.0
	if p.kind == tDec {
		delta = -1
	}
	p.next()
	e := p.postfix(true)
	if !isLvalue(e) {
		// "x = ++5" means + +5.
		return &unaryExpr{'+', &unaryExpr{'+', e}}
	}
	return &incExpr{e, delta, false}
}

func (p *parser) named() expr {
	name := p.text
	p.next()
	if p.fn != nil && name == p.fn.name {
		p.fail("function `" + name + "' used as variable name")
	}
	var e expr = p.variable(name)
	for n := 0; p.kind == '['; n++ {
		if n > 100 {
			p.fail("syntax error: nested too deeply")
		}
		e = &indexExpr{e, p.subscripts()}
	}
	return e
}

func (p *parser) subscripts() []expr {
	p.down()
	defer p.up()
	p.next()
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = 0, 0
	p.skipLines()
	list := p.list()
	p.skipLines()
	p.noIn, p.noGT = noIn, noGT
	p.expect(']')
	return list
}

// group reads what is in parentheses.
func (p *parser) group() expr {
	p.down()
	defer p.up()
	p.next()
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = 0, 0
	p.skipLines()
	list := p.list()
	p.skipLines()
	p.noIn, p.noGT = noIn, noGT
	p.expect(')')
	if len(list) > 1 {
		if p.kind == tIn && p.noIn == 0 {
			p.next()
			return &inExpr{list, p.arrayRef()}
		}
		return &listExpr{list}
	}
	return &groupExpr{list[0]}
}

// arguments reads the arguments of a call, with both parentheses.
func (p *parser) arguments() []expr {
	p.down()
	defer p.up()
	p.expect('(')
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = 0, 0
	p.skipLines()
	var list []expr
	if p.kind != ')' {
		list = p.list()
	}
	p.skipLines()
	p.noIn, p.noGT = noIn, noGT
	p.expect(')')
	return list
}

func (p *parser) builtin() expr {
	b := &builtinExpr{f: builtinOf(p.text), line: p.begun}
	name := p.text
	p.next()
	if p.kind != '(' {
		if b.f != fLength {
			p.unexpected()
		}
		return b
	}
	b.args = p.arguments()
	least, most := b.f.arity()
	if len(b.args) < least || len(b.args) > most {
		panic(&syntaxError{file: p.file, line: p.line, msg: "wrong number of arguments of " + name, fatal: true})
	}
	return b
}

// getlineTarget reads the variable behind getline, if there is one.
func (p *parser) getlineTarget() expr {
	switch p.kind {
	case '$':
		p.down()
		defer p.up()
		p.next()
		switch p.kind {
		case tInc, tDec:
			return &fieldExpr{p.prefix()}
		}
		return &fieldExpr{p.postfix(true)}
	case tName:
		return p.named()
	}
	return nil
}
