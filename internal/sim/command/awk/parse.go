package awk

import (
	"strings"
)

// A parser reads a program. Errors are panics of *syntaxError, which parse
// catches.
type parser struct {
	lexer
	program

	load    func(name string) (string, error) // of @include
	nesting int                               // the most levels of syntax
	level   int
	chained int // operators in the function or rule at hand

	fn       *function
	apart    bool // the action is of BEGIN, END or the like
	filewise bool // of BEGINFILE
	locals   map[string]int
	loops    int
	switches,
	noIn, noGT int
	called map[string]int // names of functions with the line of a call
}

// maxChain is how many operators a function or rule may have.
const maxChain = 200_000

// A source is a part of the program text.
type source struct{ file, text string }

// parse reads a whole program.
func parse(sources []source, nesting int, load func(string) (string, error)) (p *program, err *syntaxError) {
	ps := &parser{load: load, nesting: nesting, called: map[string]int{}}
	ps.functions = map[string]*function{}
	ps.globals = map[string]int{}
	for _, name := range specials() {
		ps.global(name)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *syntaxError:
			p, err = nil, r
		default:
			panic(r)
		}
	}()
	included := map[string]bool{}
	for _, s := range sources {
		ps.source(s, included, 0)
	}
	for name, line := range ps.called {
		if ps.functions[name] == nil {
			panic(&syntaxError{file: ps.file, line: line, msg: "function `" + name + "' not defined", fatal: true})
		}
	}
	return &ps.program, nil
}

func (p *parser) source(s source, included map[string]bool, depth int) {
	old := p.lexer
	p.lexer = lexer{src: s.text, file: s.file, line: 1}
	p.next()
	for {
		p.skipEnds()
		if p.kind == tEOF {
			break
		}
		if p.kind == '@' {
			p.directive(included, depth)
			continue
		}
		p.item()
	}
	if depth > 0 {
		p.lexer = old
	}
}

// directive reads @include and its like.
func (p *parser) directive(included map[string]bool, depth int) {
	p.next()
	what := p.text
	p.next()
	if p.kind != tString {
		p.unexpected()
	}
	name := p.text
	switch what {
	case "include":
		if depth > 20 {
			p.fail("too many files include each other")
		}
		if !included[name] {
			included[name] = true
			text, err := p.load(name)
			if err != nil {
				p.fail("cannot open source file `" + name + "' for reading: " + err.Error())
			}
			p.source(source{name, text}, included, depth+1)
		}
	case "namespace":
	default:
		p.fail("@" + what + " is not supported")
	}
	p.next()
}

func (p *parser) skipEnds() {
	for p.kind == tNewline || p.kind == ';' {
		p.next()
	}
}

func (p *parser) skipLines() {
	for p.kind == tNewline {
		p.next()
	}
}

func (p *parser) unexpected() {
	what := "end of file"
	if p.kind == tNewline {
		what = "newline or end of string"
	} else if p.kind != tEOF {
		what = p.src[p.start:p.at]
	}
	p.line = p.begun
	p.fail("syntax error at or near " + what)
}

func (p *parser) expect(k tok) {
	if p.kind != k {
		p.unexpected()
	}
	p.next()
}

// down counts a level of syntax; up undoes it.
func (p *parser) down() {
	if p.level++; p.level > p.nesting {
		p.fail("syntax error: nested too deeply")
	}
}

func (p *parser) up() { p.level-- }

func (p *parser) global(name string) int {
	i, ok := p.globals[name]
	if !ok {
		i = len(p.names)
		p.globals[name] = i
		p.names = append(p.names, name)
	}
	return i
}

func (p *parser) item() {
	p.chained = 0
	switch p.kind {
	case tFunction:
		p.function()
		return
	case tBegin:
		p.begin = append(p.begin, p.special(false))
	case tEnd:
		p.end = append(p.end, p.special(false))
	case tBeginfile:
		p.beginFile = append(p.beginFile, p.special(true))
	case tEndfile:
		p.endFile = append(p.endFile, p.special(false))
	case '{':
		p.rules = append(p.rules, rule{body: p.block()})
	default:
		r := rule{from: p.expr()}
		if p.kind == ',' {
			p.next()
			p.skipLines()
			r.to = p.expr()
		}
		if p.kind == '{' {
			r.body = p.block()
		} else {
			r.prints = true
			if p.kind != tNewline && p.kind != ';' && p.kind != tEOF {
				p.unexpected()
			}
		}
		p.rules = append(p.rules, r)
	}
}

// special reads the action of a rule that is of no record.
func (p *parser) special(filewise bool) *blockStmt {
	p.next()
	p.apart, p.filewise = true, filewise
	b := p.action()
	p.apart, p.filewise = false, false
	return b
}

