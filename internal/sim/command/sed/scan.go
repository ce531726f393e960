package sed

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// eof is what stands behind a piece of the script.
const eof = -1

// A parser reads the script, which comes in pieces.
type parser struct {
	t *kernel.Task
	o *options
	m *machine

	src  string
	at   int
	name string // of the file, or empty
	line int    // in it
	expr int    // the number of the -e

	prog    []instr
	blocks  []block // that are open
	labels  map[string]int
	cut     bool   // the piece ended where text was to begin
	pending bool   // the text of the last command goes on in the next piece
	text    []byte // what there is of it, as it was written
	pieces  int
}

// A block is a { that waits for its }.
type block struct {
	at   int // in the program
	name string
	line int
	expr int
}

// expression reads the script of an -e.
func (p *parser) expression(src string) {
	p.expr++
	p.name = ""
	p.piece(src)
}

// file reads a script from a file.
func (p *parser) file(name string) {
	b, err := command.ReadAll(p.t, name)
	if err != nil {
		p.m.die(trouble, "couldn't open file %s: %s", name, reason(err))
	}
	p.name, p.line = name, 1
	p.piece(string(b))
}

func (p *parser) piece(src string) {
	p.t.Bound("source", int64(len(src)), p.t.K.Limits.Source)
	p.t.Grow(len(src))
	p.src, p.at = src, 0
	p.pieces++
	p.script()
}

func (p *parser) next() int {
	if p.at >= len(p.src) {
		return eof
	}
	c := p.src[p.at]
	p.at++
	p.t.Step(1)
	if c == '\n' {
		p.line++
	}
	return int(c)
}

func (p *parser) back(c int) {
	if c == eof {
		return
	}
	p.at--
	if c == '\n' {
		p.line--
	}
}

func blank(c int) bool { return c == ' ' || c == '\t' }

func space(c int) bool { return blank(c) || c >= '\n' && c <= '\r' }

func digit(c int) bool { return c >= '0' && c <= '9' }

// skip gives the next character that is not blank.
func (p *parser) skip() int {
	c := p.next()
	for blank(c) {
		c = p.next()
	}
	return c
}

// fail complains about the script, and ends the task.
func (p *parser) fail(format string, args ...any) {
	if p.name != "" {
		p.m.die(wrong, "file %s line %d: "+format, append([]any{p.name, p.line}, args...)...)
	}
	p.m.die(wrong, "-e expression #%d, char %d: "+format, append([]any{p.expr, p.at}, args...)...)
}

// integer reads a number that begins with c.
func (p *parser) integer(c int) int64 {
	var n int64
	for digit(c) {
		if n < 1<<58 {
			n = n*10 + int64(c-'0')
		}
		c = p.next()
	}
	p.back(c)
	return n
}

// end reads what ends a command.
func (p *parser) end() {
	switch c := p.skip(); c {
	case '}', '#':
		p.back(c)
	case eof, '\n', ';':
	default:
		p.fail("extra characters after command")
	}
}

// word reads a label.
func (p *parser) word() string {
	c := p.skip()
	start := p.at - 1
	if c == eof {
		return ""
	}
	for c != eof && !space(c) && c != ';' && c != '}' && c != '#' {
		c = p.next()
	}
	p.back(c)
	return p.src[start:p.at]
}

// fileName reads the name of a file, which is the rest of the line.
func (p *parser) fileName() string {
	c := p.skip()
	if c == eof {
		return ""
	}
	start := p.at - 1
	for c != eof && c != '\n' {
		c = p.next()
	}
	if c == '\n' {
		return p.src[start : p.at-1]
	}
	return p.src[start:p.at]
}

// delimited reads up to a delimiter. What escapes that is taken away; other
// escapes are left. It is false where there is no such end.
func (p *parser) delimited(delim int, re bool) (string, bool) {
	var b []byte
	for {
		c := p.next()
		switch {
		case c == eof:
			return "", false
		case c == '\n':
			p.back(c) // for the number of the line
			return "", false
		case c == delim:
			return string(b), true
		case c == '\\':
			c = p.next()
			switch {
			case c == eof:
				return "", false
			case c == '\n' && re:
			case c == delim && (re || c != '&'):
			default:
				b = append(b, '\\')
			}
			b = append(b, byte(c))
		case c == '[' && re:
			b = append(b, '[')
			var ok bool
			if b, ok = p.bracket(b); !ok {
				return "", false
			}
		default:
			b = append(b, byte(c))
		}
	}
}

// bracket reads the rest of a bracket expression, in which no delimiter ends
// anything.
func (p *parser) bracket(b []byte) ([]byte, bool) {
	c := p.next()
	if c == '^' {
		b = append(b, '^')
		c = p.next()
	}
	first := true
	var class int // of . = or :
	for {
		switch c {
		case eof:
			return b, false
		case '\n':
			p.back(c)
			return b, false
		}
		b = append(b, byte(c))
		switch {
		case class != 0:
			if c == class && p.at < len(p.src) && p.src[p.at] == ']' {
				b = append(b, byte(p.next()))
				class = 0
			}
		case c == ']' && !first:
			return b, true
		case c == '[' && p.at < len(p.src) && (p.src[p.at] == '.' || p.src[p.at] == '=' || p.src[p.at] == ':'):
			class = p.next()
			b = append(b, byte(class))
		}
		first = false
		c = p.next()
	}
}
