package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// A mode says what ends a run of word parts and what is special in it.
type mode struct {
	dq      bool // as in double quotes
	close   byte // what ends it besides: '"' or '}'
	slash   bool // so does a slash
	text    bool // blanks and operators are text: up to p.stop
	bare    bool // double quotes are dropped
	hdoc    bool // of a here-document
	arith   bool // double quotes are quotes though dq is set
	extglob bool // extended patterns, whatever the option says
	regex   bool // of =~
}

// declarations are the builtins whose arguments may be assignments.
func declaration(name string) bool {
	switch name {
	case "declare", "export", "local", "readonly", "typeset":
		return true
	}
	return false
}

// scanWord reads a word into t.
func (p *Parser) scanWord(t *token) {
	t.kind = tWord
	if !p.noAssign && nameStart(p.at(0)) {
		if p.assignment(t) {
			return
		}
	}
	parts := p.parts(mode{})
	t.end = p.pos
	t.word = p.word(parts, t.start, t.end)
	if len(parts) == 1 {
		if l, ok := parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			t.plain = l.Value
		}
	}
	if t.end == t.start {
		p.pos++ // never: every byte that starts a word is part of one
	}
}

func (p *Parser) word(parts []syntax.WordPart, start, end int) Word {
	p.grow(200 + 2*(end-start))
	w := Word{W: &syntax.Word{Parts: parts}, Src: string(p.src[start:end])}
	w.Text, w.Fixed = fixed(parts)
	switch {
	case !w.Fixed:
		w.X = expand.Compile(w.W, expand.Field)
	case w.Text == w.Src:
		w.Text = w.Src // one string is enough
	}
	return w
}

// fixed gives what parts expand to where that is always the same one field.
func fixed(parts []syntax.WordPart) (string, bool) {
	text := ""
	for i, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			s, ok := fixedLit(x.Value, i == 0, len(parts) == 1)
			if !ok {
				return "", false
			}
			text += s
		case *syntax.SglQuoted:
			if x.Dollar {
				return "", false
			}
			text += x.Value
		case *syntax.DblQuoted:
			for _, in := range x.Parts {
				l, ok := in.(*syntax.Lit)
				if !ok || strings.IndexByte(l.Value, '\\') >= 0 {
					return "", false
				}
				text += l.Value
			}
		default:
			return "", false
		}
	}
	return text, len(parts) > 0
}

func fixedLit(s string, first, alone bool) (string, bool) {
	if alone && (s == "[" || s == "{" || s == "{}") {
		return s, true
	}
	if first && s != "" && s[0] == '~' {
		return "", false
	}
	if strings.ContainsAny(s, "*?[{\\(") || strings.Contains(s, "=~") || strings.Contains(s, ":~") {
		return "", false
	}
	return s, true
}

// parts reads word parts until what ends them, which it leaves.
func (p *Parser) parts(m mode) []syntax.WordPart {
	p.enter()
	defer p.leave()
	r := run{p: p, m: m}
	for !p.end() {
		if !r.step(p.src[p.pos]) {
			break
		}
	}
	if r.group > 0 {
		p.unclosed(p.pos, ")")
	}
	r.flush()
	return r.out
}

// A run collects the parts of a word.
type run struct {
	p     *Parser
	m     mode
	out   []syntax.WordPart
	lit   []byte
	start int // of lit
	group int // open parentheses of extended patterns or a regex
}

func (r *run) flush() {
	if len(r.lit) > 0 {
		r.p.grow(120 + len(r.lit))
		r.out = append(r.out, &syntax.Lit{
			ValuePos: r.p.posAt(r.start), ValueEnd: r.p.posAt(r.p.pos), Value: string(r.lit),
		})
		r.lit = r.lit[:0]
	}
}

// take adds n bytes of the source to the literal.
func (r *run) take(n int) {
	if len(r.lit) == 0 {
		r.start = r.p.pos
	}
	r.lit = append(r.lit, r.p.src[r.p.pos:r.p.pos+n]...)
	r.p.pos += n
}

func (r *run) add(part syntax.WordPart) { r.out = append(r.out, part) }

// step handles the byte at the position; false ends the run.
func (r *run) step(c byte) bool {
	p, m := r.p, &r.m
	if c == m.close && m.close != 0 && r.group == 0 || c == '/' && m.slash {
		return false
	}
	switch c {
	case '\\':
		r.backslash()
		return true
	case '$':
		r.flushFor(p.dollar(m.dq))
		return true
	case '`':
		r.flushFor(p.backquote(m.dq && !m.hdoc))
		return true
	case '"':
		if m.bare {
			p.pos++
			return true
		}
		if m.hdoc || m.dq && m.close == '"' {
			r.take(1)
			return true
		}
		r.flushFor(p.double(p.pos, false))
		return true
	case '\'':
		if m.dq && m.close == '}' && !m.hdoc && !p.posix() {
			r.apostrophes()
			return true
		}
		if m.dq {
			r.take(1)
			return true
		}
		r.flushFor(p.single(p.pos, false))
		return true
	}
	if m.dq || m.text {
		r.text()
		return true
	}
	return r.unquoted(c)
}

