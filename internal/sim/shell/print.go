package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// A printer writes commands as bash shows functions.
type printer struct {
	b       strings.Builder
	indent  int
	flat    bool              // groups stand on one line
	flushed bool              // here-documents were written, and no semicolon left out since
	docs    []*parse.Redirect // here-documents whose bodies come with the next line
}

// printFunction gives the text of a function, as declare -f has it.
func printFunction(f *function) string {
	p := &printer{}
	p.function(f.name, f.body)
	p.b.WriteByte('\n')
	return p.b.String()
}

func (p *printer) function(name string, body parse.Command) {
	p.b.WriteString(name + " () \n" + strings.Repeat(" ", p.indent))
	var redirs []*parse.Redirect
	if r, ok := body.(*parse.Redirected); ok {
		if _, group := r.Body.(*parse.Group); group {
			body, redirs = r.Body, r.Redirs
		}
	}
	if g, ok := body.(*parse.Group); ok {
		p.b.WriteString("{ \n")
		p.block(g.Body, false)
		p.pad()
		p.b.WriteByte('}')
	} else {
		p.b.WriteString("{ \n")
		p.indent += 4
		p.pad()
		p.command(body)
		p.indent -= 4
		p.newline()
		p.pad()
		p.b.WriteByte('}')
	}
	p.redirs(redirs)
}

func (p *printer) pad() { p.b.WriteString(strings.Repeat(" ", p.indent)) }

// newline ends a line, and writes the here-documents that begin after it.
func (p *printer) newline() {
	p.flush()
	p.b.WriteByte('\n')
}

// flush writes the here-documents that begin on this line, if there are any.
func (p *printer) flush() bool {
	docs := p.docs
	if len(docs) == 0 {
		return false
	}
	p.docs = nil
	p.b.WriteByte('\n')
	for _, r := range docs {
		delim, _ := plainDelimiter(r.Word.Src)
		p.b.WriteString(r.Raw + delim + "\n")
	}
	p.flushed = true
	return true
}

func plainDelimiter(src string) (string, bool) {
	return strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(src), true
}

// block writes a list on lines of its own; with last, the last of them ends in
// a semicolon too.
func (p *printer) block(l *parse.List, last bool) {
	p.indent += 4
	p.pad()
	p.line(l)
	if n := len(l.Items); n > 0 && last && len(p.docs) == 0 {
		if _, amp := l.Items[n-1].(*parse.Async); !amp {
			p.b.WriteByte(';')
		}
	}
	p.newline()
	p.indent -= 4
}

// oneLine gives the text of a command as the job table shows it.
func oneLine(c parse.Command) string {
	p := &printer{flat: true}
	p.command(c)
	return p.b.String()
}

// line writes a list: on one line for the job table, else each command after a
// semicolon on a line of its own.
func (p *printer) line(l *parse.List) {
	for i, c := range l.Items {
		if i > 0 {
			_, amp := l.Items[i-1].(*parse.Async)
			switch {
			case len(p.docs) > 0:
				p.newline()
				p.pad()
				p.flushed = false
			case p.flushed && !p.flat:
				p.flushed = false
				p.newline()
				p.pad()
			case amp:
				p.b.WriteByte(' ')
			case p.flat:
				p.b.WriteString("; ")
			default:
				p.b.WriteString(";\n")
				p.pad()
			}
		}
		p.command(c)
	}
}

func (p *printer) command(c parse.Command) {
	switch c := c.(type) {
	case *parse.Simple:
		p.simple(c)
	case *parse.List:
		p.line(c)
	case *parse.Async:
		p.command(c.Cmd)
		p.b.WriteString(" &")
	case *parse.AndOr:
		p.command(c.First)
		for _, r := range c.Rest {
			if r.Or {
				p.b.WriteString(" || ")
			} else {
				p.b.WriteString(" && ")
			}
			if p.flush() {
				p.b.WriteByte(' ')
			}
			p.command(r.Cmd)
		}
	case *parse.Pipeline:
		if c.Timed {
			p.b.WriteString("time ")
		}
		if c.Posix {
			p.b.WriteString("-p ")
		}
		if c.Not {
			p.b.WriteString("! ")
		}
		for i, x := range c.Cmds {
			if i > 0 {
				p.b.WriteString(" |")
				if p.flush() {
					p.b.WriteByte(' ')
				}
				p.b.WriteByte(' ')
			}
			p.command(x)
		}
	case *parse.Redirected:
		p.command(c.Body)
		p.redirs(c.Redirs)
	case *parse.Group:
		if p.flat {
			p.b.WriteString("{ ")
			p.line(c.Body)
			p.b.WriteString("; }")
			return
		}
		p.b.WriteString("{ \n")
		p.block(c.Body, false)
		p.pad()
		p.b.WriteByte('}')
	case *parse.Subshell:
		p.b.WriteString("( ")
		p.line(c.Body)
		p.flush()
		p.b.WriteString(" )")
	case *parse.Func:
		p.b.WriteString("function ")
		p.function(c.Name, c.Body)
	case *parse.Coproc:
		name := c.Name
		if name == "" {
			name = "COPROC"
		}
		p.b.WriteString("coproc " + name + " ")
		p.command(c.Body)
	default:
		p.compound(c)
	}
}

func (p *printer) simple(c *parse.Simple) {
	first := true
	for _, a := range c.Assigns {
		if !first {
			p.b.WriteByte(' ')
		}
		first = false
		p.b.WriteString(plainQuotes(a.Src))
	}
	for i := range c.Words {
		if !first {
			p.b.WriteByte(' ')
		}
		first = false
		p.b.WriteString(plainQuotes(c.Words[i].Src))
	}
	if first && len(c.Redirs) > 0 {
		n := p.b.Len()
		p.redirs(c.Redirs)
		text := p.b.String()
		p.b.Reset()
		p.b.WriteString(text[:n] + strings.TrimPrefix(text[n:], " "))
		return
	}
	p.redirs(c.Redirs)
}

