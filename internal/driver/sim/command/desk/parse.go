package desk

// A node calculates an expression. An expression that is no value, a call of a
// void function, gives nil.
type node struct {
	eval   func(m *machine) *decimal
	place  *place // where it is stored, if it can be assigned to
	assign bool   // it is an assignment, whose value is not shown
}

// A place is a variable, an element of an array, or one of the special ones.
type place struct {
	name    string
	index   *node
	special string
}

// A signal says how a statement ended.
type signal uint8

const (
	goOn signal = iota
	breaks
	continues
	returns
)

// A statement does something.
type statement func(m *machine) signal

// A function of bc.
type function struct {
	void   bool
	params []param
	autos  []param
	body   []statement
}

type param struct {
	name      string
	array     bool
	reference bool
}

// A syntax error ends the parsing of a line.
type syntaxError struct{ text string }

// A parser reads statements. It recurses no deeper than the limit "nesting".
type parser struct {
	m     *machine
	lex   *lexer
	tok   token
	depth int

	pending []token // that come before what the lexer gives
}

func (p *parser) advance() {
	if len(p.pending) > 0 {
		p.tok, p.pending = p.pending[0], p.pending[1:]
		return
	}
	p.tok = p.lex.token()
}

// unread puts tokens before the one that is at hand.
func (p *parser) unread(tokens ...token) {
	p.pending = append(append(append([]token(nil), tokens[1:]...), p.tok), p.pending...)
	p.tok = tokens[0]
}

func (p *parser) fail() { panic(syntaxError{"syntax error"}) }

func (p *parser) accept(kind string) bool {
	if p.tok.kind == kind {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(kind string) {
	if p.tok.kind != kind {
		p.fail()
	}
	p.advance()
}

func (p *parser) enter() {
	p.depth++
	p.m.t.Bound("nesting", int64(p.depth), p.m.t.K.Limits.Nesting)
	p.m.t.Grow(128)
}

func (p *parser) newlines() {
	for p.tok.kind == endOfLine {
		p.advance()
	}
}

// item reads what stands up to the end of a line: statements, or a function,
// which it defines. more is false at the end of the file.
func (p *parser) item() (list []statement, more bool) {
	p.depth = 0
	p.advance()
	switch p.tok.kind {
	case endOfFile:
		return nil, false
	case "define":
		p.define()
		return nil, true
	}
	list = p.list(endOfLine)
	if p.tok.kind == endOfFile {
		p.fail() // a line has an end
	}
	return list, true
}

// list reads statements between semicolons.
func (p *parser) list(end string) []statement {
	var list []statement
	for {
		for p.tok.kind == ";" || p.tok.kind == endOfLine && end != endOfLine {
			p.advance()
		}
		if p.tok.kind == end || p.tok.kind == endOfFile {
			return list
		}
		list = append(list, p.statement())
		switch p.tok.kind {
		case ";", end, endOfFile:
		case endOfLine:
		default:
			p.fail()
		}
	}
}

func (p *parser) statement() statement {
	p.enter()
	defer func() { p.depth-- }()
	switch p.tok.kind {
	case isString:
		s := p.tok.text
		p.advance()
		return func(m *machine) signal {
			m.w.write(s)
			return goOn
		}
	case "{":
		p.advance()
		list := p.list("}")
		p.expect("}")
		return block(list)
	case "break":
		p.advance()
		return func(*machine) signal { return breaks }
	case "continue":
		p.advance()
		return func(*machine) signal { return continues }
	case "halt":
		p.advance()
		return func(m *machine) signal {
			m.t.Exit(0)
			return goOn
		}
	case "quit":
		// It works as soon as it is read.
		p.m.t.Exit(0)
	case "return":
		return p.returning()
	case "print":
		p.advance()
		return p.printing()
	case "if":
		return p.conditional()
	case "while":
		p.advance()
		p.expect("(")
		cond := p.expression()
		p.expect(")")
		p.newlines()
		body := p.statement()
		return loop(cond, body, nil)
	case "for":
		return p.counting()
	case "limits":
		p.advance()
		return func(m *machine) signal {
			m.w.write("BC_BASE_MAX     = 2147483647\nBC_DIM_MAX      = 16777215\nBC_SCALE_MAX    = 2147483647\nBC_STRING_MAX   = 2147483647\nMAX Exponent    = 9223372036854775807\nNumber of vars  = 32767\n")
			return goOn
		}
	case "warranty":
		p.advance()
		return func(m *machine) signal {
			m.w.write("\nbc (Paddock)\n")
			return goOn
		}
	}
	x := p.expression()
	return func(m *machine) signal {
		v := x.eval(m)
		if v != nil && !x.assign {
			m.show(v)
		}
		return goOn
	}
}

func block(list []statement) statement {
	return func(m *machine) signal {
		for _, s := range list {
			m.t.Step(1)
			if sig := s(m); sig != goOn {
				return sig
			}
		}
		return goOn
	}
}

func (p *parser) returning() statement {
	p.advance()
	switch p.tok.kind {
	case ";", endOfLine, "}", endOfFile:
		return func(m *machine) signal {
			m.result = whole(0)
			return returns
		}
	}
	x := p.expression()
	return func(m *machine) signal {
		m.result = m.value(x)
		return returns
	}
}

func (p *parser) printing() statement {
	var list []statement
	for {
		if p.tok.kind == isString {
			s := unescape(p.tok.text)
			p.advance()
			list = append(list, func(m *machine) signal {
				m.w.write(s)
				return goOn
			})
		} else {
			x := p.expression()
			list = append(list, func(m *machine) signal {
				m.last = m.value(x)
				m.w.write(m.e.show(m.last, m.obase))
				return goOn
			})
		}
		if !p.accept(",") {
			return block(list)
		}
	}
}

// unescape reads the escapes of print.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'a':
			b = append(b, '\a')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'q':
			b = append(b, '"')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'e', '\\':
			b = append(b, '\\')
		}
	}
	return string(b)
}

