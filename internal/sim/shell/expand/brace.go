package expand

import (
	"strconv"
	"strings"
)

// A brace is a piece of a word with braces: plain parts, alternatives, or a
// sequence.
type brace struct {
	parts []part
	alts  [][]brace
	seq   *sequence
}

// A sequence is {from..to..step}.
type sequence struct {
	from, to, step int64
	width          int
	letters        bool
}

// maxBraces bounds braces within braces.
const maxBraces = 200

// A mark is an unquoted brace or comma in a word.
type mark struct {
	part, at int
	c        byte
	match    int   // of the other brace, -1 is none
	commas   []int // of a brace that opens: marks
}

// braces finds the brace expansions of a word; ok is false if there are none.
func braces(parts []part) ([]brace, bool) {
	found := false
	for i := range parts {
		if p := &parts[i]; p.kind == text && !p.quoted && strings.IndexByte(p.text, '{') >= 0 {
			found = true
			break
		}
	}
	if !found {
		return nil, false
	}
	b := bracer{parts: parts, marks: marks(parts)}
	list := b.build(position{}, position{len(parts), 0}, 0, len(b.marks), 0)
	return list, b.used
}

func marks(parts []part) []mark {
	var list []mark
	var open []int
	for n := range parts {
		p := &parts[n]
		if p.kind != text || p.quoted {
			continue
		}
		for i := range len(p.text) {
			switch c := p.text[i]; c {
			case '{':
				open = append(open, len(list))
				list = append(list, mark{part: n, at: i, c: c, match: -1})
			case ',':
				if k := len(open); k > 0 {
					o := &list[open[k-1]]
					o.commas = append(o.commas, len(list))
					list = append(list, mark{part: n, at: i, c: c, match: -1})
				}
			case '}':
				if k := len(open); k > 0 {
					list[open[k-1]].match = len(list)
					open = open[:k-1]
					list = append(list, mark{part: n, at: i, c: c, match: -1})
				}
			}
		}
	}
	return list
}

// A position is a place in a word.
type position struct{ part, at int }

type bracer struct {
	parts []part
	marks []mark
	used  bool
}

