package parse

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// assignment reads name=value, name+=value, name[subscript]=value and, where
// there may be one, name=( … ). It is false, and reads nothing, where the word
// is none of these.
func (p *Parser) assignment(t *token) bool {
	start := p.pos
	n := 1
	for p.joinAt(n); nameByte(p.at(n)); p.joinAt(n) {
		n++
	}
	c := p.at(n)
	if c != '=' && c != '[' && !(c == '+' && p.at(n+1) == '=') {
		return false
	}
	a := &syntax.Assign{Name: p.lit(n)}
	if c == '[' {
		from := p.pos + 1
		p.pos = from
		if !p.over(']', "") {
			if !p.declares {
				p.unclosed(start, "]")
			}
			p.pos = start
			return false
		}
		if d := p.at(1); d != '=' && !(d == '+' && p.at(2) == '=') {
			p.pos = start
			return false
		}
		end := p.pos
		p.pos = from
		a.Index = p.textWord(end, mode{text: true})
		p.pos = end + 1
	}
	if p.at(0) == '+' {
		a.Append = true
		p.pos++
	}
	p.pos++
	value := p.pos
	switch {
	case p.at(0) == '(' && p.eval:
		p.pos++
		if !p.over(')', "") {
			p.unclosed(start, ")")
		}
		end := p.pos + 1
		w := p.textWordAt(start, end)
		t.word = p.word(w.Parts, start, end)
		t.end = end
		return true
	case p.at(0) == '(':
		a.Array = p.array()
		if list := p.src[value:p.pos]; !p.end() && !meta(p.at(0)) && !bytes.Contains(list, []byte("$(")) && bytes.IndexByte(list, '`') < 0 {
			// What looks like a list and goes on is a plain value. Commands
			// in it would be read again at each level of nesting.
			a.Array = nil
			a.Value = p.plainValue(value)
		}
		t.word.Src = string(p.src[start:p.pos])
	default:
		parts := p.parts(mode{})
		if len(parts) > 0 {
			a.Value = &syntax.Word{Parts: parts}
		}
		// The word as a whole, where it is an argument.
		whole := append([]syntax.WordPart{&syntax.Lit{Value: string(p.src[start:value])}}, parts...)
		t.word = p.word(whole, start, p.pos)
	}
	t.end = p.pos
	t.assign = &Assign{X: expand.CompileAssignment(a), Name: a.Name.Value, Src: string(p.src[start:p.pos]), Line: p.lineAt(start)}
	t.word.Assign = t.assign
	return true
}

// plainValue reads a value that begins with a parenthesis.
func (p *Parser) plainValue(from int) *syntax.Word {
	w := p.textWordAt(from, p.pos)
	w.Parts = append(w.Parts, p.parts(mode{})...)
	return w
}

// array reads ( … ) after "=".
func (p *Parser) array() *syntax.ArrayExpr {
	p.enter()
	defer p.leave()
	defer func() {
		r := recover()
		if b, ok := r.(bail); ok {
			if e, ok := b.err.(*SyntaxError); ok {
				e.Array = true
			}
		}
		if r != nil {
			panic(r)
		}
	}()
	list := &syntax.ArrayExpr{}
	tok, have, no, eval := p.tok, p.have, p.noAssign, p.eval
	start := p.pos
	p.pos++
	p.noAssign = true
	for {
		p.have = false
		p.blanks()
		if p.end() {
			p.unclosed(start, ")")
		}
		switch p.src[p.pos] {
		case '\n':
			p.pos++
			if len(p.heredocs) > 0 {
				p.readHeredocs()
			}
			continue
		case ')':
			p.pos++
			p.tok, p.have, p.noAssign, p.eval = tok, have, no, eval
			return list
		case '[':
			if e, ok := p.element(); ok {
				list.Elems = append(list.Elems, e)
				continue
			}
		}
		t := p.peek()
		if t.kind != tWord && t.kind != tIO {
			p.unexpected()
		}
		w := t.word.W
		if t.kind == tIO {
			w = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: t.op}}}
		}
		p.skip()
		list.Elems = append(list.Elems, &syntax.ArrayElem{Value: w})
	}
}

