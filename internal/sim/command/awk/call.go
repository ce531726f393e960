package awk

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func mapRunes(s string, upper bool) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[i])
		} else if upper {
			b = utf8.AppendRune(b, unicode.ToUpper(r))
		} else {
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		i += n
	}
	return string(b)
}

// write prints a value.
func (m *machine) write(w *command.Writer, v value) {
	switch v.k {
	case number:
		w.Bytes(m.appendNumber(w.Space(), v.n, m.ofmt))
	case unset:
	default:
		w.String(v.s)
	}
}

// builtin gives what calls a function of the language.
func (c *compiler) builtin(e *builtinExpr) valueFn {
	switch e.f {
	case fLength:
		return c.length(e)
	case fSplit, fPatsplit:
		return c.split(e)
	case fSub, fGsub:
		return c.sub(e)
	case fGensub:
		return c.gensub(e)
	case fMatch:
		return c.matchCall(e)
	case fAsort, fAsorti:
		return c.asort(e)
	case fIsarray, fTypeof:
		return c.typeof(e)
	case fSubstr:
		return c.substr(e)
	case fIndex:
		s, x := c.str(e.args[0]), c.str(e.args[1])
		return func(m *machine) value {
			a := s(m)
			i := m.indexOf(a, x(m))
			if i < 0 {
				return num(0)
			}
			return num(float64(m.chars(a[:i]) + 1))
		}
	case fSprintf:
		format, args := c.str(e.args[0]), c.values(e.args[1:])
		return func(m *machine) value {
			f := format(m)
			list := args(m) // they may use the scratch space, and replace it
			b := m.sprintf(m.buf[:0], f, list)
			m.fresh(len(b))
			s := string(b)
			m.buf = b[:0]
			m.trim()
			return str(s)
		}
	case fInt:
		f := c.num(e.args[0])
		return func(m *machine) value { return num(math.Trunc(f(m))) }
	}
	f, args := e.f, c.values(e.args)
	return func(m *machine) value {
		v, _ := m.simple(f, args(m))
		return v
	}
}

func (c *compiler) length(e *builtinExpr) valueFn {
	if len(e.args) == 0 {
		return func(m *machine) value { return num(float64(m.chars(m.record()))) }
	}
	var at cellFn
	switch x := e.args[0].(type) {
	case *nameExpr:
		i := x.index
		if x.local {
			at = func(m *machine) *cell { return &m.frame[i] }
		} else if i >= hooked && c.m.prog.functions[x.name] == nil {
			g := &c.m.globals[i]
			at = func(*machine) *cell { return g }
		}
	case *indexExpr:
		at = c.element(x)
	}
	if at == nil {
		f := c.str(e.args[0])
		return func(m *machine) value { return num(float64(m.chars(f(m)))) }
	}
	return func(m *machine) value {
		x := at(m)
		for x.ref != nil {
			x = x.ref
		}
		if x.arr != nil {
			return num(float64(x.arr.len()))
		}
		return num(float64(m.chars(m.str(x.v))))
	}
}

func (c *compiler) substr(e *builtinExpr) valueFn {
	s, from := c.str(e.args[0]), c.num(e.args[1])
	var length numFn
	if len(e.args) == 3 {
		length = c.num(e.args[2])
	}
	return func(m *machine) value {
		a := s(m)
		i := from(m)
		n := math.Inf(1)
		if length != nil {
			n = length(m)
		}
		return str(m.slice(a, i, n))
	}
}

// slice gives the part of a string that substr means: fractions count for
// nothing, and what stands before the string does not either.
func (m *machine) slice(s string, from, n float64) string {
	if math.IsNaN(from) || math.IsNaN(n) || s == "" {
		return ""
	}
	begin := max(math.Trunc(from), 1)
	end := begin + math.Trunc(n)
	if end <= begin || begin > float64(len(s)) {
		return ""
	}
	m.t.Step(1 + len(s)>>4)
	i := m.offset(s, int(begin)-1)
	j := len(s)
	if end-begin < float64(len(s)-i) {
		j = i + m.offset(s[i:], int(end-begin))
	}
	if r := s[i:j]; len(s) <= 512 || len(r)*4 > len(s) {
		return r
	}
	m.fresh(j - i)
	return strings.Clone(s[i:j]) // lest it keep the whole string
}

