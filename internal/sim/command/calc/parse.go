package calc

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
