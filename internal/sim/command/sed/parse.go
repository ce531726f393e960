package sed

import (
	"bytes"
	"strings"
)

// script reads the commands of a piece.
func (p *parser) script() {
	if p.pending {
		p.more()
	}
	for {
		c := p.next()
		for c == ';' || space(c) {
			c = p.next()
		}
		if c == eof {
			return
		}
		p.t.Step(1)
		if c == '#' && p.pieces == 1 && p.at == 1 && strings.HasPrefix(p.src, "#n") {
			p.o.quiet = true
		}
		p.instr(c)
	}
}

// instr reads a command that begins with c.
func (p *parser) instr(c int) {
	var i instr
	if i.first = p.address(c); i.first != nil {
		if i.first.kind == aPlus || i.first.kind == aMultiple {
			p.fail("invalid usage of +N or ~N as first address")
		}
		c = p.skip()
		if c == ',' {
			if i.second = p.address(p.skip()); i.second == nil {
				p.fail("unexpected `,'")
			}
			c = p.skip()
		}
		if i.first.kind == aLine && i.first.number == 0 && (i.second == nil && c != 'r' || i.second != nil && i.second.kind != aRegex || p.o.posix) {
			p.fail("invalid usage of line address 0")
		}
	}
	if c == '!' {
		i.not = true
		c = p.skip()
		if c == '!' {
			p.fail("multiple `!'s")
		}
	}
	if c == eof {
		p.fail("missing command")
	}
	i.name = byte(c)
	if p.o.posix {
		p.strict(&i)
	}
	i.rewind()
	if !p.rest(&i) {
		return
	}
	p.t.Grow(instrSize)
	p.prog = append(p.prog, i)
	if p.pending && !p.cut {
		p.more()
	}
}

// instrSize is about what a command takes.
const instrSize = 256

// strict refuses what POSIX does not have.
func (p *parser) strict(i *instr) {
	switch i.name {
	case 'e', 'F', 'v', 'z', 'Q', 'T', 'R', 'W':
		p.unknown(i)
	case 'a', 'i', 'l', '=', 'r':
		if i.second != nil {
			p.fail("command only uses one address")
		}
	}
}

func (p *parser) unknown(i *instr) {
	p.fail("unknown command: `%s'", []byte{i.name})
}

// rest reads what follows a command's letter. It is false where there is
// nothing to run.
func (p *parser) rest(i *instr) bool {
	switch i.name {
	case '#':
		if i.first != nil {
			p.fail("comments don't accept any addresses")
		}
		for c := p.next(); c != eof && c != '\n'; {
			c = p.next()
		}
		return false
	case 'v':
		p.version()
		return false
	case '{':
		p.blocks = append(p.blocks, block{len(p.prog), p.name, p.line, p.expr})
		p.t.Grow(64)
	case '}':
		if len(p.blocks) == 0 {
			p.fail("unexpected `}'")
		}
		if i.first != nil {
			p.fail("`}' doesn't want any addresses")
		}
		p.end()
		top := p.blocks[len(p.blocks)-1]
		p.blocks = p.blocks[:len(p.blocks)-1]
		p.prog[top.at].jump = len(p.prog)
	case 'a', 'i', 'c', 'e':
		p.insertion(i)
	case ':':
		if i.first != nil {
			p.fail(": doesn't want any addresses")
		}
		p.colon(i)
	case 'T', 'b', 't':
		i.label = p.word()
	case 'Q', 'q':
		if i.second != nil {
			p.fail("command only uses one address")
		}
		i.number = p.optional()
		p.end()
	case 'l':
		i.number = p.optional()
		p.end()
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'z', 'x':
		p.end()
	case 'r', 'R', 'w', 'W':
		p.named(i)
	case 's':
		p.substitution(i)
	case 'y':
		p.translation(i)
	default:
		p.unknown(i)
	}
	return true
}

// optional reads a number that may be missing, which is -1.
func (p *parser) optional() int {
	c := p.skip()
	if digit(c) && !p.o.posix {
		return int(min(p.integer(c), 1<<31-1))
	}
	p.back(c)
	return -1
}

func (p *parser) colon(i *instr) {
	i.label = p.word()
	if i.label == "" {
		p.fail("\":\" lacks a label")
	}
	if p.labels == nil {
		p.labels = map[string]int{}
	}
	if _, ok := p.labels[i.label]; !ok {
		p.labels[i.label] = len(p.prog)
	}
}

// named reads the commands that have a file.
func (p *parser) named(i *instr) {
	if p.o.sandbox {
		p.fail("e/r/w commands disabled in sandbox mode")
	}
	name := p.fileName()
	if name == "" {
		p.fail("missing filename in r/R/w/W commands")
	}
	switch i.name {
	case 'r':
		i.name2 = name
	case 'R':
		i.reader = p.m.lines(name)
	default:
		i.file = p.m.file(name)
	}
}

