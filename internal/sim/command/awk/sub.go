package awk

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// sub and gsub replace in a variable.
func (c *compiler) sub(e *builtinExpr) valueFn {
	re, with := c.pattern(e.args[0]), c.str(e.args[1])
	global := e.f == fGsub
	if len(e.args) == 2 {
		return func(m *machine) value {
			x := re(m)
			w := with(m)
			if s, n := m.substitute(x, w, m.record(), global); n > 0 {
				m.setLine(s)
				return num(float64(n))
			}
			return num(0)
		}
	}
	target := e.args[2]
	get := c.str(target)
	var set func(*machine, value)
	if g, ok := target.(*groupExpr); ok {
		target = g.e
	}
	if isLvalue(target) {
		set = c.setter(target)
	}
	return func(m *machine) value {
		x := re(m)
		w := with(m)
		s, n := m.substitute(x, w, get(m), global)
		if n > 0 && set != nil {
			set(m, str(s))
		}
		return num(float64(n))
	}
}

// A replacement is cut at the places where the match stands in it.
type piece struct {
	text  string
	group int // of what follows the text, or -1
}

// pieces reads a replacement. In those of gensub, backslash and digit is a
// group. The list is counted.
func (m *machine) pieces(s string, groups bool) []piece {
	var list []piece
	var b []byte
	add := func(group int) {
		list = append(kernel.Room(m.t, "string", m.t.K.Limits.String, list, 1), piece{string(b), group})
		b = nil
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '&':
			add(0)
		case c == '\\' && i+1 < len(s) && groups && isDigit(s[i+1]):
			add(int(s[i+1] - '0'))
			i++
		case c == '\\' && i+1 < len(s) && s[i+1] == '&':
			b = append(b, '&')
			i++
		case c == '\\' && i+1 < len(s) && s[i+1] == '\\' && (groups || amp(s[i+2:])):
			b = append(b, '\\')
			i++
		default:
			b = append(b, c)
		}
	}
	add(-1)
	return list
}

