package parse

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// compoundCmd reads a compound command without its redirections, or gives nil.
func (p *Parser) compoundCmd() Command {
	t := p.peek()
	line := p.lineAt(t.start)
	if t.kind == tOp && t.op == "(" {
		return p.paren(line)
	}
	if t.kind != tWord {
		return nil
	}
	switch t.plain {
	case "{":
		p.skip()
		l := p.need()
		p.want("}")
		return &Group{l}
	case "if":
		return p.ifCmd()
	case "while", "until":
		w := &While{Until: t.plain == "until"}
		p.skip()
		w.Cond = p.need()
		w.Body = p.doBody()
		return w
	case "for", "select":
		return p.forCmd(line)
	case "case":
		return p.caseCmd(line)
	case "[[":
		start := t.start
		p.skip()
		x := p.cond()
		return &Cond{Line: line, X: x, Src: string(p.src[start:p.pos])}
	case "function":
		return p.function(line)
	case "coproc":
		return p.coproc(line)
	case "then", "else", "elif", "fi", "do", "done", "esac", "in", "]]", "}":
		p.unexpected()
	}
	return nil
}

// paren reads (( )) or ( ).
func (p *Parser) paren(line int) Command {
	start := p.tok.start
	if p.at(0) == '(' {
		from := p.pos + 1
		if end := p.arithEnd(from); end >= 0 {
			p.pos = from
			x := p.expr(end)
			p.pos = end + 2
			p.skip()
			return &Arith{Line: line, X: x, Src: string(p.src[start:p.pos])}
		}
	}
	p.skip()
	l := p.need()
	if !p.isOp(")") {
		p.unexpected()
	}
	src := p.source(start, p.tok.end)
	p.skip()
	return &Subshell{l, line, src}
}

func (p *Parser) ifCmd() Command {
	p.skip()
	c := &If{Cond: p.need()}
	p.want("then")
	c.Then = p.need()
	switch {
	case p.isWord("elif"):
		p.enter()
		defer p.leave()
		c.Else = p.ifCmd()
		return c
	case p.isWord("else"):
		p.skip()
		c.Else = p.need()
	}
	p.want("fi")
	return c
}

// doBody reads do list done, or a group.
func (p *Parser) doBody() *List {
	p.newlines()
	if p.isWord("{") {
		p.skip()
		l := p.need()
		p.want("}")
		return l
	}
	p.want("do")
	l := p.need()
	p.want("done")
	return l
}

func (p *Parser) forCmd(line int) Command {
	f := &For{Line: line, Select: p.tok.plain == "select"}
	p.noAssign = true
	p.skip()
	if p.isOp("(") && !f.Select && p.at(0) == '(' {
		return p.cfor(line)
	}
	t := p.peek()
	if t.kind != tWord {
		p.unexpected()
	}
	f.Name = t.word.Src
	p.skip()
	p.noAssign = false
	if p.isOp(";") {
		p.skip()
		f.Body = p.doBody()
		return f
	}
	p.newlines()
	if p.isWord("in") {
		f.In = true
		p.noAssign = true
		p.skip()
		for p.peek().kind == tWord || p.peek().kind == tIO && false {
			f.Items = append(f.Items, p.tok.word)
			p.skip()
		}
		p.noAssign = false
		switch {
		case p.isOp(";"), p.peek().kind == tNewline:
			p.skip()
		default:
			p.unexpected()
		}
	}
	f.Body = p.doBody()
	return f
}

func (p *Parser) cfor(line int) Command {
	c := &CFor{Line: line}
	p.pos++
	start := p.pos
	for i := range 3 {
		from := p.pos
		stops := ";"
		if i == 2 {
			stops = ""
		}
		ok := p.overPart(stops)
		end := p.pos
		if !ok || i < 2 && p.at(0) != ';' || i == 2 && p.at(1) != ')' {
			p.fail(start, p.end(), "syntax error: arithmetic expression required")
		}
		p.pos = from
		x := p.expr(end)
		if blankText(string(p.src[from:end])) {
			x = nil
		}
		switch i {
		case 0:
			c.Init = x
		case 1:
			c.Cond = x
		case 2:
			c.Post = x
		}
		p.pos = end + 1
	}
	p.pos++
	p.have, p.noAssign = false, false
	if p.isOp(";") {
		p.skip()
	}
	c.Body = p.doBody()
	return c
}