// cut gives the parts between two places.
func (b *bracer) cut(from, to position) []part {
	var out []part
	for n := from.part; n <= to.part && n < len(b.parts); n++ {
		p := b.parts[n]
		start, end := 0, len(p.text)
		if n == from.part {
			start = from.at
		}
		if n == to.part {
			end = to.at
			if end == 0 {
				break
			}
		}
		if p.kind == text && !p.quoted {
			p.text = p.text[start:end]
			if p.text == "" {
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// build makes the pieces between two places, with the marks from first on.
func (b *bracer) build(from, to position, first, last, depth int) []brace {
	var list []brace
	plain := func(end position) {
		if p := b.cut(from, end); len(p) > 0 {
			list = append(list, brace{parts: p})
		}
	}
	for i := first; i < last; i++ {
		m := &b.marks[i]
		if m.c != '{' || m.match < 0 || depth >= maxBraces {
			continue
		}
		inner := position{m.part, m.at + 1}
		end := &b.marks[m.match]
		if len(m.commas) == 0 {
			seq := b.sequence(inner, position{end.part, end.at})
			if seq == nil {
				continue
			}
			plain(position{m.part, m.at})
			list = append(list, brace{seq: seq})
		} else {
			plain(position{m.part, m.at})
			list = append(list, brace{alts: b.alternatives(i, depth)})
		}
		b.used = true
		from = position{end.part, end.at + 1}
		i = m.match
	}
	plain(to)
	return list
}

func (b *bracer) alternatives(open, depth int) [][]brace {
	m := &b.marks[open]
	var alts [][]brace
	from, first := position{m.part, m.at + 1}, open+1
	for _, c := range append(m.commas, m.match) {
		x := &b.marks[c]
		alts = append(alts, b.build(from, position{x.part, x.at}, first, c, depth+1))
		from, first = position{x.part, x.at + 1}, c+1
	}
	return alts
}

// sequence reads x..y and x..y..step, or gives nil.
func (b *bracer) sequence(from, to position) *sequence {
	if from.part != to.part {
		return nil
	}
	f := strings.Split(b.parts[from.part].text[from.at:to.at], "..")
	if len(f) < 2 || len(f) > 3 {
		return nil
	}
	s := &sequence{step: 1}
	if len(f) == 3 {
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil
		}
		s.step = n
	}
	if len(f[0]) == 1 && len(f[1]) == 1 && letter(f[0][0]) && letter(f[1][0]) {
		s.letters = true
		s.from, s.to = int64(f[0][0]), int64(f[1][0])
	} else {
		var err1, err2 error
		s.from, err1 = strconv.ParseInt(f[0], 10, 64)
		s.to, err2 = strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil {
			return nil
		}
		if padded(f[0]) || padded(f[1]) {
			s.width = max(len(f[0]), len(f[1]))
		}
	}
	if s.step == 0 {
		s.step = 1
	}
	if s.step < 0 {
		s.step = -s.step
		if s.step < 0 {
			return nil
		}
	}
	if uint64(max(s.from, s.to)-min(s.from, s.to))/uint64(s.step) >= 1<<31-2 {
		return nil // bash cannot either
	}
	return s
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

// each calls yield with every item, in order.
func (s *sequence) each(yield func(part) error) error {
	n := s.from
	for {
		if err := yield(s.item(n)); err != nil {
			return err
		}
		if s.from <= s.to {
			if uint64(s.to)-uint64(n) < uint64(s.step) {
				return nil
			}
			n += s.step
		} else {
			if uint64(n)-uint64(s.to) < uint64(s.step) {
				return nil
			}
			n -= s.step
		}
	}
}

func (s *sequence) item(n int64) part {
	if s.letters {
		if n == '\\' {
			return part{quoted: true} // it quotes nothing, and goes
		}
		return part{text: string([]byte{byte(n)}), quoted: !letter(byte(n))}
	}
	t := strconv.FormatInt(n, 10)
	if len(t) < s.width {
		sign := ""
		if n < 0 {
			sign, t = "-", t[1:]
		}
		t = sign + strings.Repeat("0", s.width-len(sign)-len(t)) + t
	}
	return part{text: t}
}

// braceWords calls yield with the parts of every word that a word with braces
// stands for.
func (x *Expander) braceWords(list []brace, yield func([]part) error) error {
	limit := x.task.K.Limits.Brace
	count := int64(0)
	var prefix []part
	var walk func(list []brace, next func() error) error
	walk = func(list []brace, next func() error) error {
		if len(list) == 0 {
			return next()
		}
		n := len(prefix)
		b := &list[0]
		rest := func() error { return walk(list[1:], next) }
		switch {
		case b.seq != nil:
			return b.seq.each(func(p part) error {
				prefix = append(prefix[:n], p)
				return rest()
			})
		case b.alts != nil:
			for _, alt := range b.alts {
				prefix = prefix[:n]
				if err := walk(alt, rest); err != nil {
					return err
				}
			}
			return nil
		}
		prefix = append(prefix[:n], b.parts...)
		return rest()
	}
	return walk(list, func() error {
		count++
		x.task.Step(1 + len(prefix))
		x.task.Bound("brace", count, limit)
		return yield(lengthen(prefix))
	})
}

// lengthen gives "$name" the letters that follow it now: braces come before
// parameters.
func lengthen(parts []part) []part {
	for i := 0; i+1 < len(parts); i++ {
		p, next := &parts[i], &parts[i+1]
		if p.kind != param || !p.param.short || p.param.special != 0 || p.quoted ||
			next.kind != text || next.quoted || next.text == "" || !nameByte(next.text[0]) {
			continue
		}
		n := 1
		for n < len(next.text) && nameByte(next.text[n]) {
			n++
		}
		out := append([]part(nil), parts...)
		out[i].param = &Param{name: p.param.name + next.text[:n], simple: true, short: true}
		out[i+1].text = next.text[n:]
		if out[i+1].text == "" {
			out = append(out[:i+1], out[i+2:]...)
		}
		return lengthen(out)
	}
	return parts
}