// version reads the command v.
func (p *parser) version() {
	want := p.word()
	p.end()
	have := "4.9"
	for want != "" || have != "" {
		var a, b string
		if want != "" && !digit(int(want[0])) {
			p.fail("expected newer version of sed")
		}
		a, want, _ = strings.Cut(want, ".")
		b, have, _ = strings.Cut(have, ".")
		if number(a) > number(b) {
			p.fail("expected newer version of sed")
		}
		if number(a) < number(b) {
			break
		}
	}
	p.o.posix = false
}

// insertion reads the text of a, i, c and e.
func (p *parser) insertion(i *instr) {
	if i.name == 'e' && p.o.sandbox {
		p.fail("e/r/w commands disabled in sandbox mode")
	}
	c := p.skip()
	if i.name == 'e' && (c == eof || c == '\n') {
		return
	}
	p.text = nil
	p.pending, p.cut = true, false
	switch {
	case c == eof:
		p.fail("expected \\ after `a', `c' or `i'")
	case c == '\\':
		if c = p.next(); c != '\n' {
			p.back(c)
			p.cut = c == eof // then the next piece goes on
			if p.cut && p.o.posix {
				p.fail("incomplete command")
			}
		}
	case p.o.posix:
		p.fail("expected \\ after `a', `c' or `i'")
	default:
		p.back(c)
	}
}

// more reads text for the last command, up to the end of a line that nothing
// escapes.
func (p *parser) more() {
	last := &p.prog[len(p.prog)-1]
	p.cut = false
	for {
		c := p.next()
		switch c {
		case eof:
			p.text = append(p.text, '\n')
			p.line++
			p.settle(last)
			return
		case '\n':
			p.text = append(p.text, '\n')
			p.settle(last)
			return
		case '\\':
			c = p.next()
			if c == eof {
				p.text = append(p.text, '\n')
				return
			}
			p.text = append(p.text, '\\', byte(c))
		default:
			p.text = append(p.text, byte(c))
		}
	}
}

// settle makes the text of a command of what was written.
func (p *parser) settle(i *instr) {
	p.pending = false
	i.text = make([]byte, 0, len(p.text))
	for at := 0; at < len(p.text); {
		c := p.text[at]
		at++
		if c != '\\' || at == len(p.text) {
			i.text = append(i.text, c)
			continue
		}
		if b, n := p.escape(p.text[at:]); n > 0 {
			i.text = append(i.text, b)
			at += n
			continue
		}
		i.text = append(i.text, p.text[at])
		at++
	}
	p.t.Grow(cap(i.text))
	p.text = nil
}

// escape reads what stands behind a backslash, where it stands for a
// character: n is how much it takes, or 0.
func (p *parser) escape(s []byte) (b byte, n int) {
	switch s[0] {
	case 'a':
		return '\a', 1
	case 'f':
		return '\f', 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'v':
		return '\v', 1
	case 'x':
		return coded(s, 16, 2)
	case 'o':
		return coded(s, 8, 3)
	case 'd':
		return coded(s, 10, 3)
	case 'c':
		switch {
		case len(s) == 1:
			return '\\', 1
		case s[1] == '\\' && len(s) > 2 && s[2] == '\\':
			return '\\' ^ 0x40, 3
		case s[1] == '\\':
			p.fail("recursive escaping after \\c not allowed")
		}
		return bytes.ToUpper(s[1:2])[0] ^ 0x40, 2
	}
	return 0, 0
}

// coded reads the number of a character after its letter.
func coded(s []byte, base, most int) (b byte, n int) {
	value := 0
	i := 1
	for ; i < len(s) && i <= most; i++ {
		d := 99
		switch c := s[i]; {
		case digit(int(c)):
			d = int(c - '0')
		case c >= 'a' && c <= 'f':
			d = int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			d = int(c-'A') + 10
		}
		if d >= base {
			break
		}
		value = value*base + d
	}
	if i == 1 {
		return 0, 0
	}
	return byte(value), i
}

// finish ends the script and joins the jumps to their labels.
func (p *parser) finish() []instr {
	if p.pending && len(p.text) > 0 {
		p.settle(&p.prog[len(p.prog)-1])
	}
	p.pending = false
	if len(p.blocks) > 0 {
		open := p.blocks[len(p.blocks)-1]
		p.name, p.line, p.expr, p.at = open.name, open.line, open.expr, 0
		p.fail("unmatched `{'")
	}
	p.at = 0
	for n := range p.prog {
		i := &p.prog[n]
		if i.name != 'b' && i.name != 't' && i.name != 'T' {
			continue
		}
		at, ok := p.labels[i.label]
		switch {
		case i.label == "":
			i.jump = len(p.prog)
		case ok:
			i.jump = at
		default:
			p.m.die(trouble, "can't find label for jump to `%s'", i.label)
		}
	}
	return p.prog
}