// apostrophes reads '…' within "${ }": the quotes are text, but what is between
// them does not end the expansion.
func (r *run) apostrophes() {
	p := r.p
	start := p.pos
	if !p.overTo('\'') {
		p.unclosed(start, "'")
	}
	end := p.pos
	p.pos = start
	r.take(1)
	r.flush()
	r.out = append(r.out, p.textWord(end, mode{dq: true, bare: true, text: true}).Parts...)
	r.take(1)
}

// flushFor adds a part that was read, after the literal before it.
func (r *run) flushFor(part syntax.WordPart) {
	if part == nil {
		r.take(1)
		return
	}
	r.flush()
	r.add(part)
}

// text takes what is not special between quotes.
func (r *run) text() {
	p := r.p
	i := p.pos + 1
	for i < p.limit() {
		switch c := p.src[i]; c {
		case '\\', '$', '`', '"', '\'', '}', '/':
			r.take(i - p.pos)
			return
		}
		i++
	}
	r.take(i - p.pos)
}

func (r *run) backslash() {
	p := r.p
	switch p.at(1) {
	case '\n':
		p.pos += 2
	case 0:
		if p.pos+1 >= p.limit() {
			if p.stop < 0 && !r.m.dq {
				p.pos++ // of the script: what bash does with it
				return
			}
			r.take(1)
			return
		}
		r.take(2)
	default:
		r.take(2)
	}
}

func (r *run) unquoted(c byte) bool {
	p, m := r.p, &r.m
	switch {
	case r.group > 0:
		switch c {
		case '(':
			r.group++
		case ')':
			r.group--
		}
		r.take(1)
		return true
	case m.close == '}':
		if (c == '<' || c == '>') && p.at(1) == '(' {
			r.flushFor(p.process())
			return true
		}
		r.take(1)
		return true
	case (c == '<' || c == '>') && p.at(1) == '(' && !m.regex:
		r.flushFor(p.process())
		return true
	case m.regex && c == '(':
		r.group++
		r.take(1)
		return true
	case m.regex && c == '|':
		r.take(1)
		return true
	case meta(c):
		return false
	case (c == '?' || c == '*' || c == '+' || c == '@' || c == '!') && p.at(1) == '(' && !m.regex && p.extglob(m):
		r.take(2)
		r.group++
		return true
	}
	i := p.pos + 1
	for i < p.limit() && plainByte(p.src[i]) {
		i++
	}
	r.take(i - p.pos)
	return true
}

func plainByte(c byte) bool {
	switch c {
	case '\\', '$', '`', '"', '\'', ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')', '?', '*', '+', '@', '!', '/':
		return false
	}
	return true
}

func (p *Parser) posix() bool { return p.opt.Posix != nil && p.opt.Posix() }

func (p *Parser) extglob(m *mode) bool {
	return m.extglob || p.opt.ExtGlob != nil && p.opt.ExtGlob()
}

// single reads a string in single quotes.
func (p *Parser) single(start int, dollar bool) syntax.WordPart {
	left := p.posAt(start)
	p.pos++
	from := p.pos
	for !p.end() {
		switch p.src[p.pos] {
		case '\\':
			if dollar && p.pos+1 < p.limit() {
				p.pos++
			}
		case '\'':
			q := &syntax.SglQuoted{Left: left, Right: p.posAt(p.pos), Dollar: dollar, Value: string(p.src[from:p.pos])}
			p.pos++
			return q
		}
		p.pos++
	}
	p.unclosed(start, "'")
	return nil
}

// double reads a string in double quotes.
func (p *Parser) double(start int, dollar bool) syntax.WordPart {
	q := &syntax.DblQuoted{Left: p.posAt(start), Dollar: dollar}
	p.pos++
	q.Parts = p.parts(mode{dq: true, close: '"'})
	if p.end() {
		p.unclosed(start, `"`)
	}
	q.Right = p.posAt(p.pos)
	p.pos++
	return q
}

// dollar reads what a "$" starts, or gives nil where it is just that.
func (p *Parser) dollar(dq bool) syntax.WordPart {
	start := p.pos
	p.joinAt(1)
	if p.at(1) == '(' {
		p.joinAt(2)
	}
	switch c := p.at(1); {
	case c == '\'' && !dq:
		p.pos++
		return p.single(start, true)
	case c == '"' && !dq:
		p.pos++
		return p.double(start, true)
	case c == '(' && p.at(2) == '(':
		if part := p.arithmetic(); part != nil {
			return part
		}
		return p.command()
	case c == '(':
		return p.command()
	case c == '[':
		return p.bracket()
	case c == '{':
		return p.param(dq)
	case nameStart(c):
		i := 2
		for p.joinAt(i); nameByte(p.at(i)); p.joinAt(i) {
			i++
		}
		return p.short(i)
	case c >= '0' && c <= '9' || c != 0 && strings.IndexByte("@*#?-$!", c) >= 0:
		return p.short(2)
	}
	return nil
}

