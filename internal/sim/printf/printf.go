// Package printf implements bash's printf and the GNU tool: formats, escapes,
// numbers of long double precision, and the messages of both.
//
// A Format is compiled once; Append runs it over arguments as often as it takes
// to use them up. The result is bytes in memory, and no more of them than a
// limit, whatever widths and precisions a script asks for.
package printf

import (
	"errors"
	"strings"
)

// Dialect says whose printf it is: they differ in messages and in corners.
type Dialect uint8

// The dialects.
const (
	Bash Dialect = iota
	GNU
)

// ErrLimit is the error of a result that would be longer than its limit.
var ErrLimit = errors.New("printf: the output is too long")

// defaultLimit bounds a result for which nobody said anything.
const defaultLimit = 16 << 20

// Env is what a format needs from outside while it runs.
type Env struct {
	// Limit is the most bytes that may be appended; zero is 16 MiB.
	Limit int
	// Warn gets each message, without the name of the command; at is how much
	// had been appended before it: the GNU tool writes that first, and bash what
	// of it are whole lines. It may be nil.
	Warn func(at int, message string)
	// Store assigns for %n, in bash's dialect; nil refuses.
	Store func(name string, n int) error
	// Time appends a time for %(layout)T; nil shows seconds.
	Time func(dst []byte, layout string, unix int64) []byte
	// Now and Started are the times of the arguments -1 and -2 of %( )T.
	Now, Started int64
	// Bytes says that a character is a byte, as in the locale C.
	Bytes bool
	// Quote quotes an argument in the messages of the GNU dialect; nil puts
	// ASCII quotes around it.
	Quote func(string) string
}

// Format is a compiled format. It does not change.
type Format struct {
	dialect Dialect
	parts   []part
	uses    bool // some part takes an argument
}

// part is literal text, then a conversion.
type part struct {
	text string
	kind kind
	spec spec
}

type kind uint8

const (
	kindText kind = iota // no conversion
	kindVerb
	kindWarn // a message, then go on
	kindFail // a message, then stop with status 1
	kindStop // stop
)

// spec is a conversion.
type spec struct {
	verb      byte
	minus     bool
	plus      bool
	space     bool
	alt       bool
	zero      bool
	starWidth bool
	starPrec  bool
	width     int
	prec      int    // -1 for none
	text      string // the layout of T, the message of kindWarn and kindFail
}

// Compile never fails: what is wrong with a format is said when it runs, after
// what comes before it.
func Compile(format string, d Dialect) *Format {
	c := compiler{f: &Format{dialect: d}, src: format}
	c.compile()
	return c.f
}

type compiler struct {
	f   *Format
	src string
	lit []byte
}

func (c *compiler) end(k kind, s spec) {
	c.f.parts = append(c.f.parts, part{text: string(c.lit), kind: k, spec: s})
	c.lit = c.lit[:0]
	if k == kindVerb {
		c.f.uses = true
	}
}

func (c *compiler) compile() {
	s := c.src
	for i := 0; i < len(s); {
		j := strings.IndexAny(s[i:], `\%`)
		if j < 0 {
			c.lit = append(c.lit, s[i:]...)
			break
		}
		c.lit = append(c.lit, s[i:i+j]...)
		i += j
		if s[i] == '\\' {
			e := escape(s[i:], c.f.dialect, false)
			c.lit = append(c.lit, e.out...)
			switch {
			case e.stop:
				c.end(kindStop, spec{})
				return
			case e.message != "" && c.f.dialect == GNU:
				c.end(kindFail, spec{text: e.message})
				return
			case e.message != "":
				c.end(kindWarn, spec{text: e.message})
			}
			i += e.size
			continue
		}
		n, ok := c.verb(s[i:])
		if !ok {
			return
		}
		i += n
	}
	if len(c.lit) > 0 || len(c.f.parts) == 0 {
		c.end(kindText, spec{})
	}
}

// verb compiles the conversion that s begins with and returns its length, and
// false if nothing can follow it.
func (c *compiler) verb(s string) (int, bool) {
	if strings.HasPrefix(s, "%%") {
		c.lit = append(c.lit, '%')
		return 2, true
	}
	gnu := c.f.dialect == GNU
	if gnu && (strings.HasPrefix(s, "%b") || strings.HasPrefix(s, "%q")) {
		c.end(kindVerb, spec{verb: s[1], prec: -1})
		return 2, true
	}
	p := spec{prec: -1}
	i, banned := c.flags(s, &p)
	i = number(s, i, &p.width, &p.starWidth)
	if i < len(s) && s[i] == '.' {
		banned += "c"
		p.prec = 0
		i = number(s, i+1, &p.prec, &p.starPrec)
	}
	for i < len(s) && strings.IndexByte("hjlLtz", s[i]) >= 0 {
		i++
	}
	verbs := "diouxXeEfFgGaAcs"
	if !gnu {
		verbs += "bqQn("
		banned = ""
	}
	fail := func(message string) (int, bool) {
		p.text = message
		c.end(kindFail, p)
		return 0, false
	}
	switch {
	case i == len(s) && gnu:
		return fail(s + ": invalid conversion specification")
	case i == len(s):
		return fail("`" + s + "': missing format character")
	case strings.IndexByte(verbs, s[i]) >= 0 && strings.IndexByte(banned, s[i]) < 0:
	case gnu:
		return fail(s[:i+1] + ": invalid conversion specification")
	default:
		return fail("`" + s[i:i+1] + "': invalid format character")
	}
	p.verb = s[i]
	i++
	if p.verb == '(' {
		return c.layout(s, i, p), true
	}
	c.end(kindVerb, p)
	return i, true
}

// flags reads the flags of a conversion, and returns the verbs that the GNU tool
// does not take with them.
func (c *compiler) flags(s string, p *spec) (i int, banned string) {
	ban := func(verbs string) {
		if !strings.Contains(banned, verbs) {
			banned += verbs
		}
	}
	for i = 1; i < len(s); i++ {
		switch s[i] {
		case '-':
			p.minus = true
		case '+':
			p.plus = true
		case ' ':
			p.space = true
		case '#':
			p.alt = true
			ban("cdisu")
		case '0':
			p.zero = true
			ban("cs")
		case '\'':
			ban("aAceEosxX")
		case 'I':
			if c.f.dialect != GNU {
				return i, banned
			}
			ban("aAceEosxX")
		default:
			return i, banned
		}
	}
	return i, banned
}

// layout reads the rest of %(layout)T.
func (c *compiler) layout(s string, i int, p spec) int {
	start, nest := i, 1
	for ; i < len(s); i++ {
		if s[i] == '(' {
			nest++
		} else if s[i] == ')' {
			if nest--; nest == 0 {
				break
			}
		}
	}
	if i+1 < len(s) && s[i+1] == 'T' {
		p.verb, p.text = 'T', s[start:i]
		c.end(kindVerb, p)
		return i + 2
	}
	wrong := "\x00"
	if i+1 < len(s) {
		wrong = s[i+1 : i+2]
	}
	c.end(kindWarn, spec{text: "warning: `" + wrong + "': invalid time format specification"})
	c.lit = append(c.lit, '%')
	return 1
}

// huge is more than any limit.
const huge = 1 << 31

// number reads a width or a precision.
func number(s string, i int, n *int, star *bool) int {
	if i < len(s) && s[i] == '*' {
		*star = true
		return i + 1
	}
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		*n = min(*n*10+int(s[i]-'0'), huge)
		i++
	}
	return i
}
