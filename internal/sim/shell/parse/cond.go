package parse

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// cond reads what follows "[[", with its "]]". The parser reads words here by
// itself: tokens are others than outside.
func (p *Parser) cond() syntax.TestExpr {
	p.have = false
	x := p.condOr()
	if !p.condWord("]]") {
		p.condFail()
	}
	p.pos += 2
	p.have = false
	return x
}

func (p *Parser) condFail() {
	p.condBlanks()
	p.condWrong("syntax error in conditional expression: unexpected token `%s'", "syntax error in conditional expression")
}

// condWrong complains about the next token, in other words if it is a word and
// word is not empty. A script ends there as if it had no more lines: that is
// what bash does.
func (p *Parser) condWrong(format, word string) {
	if p.at(0) != '\n' && p.end() {
		p.fail(p.pos, true, "unexpected EOF while looking for `]]'")
	}
	p.have = false
	p.noAssign = true
	t := p.peek()
	text := string(p.src[t.start:t.end])
	switch {
	case t.kind == tNewline:
		text = "newline"
	case t.kind == tWord && text != "]]" && word != "":
		p.failEnd(t.start, "%s", word)
	}
	p.failEnd(t.start, format, text)
}

func (p *Parser) failEnd(pos int, format string, args ...any) {
	panic(bail{&SyntaxError{Line: p.lineAt(min(pos, len(p.src))), Msg: fmt.Sprintf(format, args...), Ends: true}})
}

func (p *Parser) condBlanks() {
	for {
		p.blanks()
		if p.at(0) != '\n' {
			return
		}
		p.pos++
		if len(p.heredocs) > 0 {
			p.readHeredocs()
		}
	}
}

// condWord reports whether a word is next; it does not take it.
func (p *Parser) condWord(w string) bool {
	p.condBlanks()
	return p.isAt(w) && (p.pos+len(w) >= p.limit() || meta(p.at(len(w))))
}

// isAt reports whether text stands at the position.
func (p *Parser) isAt(w string) bool {
	for i := range len(w) {
		if p.at(i) != w[i] {
			return false
		}
	}
	return true
}

func (p *Parser) condOr() syntax.TestExpr {
	p.enter()
	defer p.leave()
	x := p.condAnd()
	for {
		p.condBlanks()
		if !p.isAt("||") {
			return x
		}
		pos := p.posAt(p.pos)
		p.pos += 2
		x = p.join(&syntax.BinaryTest{OpPos: pos, Op: syntax.OrTest, X: x, Y: p.condAnd()})
	}
}

func (p *Parser) condAnd() syntax.TestExpr {
	x := p.condTerm()
	for {
		p.condBlanks()
		if !p.isAt("&&") {
			return x
		}
		pos := p.posAt(p.pos)
		p.pos += 2
		x = p.join(&syntax.BinaryTest{OpPos: pos, Op: syntax.AndTest, X: x, Y: p.condTerm()})
	}
}

// join bounds how deep a chain of operators makes the tree.
func (p *Parser) join(b *syntax.BinaryTest) syntax.TestExpr {
	n := 0
	for x, ok := b.X.(*syntax.BinaryTest); ok; x, ok = x.X.(*syntax.BinaryTest) {
		if n++; n > p.opt.Depth {
			panic(bail{&TooDeep{p.opt.Depth}})
		}
	}
	return b
}