// element reads [subscript]=value, or nothing.
func (p *Parser) element() (e *syntax.ArrayElem, ok bool) {
	start := p.pos
	p.pos++
	from := p.pos
	if !p.over(']', "") {
		p.pos = start
		return nil, false
	}
	end := p.pos
	add := p.at(1) == '+' && p.at(2) == '='
	if p.at(1) != '=' && !add || end == from {
		p.pos = start
		return nil, false
	}
	p.pos = from
	e = &syntax.ArrayElem{Index: p.textWord(end, mode{text: true})}
	p.pos = end + 2
	if add {
		p.pos++
		// The tree has no place for it: a comment says that it appends.
		e.Comments = []syntax.Comment{{Text: "+="}}
	}
	if parts := p.parts(mode{}); len(parts) > 0 {
		e.Value = &syntax.Word{Parts: parts}
	}
	return e, true
}

// A heredoc is a here-document whose body is still to be read.
type heredoc struct {
	r     *Redirect
	delim string
	strip bool
	line  int
}

// readHeredocs reads the bodies that begin on this line.
func (p *Parser) readHeredocs() {
	list := p.heredocs
	p.heredocs = nil
	for _, h := range list {
		p.readHeredoc(h)
	}
}

func (p *Parser) readHeredoc(h *heredoc) {
	var body []byte
	first := p.Line()
	joined := false
	delim := h.delim
	if h.strip {
		delim = strings.TrimLeft(delim, "\t")
	}
	var logical []byte // the line with those that are joined to it
	start := 0         // of it, in body
	for {
		if p.end() {
			if p.opt.Warn != nil {
				p.opt.Warn(p.Line(), "here-document at line %d delimited by end-of-file (wanted `%s')", h.line, h.delim)
			}
			break
		}
		n := bytes.IndexByte(p.src[p.pos:p.limit()], '\n')
		for n < 0 && p.fill() {
			n = bytes.IndexByte(p.src[p.pos:p.limit()], '\n')
		}
		line := p.src[p.pos:p.limit()]
		if n >= 0 {
			line = p.src[p.pos : p.pos+n+1]
		}
		p.pos += len(line)
		if h.strip && !joined {
			line = bytes.TrimLeft(line, "\t")
		}
		text := bytes.TrimSuffix(line, []byte{'\n'})
		if joined {
			logical = append(logical, text...)
		} else {
			logical, start = append(logical[:0], text...), len(body)
		}
		if !h.r.Quoted && n >= 0 && oddBackslashes(text) {
			logical = logical[:len(logical)-1]
		} else if string(logical) == delim {
			body = body[:start]
			break
		}
		// In $( ) the end may stand right after the delimiter.
		if rest, ok := strings.CutPrefix(string(text), h.delim); ok && !joined && p.inSubst > 0 && h.delim != "" && rest != "" && rest[0] == ')' {
			p.pos -= len(line) - len(h.delim)
			break
		}
		body = append(body, line...)
		joined = !h.r.Quoted && oddBackslashes(text)
	}
	p.grow(len(body))
	h.r.Raw = string(body)
	if h.r.Quoted {
		return
	}
	if bytes.IndexByte(body, '$') < 0 && bytes.IndexByte(body, '`') < 0 && bytes.IndexByte(body, '\\') < 0 {
		return
	}
	sub := newParser(p.opt)
	sub.src, sub.atEOF, sub.lineNo, sub.depth = body, true, first, p.depth
	if p.inSubst > 0 {
		sub.inSubst = 1
	}
	h.r.Hdoc = expand.Compile(sub.document(), expand.Document)
}

// document reads a body. One that is wrong is found so when it is expanded.
func (p *Parser) document() (w *syntax.Word) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case bail:
			if _, deep := r.err.(*TooDeep); deep {
				panic(r)
			}
			w = &syntax.Word{Parts: []syntax.WordPart{
				&syntax.ParamExp{Param: &syntax.Lit{Value: string(p.src)}, Flags: &syntax.Lit{}},
			}}
		default:
			panic(r)
		}
	}()
	return &syntax.Word{Parts: p.parts(mode{dq: true, hdoc: true})}
}

func oddBackslashes(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// delimiter gives a here-document's delimiter: its word without quotes.
func delimiter(src string) (text string, quoted bool) {
	if !strings.ContainsAny(src, "\\'\"") {
		return src, false
	}
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == c:
			quote = 0
		case quote == 0 && c == '$' && i+1 < len(src) && (src[i+1] == '\'' || src[i+1] == '"'):
		case c == '\\' && quote != '\'' && i+1 < len(src) && src[i+1] == '\n':
			i++
		case c == '\\' && quote != '\'' && i+1 < len(src):
			if n := src[i+1]; quote == 0 || strings.IndexByte("$`\"\\", n) >= 0 {
				i++
				c = n
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), strings.ContainsAny(strings.ReplaceAll(src, "\\\n", ""), "\\'\"")
}
