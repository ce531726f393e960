package sed

import (
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// substitution reads the command s.
func (p *parser) substitution(i *instr) {
	c := p.delimiter("s")
	text, ok := p.delimited(c, true)
	if !ok {
		p.fail("unterminated `s' command")
	}
	with, ok := p.delimited(c, false)
	if !ok {
		p.fail("unterminated `s' command")
	}
	s := &substitution{number: 1}
	i.sub = s
	p.replacement(s, []byte(with))
	o := p.flags(s)
	s.re = p.compile(text, o)
	if s.re != nil && s.refs > s.re.Groups() && p.o.posix {
		for n := range s.parts {
			if s.parts[n].group > s.re.Groups() {
				s.parts[n].group = -1
			}
		}
		s.refs = s.re.Groups()
	}
	if s.re != nil && s.refs > s.re.Groups() {
		p.fail("invalid reference \\%d on `s' command's RHS", s.refs)
	}
}

// delimiter reads the delimiter of s or y.
func (p *parser) delimiter(name string) int {
	c := p.next()
	if c == eof || c == '\n' {
		p.back(c)
		p.fail("unterminated `%s' command", name)
	}
	if c >= utf8.RuneSelf && !p.m.bytes {
		p.fail("delimiter character is not a single-byte character")
	}
	return c
}

// flags reads what follows a replacement.
func (p *parser) flags(s *substitution) (o regex.Options) {
	numbered := false
	for {
		switch c := p.next(); {
		case (c == 'i' || c == 'I') && !p.o.posix:
			o.IgnoreCase = true
		case (c == 'm' || c == 'M') && !p.o.posix:
			o.Multiline = true
		case c == 'e' && !p.o.posix:
			if p.o.sandbox {
				p.fail("e/r/w commands disabled in sandbox mode")
			}
			s.eval = true
		case c == 'p':
			if s.print || s.before {
				p.fail("multiple `p' options to `s' command")
			}
			if s.eval {
				s.print = true
			} else {
				s.before = true
			}
		case c == 'g':
			if s.global {
				p.fail("multiple `g' options to `s' command")
			}
			s.global = true
		case c == 'w':
			if p.o.sandbox {
				p.fail("e/r/w commands disabled in sandbox mode")
			}
			name := p.fileName()
			if name == "" {
				p.fail("missing filename in r/R/w/W commands")
			}
			s.file = p.m.file(name)
			return p.flagged(s, o)
		case digit(c):
			if numbered {
				p.fail("multiple number options to `s' command")
			}
			n := p.integer(c)
			if n == 0 {
				p.fail("number option to `s' command may not be zero")
			}
			s.number, numbered = int(min(n, 1<<31-1)), true
		case c == '}' || c == '#':
			p.back(c)
			return p.flagged(s, o)
		case c == '\n' || c == ';' || c == eof:
			return p.flagged(s, o)
		case blank(c):
		case c == '\r' && p.at < len(p.src) && p.src[p.at] == '\n':
		default:
			p.fail("unknown option to `s'")
		}
	}
}

// flagged settles when to print: without evaluation there is only one time.
func (p *parser) flagged(s *substitution, o regex.Options) regex.Options {
	if !s.eval && s.before {
		s.before, s.print = false, true
	}
	return o
}

// replacement reads what is put in place of a match.
func (p *parser) replacement(s *substitution, text []byte) {
	cur := part{group: -1}
	all := asIs
	var lit []byte
	flush := func(group int) {
		cur.text, cur.group = lit, group
		s.parts = append(kernel.Room(p.t, "source", p.t.K.Limits.Source, s.parts, 1), cur)
		lit = nil
		cur = part{group: -1, all: all}
		if group > s.refs {
			s.refs = group
		}
	}
	for at := 0; at < len(text); {
		c := text[at]
		at++
		switch {
		case c == '&':
			flush(0)
			continue
		case c != '\\' || at == len(text):
			lit = append(lit, c)
			continue
		}
		c = text[at]
		switch {
		case digit(int(c)):
			at++
			flush(int(c - '0'))
			continue
		case p.o.posix:
		case c == 'L' || c == 'U' || c == 'E':
			at++
			flush(-1)
			all = map[byte]letters{'L': lower, 'U': upper, 'E': asIs}[c]
			cur.all = all
			continue
		case c == 'u' || c == 'l':
			at++
			flush(-1)
			cur.first = lower
			if c == 'u' {
				cur.first = upper
			}
			continue
		}
		if b, n := p.escape(text[at:]); n > 0 {
			lit = append(lit, b)
			at += n
			continue
		}
		lit = append(lit, c)
		at++
	}
	if len(lit) > 0 {
		flush(-1)
	}
	kept := s.parts[:0]
	s.simple = true
	for _, x := range s.parts {
		if len(x.text) == 0 && x.group < 0 {
			continue
		}
		if x.group >= 0 || x.all != asIs || x.first != asIs {
			s.simple = false
		}
		kept = append(kept, x)
	}
	s.parts = kept
	s.simple = s.simple && len(kept) <= 1
	p.t.Grow(len(text))
}

// substitute runs the command s.
func (m *machine) substitute(s *substitution) {
	re := m.expression(s.re)
	if s.re == nil && s.refs > re.Groups() {
		m.wrong("invalid reference \\%d on `s' command's RHS", s.refs)
	}
	line := m.space.text
	m.t.Step(len(line) >> 2) // a search
	out := m.spare[:0]
	done, from, prior := 0, 0, -1
	count := 0
	replaced := false
	for from <= len(line) {
		start, end := m.match(re, s, line, from)
		if start < 0 {
			break
		}
		m.t.Step(1)
		if start == end && start == prior {
			from = end + m.size(line[end:])
			continue
		}
		count++
		prior = end
		if count >= s.number {
			out = append(m.longer(out, start-done), line[done:start]...)
			if s.simple {
				for i := range s.parts {
					out = append(m.longer(out, len(s.parts[i].text)), s.parts[i].text...)
				}
			} else {
				out = m.replace(out, s, line)
			}
			m.room(len(out))
			done = end
			replaced = true
			if !s.global {
				break
			}
		}
		from = end
		if start == end {
			from += m.size(line[end:])
		}
	}
	if !replaced {
		m.spare = out
		return
	}
	out = append(m.longer(out, len(line)-done), line[done:]...)
	m.passed(out)
	m.spare, m.space.text = line, out
	m.grown(&m.space)
	m.replaced = true
	if s.before {
		m.out.line(&m.space)
	}
	if s.eval {
		m.evaluate()
	}
	if s.print {
		m.out.line(&m.space)
	}
	if s.file != nil {
		s.file.line(&m.space)
	}
}

// match finds the next match. The groups are in m.regs, if the replacement
// needs them.
func (m *machine) match(re *regex.Regexp, s *substitution, line []byte, from int) (start, end int) {
	var err error
	if s.refs == 0 {
		start, end, err = re.Span(line, from)
		m.regs = append(m.regs[:0], start, end)
	} else {
		var regs []int
		regs, err = re.Find(line, from, m.regs)
		start = -1
		if regs != nil {
			m.regs = regs
			start, end = regs[0], regs[1]
		}
	}
	if err != nil {
		m.die(trouble, "%s", err)
	}
	return start, end
}

// size gives the length of the first character, 1 where there is none.
func (m *machine) size(b []byte) int {
	if len(b) == 0 || b[0] < utf8.RuneSelf || m.bytes {
		return 1
	}
	_, n := utf8.DecodeRune(b)
	return n
}

// replace appends the replacement of a match.
func (m *machine) replace(out []byte, s *substitution, line []byte) []byte {
	kept := asIs // \u or \l, for lack of a letter
	for i := range s.parts {
		x := &s.parts[i]
		first := x.first
		if first == asIs {
			first = kept
		}
		kept = asIs
		if len(x.text) > 0 {
			out = written(m.longer(out, len(x.text)), x.text, x.all, first)
			first = asIs
		}
		if x.group < 0 {
			continue
		}
		from, to := m.regs[2*x.group], m.regs[2*x.group+1]
		if from < to {
			out = written(m.longer(out, to-from), line[from:to], x.all, first)
		} else if x.first != asIs {
			kept = first
		}
	}
	return out
}

// written appends a text in the letters asked for.
func written(out, text []byte, all, first letters) []byte {
	if all == asIs && first == asIs {
		return append(out, text...)
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		how := all
		if first != asIs {
			how, first = first, asIs
		}
		switch {
		case r == utf8.RuneError && n == 1, how == asIs:
			out = append(out, text[:n]...)
		case how == upper:
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
		text = text[n:]
	}
	return out
}

// translation reads the command y.
func (p *parser) translation(i *instr) {
	c := p.delimiter("y")
	from, ok := p.delimited(c, false)
	if !ok {
		p.fail("unterminated `y' command")
	}
	to, ok := p.delimited(c, false)
	if !ok {
		p.fail("unterminated `y' command")
	}
	a, b := p.characters([]byte(from)), p.characters([]byte(to))
	if len(a) != len(b) {
		p.fail("strings for `y' command are different lengths")
	}
	p.end()
	x := &translation{bytes: new([256]byte), chars: map[string]string{}}
	for n := range x.bytes {
		x.bytes[n] = byte(n)
	}
	p.t.Grow(len(from)*32 + 256)
	seen := map[string]bool{}
	for n := range a {
		if seen[a[n]] {
			continue
		}
		seen[a[n]] = true
		if len(a[n]) == 1 && len(b[n]) == 1 {
			x.bytes[a[n][0]] = b[n][0]
		} else {
			x.chars[a[n]] = b[n]
		}
	}
	i.table = x
}

// characters takes the text of y apart.
func (p *parser) characters(text []byte) []string {
	var list []string
	for len(text) > 0 {
		if text[0] == '\\' && len(text) > 1 && !(text[1] == 'c' && len(text) == 2) {
			if b, n := p.escape(text[1:]); n > 0 {
				list = append(list, string([]byte{b}))
				text = text[1+n:]
				continue
			}
			text = text[1:]
		}
		n := p.m.size(text)
		list = append(list, string(text[:n]))
		text = text[n:]
	}
	return list
}

// translate runs the command y.
func (m *machine) translate(x *translation) {
	line := m.space.text
	if len(x.chars) == 0 && (m.bytes || !beyond(x.bytes)) {
		for i, c := range line {
			line[i] = x.bytes[c]
		}
		return
	}
	out := m.spare[:0]
	for len(line) > 0 {
		n := m.size(line)
		to, ok := x.chars[string(line[:n])]
		switch {
		case ok:
			out = append(out, to...)
		case n == 1:
			out = append(out, x.bytes[line[0]])
		default:
			out = append(out, line[:n]...)
		}
		line = line[n:]
	}
	m.spare, m.space.text = m.space.text, out
	m.grown(&m.space)
}

// beyond says whether bytes change that are parts of characters.
func beyond(table *[256]byte) bool {
	for n := utf8.RuneSelf; n < len(table); n++ {
		if table[n] != byte(n) {
			return true
		}
	}
	return false
}