func (p *parser) action() *blockStmt {
	if p.kind != '{' {
		p.unexpected()
	}
	return p.block()
}

func (p *parser) function() {
	p.next()
	if p.kind != tName && p.kind != tFuncName {
		p.unexpected()
	}
	f := &function{name: p.text}
	if p.functions[f.name] != nil {
		p.fail("function name `" + f.name + "' previously defined")
	}
	p.functions[f.name] = f
	p.next()
	p.expect('(')
	p.skipLines()
	p.locals = map[string]int{}
	for p.kind != ')' {
		if p.kind != tName {
			p.unexpected()
		}
		if _, twice := p.locals[p.text]; twice {
			p.fail("function `" + f.name + "': parameter `" + p.text + "' duplicated")
		}
		if p.text == f.name {
			p.fail("function `" + f.name + "': cannot use function name as parameter name")
		}
		p.locals[p.text] = len(f.params)
		f.params = append(f.params, p.text)
		p.next()
		p.skipLines()
		if p.kind != ')' {
			p.expect(',')
			p.skipLines()
			if p.kind == ')' {
				p.unexpected()
			}
		}
	}
	p.next()
	p.skipLines()
	p.fn = f
	f.body = p.action()
	p.fn, p.locals = nil, nil
}

func (p *parser) block() *blockStmt {
	p.down()
	defer p.up()
	p.expect('{')
	b := &blockStmt{}
	for {
		p.skipEnds()
		if p.kind == '}' {
			break
		}
		if p.kind == tEOF {
			p.unexpected()
		}
		b.list = append(b.list, p.stmt())
	}
	p.next()
	return b
}

// body reads the statement that belongs to a loop or a condition.
func (p *parser) body() stmt {
	p.skipLines()
	if p.kind == ';' {
		p.next()
		return &blockStmt{}
	}
	return p.stmt()
}

// ends reads the end of a simple statement.
func (p *parser) ends() {
	switch p.kind {
	case ';', tNewline:
		p.next()
	case '}', tEOF:
	default:
		p.unexpected()
	}
}

func (p *parser) stmt() stmt {
	p.down()
	defer p.up()
	switch p.kind {
	case '{':
		return p.block()
	case tIf:
		return p.ifStmt()
	case tWhile:
		p.next()
		c := p.condition()
		if p.kind == ';' {
			p.next()
			return &whileStmt{c, &blockStmt{}}
		}
		p.loops++
		defer func() { p.loops-- }()
		return &whileStmt{c, p.body()}
	case tDo:
		return p.doStmt()
	case tFor:
		return p.forStmt()
	case tSwitch:
		return p.switchStmt()
	}
	s := p.simple()
	p.ends()
	return s
}

func (p *parser) condition() expr {
	p.expect('(')
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = 0, 0
	c := p.expr()
	p.noIn, p.noGT = noIn, noGT
	p.skipLines()
	p.expect(')')
	return c
}

func (p *parser) ifStmt() stmt {
	p.next()
	s := &ifStmt{c: p.condition()}
	s.yes = p.body()
	mark := p.lexer
	p.skipEnds()
	if p.kind != tElse {
		p.lexer = mark
		return s
	}
	p.next()
	s.no = p.body()
	return s
}

func (p *parser) doStmt() stmt {
	p.next()
	s := &doStmt{}
	p.loops++
	s.body = p.body()
	p.loops--
	p.skipEnds()
	p.expect(tWhile)
	s.c = p.condition()
	p.ends()
	return s
}

func (p *parser) forStmt() stmt {
	p.next()
	p.expect('(')
	if s := p.each(); s != nil {
		return s
	}
	s := &forStmt{}
	if p.kind != ';' {
		s.init = p.simple()
	}
	p.expect(';')
	p.skipLines()
	if p.kind != ';' {
		s.c = p.expr()
	}
	p.expect(';')
	p.skipLines()
	if p.kind != ')' {
		s.step = p.simple()
	}
	p.skipLines()
	p.expect(')')
	if p.kind == ';' {
		p.next()
		s.body = &blockStmt{}
		return s
	}
	p.loops++
	s.body = p.body()
	p.loops--
	return s
}

// each reads "for (k in a)" from behind the parenthesis, or nothing.
func (p *parser) each() stmt {
	mark := p.lexer
	paren := p.kind == '('
	if paren {
		p.next()
	}
	if p.kind == tName {
		name := p.text
		p.next()
		if p.kind == tIn {
			p.next()
			if p.kind == tName {
				a := p.arrayRef()
				if p.kind == ')' {
					p.next()
					if paren && p.kind == ')' {
						p.next()
					}
					s := &eachStmt{v: p.variable(name), a: a}
					p.loops++
					defer func() { p.loops-- }()
					if p.kind == ';' {
						p.next()
						s.body = &blockStmt{}
						return s
					}
					s.body = p.body()
					return s
				}
			}
		}
	}
	p.lexer = mark
	return nil
}