// simple calls a function of which all arguments are plain values.
func (m *machine) simple(f builtin, args []value) (value, bool) {
	least, most := f.arity()
	if f == 0 || len(args) < least || len(args) > most {
		return value{}, false
	}
	arg := func(i int) float64 { return args[i].num() }
	switch f {
	case fLength:
		if len(args) == 0 {
			return num(float64(m.chars(m.record()))), true
		}
		return num(float64(m.chars(m.str(args[0])))), true
	case fSubstr:
		n := math.Inf(1)
		if len(args) == 3 {
			n = arg(2)
		}
		return str(m.slice(m.str(args[0]), arg(1), n)), true
	case fIndex:
		a := m.str(args[0])
		if i := m.indexOf(a, m.str(args[1])); i >= 0 {
			return num(float64(m.chars(a[:i]) + 1)), true
		}
		return num(0), true
	case fSprintf:
		b := m.sprintf(nil, m.str(args[0]), args[1:])
		defer m.t.Shrink(kernel.Cost(b))
		m.fresh(len(b))
		return str(string(b)), true
	case fTolower, fToupper:
		s := m.str(args[0])
		m.fresh(len(s))
		return str(mapCase(s, f == fToupper)), true
	case fSystem:
		return num(m.system(m.str(args[0]))), true
	case fClose:
		how := ""
		if len(args) > 1 {
			how = m.str(args[1])
		}
		return num(m.close(m.str(args[0]), how)), true
	case fFflush:
		return num(m.fflush(args)), true
	case fInt:
		return num(math.Trunc(arg(0))), true
	case fSqrt:
		n := arg(0)
		if n < 0 {
			m.warn("sqrt: received negative argument %s", m.numStr(n))
			return num(math.Copysign(math.NaN(), -1)), true
		}
		return num(math.Sqrt(n)), true
	case fExp:
		return num(math.Exp(arg(0))), true
	case fLog:
		n := arg(0)
		if n < 0 {
			m.warn("log: received negative argument %s", m.numStr(n))
			return num(math.Copysign(math.NaN(), -1)), true
		}
		return num(math.Log(n)), true
	case fSin:
		return num(math.Sin(arg(0))), true
	case fCos:
		return num(math.Cos(arg(0))), true
	case fAtan2:
		return num(math.Atan2(arg(0), arg(1))), true
	case fRand:
		return num(m.random.next()), true
	case fSrand:
		old := m.seed
		if len(args) > 0 {
			m.seed = arg(0)
		} else {
			m.seed = float64(m.t.K.Now().Unix())
		}
		m.random.seed(uint32(int64(m.seed)))
		return num(old), true
	case fMkbool:
		return truth(args[0].bool()), true
	}
	return m.extension(f, args)
}

// extension calls a function of gawk.
func (m *machine) extension(f builtin, args []value) (value, bool) {
	switch f {
	case fSystime:
		return num(float64(m.t.K.Now().Unix())), true
	case fStrftime:
		return str(m.strftime(args)), true
	case fMktime:
		return num(m.mktime(args)), true
	case fStrtonum:
		return num(m.strtonum(args[0])), true
	case fAnd, fOr, fXor:
		n := m.bits(args[0])
		for _, a := range args[1:] {
			switch f {
			case fAnd:
				n &= m.bits(a)
			case fOr:
				n |= m.bits(a)
			default:
				n ^= m.bits(a)
			}
		}
		return num(float64(n)), true
	case fCompl:
		return num(float64(^m.bits(args[0]) & (1<<53 - 1))), true
	case fLshift:
		return num(float64(m.bits(args[0]) << min(m.bits(args[1]), 64))), true
	case fRshift:
		return num(float64(m.bits(args[0]) >> min(m.bits(args[1]), 64))), true
	}
	return value{}, false
}

// bits gives a number for a function of bits.
func (m *machine) bits(v value) uint64 {
	n := v.num()
	if n < 0 {
		m.fatal("negative values are not allowed in functions of bits")
	}
	return uint64(min(n, 1<<63))
}