// overPart is over for a part of for (( )): no question marks are counted.
func (p *Parser) overPart(stop string) bool {
	if stop == "" {
		return p.over(')', "")
	}
	for {
		if !p.over(')', ";?") {
			return false
		}
		if p.at(0) != '?' {
			return true
		}
		p.pos++
	}
}

func blankText(s string) bool {
	for i := range len(s) {
		if s[i] != ' ' && s[i] != '\t' && s[i] != '\n' {
			return false
		}
	}
	return true
}

func (p *Parser) caseCmd(line int) Command {
	c := &Case{Line: line}
	p.noAssign = true
	p.skip()
	t := p.peek()
	if t.kind != tWord {
		p.unexpected()
	}
	c.Word = t.word
	c.Word.X = expand.Compile(c.Word.W, expand.Single)
	p.skip()
	p.newlines()
	p.want("in")
	for {
		p.newlines()
		if p.isWord("esac") {
			p.noAssign = false
			p.skip()
			return c
		}
		if p.isOp("(") {
			p.skip()
		}
		item := CaseItem{Op: syntax.Break}
		for {
			t := p.peek()
			switch t.kind {
			case tWord:
				item.Patterns = append(item.Patterns, t.word)
			case tIO:
				w := p.word([]syntax.WordPart{&syntax.Lit{Value: t.op}}, t.start, t.end)
				item.Patterns = append(item.Patterns, w)
			default:
				p.unexpected()
			}
			last := &item.Patterns[len(item.Patterns)-1]
			last.X = expand.Compile(last.W, expand.Pattern)
			p.skip()
			if !p.isOp("|") {
				break
			}
			p.skip()
		}
		if !p.isOp(")") {
			p.unexpected()
		}
		p.skip()
		p.noAssign = false
		item.Body = p.list()
		last := false
		switch t := p.peek(); {
		case t.kind == tOp && t.op == ";;":
		case t.kind == tOp && t.op == ";&":
			item.Op = syntax.Fallthrough
		case t.kind == tOp && t.op == ";;&":
			item.Op = syntax.Resume
		case t.plain == "esac":
			last = true
		default:
			p.unexpected()
		}
		c.Items = append(c.Items, item)
		p.noAssign = true
		if !last {
			p.skip()
		}
	}
}

func (p *Parser) function(line int) Command {
	p.noAssign = true
	p.skip()
	t := p.peek()
	if t.kind != tWord {
		p.unexpected()
	}
	name := t.word.Src
	p.skip()
	p.noAssign = false
	if p.isOp("(") {
		p.skip()
		if !p.isOp(")") {
			p.unexpected()
		}
		p.skip()
	}
	return p.funcBody(name, line)
}

func (p *Parser) funcBody(name string, line int) Command {
	p.enter()
	defer p.leave()
	p.defines = true
	p.noAssign = false
	p.newlines()
	for p.alias() {
		continue
	}
	at := p.lineAt(p.peek().start)
	body := p.compoundCmd()
	if body == nil {
		p.unexpected()
	}
	if f, ok := body.(*Func); ok {
		body = f
	}
	var redirs []*Redirect
	for p.redirNext() {
		redirs = append(redirs, p.redirect())
	}
	if len(redirs) > 0 {
		body = &Redirected{Body: body, Redirs: redirs, Line: at}
	}
	return &Func{Line: line, Name: name, Body: body}
}

func (p *Parser) coproc(line int) Command {
	start := p.tok.start
	p.skip()
	c := &Coproc{Line: line}
	t := p.peek()
	if t.kind == tWord && t.plain != "" && !reserved(t.plain) {
		// A name, if a compound command follows.
		save, at := p.tok, p.pos
		p.skip()
		if p.compoundNext() {
			c.Name = save.plain
		} else {
			p.tok, p.have, p.pos = save, true, at
			p.heredocs = nil
		}
	}
	c.Body = p.cmd()
	c.Src = p.source(start, p.peek().start)
	return c
}

func (p *Parser) compoundNext() bool {
	t := p.peek()
	if t.kind == tOp {
		return t.op == "("
	}
	return t.kind == tWord && reserved(t.plain)
}

func reserved(w string) bool {
	switch w {
	case "{", "if", "while", "until", "for", "select", "case", "[[", "function":
		return true
	}
	return false
}
