package jq

import (
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

type meter struct{ m *machine }

func (x meter) Step(n int) error {
	x.m.searched += n
	x.m.t.Step(64)
	return nil
}

func (x meter) Grow(n int) error {
	x.m.t.Grow(n)
	return nil
}

// pay counts the work of a search from which the next one goes on. The engine
// charges all the text that is left, again and again, where a search needs to
// look at little of it.
func (m *machine) pay(left, used int) {
	m.t.Step(max(m.searched-left>>6, used>>6) + 1)
	m.searched = 0
}

// maxRegexes is how many expressions are kept.
const maxRegexes = 100

// regex compiles an expression with the flags of test and its like.
func (m *machine) regex(src, flags string) (re *regex.Regexp, global, noEmpty bool, err error) {
	opt := regex.Options{Flavour: regex.Perl, Meter: meter{m}}
	prefix := ""
	for _, f := range flags {
		switch f {
		case 'g':
			global = true
		case 'i':
			opt.IgnoreCase = true
		case 'x':
			prefix += "x"
		case 's':
			// One line: what $ means by itself.
		case 'n':
			noEmpty = true
		case 'p':
			prefix += "s"
		case 'l':
		default:
			return nil, false, false, failf("%s is not a valid modifier string", flags)
		}
	}
	if prefix != "" {
		prefix = "(?" + prefix + ")"
	}
	key := prefix + "\x00" + src
	if opt.IgnoreCase {
		key = "i" + key
	}
	if re, ok := m.regexes[key]; ok {
		return re, global, noEmpty, nil
	}
	m.t.Step(len(src))
	re, err = regex.Compile(prefix+src, opt)
	if err != nil {
		return nil, false, false, failf("%s (at offset 0) is not a valid regex: %s", src, err)
	}
	if len(m.regexes) >= maxRegexes {
		clear(m.regexes)
	}
	m.regexes[strings.Clone(key)] = re
	return re, global, noEmpty, nil
}

// offsets turns offsets of bytes into counts of characters, if they come in
// order.
type offsets struct {
	s        string
	at, char int
}

func (o *offsets) chars(i int) float64 {
	if i < o.at {
		o.at, o.char = 0, 0
	}
	o.char += utf8.RuneCountInString(o.s[o.at:i])
	o.at = i
	return float64(o.char)
}

// A found is a match.
type found struct {
	begin, end int
	v          *object
}

// find gives the matches of an expression: the first, or all that its flags say. The caller holds them, in hits.
func (m *machine) find(s string, pattern, flags value, hits *array) ([]found, error) {
	src, ok := pattern.(string)
	if !ok {
		return nil, failf("%s cannot be matched, as it is not a string", m.operand(pattern))
	}
	f := ""
	if flags != nil {
		if f, ok = flags.(string); !ok {
			return nil, failf("%s is not a string", m.operand(flags))
		}
	}
	re, global, noEmpty, err := m.regex(src, f)
	if err != nil {
		return nil, err
	}
	m.alloc(len(s))
	b := []byte(s)
	var out []found
	var regs []int
	count := &offsets{s: s}
	names := re.Names()
	for from := 0; from <= len(b); {
		m.t.Step(1)
		regs, err = re.Find(b, from, regs)
		if regs != nil {
			m.pay(len(b)-from, regs[1]-from)
		} else {
			m.pay(0, 0)
		}
		if err != nil {
			return nil, failf("%s: %s", src, err)
		}
		if regs == nil {
			break
		}
		x, y := regs[0], regs[1]
		if x == y {
			from = y + 1
			if y < len(b) {
				_, n := utf8.DecodeRuneInString(s[y:])
				from = y + n
			}
		} else {
			from = y
		}
		if x == y && noEmpty {
			continue
		}
		hit := found{begin: x, end: y}
		if hits != nil {
			hit.v = m.matchObject(s, regs, names, count)
			hits.v = append(more(m, hits.v, 16), hit.v)
		}
		out = append(more(m, out, 24), hit)
		if !global || hits == nil {
			break
		}
	}
	return out, nil
}

func (m *machine) matchObject(s string, regs []int, names []string, count *offsets) *object {
	t := &table{}
	t.put("offset", count.chars(regs[0]))
	text := s[regs[0]:regs[1]]
	t.put("length", float64(utf8.RuneCountInString(text)))
	t.put("string", strings.Clone(text))
	inner := *count
	var list []value
	for i := 1; 2*i < len(regs); i++ {
		c := &table{}
		x, y := regs[2*i], regs[2*i+1]
		var name value
		if i-1 < len(names) && names[i-1] != "" {
			name = names[i-1]
		}
		if x < 0 {
			c.put("offset", -1.0)
			c.put("string", nil)
			c.put("length", 0.0)
			c.put("name", name)
		} else {
			c.put("offset", inner.chars(x))
			c.put("length", float64(utf8.RuneCountInString(s[x:y])))
			c.put("string", strings.Clone(s[x:y]))
			c.put("name", name)
		}
		list = append(list, m.made(c))
	}
	t.put("captures", m.list(list))
	m.alloc(len(text))
	return m.made(t)
}

// matches is the function behind match and test.
func matches(m *machine, v value, args []value) (value, error) {
	s, ok := v.(string)
	if !ok {
		return nil, failf("%s cannot be matched, as it is not a string", m.operand(v))
	}
	if args[2] == true {
		list, err := m.find(s, args[0], args[1], nil)
		return len(list) > 0, err
	}
	at, hits := len(m.holds), &array{}
	m.hold(hits)
	defer m.release(at)
	if _, err := m.find(s, args[0], args[1], hits); err != nil {
		return nil, err
	}
	return m.list(hits.v), nil
}

// captures gives the named groups of a match.
func (m *machine) captures(o *object) value {
	t := &table{}
	c, _ := o.get("captures")
	if list, ok := c.(*array); ok {
		for _, x := range list.own() {
			if g, ok := x.(*object); ok {
				if name, _ := g.get("name"); name != nil {
					key, _ := name.(string)
					s, _ := g.get("string")
					t.put(key, s)
				}
			}
		}
	}
	return m.made(t)
}

// substitute is sub and gsub: a replacement with several values gives several
// strings.
func substitute(m *machine, n *node, e *env, v value, yield yieldFn) error {
	flags := func(then func(value) error) error { return then("") }
	if len(n.list) == 3 {
		flags = func(then func(value) error) error { return m.eval(n.list[2], e, v, then) }
	}
	return flags(func(f value) error {
		return m.eval(n.list[0], e, v, func(re value) error {
			s, ok := v.(string)
			if !ok {
				return failf("%s cannot be matched, as it is not a string", m.operand(v))
			}
			if text, ok := f.(string); ok && n.native.name == "gsub" {
				f = text + "g"
			}
			held, hits := len(m.holds), &array{}
			m.hold(hits)
			defer m.release(held)
			list, err := m.find(s, re, f, hits)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return yield(v)
			}
			var results []*kernel.Builder
			defer func() {
				for _, b := range results {
					b.Free()
				}
			}()
			at := 0
			for i := range list {
				k := 0
				gap := s[at:list[i].begin]
				err := m.eval(n.list[1], e, m.captures(list[i].v), func(x value) error {
					text, ok := x.(string)
					if !ok {
						return failf("%s and %s cannot be added", m.operand(gap), m.operand(x))
					}
					if k == len(results) {
						m.alloc(64)
						results = append(results, kernel.NewText(m.t))
					}
					results[k].WriteString(gap)
					results[k].WriteString(text)
					m.t.Bound("array", int64(len(results)), m.t.K.Limits.Array)
					k++
					return nil
				})
				if err != nil {
					return err
				}
				at = list[i].end
			}
			if len(results) == 0 {
				return yield(v)
			}
			for _, b := range results {
				b.WriteString(s[at:])
				if err := yield(m.made2(b.Text())); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
