package xan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A value is nil, a bool, a float64, a string or a []value. A cell is a
// string.
type value = any

// An expression computes a value from a row; self is what _ stands for.
type expression func(e *scene) (value, error)

// A scene is what an expression is computed on.
type scene struct {
	row   []string
	index int
	self  value
}

// A parser reads expressions.
type parser struct {
	j     *job
	s     string
	at    int
	head  []string
	depth int
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("expression %q: "+format, append([]any{p.s}, args...)...)
}

func (p *parser) blanks() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

// take passes over one of the operators, the longer ones first.
func (p *parser) take(operators ...string) string {
	p.blanks()
	for _, o := range operators {
		if !strings.HasPrefix(p.s[p.at:], o) {
			continue
		}
		if isWord(o[0]) && p.at+len(o) < len(p.s) && isWord(p.s[p.at+len(o)]) {
			continue
		}
		p.at += len(o)
		return o
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func (p *parser) down() error {
	if p.depth++; int64(p.depth) > p.j.t.K.Limits.Nesting {
		return p.fail("nested too deeply")
	}
	return nil
}

// compile reads an expression that is all of a text.
func (j *job) compile(s string, head []string) (expression, error) {
	p := &parser{j: j, s: s, head: head}
	j.t.Step(len(s))
	j.t.Grow(64 * len(s))
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.blanks(); p.at < len(p.s) {
		return nil, p.fail("%q is not expected", p.s[p.at:])
	}
	return e, nil
}

// A named expression is one of a list: "a + b as c".
type named struct {
	name string
	e    expression
}

// list reads expressions with commas between, and names behind "as".
func (j *job) list(s string, head []string) ([]named, error) {
	p := &parser{j: j, s: s, head: head}
	var out []named
	for {
		p.blanks()
		from := p.at
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		name := strings.TrimSpace(p.s[from:p.at])
		if p.take("as") != "" {
			if name, err = p.name(); err != nil {
				return nil, err
			}
		}
		out = append(out, named{name, e})
		if p.take(",") == "" {
			break
		}
	}
	if p.blanks(); p.at < len(p.s) {
		return nil, p.fail("%q is not expected", p.s[p.at:])
	}
	return out, nil
}

// name reads a name behind "as".
func (p *parser) name() (string, error) {
	p.blanks()
	if p.at < len(p.s) && (p.s[p.at] == '"' || p.s[p.at] == '\'') {
		return p.quoted()
	}
	from := p.at
	for p.at < len(p.s) && isWord(p.s[p.at]) {
		p.at++
	}
	if from == p.at {
		return "", p.fail("a name is expected behind as")
	}
	return p.s[from:p.at], nil
}

// expression reads one of the lowest precedence: a pipe.
func (p *parser) expression() (expression, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	l, err := p.binary(0)
	for err == nil {
		p.blanks()
		if strings.HasPrefix(p.s[p.at:], "||") || p.take("|") == "" {
			return l, nil
		}
		var r expression
		from := p.at
		if r, err = p.binary(0); err != nil {
			break
		}
		if name := strings.TrimSpace(p.s[from:p.at]); isFunction(name) { // x | trim
			call := &parser{j: p.j, s: name + "(_)", head: p.head, depth: p.depth}
			if r, err = call.binary(0); err != nil {
				break
			}
		}
		first := l
		l = func(e *scene) (value, error) {
			v, err := first(e)
			if err != nil {
				return nil, err
			}
			before := e.self
			e.self = v
			v, err = r(e)
			e.self = before
			return v, err
		}
	}
	return nil, err
}

// levels are the binary operators, those that bind loosely first.
func levels(i int) []string {
	switch i {
	case 0:
		return []string{"||", "or"}
	case 1:
		return []string{"&&", "and"}
	case 2:
		return []string{"==", "!=", "<=", ">=", "<", ">", "eq", "ne", "lt", "le", "gt", "ge", "not in", "in"}
	case 3:
		return []string{"++", "+", "-"}
	case 4:
		return []string{"**", "//", "*", "/", "%"}
	}
	return nil
}

func (p *parser) binary(level int) (expression, error) {
	operators := levels(level)
	if operators == nil {
		return p.unary()
	}
	l, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		o := p.take(operators...)
		if o == "" {
			return l, nil
		}
		if n > 10_000 {
			return nil, p.fail("too many operators")
		}
		r, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		l = p.j.operator(o, l, r)
	}
}

func (p *parser) unary() (expression, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	switch o := p.take("not", "!", "-"); o {
	case "":
		return p.primary()
	case "-":
		e, err := p.unary()
		if err != nil {
			return nil, err
		}
		return func(s *scene) (value, error) {
			v, err := e(s)
			if err != nil {
				return nil, err
			}
			f, ok := number(v)
			if !ok {
				return nil, fmt.Errorf("%s is no number", shown(v))
			}
			return -f, nil
		}, nil
	}
	e, err := p.unary()
	if err != nil {
		return nil, err
	}
	return func(s *scene) (value, error) {
		v, err := e(s)
		return !truthy(v), err
	}, nil
}

func constant(v value) expression { return func(*scene) (value, error) { return v, nil } }

func (p *parser) primary() (expression, error) {
	p.blanks()
	if p.at >= len(p.s) {
		return nil, p.fail("it ends too early")
	}
	switch c := p.s[p.at]; {
	case c == '(':
		p.at++
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		if p.take(")") == "" {
			return nil, p.fail(") is missing")
		}
		return e, nil
	case c == '[':
		p.at++
		list, err := p.arguments("]")
		if err != nil {
			return nil, err
		}
		return gather(list), nil
	case c == '"' || c == '\'':
		s, err := p.quoted()
		return constant(s), err
	case c == '/':
		return p.pattern()
	case c >= '0' && c <= '9' || c == '.':
		from := p.at
		for p.at < len(p.s) && (isWord(p.s[p.at]) || p.s[p.at] == '.' || (p.s[p.at] == '-' || p.s[p.at] == '+') && (p.s[p.at-1] == 'e' || p.s[p.at-1] == 'E')) {
			p.at++
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(p.s[from:p.at], "_", ""), 64)
		if err != nil {
			return nil, p.fail("%q is no number", p.s[from:p.at])
		}
		return constant(f), nil
	case isWord(c):
		return p.word()
	}
	return nil, p.fail("%q is not expected", p.s[p.at:])
}

func (p *parser) quoted() (string, error) {
	quote := p.s[p.at]
	p.at++
	var b []byte
	for p.at < len(p.s) {
		c := p.s[p.at]
		p.at++
		switch {
		case c == quote:
			return string(b), nil
		case c == '\\' && p.at < len(p.s):
			c = p.s[p.at]
			p.at++
			switch c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			}
		}
		b = append(b, c)
	}
	return "", p.fail("a text does not end")
}

