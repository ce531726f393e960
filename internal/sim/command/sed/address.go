package sed

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A meter charges a machine's task; what it cannot pay ends the task.
type meter struct{ m *machine }

func (m meter) Step(n int) error {
	m.m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.m.t.Grow(n)
	return nil
}

// address reads an address that begins with c; nil is none.
func (p *parser) address(c int) *address {
	switch {
	case c == '/' || c == '\\':
		if c == '\\' {
			c = p.next()
		}
		text, ok := "", false
		if c != eof {
			text, ok = p.delimited(c, true)
		}
		if !ok {
			p.fail("unterminated address regex")
		}
		return &address{kind: aRegex, re: p.modified(text)}
	case digit(c):
		a := &address{kind: aLine, number: p.integer(c)}
		c = p.skip()
		if c != '~' || p.o.posix {
			p.back(c)
			return a
		}
		if step := p.integer(p.skip()); step > 0 {
			a.kind, a.step = aStep, step
		}
		return a
	case (c == '+' || c == '~') && !p.o.posix:
		a := &address{kind: aPlus}
		if c == '~' {
			a.kind = aMultiple
		}
		a.number = p.integer(p.skip())
		return a
	case c == '$':
		return &address{kind: aLast}
	}
	return nil
}

// modified reads what follows the expression of an address.
func (p *parser) modified(text string) *regex.Regexp {
	var o regex.Options
	for {
		c := p.skip()
		switch {
		case c == 'I' && !p.o.posix:
			o.IgnoreCase = true
		case c == 'M' && !p.o.posix:
			o.Multiline = true
		default:
			p.back(c)
			return p.compile(text, o)
		}
	}
}

// compile makes an expression; nil is an empty one.
func (p *parser) compile(text string, o regex.Options) *regex.Regexp {
	if text == "" {
		if o.IgnoreCase || o.Multiline {
			p.fail("cannot specify modifiers on empty regexp")
		}
		return nil
	}
	o.Flavour = regex.BRE
	if p.o.extended {
		o.Flavour = regex.ERE
	}
	o.Bytes = p.m.bytes
	o.Multiline = o.Multiline && p.o.delim != 0 // then lines end with what ends a text too
	o.Meter = meter{p.m}
	re, err := regex.Compile(p.decoded(text), o)
	if err != nil {
		if strings.HasPrefix(err.Error(), "character class syntax") {
			p.m.die(trouble, "%s", err) // as GNU's, which has it from elsewhere
		}
		p.fail("%s", err)
	}
	return re
}

// decoded puts characters for their numbers. They mean what they would by
// themselves: \x2a repeats.
func (p *parser) decoded(text string) string {
	if !strings.Contains(text, "\\") {
		return text
	}
	b := make([]byte, 0, len(text))
	for at := 0; at < len(text); at++ {
		if text[at] != '\\' || at+1 == len(text) {
			b = append(b, text[at])
			continue
		}
		at++
		switch text[at] {
		case 'x', 'o', 'd':
			if c, n := p.escape([]byte(text[at:min(len(text), at+4)])); n > 0 {
				b = append(b, c)
				at += n - 1
				continue
			}
		}
		b = append(b, '\\', text[at])
	}
	return string(b)
}

// applies says whether a command is for the line.
func (m *machine) applies(i *instr) bool {
	switch {
	case i.first == nil:
		return true
	case i.second == nil && i.first.number == 0 && i.begins():
		return m.in.number == 1
	case i.second == nil:
		return m.at(i.first)
	case i.active:
		return m.within(i)
	case !m.starts(i):
		return false
	}
	line := m.in.number
	switch a := i.second; a.kind {
	case aLine:
		i.until = a.number
	case aPlus:
		i.until = line + a.number
	case aMultiple:
		i.until = line
		if a.number > 0 {
			i.until = (line/a.number + 1) * a.number
		}
	default:
		i.active = true
		return true
	}
	i.active = i.until > line
	i.closed = !i.active
	return true
}

// starts says whether the line is the first one between the addresses. A
// number that was passed over by other commands counts.
func (m *machine) starts(i *instr) bool {
	if i.first.kind != aLine {
		return m.at(i.first)
	}
	line := m.in.number
	if i.closed || line < i.first.number {
		return false
	}
	return line == i.first.number || i.second.kind != aLine || line <= i.second.number
}

// within is applies between the addresses.
func (m *machine) within(i *instr) bool {
	within := true
	switch i.second.kind {
	case aLine, aPlus, aMultiple:
		if m.in.number < i.until {
			return true
		}
		i.active = false
		within = m.in.number == i.until
	default:
		i.active = !m.at(i.second)
	}
	i.closed = !i.active
	return within
}

// at says whether an address is that of the line.
func (m *machine) at(a *address) bool {
	switch a.kind {
	case aLine:
		return m.in.number == a.number
	case aStep:
		n := m.in.number
		return n >= a.number && (n-a.number)%a.step == 0
	case aLast:
		return m.in.last()
	case aRegex:
		re := m.expression(a.re)
		ok, err := re.Match(m.space.text)
		if err != nil {
			m.die(trouble, "%s", err)
		}
		return ok
	default:
		return false
	}
}

// expression gives an expression, or the one that was used last for an empty
// one.
func (m *machine) expression(re *regex.Regexp) *regex.Regexp {
	if re == nil {
		if m.latest == nil {
			m.wrong("no previous regular expression")
		}
		return m.latest
	}
	m.latest = re
	return re
}