func (p *printer) redirs(list []*parse.Redirect) {
	for _, r := range list {
		p.b.WriteByte(' ')
		fd := ""
		if r.Var != "" {
			fd = "{" + r.Var + "}"
		} else if r.FD >= 0 {
			fd = strconv.Itoa(r.FD)
		}
		op := r.Op.String()
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.b.WriteString(fd + op + r.Word.Src)
			p.docs = append(p.docs, r)
		case syntax.DplIn, syntax.DplOut:
			if fd == "" {
				fd = "0"
				if r.Op == syntax.DplOut {
					fd = "1"
				}
			}
			if r.Word.Src == "-" {
				op = ">&"
			}
			p.b.WriteString(fd + op + r.Word.Src)
		case syntax.WordHdoc:
			p.b.WriteString(fd + op + " " + r.Word.Src)
		default:
			if fd == "0" && r.Op == syntax.RdrIn || fd == "1" && r.Op != syntax.RdrIn && r.Op != syntax.RdrInOut {
				fd = ""
			}
			p.b.WriteString(fd + op + " " + r.Word.Src)
		}
	}
}

func (p *printer) compound(c parse.Command) {
	switch c := c.(type) {
	case *parse.If:
		p.ifCmd(c)
	case *parse.While:
		if c.Until {
			p.b.WriteString("until ")
		} else {
			p.b.WriteString("while ")
		}
		p.line(c.Cond)
		p.b.WriteString("; do\n")
		p.body(c.Body)
	case *parse.For:
		if c.Select {
			p.b.WriteString("select ")
		} else {
			p.b.WriteString("for ")
		}
		p.b.WriteString(c.Name)
		p.b.WriteString(" in " + sources(c) + ";")
		p.newline()
		p.pad()
		p.b.WriteString("do\n")
		p.body(c.Body)
	case *parse.CFor:
		p.b.WriteString("for ((" + exprText(c.Init) + "; " + exprText(c.Cond) + "; " + exprText(c.Post) + "))\n")
		p.pad()
		p.b.WriteString("do\n")
		p.body(c.Body)
	case *parse.Case:
		p.caseCmd(c)
	case *parse.Cond:
		p.b.WriteString(c.Src)
	case *parse.Arith:
		p.b.WriteString(c.Src)
	}
}

func exprText(e *parse.Expr) string {
	if e == nil {
		return "1"
	}
	return strings.TrimLeft(e.Src, " \t\n")
}

func (p *printer) body(l *parse.List) {
	p.block(l, true)
	p.pad()
	p.b.WriteString("done")
}

func (p *printer) ifCmd(c *parse.If) {
	p.b.WriteString("if ")
	p.line(c.Cond)
	p.b.WriteString("; then\n")
	p.block(c.Then, true)
	p.pad()
	switch e := c.Else.(type) {
	case *parse.If:
		p.b.WriteString("else\n")
		p.indent += 4
		p.pad()
		p.ifCmd(e)
		p.indent -= 4
		p.b.WriteString(";\n")
		p.pad()
	case *parse.List:
		p.b.WriteString("else\n")
		p.block(e, true)
		p.pad()
	}
	p.b.WriteString("fi")
}

func (p *printer) caseCmd(c *parse.Case) {
	p.b.WriteString("case " + plainQuotes(c.Word.Src) + " in \n")
	p.indent += 4
	for i := range c.Items {
		item := &c.Items[i]
		p.pad()
		for j := range item.Patterns {
			if j > 0 {
				p.b.WriteString(" | ")
			}
			p.b.WriteString(plainQuotes(item.Patterns[j].Src))
		}
		p.b.WriteString(")\n")
		if item.Body == nil || len(item.Body.Items) == 0 {
			p.b.WriteByte('\n')
		} else {
			p.block(item.Body, false)
		}
		p.pad()
		p.b.WriteString(item.Op.String() + "\n")
	}
	p.indent -= 4
	p.pad()
	p.b.WriteString("esac")
}

// plainQuotes writes $'…' outside of other quotes as '…' and $"…" as "…": bash
// translates them when it reads them.
func plainQuotes(src string) string {
	if !strings.Contains(src, "$'") && !strings.Contains(src, `$"`) {
		return src
	}
	var b strings.Builder
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\\' && i+1 < len(src):
			b.WriteString(src[i : i+2])
			i += 2
		case c == '\'':
			n := strings.IndexByte(src[i+1:], '\'') + 2
			if n == 1 {
				n = len(src) - i
			}
			b.WriteString(src[i : i+n])
			i += n
		case strings.HasPrefix(src[i:], "$'"):
			n := closing(src[i+2:], '\'')
			b.WriteString(quote.Single(expand.Unescape(src[i+2 : i+2+n])))
			i = min(i+n+3, len(src))
		case strings.HasPrefix(src[i:], `$"`):
			i++
		case c == '"':
			n := min(closing(src[i+1:], '"')+2, len(src)-i)
			b.WriteString(src[i : i+n])
			i += n
		case c == '`', c == '$' && i+1 < len(src) && (src[i+1] == '(' || src[i+1] == '{'):
			// What is in there is printed as it stands.
			b.WriteString(src[i:])
			return b.String()
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// closing finds the quote that ends a text, past those behind backslashes.
func closing(s string, q byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			return i
		}
	}
	return len(s)
}