// arrayRef reads a name, with subscripts that lead to an array within.
func (p *parser) arrayRef() expr {
	if p.kind != tName {
		p.unexpected()
	}
	var e expr = p.variable(p.text)
	p.next()
	for p.kind == '[' {
		e = &indexExpr{e, p.subscripts()}
	}
	return e
}

func (p *parser) switchStmt() stmt {
	p.next()
	s := &switchStmt{e: p.condition()}
	p.skipLines()
	p.expect('{')
	p.switches++
	defer func() { p.switches-- }()
	for {
		p.skipEnds()
		switch p.kind {
		case '}':
			p.next()
			return s
		case tCase:
			p.next()
			p.down()
			s.cases = append(s.cases, switchCase{label: p.unary()})
			p.up()
			p.expect(':')
		case tDefault:
			p.next()
			p.expect(':')
			s.cases = append(s.cases, switchCase{})
		default:
			if len(s.cases) == 0 || p.kind == tEOF {
				p.unexpected()
			}
			c := &s.cases[len(s.cases)-1]
			c.body = append(c.body, p.stmt())
		}
	}
}

// simple reads a statement that has no statements in it.
func (p *parser) simple() stmt {
	switch p.kind {
	case tPrint, tPrintf:
		return p.print()
	case tDelete:
		return p.delete()
	case tBreak:
		p.within(p.loops+p.switches > 0, "`break' is not allowed outside a loop or switch")
		return &jumpStmt{breaks}
	case tContinue:
		p.within(p.loops > 0, "`continue' is not allowed outside a loop")
		return &jumpStmt{continues}
	case tNext:
		p.within(!p.apart, "`next' used in BEGIN or END action")
		return &jumpStmt{nexts}
	case tNextfile:
		p.within(!p.apart || p.filewise, "`nextfile' used in BEGIN or END action")
		return &jumpStmt{nextfiles}
	case tExit:
		p.next()
		return &exitStmt{p.optional()}
	case tReturn:
		p.within(p.fn != nil, "`return' used outside function context")
		return &returnStmt{p.optional()}
	}
	return &exprStmt{p.expr()}
}

func (p *parser) within(ok bool, msg string) {
	if !ok {
		p.fail(msg)
	}
	p.next()
}

func (p *parser) optional() expr {
	switch p.kind {
	case ';', tNewline, '}', tEOF:
		return nil
	}
	return p.expr()
}

func (p *parser) delete() stmt {
	p.next()
	paren := p.kind == '('
	if paren {
		p.next()
	}
	e := p.arrayRef()
	if paren {
		p.expect(')')
	}
	if i, ok := e.(*indexExpr); ok {
		return &deleteStmt{a: i.base, subs: i.subs}
	}
	return &deleteStmt{a: e, all: true}
}

func (p *parser) print() stmt {
	s := &printStmt{format: p.kind == tPrintf}
	p.next()
	noIn := p.noIn
	p.noGT++
	p.noIn = 0
	if !p.printEnds() {
		s.args = p.list()
		if len(s.args) == 1 {
			if l, ok := s.args[0].(*listExpr); ok {
				s.args = l.list
			} else if g, ok := s.args[0].(*groupExpr); ok {
				s.args = []expr{g.e}
			}
		}
	}
	p.noIn = noIn
	for _, a := range s.args {
		if _, ok := a.(*listExpr); ok {
			p.unexpected()
		}
	}
	if s.format && len(s.args) == 0 {
		p.unexpected()
	}
	switch p.kind {
	case '>', tAppend, '|', tCoproc:
		s.to = p.kind
		p.next()
		if s.to == '|' || s.to == tCoproc {
			s.dest = p.concat()
		} else {
			s.dest = p.ternary()
		}
	}
	p.noGT--
	return s
}

func (p *parser) printEnds() bool {
	switch p.kind {
	case ';', tNewline, '}', tEOF, '>', tAppend, '|', tCoproc:
		return true
	}
	return false
}

// list reads expressions between commas.
func (p *parser) list() []expr {
	var list []expr
	for {
		list = append(list, p.expr())
		if p.kind != ',' {
			return list
		}
		p.next()
		p.skipLines()
	}
}

// variable gives what a name means here.
func (p *parser) variable(name string) *nameExpr {
	if i, ok := p.locals[name]; ok {
		return &nameExpr{name, true, i}
	}
	name = strings.TrimPrefix(name, "awk::")
	return &nameExpr{name, false, p.global(name)}
}
