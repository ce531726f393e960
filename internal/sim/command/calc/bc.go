package calc

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var bcSpec = command.Spec{
	Name: "bc", Synopsis: "[options] [file ...]",
	About: "An arbitrary precision calculator language.",
	Options: []command.Option{
		{Short: 'h', Long: "help"}, {Short: 'i', Long: "interactive", Help: "(ignored)"},
		{Short: 'l', Long: "mathlib", Help: "use the predefined math routines"},
		{Short: 'q', Long: "quiet", Help: "don't print initial banner"},
		{Short: 's', Long: "standard", Help: "(non-standard constructs are no errors)"},
		{Short: 'w', Long: "warn", Help: "(ignored)"}, {Short: 'v', Long: "version"},
	},
	NoHelp: true, NoTry: true,
}

const bcUsage = `usage: bc [options] [file ...]
  -h  --help         print this usage and exit
  -i  --interactive  force interactive mode
  -l  --mathlib      use the predefined math routines
  -q  --quiet        don't print initial banner
  -s  --standard     non-standard bc constructs are errors
  -w  --warn         warn about non-standard bc constructs
  -v  --version      print version information and exit
`

func runBC(t *kernel.Task) int {
	a, status, ok := bcSpec.Parse(t)
	if !ok {
		command.Stdout(t).String(bcUsage)
		return status
	}
	out := command.Stdout(t)
	switch {
	case a.Has("h"):
		out.String(bcUsage)
		return 0
	case a.Has("v"):
		out.String("bc (Paddock)\n")
		return 0
	}
	m := newMachine(t, &wrapper{width: lineLength(t, "BC_LINE_LENGTH"), out: out.String})
	if a.Has("l") {
		m.library, m.scale = true, 20
	}
	stdin, err := command.StdinReader(t)
	if err == nil {
		defer stdin.Close()
		m.input = func() (string, bool) {
			out.Flush()
			line, _, ok := stdin.Line('\n')
			return string(line), ok
		}
	} else {
		m.input = func() (string, bool) { return "", false }
	}
	for _, name := range a.Operands {
		if !m.file(name) {
			return 1
		}
	}
	if stdin != nil {
		m.program("(standard_in)", stdin)
	}
	return 0
}

func (m *machine) file(name string) bool {
	r, err := command.OpenReader(m.t, name)
	if err != nil {
		_, _ = m.t.Write(2, fmt.Appendf(nil, "File %s is unavailable.\n", name))
		return false
	}
	defer r.Close()
	m.program(name, r)
	if err := r.Err(); err != nil {
		m.t.Errorf("%s: %s", name, vfs.Message(err))
		return false
	}
	return true
}

// program runs what is in a file, a line or a function at a time.
func (m *machine) program(name string, r *command.Reader) {
	l := &lexer{t: m.t, name: name, back: -1, line: 1}
	l.get = func() (byte, bool) {
		c, err := r.ReadByte()
		return c, err == nil
	}
	l.complain = func(text string) {
		if err := m.t.Flush(); err != nil {
			m.t.Exit(1)
		}
		_, _ = m.t.Write(2, fmt.Appendf(nil, "%s %d: %s\n", name, l.line, text))
	}
	p := &parser{m: m, lex: l}
	for m.item(p) {
	}
}

// item runs the next line; more is false at the end.
func (m *machine) item(p *parser) (more bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case syntaxError:
			p.pending = nil
			p.lex.complain(r.text)
			for p.tok.kind != endOfLine && p.tok.kind != endOfFile {
				p.advance()
			}
			more = p.tok.kind != endOfFile
		case runtimeError:
			m.calls = 0
			if err := m.t.Flush(); err != nil {
				m.t.Exit(1)
			}
			_, _ = m.t.Write(2, []byte("Runtime error (func=(main), adr=0): "+strings.TrimSpace(r.text)+"\n"))
			more = true
		default:
			panic(r)
		}
	}()
	list, more := p.item()
	block(list)(m)
	return more && p.tok.kind != endOfFile
}