func (p *parser) conditional() statement {
	p.advance()
	p.expect("(")
	cond := p.expression()
	p.expect(")")
	p.newlines()
	then := p.statement()
	var otherwise statement
	if p.accept("else") {
		p.newlines()
		otherwise = p.statement()
	}
	return func(m *machine) signal {
		if m.value(cond).n.Sign() != 0 {
			return then(m)
		}
		if otherwise != nil {
			return otherwise(m)
		}
		return goOn
	}
}

func (p *parser) counting() statement {
	p.advance()
	p.expect("(")
	part := func(end string) *node {
		if p.tok.kind == end {
			p.advance()
			return nil
		}
		x := p.expression()
		p.expect(end)
		return x
	}
	first, cond, next := part(";"), part(";"), part(")")
	p.newlines()
	body := p.statement()
	return func(m *machine) signal {
		if first != nil {
			m.value(first)
		}
		return loop(cond, body, next)(m)
	}
}

func loop(cond *node, body statement, next *node) statement {
	return func(m *machine) signal {
		for {
			m.t.Step(1)
			if cond != nil && m.value(cond).n.Sign() == 0 {
				return goOn
			}
			switch body(m) {
			case breaks:
				return goOn
			case returns:
				return returns
			case goOn, continues:
			}
			if next != nil {
				m.value(next)
			}
		}
	}
}

// define reads a function.
func (p *parser) define() {
	p.advance()
	f := &function{}
	if p.accept("void") {
		f.void = true
	}
	if p.tok.kind != isName {
		p.fail()
	}
	name := p.tok.text
	p.advance()
	p.expect("(")
	if p.tok.kind != ")" {
		f.params = p.params()
	}
	p.expect(")")
	p.newlines()
	p.expect("{")
	p.newlines()
	if p.accept("auto") {
		f.autos = p.params()
		if p.tok.kind != ";" && p.tok.kind != endOfLine {
			p.fail()
		}
	}
	f.body = p.list("}")
	if p.tok.kind != "}" {
		p.fail()
	}
	p.m.functions[name] = f
	p.m.t.Grow(256)
	// What follows on the line is a line of its own.
}

func (p *parser) params() []param {
	var list []param
	for {
		x := param{reference: p.accept("*")}
		if p.tok.kind != isName {
			p.fail()
		}
		x.name = p.tok.text
		p.advance()
		if p.accept("[") {
			p.expect("]")
			x.array = true
		}
		list = append(list, x)
		if !p.accept(",") {
			return list
		}
	}
}

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

// constant is a number, which means what the base says when it is used.
func constant(text string) *node {
	base := 0
	var v *decimal
	return &node{eval: func(m *machine) *decimal {
		if v == nil || base != m.ibase {
			base, v = m.ibase, m.e.parse(text, m.ibase)
		}
		return v
	}}
}
