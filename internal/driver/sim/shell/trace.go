package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell/tree"
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
func (s *Shell) traceCommand(_ *tree.Simple, args []string) {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote.Trace(a))
	}
	s.traceText(b.String())
}

// traceAssign writes an assignment.
func (s *Shell) traceAssign(a *tree.Assign, value string) {
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