func (m *machine) strtonum(v value) float64 {
	v = v.resolve()
	if v.k == number || v.k == numeric {
		return v.n
	}
	s := strings.TrimLeft(v.s, " \t\n")
	sign := 1.0
	body := s
	if strings.HasPrefix(body, "-") {
		sign, body = -1, body[1:]
	} else {
		body = strings.TrimPrefix(body, "+")
	}
	base := 0.0
	switch {
	case len(body) > 2 && (strings.HasPrefix(body, "0x") || strings.HasPrefix(body, "0X")):
		base, body = 16, body[2:]
	case len(body) > 1 && body[0] == '0' && !strings.ContainsAny(body[:decimal(body)], ".eE89"):
		base, body = 8, body[1:]
	default:
		return toNumber(s)
	}
	n := 0.0
	for i := range len(body) {
		d := hexDigit(body[i])
		if d < 0 || float64(d) >= base {
			break
		}
		n = n*base + float64(d)
	}
	return sign * n
}

// system runs a command, and gives its status.
func (m *machine) system(line string) float64 {
	m.flushAll()
	s, err := m.t.Call(shell(line))
	if err != nil {
		m.warn("cannot run a shell: %s", vfs.Message(err))
		return 127
	}
	return float64(exit(s))
}

// fflush writes out what one file holds, or all.
func (m *machine) fflush(args []value) float64 {
	if len(args) == 0 || m.str(args[0]) == "" {
		m.flushAll()
		return 0
	}
	name := m.str(args[0])
	if name == "/dev/stdout" {
		m.out.Flush()
		return 0
	}
	found := -1.0
	for _, kind := range []string{">", "|", "&"} {
		if s, ok := m.sinks[kind+name]; ok {
			s.w.Flush()
			found = 0
		}
	}
	return found
}

// typeof tells what kind of value something is.
func (c *compiler) typeof(e *builtinExpr) valueFn {
	var at cellFn
	switch x := e.args[0].(type) {
	case *nameExpr:
		i := x.index
		if x.local {
			at = func(m *machine) *cell { return &m.frame[i] }
		} else if i >= hooked {
			g := &c.m.globals[i]
			at = func(*machine) *cell { return g }
		}
	case *indexExpr:
		at = c.element(x)
	}
	is := e.f == fIsarray
	_, element := e.args[0].(*indexExpr)
	var f valueFn
	if at == nil {
		f = c.value(e.args[0])
	}
	return func(m *machine) value {
		what := "untyped"
		if at != nil {
			x := at(m)
			for x.ref != nil {
				x = x.ref
			}
			switch {
			case x.arr != nil:
				what = "array"
			case x.v.k != unset:
				what = x.v.kind()
			case element:
				what = "untyped"
			}
		} else {
			what = f(m).kind()
		}
		if is {
			return truth(what == "array")
		}
		return str(what)
	}
}

// kind tells the kind of a value, as typeof has it.
func (v value) kind() string {
	switch v.resolve().k {
	case number:
		return "number"
	case numeric:
		return "strnum"
	case pattern:
		return "regexp"
	case unset:
		return "unassigned"
	}
	return "string"
}

// location gives the zone of the task.
func (m *machine) location() *time.Location {
	if m.zone == nil {
		m.zone = zone(m.t.Getenv("TZ"))
	}
	return m.zone
}

// indexOf finds a text in a text, without regard to case where IGNORECASE says
// so.
func (m *machine) indexOf(s, part string) int {
	if !m.ignoreCase || part == "" {
		return strings.Index(s, part)
	}
	m.t.Step((len(s) + len(part)) >> 4)
	first, n := utf8.DecodeRuneInString(part)
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if r != first && unicode.ToLower(r) != unicode.ToLower(first) {
			continue
		}
		a, b := s[i+size:], part[n:]
		for b != "" && a != "" {
			x, nx := utf8.DecodeRuneInString(a)
			y, ny := utf8.DecodeRuneInString(b)
			m.t.Step(1)
			if x != y && unicode.ToLower(x) != unicode.ToLower(y) {
				break
			}
			a, b = a[nx:], b[ny:]
		}
		if b == "" {
			return i
		}
	}
	return -1
}