// amp reports whether backslashes, if any, lead to an ampersand.
func amp(s string) bool {
	s = strings.TrimLeft(s, `\`)
	return strings.HasPrefix(s, "&")
}

// substitute replaces the first match, or all.
func (m *machine) substitute(re *matcher, with, s string, global bool) (string, int) {
	b := m.bytesOf(s)
	x, y := re.span(m, b, 0)
	if x < 0 {
		return s, 0
	}
	plain := strings.IndexByte(with, '&') < 0 && strings.IndexByte(with, '\\') < 0
	var parts []piece
	if !plain {
		parts = m.pieces(with, false)
		defer func() { m.t.Shrink(kernel.Cost(parts)) }()
	}
	out := m.buf[:0]
	n, at, last := 0, 0, -1
	for {
		if x == y && x == last {
			// An empty match right behind another is none.
			if x >= len(b) {
				break
			}
			k := m.charLen(s[x:])
			out = append(m.room(out, x+k-at), b[at:x+k]...)
			at = x + k
		} else {
			n++
			out = append(m.room(out, x-at+len(with)), b[at:x]...)
			if plain {
				out = append(out, with...)
			} else {
				for _, p := range parts {
					out = append(m.room(out, len(p.text)), p.text...)
					if p.group == 0 {
						out = append(m.room(out, y-x), b[x:y]...)
					}
				}
			}
			at, last = y, y
			if !global {
				break
			}
			if x == y {
				if x >= len(b) {
					break
				}
				k := m.charLen(s[x:])
				out = append(m.room(out, x+k-at), b[at:x+k]...)
				at = x + k
			}
		}
		m.t.Step(1)
		if at > len(b) {
			break
		}
		if x, y = re.span(m, b, at); x < 0 {
			break
		}
	}
	if at < len(b) {
		out = append(m.room(out, len(b)-at), b[at:]...)
	}
	m.buf = out
	m.fresh(len(out))
	r := string(out)
	m.trim()
	return r, n
}

func (c *compiler) gensub(e *builtinExpr) valueFn {
	re, with, how := c.pattern(e.args[0]), c.str(e.args[1]), c.value(e.args[2])
	target := func(m *machine) string { return m.record() }
	if len(e.args) == 4 {
		target = c.str(e.args[3])
	}
	return func(m *machine) value {
		x := re(m)
		w := with(m)
		h := how(m)
		which := 0 // all
		if s := m.str(h); !strings.HasPrefix(s, "g") && !strings.HasPrefix(s, "G") {
			which = max(1, clampInt(h.num()))
		}
		return str(m.general(x, w, target(m), which))
	}
}

// general replaces the match of a number, or all, with groups.
func (m *machine) general(re *matcher, with, s string, which int) string {
	m.fresh(len(s))
	b := bytes.Clone(m.bytesOf(s))
	parts := m.pieces(with, true)
	defer func() { m.t.Shrink(kernel.Cost(parts)) }()
	out := kernel.NewText(m.t)
	defer out.Free()
	n, at, last, from := 0, 0, -1, 0
	for from <= len(b) {
		regs := re.find(m, b, from)
		if regs == nil {
			break
		}
		m.t.Step(1)
		x, y := regs[0], regs[1]
		if x == y && x == last {
			from = x + 1
			last = -1
			continue
		}
		n++
		if which == 0 || n == which {
			_, _ = out.Write(b[at:x]) // it does not fail
			for _, p := range parts {
				out.WriteString(p.text)
				if p.group >= 0 && 2*p.group+1 < len(regs) && regs[2*p.group] >= 0 {
					_, _ = out.Write(b[regs[2*p.group]:regs[2*p.group+1]])
				}
			}
			at = y
			if which != 0 {
				break
			}
		}
		last, from = y, y
		if x == y {
			from++
		}
	}
	_, _ = out.Write(b[at:])
	m.fresh(out.Len())
	return out.Text()
}

// matchCall finds a match, and puts its groups into an array.
func (c *compiler) matchCall(e *builtinExpr) valueFn {
	s, re := c.str(e.args[0]), c.pattern(e.args[1])
	var a func(*machine) *array
	if len(e.args) == 3 {
		a = c.array(e.args[2])
	}
	return func(m *machine) value {
		text := s(m)
		x := re(m)
		b := m.bytesOf(text)
		var begin, end int
		if a == nil {
			begin, end = x.span(m, b, 0)
		} else {
			to := a(m)
			m.empty(to)
			regs := x.find(m, b, 0)
			begin = -1
			if regs != nil {
				begin, end = regs[0], regs[1]
				m.groups(to, text, regs)
			}
		}
		start, length := 0.0, -1.0
		if begin >= 0 {
			start = float64(m.chars(text[:begin]) + 1)
			length = float64(m.chars(text[begin:end]))
		}
		m.globals[vRSTART].v = num(start)
		m.globals[vRLENGTH].v = num(length)
		return num(start)
	}
}

func (m *machine) groups(to *array, s string, regs []int) {
	for i := 0; 2*i < len(regs); i++ {
		x, y := regs[2*i], regs[2*i+1]
		if x < 0 {
			continue
		}
		key := strconv.Itoa(i)
		m.put(to, key, input(strings.Clone(s[x:y])))
		m.put(to, key+m.subsep+"start", num(float64(m.chars(s[:x])+1)))
		m.put(to, key+m.subsep+"length", num(float64(m.chars(s[x:y]))))
	}
}

// split is split and patsplit.
func (c *compiler) split(e *builtinExpr) valueFn {
	s, a := c.str(e.args[0]), c.array(e.args[1])
	content := e.f == fPatsplit
	var how func(*machine) splitter
	switch {
	case len(e.args) < 3 && content:
		how = func(m *machine) splitter { return splitter{kind: byContent, re: m.regex(m.str(m.globals[vFPAT].v))} }
	case len(e.args) < 3:
		how = func(m *machine) splitter { return m.fsSplit }
	default:
		how = c.separator(e.args[2], content)
	}
	var seps func(*machine) *array
	if len(e.args) == 4 {
		seps = c.array(e.args[3])
	}
	return func(m *machine) value {
		text := s(m)
		h := how(m)
		to := a(m)
		rs := m.rs
		m.rs = "\n" // newlines separate fields of records only
		var between []string
		var list []value
		switch {
		case seps != nil && content:
			list, between = m.patterns(&h, text)
		case seps != nil:
			list, between = m.separate(&h, text)
		default:
			list = h.split(m, text, nil)
		}
		m.rs = rs
		m.fresh(48 * len(list))
		m.fill(to, 1, list, text)
		if seps != nil {
			m.fillSeparators(seps(m), between, &h, text)
		}
		return num(float64(len(list)))
	}
}

// fillSeparators makes an array of what stands between fields. Blanks before
// the first and behind the last are there only where there are some.
func (m *machine) fillSeparators(to *array, between []string, h *splitter, text string) {
	values := make([]value, len(between))
	for i, b := range between {
		values[i] = str(b)
	}
	first := 1
	if h.kind == byContent || h.kind == byBlanks {
		first = 0
	}
	if n := len(between); h.kind == byBlanks && n > 0 {
		if between[n-1] == "" {
			values = values[:n-1]
		}
		if between[0] == "" && len(values) > 0 {
			values, first = values[1:], 1
		}
	}
	if text == "" {
		values = nil
	}
	m.fill(to, first, values, text)
}

// separator gives how the third argument of split splits.
func (c *compiler) separator(e expr, content bool) func(*machine) splitter {
	if g, ok := e.(*groupExpr); ok {
		return c.separator(g.e, content)
	}
	_, lit := e.(*regexLit)
	re := c.pattern(e)
	if content || lit {
		kind := byRegex
		if content {
			kind = byContent
		}
		return func(m *machine) splitter {
			x := re(m)
			if x.src == "" && !content {
				return splitter{kind: byChar}
			}
			return splitter{kind: kind, re: x}
		}
	}
	f := c.value(e)
	return func(m *machine) splitter {
		v := f(m)
		if v.k == pattern {
			return splitter{kind: byRegex, re: m.regex(v.s)}
		}
		return m.splitterOf(m.str(v))
	}
}

// fill makes an array of a list.
func (m *machine) fill(to *array, first int, list []value, from string) {
	kept := m.reusable(to, first, len(list))
	if kept == 0 {
		m.empty(to)
	}
	for i, v := range list {
		if i&1023 == 0 {
			m.t.Step(64)
		}
		if len(from) > 4096 {
			v.s = strings.Clone(v.s) // lest a part keep the whole
		}
		if i < kept {
			m.set(&to.order[i].cell, v)
			continue
		}
		m.key = strconv.AppendInt(m.key[:0], int64(first+i), 10)
		m.set(&m.getKey(to).cell, v)
	}
}

// reusable gives how many elements of an array may stay, because they are what
// an earlier list left there; those behind them are gone then.
func (m *machine) reusable(a *array, first, n int) int {
	if a.gone > 0 || n == 0 {
		return 0
	}
	for i, e := range a.order {
		m.key = strconv.AppendInt(m.key[:0], int64(first+i), 10)
		if e.key != string(m.key) || e.arr != nil || e.deleted {
			return 0
		}
	}
	m.t.Step(len(a.order) >> 4)
	kept := min(n, len(a.order))
	for _, e := range a.order[kept:] {
		delete(a.m, e.key)
		e.deleted = true
		m.forget(&e.cell)
		m.count(-weight - len(e.key))
	}
	clear(a.order[kept:])
	a.order = a.order[:kept]
	return kept
}

// separate splits, and gives what stands between the fields.
func (m *machine) separate(h *splitter, s string) (list []value, seps []string) {
	add := func(x string) { seps = append(seps, x) }
	switch h.kind {
	case byRegex:
		return h.splitRegex(m, s, nil, add), seps
	case byBlanks:
		list = m.splitBlanks(s, nil)
		rest := s
		for _, f := range list {
			i := strings.Index(rest, f.s)
			seps = append(seps, rest[:i])
			rest = rest[i+len(f.s):]
		}
		return list, append(seps, rest)
	}
	list = h.split(m, s, nil)
	for range max(0, len(list)-1) {
		if h.kind == byByte {
			add(string([]byte{h.c}))
		} else {
			add("")
		}
	}
	return list, seps
}

// patterns is separate for fields that match.
func (m *machine) patterns(h *splitter, s string) (list []value, seps []string) {
	if s == "" {
		return nil, nil
	}
	at := 0
	list = h.content(m, s, nil, func(x, y int) {
		seps = append(seps, s[at:x])
		at = y
	})
	return list, append(seps, s[at:])
}
