package parse

import (
	"math"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// item reads a command of a list and its separator, and tells whether there
// was one.
func (p *Parser) item(l *List) bool {
	start := p.peek().start
	line := p.lineAt(start)
	cmd := p.andOr()
	sep := true
	switch {
	case p.isOp("&"):
		cmd = &Async{Cmd: cmd, Line: line, Src: p.source(start, p.tok.start)}
		p.skip()
	case p.isOp(";"):
		p.skip()
	default:
		sep = false
	}
	l.Items = append(l.Items, cmd)
	return sep
}

// source gives the text between two positions without blanks at its end.
func (p *Parser) source(start, end int) string {
	end = min(end, len(p.src))
	if start > end {
		return ""
	}
	for end > start && (p.src[end-1] == ' ' || p.src[end-1] == '\t' || p.src[end-1] == '\n') {
		end--
	}
	return string(p.src[start:end])
}

// list reads commands up to something that cannot start one.
func (p *Parser) list() *List {
	p.enter()
	defer p.leave()
	l := &List{}
	p.noAssign, p.eval, p.declares = false, false, false
	p.newlines()
	for !p.listEnd() {
		if p.peek().kind == tNewline {
			p.newlines()
			continue
		}
		sep := p.item(l)
		if p.peek().kind == tNewline {
			sep = true
		}
		p.newlines()
		if !sep {
			break
		}
	}
	return l
}

func (p *Parser) listEnd() bool {
	for n := 0; p.alias(); n++ {
		if n > p.opt.Depth {
			panic(bail{&TooDeep{p.opt.Depth}})
		}
	}
	t := p.peek()
	switch t.kind {
	case tEOF:
		return true
	case tOp:
		switch t.op {
		case ")", ";;", ";&", ";;&":
			return true
		}
	case tWord:
		switch t.plain {
		case "then", "else", "elif", "fi", "do", "done", "esac", "in", "]]", "}":
			return true
		}
	}
	return false
}

// need reads a list that must not be empty.
func (p *Parser) need() *List {
	l := p.list()
	if len(l.Items) == 0 {
		p.unexpected()
	}
	return l
}

// want takes a reserved word.
func (p *Parser) want(word string) {
	if !p.isWord(word) {
		p.unexpected()
	}
	p.skip()
}

func (p *Parser) andOr() Command {
	first := p.pipeline()
	if !p.isOp("&&") && !p.isOp("||") {
		return first
	}
	a := &AndOr{First: first}
	for p.isOp("&&") || p.isOp("||") {
		or := p.tok.op == "||"
		p.skip()
		p.newlines()
		a.Rest = append(a.Rest, AndOrPart{or, p.pipeline()})
	}
	return a
}

func (p *Parser) pipeline() Command {
	pl := &Pipeline{Line: p.lineAt(p.peek().start)}
	start := p.tok.start
	for {
		p.noAssign, p.eval, p.declares = false, false, false
		if p.alias() {
			continue
		}
		if p.isWord("!") {
			pl.Not = !pl.Not
			p.skip()
		} else if p.isWord("time") {
			p.skip()
			if p.isWord("-p") {
				pl.Posix = true
				p.skip()
			}
			if p.isWord("--") {
				p.skip()
			}
			pl.Timed = true
		} else {
			break
		}
		if p.bare() {
			return pl
		}
	}
	pl.Cmds = append(pl.Cmds, p.cmd())
	for p.isOp("|") || p.isOp("|&") {
		if p.tok.op == "|&" {
			last := &pl.Cmds[len(pl.Cmds)-1]
			*last = withErrors(*last, p.lineAt(p.tok.start))
		}
		p.skip()
		p.newlines()
		p.noAssign, p.eval, p.declares = false, false, false
		pl.Cmds = append(pl.Cmds, p.cmd())
	}
	if len(pl.Cmds) == 1 && !pl.Not && !pl.Timed {
		return pl.Cmds[0]
	}
	pl.Src = p.source(start, p.peek().start)
	return pl
}

// withErrors gives a command the redirection that "|&" is short for: its last.
func withErrors(c Command, line int) Command {
	r := &Redirect{Op: syntax.DplOut, FD: 2, Word: Word{Src: "1", Text: "1", Fixed: true}}
	switch c := c.(type) {
	case *Simple:
		c.Redirs = append(c.Redirs, r)
		return c
	case *Redirected:
		c.Redirs = append(c.Redirs, r)
		return c
	}
	return &Redirected{Body: c, Redirs: []*Redirect{r}, Line: line}
}

// bare reports whether nothing follows "!" or "time".
func (p *Parser) bare() bool {
	t := p.peek()
	return t.kind == tNewline || t.kind == tEOF || t.kind == tOp && (t.op == ";" || t.op == "&" || t.op == "&&" || t.op == "||" || t.op == ")")
}

// cmd reads one command with its redirections.
func (p *Parser) cmd() Command {
	p.enter()
	defer p.leave()
	p.grow(240)
	p.noAssign, p.eval, p.declares = false, false, false
	n := 0
	for p.alias() {
		if n++; n > p.opt.Depth {
			panic(bail{&TooDeep{p.opt.Depth}})
		}
	}
	t := p.peek()
	line := p.lineAt(t.start)
	body := p.compoundCmd()
	if body == nil {
		return p.simple()
	}
	if _, ok := body.(*Func); ok {
		return body
	}
	var redirs []*Redirect
	for p.redirNext() {
		redirs = append(redirs, p.redirect())
	}
	if len(redirs) > 0 {
		return &Redirected{Body: body, Redirs: redirs, Line: line}
	}
	return body
}

func (p *Parser) redirNext() bool {
	t := p.peek()
	return t.kind == tIO || t.kind == tOp && redirOp(t.op)
}

// simple reads a simple command, or the definition of a function.
func (p *Parser) simple() Command {
	s := &Simple{}
	start := p.peek().start
	s.Line = p.lineAt(start)
	p.noAssign, p.eval, p.declares = false, false, false
	for {
		t := p.peek()
		switch {
		case p.redirNext():
			s.Redirs = append(s.Redirs, p.redirect())
			continue
		case t.kind == tWord:
			if p.simpleWord(s) {
				continue
			}
			p.skip() // the closing parenthesis
			return p.funcBody(s.Words[0].Src, s.Line)
		case t.kind == tOp && t.op == "(" && len(s.Words)+len(s.Redirs)+len(s.Assigns) > 0:
			p.unexpected()
		}
		break
	}
	if len(s.Words)+len(s.Redirs)+len(s.Assigns) == 0 {
		p.unexpected()
	}
	p.noAssign, p.eval, p.declares = false, false, false
	s.Src = p.source(start, p.peek().start)
	s.fix()
	return s
}

// fix finds out whether the arguments are always the same.
func (s *Simple) fix() {
	for i := range s.Words {
		if !s.Words[i].Fixed || s.Declares && s.Words[i].Assign != nil {
			return
		}
	}
	if len(s.Words) == 0 {
		return
	}
	s.Args = make([]string, len(s.Words))
	for i := range s.Words {
		s.Args[i] = s.Words[i].Text
	}
}

// simpleWord takes a word of a simple command; false is that it is the name
// of a function that is defined.
func (p *Parser) simpleWord(s *Simple) bool {
	t := p.peek()
	if len(s.Words) > 0 {
		if p.nextAlias() {
			return true
		}
		t = p.peek()
		if s.wrapped {
			switch {
			case declaration(t.plain):
				s.Declares, s.wrapped = true, false
			case t.plain == "command":
			default:
				s.wrapped = false
				p.noAssign = true
			}
		}
		if t.assign != nil && t.assign.X.IsList() && !s.Declares {
			p.fail(t.start+len(t.assign.Name)+1, false, "syntax error near unexpected token `('")
		}
		s.Words = append(s.Words, t.word)
		p.skip()
		return true
	}
	if t.assign != nil {
		s.Assigns = append(s.Assigns, t.assign)
		p.skip()
		return true
	}
	if p.alias() {
		return true
	}
	s.Words = append(s.Words, t.word)
	switch {
	case t.plain == "eval", t.plain == "let":
		p.eval = true
	case declaration(t.plain):
		s.Declares = true
		p.declares = true
	case t.plain == "command" && p.opt.Posix != nil && p.opt.Posix():
		// An option or the builtin's name follows; see Declares.
		s.wrapped = true
	default:
		p.noAssign = true
	}
	p.skip()
	if p.isOp("(") {
		if len(s.Assigns)+len(s.Redirs) > 0 {
			p.unexpected()
		}
		p.skip()
		if !p.isOp(")") {
			p.unexpected()
		}
		return false
	}
	return true
}

// redirect reads a redirection.
func (p *Parser) redirect() *Redirect {
	p.grow(240)
	r := &Redirect{FD: -1}
	no := p.noAssign
	p.noAssign = true
	t := p.peek()
	r.Line = p.lineAt(t.start)
	if t.kind == tIO {
		if t.op[0] == '{' {
			r.Var = t.op[1 : len(t.op)-1]
		} else if n, err := strconv.Atoi(t.op); err == nil && n <= math.MaxInt32 {
			r.FD = n
		} else {
			r.FD = math.MaxInt32
		}
		p.skip()
		t = p.peek()
	}
	op := t.op
	p.skip()
	t = p.peek()
	if t.kind == tIO {
		// cat <1>2: a word after all.
		t.kind = tWord
		t.word = p.word([]syntax.WordPart{&syntax.Lit{Value: t.op}}, t.start, t.end)
	}
	if t.kind != tWord {
		p.unexpected()
	}
	r.Word = t.word
	r.Op = redirOps(op)
	if r.Op == syntax.WordHdoc {
		r.Word.X = expand.Compile(r.Word.W, expand.Single)
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		delim, quoted := delimiter(t.word.Src)
		r.Quoted = quoted
		p.heredocs = append(p.heredocs, &heredoc{r: r, delim: delim, strip: r.Op == syntax.DashHdoc, line: r.Line})
	}
	p.noAssign = no
	p.skip()
	return r
}

func redirOps(op string) syntax.RedirOperator {
	switch op {
	case ">":
		return syntax.RdrOut
	case ">>":
		return syntax.AppOut
	case "<":
		return syntax.RdrIn
	case "<>":
		return syntax.RdrInOut
	case "<&":
		return syntax.DplIn
	case ">&":
		return syntax.DplOut
	case ">|":
		return syntax.RdrClob
	case "<<":
		return syntax.Hdoc
	case "<<-":
		return syntax.DashHdoc
	case "<<<":
		return syntax.WordHdoc
	case "&>":
		return syntax.RdrAll
	}
	return syntax.AppAll
}