func (p *Parser) condTerm() syntax.TestExpr {
	p.enter()
	defer p.leave()
	p.condBlanks()
	start := p.pos
	switch {
	case p.condWord("]]"):
		p.failEnd(p.pos, "")
	case p.end():
		p.condFail()
	case p.condWord("!") && !(p.at(1) == '(' && p.extglob(&mode{})):
		p.pos++
		return &syntax.UnaryTest{OpPos: p.posAt(start), Op: syntax.TsNot, X: p.condTerm()}
	case p.at(0) == '(':
		p.pos++
		x := p.condOr()
		p.condBlanks()
		if p.at(0) != ')' {
			p.condWrong("unexpected token `%s', expected `)'", "expected `)'")
		}
		p.pos++
		return &syntax.ParenTest{Lparen: p.posAt(start), X: x}
	}
	if op, ok := unaryTest(p.at(1)); ok && p.at(0) == '-' && meta(p.at(2)) {
		p.pos += 2
		// Not an operator where an operator for two comes next.
		return &syntax.UnaryTest{OpPos: p.posAt(start), Op: op, X: p.condOperand(mode{}, "unexpected argument `%s' to conditional unary operator")}
	}
	w := p.condOperand(mode{}, "unexpected token `%s' in conditional command")
	p.blanks()
	op, n := p.binaryTest()
	if n == 0 {
		p.condBlanks()
		if c := p.at(0); !p.condWord("]]") && !p.isAt("&&") && !p.isAt("||") && c != ')' {
			p.condWrong("unexpected token `%s', conditional binary operator expected", "conditional binary operator expected")
		}
		return w
	}
	at := p.posAt(p.pos)
	p.pos += n
	m := mode{}
	switch op {
	case syntax.TsReMatch:
		m.regex = true
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		m.extglob = true
	}
	return &syntax.BinaryTest{OpPos: at, Op: op, X: w, Y: p.condOperand(m, "unexpected argument `%s' to conditional binary operator")}
}

func (p *Parser) condOperand(m mode, wrong string) *syntax.Word {
	p.blanks()
	parts := p.parts(m)
	if len(parts) == 0 || isLit(parts, "]]") {
		p.condWrong(wrong, "")
	}
	return &syntax.Word{Parts: parts}
}

// binaryTest finds the operator that is next and how long it is.
func (p *Parser) binaryTest() (syntax.BinTestOperator, int) {
	c, d := p.at(0), p.at(1)
	switch {
	case c == '<':
		return syntax.TsBefore, 1
	case c == '>':
		return syntax.TsAfter, 1
	case c == '=' && d == '=' && meta(p.at(2)):
		return syntax.TsMatch, 2
	case c == '=' && d == '~' && meta(p.at(2)):
		return syntax.TsReMatch, 2
	case c == '!' && d == '=' && meta(p.at(2)):
		return syntax.TsNoMatch, 2
	case c == '=' && meta(d):
		return syntax.TsMatchShort, 1
	case c == '-' && meta(p.at(3)):
		switch string([]byte{d, p.at(2)}) {
		case "eq":
			return syntax.TsEql, 3
		case "ne":
			return syntax.TsNeq, 3
		case "le":
			return syntax.TsLeq, 3
		case "ge":
			return syntax.TsGeq, 3
		case "lt":
			return syntax.TsLss, 3
		case "gt":
			return syntax.TsGtr, 3
		case "nt":
			return syntax.TsNewer, 3
		case "ot":
			return syntax.TsOlder, 3
		case "ef":
			return syntax.TsDevIno, 3
		}
	}
	return 0, 0
}

func unaryTest(c byte) (syntax.UnTestOperator, bool) {
	switch c {
	case 'a', 'e':
		return syntax.TsExists, true
	case 'f':
		return syntax.TsRegFile, true
	case 'd':
		return syntax.TsDirect, true
	case 'c':
		return syntax.TsCharSp, true
	case 'b':
		return syntax.TsBlckSp, true
	case 'p':
		return syntax.TsNmPipe, true
	case 'S':
		return syntax.TsSocket, true
	case 'L', 'h':
		return syntax.TsSmbLink, true
	case 'k':
		return syntax.TsSticky, true
	case 'g':
		return syntax.TsGIDSet, true
	case 'u':
		return syntax.TsUIDSet, true
	case 'G':
		return syntax.TsGrpOwn, true
	case 'O':
		return syntax.TsUsrOwn, true
	case 'N':
		return syntax.TsModif, true
	case 'r':
		return syntax.TsRead, true
	case 'w':
		return syntax.TsWrite, true
	case 'x':
		return syntax.TsExec, true
	case 's':
		return syntax.TsNoEmpty, true
	case 't':
		return syntax.TsFdTerm, true
	case 'z':
		return syntax.TsEmpStr, true
	case 'n':
		return syntax.TsNempStr, true
	case 'o':
		return syntax.TsOptSet, true
	case 'v':
		return syntax.TsVarSet, true
	case 'R':
		return syntax.TsRefVar, true
	}
	return 0, false
}

// isLit reports whether a word is that text, without quotes.
func isLit(parts []syntax.WordPart, text string) bool {
	if len(parts) != 1 {
		return false
	}
	l, ok := parts[0].(*syntax.Lit)
	return ok && l.Value == text
}