// pattern reads a regular expression between slashes.
func (p *parser) pattern() (expression, error) {
	p.at++
	var b []byte
	for p.at < len(p.s) && p.s[p.at] != '/' {
		if p.s[p.at] == '\\' && p.at+1 < len(p.s) && p.s[p.at+1] == '/' {
			p.at++
		}
		b = append(b, p.s[p.at])
		p.at++
	}
	if p.at >= len(p.s) {
		return nil, p.fail("a regular expression does not end")
	}
	p.at++
	text := string(b)
	if p.at < len(p.s) && p.s[p.at] == 'i' {
		p.at++
		text = "(?i)" + text
	}
	re, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	return constant(re), nil
}

func compilePattern(s string) (*regexp.Regexp, error) {
	if len(s) > 64<<10 {
		return nil, fmt.Errorf("a regular expression is too long")
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return re, nil
}

func (p *parser) arguments(end string) ([]expression, error) {
	var list []expression
	if p.take(end) != "" {
		return nil, nil
	}
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.take(end) != "" {
			return list, nil
		}
		if p.take(",") == "" {
			return nil, p.fail("%s is missing", end)
		}
	}
}

func gather(list []expression) expression {
	return func(s *scene) (value, error) {
		out := make([]value, len(list))
		for i, e := range list {
			var err error
			if out[i], err = e(s); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

// word reads a name: a column, a constant or a call.
func (p *parser) word() (expression, error) {
	from := p.at
	for p.at < len(p.s) && isWord(p.s[p.at]) {
		p.at++
	}
	name := p.s[from:p.at]
	if p.at < len(p.s) && p.s[p.at] == '(' {
		p.at++
		return p.call(name)
	}
	switch name {
	case "true":
		return constant(true), nil
	case "false":
		return constant(false), nil
	case "null", "none":
		return constant(nil), nil
	case "_":
		return func(s *scene) (value, error) { return s.self, nil }, nil
	}
	for i, h := range p.head {
		if h == name {
			return cellOf(i), nil
		}
	}
	if isFunction(name) {
		return func(s *scene) (value, error) { return call(p.j, name, []value{s.self}) }, nil
	}
	_, err := find(name, p.head)
	return nil, err
}

func cellOf(i int) expression {
	return func(s *scene) (value, error) {
		if i < len(s.row) {
			return s.row[i], nil
		}
		return nil, nil
	}
}

func (p *parser) call(name string) (expression, error) {
	args, err := p.arguments(")")
	if err != nil {
		return nil, err
	}
	switch name {
	case "col":
		if len(args) != 1 {
			return nil, p.fail("col takes one argument")
		}
		v, err := args[0](&scene{})
		if err != nil {
			return nil, err
		}
		i, err := find(text(v), p.head)
		return cellOf(i), err
	case "index":
		if len(args) == 0 {
			return func(s *scene) (value, error) { return float64(s.index), nil }, nil
		}
	case "if":
		if len(args) < 2 || len(args) > 3 {
			return nil, p.fail("if takes two or three arguments")
		}
		return func(s *scene) (value, error) {
			c, err := args[0](s)
			switch {
			case err != nil:
				return nil, err
			case truthy(c):
				return args[1](s)
			case len(args) == 3:
				return args[2](s)
			}
			return nil, nil
		}, nil
	case "try":
		return func(s *scene) (value, error) {
			if v, err := args[0](s); err == nil {
				return v, nil
			}
			return nil, nil
		}, nil
	}
	low, high := arity(name)
	if high < 0 {
		return nil, p.fail("unknown function %q", name)
	}
	if len(args) < low || len(args) > high {
		return nil, p.fail("%s takes %d to %d arguments, not %d", name, low, high, len(args))
	}
	return func(s *scene) (value, error) {
		list := make([]value, len(args))
		for i, a := range args {
			var err error
			if list[i], err = a(s); err != nil {
				return nil, err
			}
		}
		return call(p.j, name, list)
	}, nil
}