func (p *Parser) short(n int) syntax.WordPart {
	x := &syntax.ParamExp{Dollar: p.posAt(p.pos), Short: true}
	p.pos++
	x.Param = p.lit(n - 1)
	return x
}

// lit takes n bytes as a literal.
func (p *Parser) lit(n int) *syntax.Lit {
	l := &syntax.Lit{ValuePos: p.posAt(p.pos), Value: string(p.src[p.pos : p.pos+n])}
	p.pos += n
	l.ValueEnd = p.posAt(p.pos)
	return l
}

// command reads $( ).
func (p *Parser) command() syntax.WordPart {
	c := &syntax.CmdSubst{Left: p.posAt(p.pos)}
	p.pos += 2
	body := &Body{Line: p.Line()}
	body.List = p.inside()
	c.Stmts = carry(body)
	c.Right = p.posAt(p.pos - 1)
	return c
}

// process reads <( ) and >( ).
func (p *Parser) process() syntax.WordPart {
	c := &syntax.ProcSubst{OpPos: p.posAt(p.pos), Op: syntax.CmdIn}
	if p.src[p.pos] == '>' {
		c.Op = syntax.CmdOut
	}
	p.pos += 2
	body := &Body{Line: p.Line()}
	body.List = p.inside()
	c.Stmts = carry(body)
	c.Rparen = p.posAt(p.pos - 1)
	return c
}

// inside reads commands up to a closing parenthesis, in the middle of a word.
func (p *Parser) inside() *List {
	p.enter()
	defer p.leave()
	tok, have, no, eval, stop := p.tok, p.have, p.noAssign, p.eval, p.stop
	p.have, p.noAssign, p.eval = false, false, false
	p.inSubst++
	l := p.list()
	if !p.isOp(")") {
		p.unexpected()
	}
	p.inSubst--
	p.tok, p.have, p.noAssign, p.eval, p.stop = tok, have, no, eval, stop
	return l
}

// backquote reads a command in backquotes; it is parsed when it is run.
func (p *Parser) backquote(dq bool) syntax.WordPart {
	start := p.pos
	c := &syntax.CmdSubst{Left: p.posAt(start), Backquotes: true}
	body := &Body{Line: p.Line()}
	p.pos++
	var text []byte
	for !p.end() {
		b := p.src[p.pos]
		if b == '`' {
			c.Right = p.posAt(p.pos)
			p.pos++
			body.Text = string(text)
			c.Stmts = carry(body)
			return c
		}
		if b == '\\' {
			switch d := p.at(1); {
			case d == '$', d == '`', d == '\\', d == '"' && dq:
				p.pos++
				b = d
			case d == '\n':
				p.pos += 2
				continue
			}
		}
		text = append(text, b)
		p.pos++
	}
	p.unclosed(start, "`")
	return nil
}

// textWordAt reads src[start:end] as one word.
func (p *Parser) textWordAt(start, end int) *syntax.Word {
	p.pos = start
	return p.textWord(end, mode{text: true})
}

// textWord reads src up to an end as one word in a mode.
func (p *Parser) textWord(end int, m mode) *syntax.Word {
	save := p.stop
	p.stop = end
	parts := p.parts(m)
	p.stop = save
	p.pos = end
	return &syntax.Word{Parts: parts}
}

// arithmetic reads $(( )), or gives nil where it is a command substitution
// that starts with a subshell.
func (p *Parser) arithmetic() syntax.WordPart {
	start := p.pos
	from := start + 3
	end := p.arithEnd(from)
	if end < 0 {
		p.pos = start
		return nil
	}
	x := &syntax.ArithmExp{Left: p.posAt(start)}
	p.pos = from
	x.X = p.textWord(end, mode{dq: true, arith: true, text: true})
	x.Right = p.posAt(p.pos)
	p.pos += 2
	return x
}

// expr reads src up to an end as an arithmetic expression.
func (p *Parser) expr(end int) *Expr {
	from := p.pos
	w := p.textWord(end, mode{dq: true, arith: true, text: true})
	return &Expr{W: w, X: expand.CompileArith(w), Src: string(p.src[from:end])}
}

// bracket reads $[ ].
func (p *Parser) bracket() syntax.WordPart {
	start := p.pos
	x := &syntax.ArithmExp{Left: p.posAt(start), Bracket: true}
	p.pos += 2
	from := p.pos
	if !p.over(']', "") {
		p.unclosed(start, "]")
	}
	end := p.pos
	p.pos = from
	x.X = p.textWord(end, mode{dq: true, arith: true, text: true})
	x.Right = p.posAt(end)
	p.pos = end + 1
	return x
}

// OneWord reads a text that is one word by itself: quotes or one expansion.
// It gives nil where it is not.
func OneWord(text string, o Options) (w *syntax.Word) {
	p := newParser(o)
	p.src, p.atEOF = []byte(text), true
	var err error
	defer func() {
		if err != nil {
			w = nil
		}
	}()
	defer p.guard(&err)
	parts := p.parts(mode{text: true})
	if !p.end() {
		return nil
	}
	return &syntax.Word{Parts: parts}
}
