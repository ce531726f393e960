package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// traceText writes a line of set -x.
func (s *Shell) traceText(text string) {
	if s.tracing {
		return
	}
	s.tracing = true
	s.flushOut()
	ps4, ok := s.vars.Get("PS4")
	if !ok {
		ps4 = "+ "
	}
	prefix := s.Prompt(ps4)
	if _, n := utf8.DecodeRuneInString(prefix); n > 0 && s.trace > 0 {
		prefix = strings.Repeat(prefix[:n], min(s.trace, 100)) + prefix
	}
	fd := 2
	if v, ok := s.vars.Get("BASH_XTRACEFD"); ok {
		if n, err := strconv.Atoi(v); err == nil && s.t.FD(n) != nil {
			fd = n
		}
	}
	_, _ = s.t.Write(fd, []byte(prefix+text+"\n")) // nobody can be told
	s.tracing = false
}

// traceCommand writes a simple command.
func (s *Shell) traceCommand(c *parse.Simple, args []string) {
	if c.Declares && slices.ContainsFunc(c.Words, func(w parse.Word) bool { return w.Assign != nil }) {
		return // when all is expanded: traceDeclaration
	}
	s.traceText(quoteAll(args))
}

// traceAssign writes an assignment.
func (s *Shell) traceAssign(a *parse.Assign, value string) {
	name := a.Name
	if sub, ok := a.X.Subscript(); ok {
		name += "[" + sub + "]"
	}
	if a.X.Append {
		name += "+"
	}
	if a.X.IsList() {
		s.traceText(name + "=" + value)
		return
	}
	if value != "" {
		value = quote.Trace(value)
	}
	s.traceText(name + "=" + value)
}

// traceDeclaration writes a command that declares, and arrays before it.
func (s *Shell) traceDeclaration(d *declaration, args []string, operands []operand) {
	line := quoteAll(args)
	for i := range operands {
		o := &operands[i]
		if o.assign == nil {
			line += " " + quote.Trace(o.text)
			continue
		}
		name := o.assign.Name
		if sub, ok := o.assign.X.Subscript(); ok {
			name += "[" + sub + "]"
		}
		if o.assign.X.IsList() {
			s.traceText(name + sign(o.assign) + tracedList(o.list))
			line += " " + name
			continue
		}
		line += " " + quote.Trace(name+sign(o.assign)+o.value)
	}
	s.traceText(line)
	if d.name != "export" && d.name != "readonly" {
		return
	}
	for i := range operands {
		if o := &operands[i]; o.assign != nil && !o.assign.X.IsList() {
			s.traceAssign(o.assign, o.value)
		}
	}
}

func quoteAll(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote.Trace(a))
	}
	return b.String()
}

func sign(a *parse.Assign) string {
	if a.X.Append {
		return "+="
	}
	return "="
}

func tracedList(list []variable.Element) string {
	var b strings.Builder
	b.WriteByte('(')
	for i := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		if list[i].At {
			b.WriteString("[" + quote.Single(list[i].Subscript) + "]=")
		}
		b.WriteString(quote.Single(list[i].Value))
	}
	return b.String() + ")"
}
