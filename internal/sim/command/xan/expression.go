package xan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A node is a part of a parsed expression: one of the types below.
type node any

type (
	// A literal is a constant.
	literal struct{ v value }
	// An identifier names a column; an unsure one may be missing.
	identifier struct {
		name   string
		unsure bool
	}
	// A callNode calls a function; operators are calls too.
	callNode struct {
		name string
		args []node
	}
	listNode   struct{ items []node }
	objectNode struct {
		keys   []string
		values []node
	}
	patternNode struct {
		text string
		fold bool
	}
	// A pipeNode computes the second expression with _ as the first one's value.
	pipeNode   struct{ first, second node }
	lambdaNode struct {
		names []string
		body  node
	}
	selfNode struct{} // _
)

// A parser reads expressions. It accepts the grammar of xan 0.57, in which an
// operator needs no blanks around it, even where it is a word.
type parser struct {
	j     *job
	s     string
	at    int
	depth int
	end   int // where the last term ended
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("expression %q: "+format, append([]any{p.s}, args...)...)
}

// blanks passes over blanks and comments.
func (p *parser) blanks() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n':
			p.at++
		case '#':
			for p.at < len(p.s) && p.s[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// take passes over one of some tokens.
func (p *parser) take(tokens ...string) string {
	p.blanks()
	for _, o := range tokens {
		if strings.HasPrefix(p.s[p.at:], o) {
			p.at += len(o)
			return o
		}
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *parser) down() error {
	if p.depth++; int64(p.depth) > p.j.t.K.Limits.Nesting {
		return p.fail("nested too deeply")
	}
	return nil
}

func (j *job) parser(s string) *parser {
	j.t.Step(len(s))
	j.t.Grow(64 * len(s))
	return &parser{j: j, s: s}
}

// parse reads an expression that is all of a text.
func (j *job) parse(s string) (node, error) {
	p := j.parser(s)
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	return e, p.over()
}

func (p *parser) over() error {
	if p.blanks(); p.at < len(p.s) {
		return p.fail("%q is not expected", p.s[p.at:])
	}
	return nil
}

// A named expression is one of a list: "a + b as c", or "f(a) as (b, c)".
type named struct {
	names  []string
	plural bool // names are in parentheses
	e      node
}

// list reads expressions with commas between, and names behind "as". read
// reads one of them.
func (p *parser) list(read func() (node, error)) ([]named, error) {
	var out []named
	for {
		p.blanks()
		if p.at == len(p.s) && out != nil { // a comma may end the list
			return out, nil
		}
		from := p.at
		e, err := read()
		if err != nil {
			return nil, err
		}
		n := named{names: []string{p.s[from:p.end]}, e: e}
		if p.take("as") != "" {
			if n.names, n.plural, err = p.names(); err != nil {
				return nil, err
			}
		}
		out = append(out, n)
		if p.take(",") == "" {
			return out, p.over()
		}
	}
}

// names reads what stands behind "as".
func (p *parser) names() (names []string, plural bool, err error) {
	if p.take("(") == "" {
		s, err := p.name()
		return []string{s}, false, err
	}
	for {
		s, err := p.name()
		if err != nil {
			return nil, true, err
		}
		names = append(names, s)
		p.take(",")
		if p.take(")") != "" {
			return names, true, nil
		}
	}
}

func (p *parser) name() (string, error) {
	p.blanks()
	if p.at < len(p.s) && strings.IndexByte("\"'`", p.s[p.at]) >= 0 {
		return p.quoted()
	}
	if s := p.ident(); s != "" {
		return s, nil
	}
	return "", p.fail("a name is expected")
}

// ident passes over a name; a question mark at its end belongs to it.
func (p *parser) ident() string {
	from := p.at
	for p.at < len(p.s) && isWord(p.s[p.at]) && (p.at > from || p.s[p.at] < '0' || p.s[p.at] > '9') {
		p.at++
	}
	if s := p.s[from:p.at]; s == "" || s == "_" {
		p.at = from
		return ""
	}
	if p.at < len(p.s) && p.s[p.at] == '?' {
		p.at++
	}
	return p.s[from:p.at]
}

// The precedences, from what binds loosely.
const (
	bindsPipe = iota
	bindsOr
	bindsAnd
	bindsEqual
	bindsOrder
	bindsSum
	bindsProduct
	bindsPower
	bindsPrefix
	bindsIndex
	bindsTerm
)

// An infix operator, and the function that computes it.
type infix struct {
	token, function string
	binds           int
}

// infixes are the operators in the order in which they are looked for.
func infixes() []infix {
	return []infix{
		{"++", "++", bindsSum}, {"+", "add", bindsSum}, {"-", "sub", bindsSum}, {"**", "pow", bindsPower}, {"*", "mul", bindsProduct},
		{"//", "idiv", bindsProduct}, {"/", "div", bindsProduct}, {"%", "mod", bindsProduct}, {"==", "==", bindsEqual}, {"!=", "!=", bindsEqual},
		{"<=", "<=", bindsOrder}, {"<", "<", bindsOrder}, {">=", ">=", bindsOrder}, {">", ">", bindsOrder}, {"eq", "eq", bindsEqual},
		{"ne", "ne", bindsEqual}, {"le", "le", bindsOrder}, {"lt", "lt", bindsOrder}, {"ge", "ge", bindsOrder}, {"gt", "gt", bindsOrder},
		{"in", "in", bindsOrder}, {"not in", "not in", bindsOrder}, {"&&", "and", bindsAnd}, {"and", "and", bindsAnd}, {"||", "or", bindsOr},
		{"or", "or", bindsOr}, {"|", "|", bindsPipe}, {".", ".", bindsIndex}, {"[", "[", bindsIndex},
	}
}

// operator looks for an operator that binds at least so tightly.
func (p *parser) operator(least int, all []infix) (infix, bool) {
	p.blanks()
	for _, o := range all {
		if strings.HasPrefix(p.s[p.at:], o.token) {
			if o.binds < least {
				return infix{}, false
			}
			p.at += len(o.token)
			return o, true
		}
	}
	return infix{}, false
}

// expression reads an expression. Afterwards p.end is where its text ends: the
// blanks behind a lone term belong to it, as in the real grammar.
func (p *parser) expression() (node, error) {
	return p.climb(bindsPipe, infixes())
}

func (p *parser) climb(least int, all []infix) (node, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var l node
	var err error
	switch p.take("!", "-") {
	case "!":
		if l, err = p.climb(bindsPrefix, all); err == nil {
			l = callNode{"not", []node{l}}
		}
	case "-":
		if l, err = p.climb(bindsPrefix, all); err == nil {
			l = negated(l)
		}
	default:
		if l, err = p.term(); err == nil && least == bindsPipe {
			p.blanks()
			p.end = p.at
		}
	}
	for n := 0; err == nil; n++ {
		o, ok := p.operator(least, all)
		if !ok {
			return l, nil
		}
		if n > 10_000 {
			return nil, p.fail("too many operators")
		}
		if o.token == "[" {
			l, err = p.index(l)
			continue
		}
		next := o.binds + 1
		if o.binds == bindsPower {
			next = bindsPower // from the right
		}
		var r node
		if r, err = p.climb(next, all); err == nil {
			l, err = p.combine(o, l, r)
		}
	}
	return nil, err
}

func negated(e node) node {
	if c, ok := e.(literal); ok {
		switch v := c.v.(type) {
		case int64:
			return literal{-v}
		case float64:
			return literal{-v}
		}
	}
	return callNode{"neg", []node{e}}
}

func (p *parser) combine(o infix, l, r node) (node, error) {
	switch o.token {
	case "in":
		return callNode{"contains", []node{r, l}}, nil
	case "not in":
		return callNode{"not", []node{callNode{"contains", []node{r, l}}}}, nil
	case ".":
		switch x := r.(type) {
		case identifier:
			return callNode{"get", []node{l, literal{x.name}}}, nil
		case literal:
			switch v := x.v.(type) {
			case bool:
				return callNode{"get", []node{l, literal{strconv.FormatBool(v)}}}, nil
			case int64, string, cell:
				return callNode{"get", []node{l, r}}, nil
			}
		case callNode:
			return callNode{x.name, append([]node{l}, x.args...)}, nil
		}
		return nil, p.fail("no name and no call stands behind the point")
	case "|":
		if x, ok := r.(identifier); ok {
			if _, high, _ := builtin(x.name); high >= 0 {
				return callNode{x.name, []node{l}}, nil
			}
			return r, nil
		}
		switch selves(r) {
		case 0:
			return r, nil
		case 1:
			return filled(r, l), nil
		}
		return pipeNode{l, r}, nil
	}
	return callNode{o.function, []node{l, r}}, nil
}

// selves counts _ in an expression, but not in its pipes and lambdas.
func selves(e node) int {
	n := 0
	switch x := e.(type) {
	case selfNode:
		return 1
	case callNode:
		for _, a := range x.args {
			n += selves(a)
		}
	case listNode:
		for _, a := range x.items {
			n += selves(a)
		}
	case objectNode:
		for _, a := range x.values {
			n += selves(a)
		}
	}
	return n
}

// filled puts an expression in the place of _.
func filled(e, with node) node {
	all := func(list []node) []node {
		out := make([]node, len(list))
		for i, x := range list {
			out[i] = filled(x, with)
		}
		return out
	}
	switch x := e.(type) {
	case selfNode:
		return with
	case callNode:
		return callNode{x.name, all(x.args)}
	case listNode:
		return listNode{all(x.items)}
	case objectNode:
		return objectNode{x.keys, all(x.values)}
	}
	return e
}

// index reads what stands between brackets: an index, or a slice.
func (p *parser) index(l node) (node, error) {
	var from, to node
	var err error
	if p.take(":") == "" {
		if from, err = p.expression(); err != nil {
			return nil, err
		}
		if p.take(":") == "" {
			if p.take("]") == "" {
				return nil, p.fail("] is missing")
			}
			p.end = p.at
			return callNode{"get", []node{l, from}}, nil
		}
	}
	if p.take("]") == "" {
		if to, err = p.expression(); err != nil {
			return nil, err
		}
		if p.take("]") == "" {
			return nil, p.fail("] is missing")
		}
	}
	p.end = p.at
	switch {
	case from == nil && to == nil:
		return nil, p.fail("a slice has no end")
	case from == nil:
		return callNode{"slice", []node{l, literal{int64(0)}, to}}, nil
	case to == nil:
		return callNode{"slice", []node{l, from}}, nil
	}
	return callNode{"slice", []node{l, from, to}}, nil
}

// term reads what is no operator.
func (p *parser) term() (node, error) {
	e, err := p.primary()
	p.end = p.at
	return e, err
}

func (p *parser) primary() (node, error) {
	p.blanks()
	if p.at >= len(p.s) {
		return nil, p.fail("it ends too early")
	}
	rest := p.s[p.at:]
	if names, ok := p.lambda(); ok {
		body, err := p.expression()
		return lambdaNode{names, body}, err
	}
	if c, found := p.call(); found != nil || c != nil {
		return c, found
	}
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "true"):
		p.at += 4
		return literal{true}, nil
	case strings.HasPrefix(rest, "false"):
		p.at += 5
		return literal{false}, nil
	case strings.HasPrefix(rest, "null"):
		p.at += 4
		return literal{nil}, nil
	case c == '/':
		return p.pattern()
	case c == 'b' && len(rest) > 1 && strings.IndexByte("\"'`", rest[1]) >= 0:
		p.at++
		s, err := p.quoted()
		return literal{cell(s)}, err
	case c == '"' || c == '\'' || c == '`':
		s, err := p.quoted()
		return literal{s}, err
	case c >= '0' && c <= '9':
		return p.number()
	case c == '(':
		p.at++
		e, err := p.expression()
		if err == nil && p.take(")") == "" {
			err = p.fail(") is missing")
		}
		return e, err
	case c == '[':
		p.at++
		list, err := p.arguments("]")
		return listNode{list}, err
	case c == '{':
		return p.object()
	}
	if s := p.ident(); s != "" {
		return identifier{strings.TrimSuffix(s, "?"), strings.HasSuffix(s, "?")}, nil
	}
	if rest[0] == '_' {
		p.at++
		return selfNode{}, nil
	}
	return nil, p.fail("%q is not expected", rest)
}

// lambda passes over "x =>" or "(x, y) =>".
func (p *parser) lambda() ([]string, bool) {
	from := p.at
	var names []string
	if p.take("(") != "" {
		for p.take(")") == "" {
			p.blanks()
			s := p.ident()
			if s == "" {
				p.at = from
				return nil, false
			}
			names = append(names, s)
			p.take(",")
		}
	} else if s := p.ident(); s != "" {
		names = []string{s}
	}
	if names == nil || p.take("=>") == "" {
		p.at = from
		return nil, false
	}
	return names, true
}

// call reads a call of a function; without one there is neither node nor error.
func (p *parser) call() (node, error) {
	from := p.at
	name := p.ident()
	if name == "" || p.take("(") == "" {
		p.at = from
		return nil, nil
	}
	args, err := p.arguments(")")
	return callNode{strings.ToLower(name), args}, err
}

func (p *parser) arguments(end string) ([]node, error) {
	list := []node{}
	if p.take(end) != "" {
		return list, nil
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

func (p *parser) object() (node, error) {
	p.at++
	var o objectNode
	if p.take("}") != "" {
		return o, nil
	}
	for {
		key, err := p.name()
		if err != nil {
			return nil, err
		}
		if p.take(":") == "" {
			return nil, p.fail(": is missing")
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		o.keys, o.values = append(o.keys, key), append(o.values, e)
		if p.take("}") != "" {
			return o, nil
		}
		if p.take(",") == "" {
			return nil, p.fail("} is missing")
		}
	}
}

func (p *parser) digits() {
	for p.at < len(p.s) && (p.s[p.at] >= '0' && p.s[p.at] <= '9' || p.s[p.at] == '_') {
		p.at++
	}
}

// number reads a number; an underscore between digits is nothing.
func (p *parser) number() (node, error) {
	from := p.at
	p.digits()
	whole := true
	if p.at < len(p.s) && p.s[p.at] == '.' {
		whole = false
		p.at++
		if p.at < len(p.s) && p.s[p.at] != '_' {
			p.digits()
		}
	}
	if e := p.s[p.at:]; e != "" && e[0]|0x20 == 'e' {
		n := 1
		if len(e) > 1 && (e[1] == '+' || e[1] == '-') {
			n = 2
		}
		if len(e) > n && e[n] >= '0' && e[n] <= '9' {
			whole = false
			p.at += n
			p.digits()
		}
	}
	s := strings.ReplaceAll(p.s[from:p.at], "_", "")
	if whole {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, p.fail("%s is too large", s)
		}
		return literal{n}, nil
	}
	f, ok := parseFloat(s)
	if !ok {
		return nil, p.fail("%q is no number", s)
	}
	return literal{f}, nil
}

// quoted reads a text between quotes.
func (p *parser) quoted() (string, error) {
	quote := p.s[p.at]
	p.at++
	var b []byte
	for p.at < len(p.s) {
		c := p.s[p.at]
		p.at++
		switch c {
		case quote:
			return string(b), nil
		case '\\':
			var err error
			if b, err = p.escaped(b); err != nil {
				return "", err
			}
		default:
			b = append(b, c)
		}
	}
	return "", p.fail("a text does not end")
}

func (p *parser) escaped(b []byte) ([]byte, error) {
	rest := p.s[p.at:]
	if rest == "" {
		return nil, p.fail("a text does not end")
	}
	p.at++
	switch rest[0] {
	case 'n':
		return append(b, '\n'), nil
	case 't':
		return append(b, '\t'), nil
	case 'r':
		return append(b, '\r'), nil
	case '0':
		return append(b, 0), nil
	case '\\', '"', '\'', '`':
		return append(b, rest[0]), nil
	case 'x':
		if len(rest) >= 3 {
			if n, err := strconv.ParseUint(rest[1:3], 16, 8); err == nil {
				p.at += 2
				return utf8.AppendRune(b, rune(n)), nil
			}
		}
	case 'u':
		if hex, _, ok := strings.Cut(rest[1:], "}"); ok && strings.HasPrefix(hex, "{") {
			if n, err := strconv.ParseUint(hex[1:], 16, 24); err == nil {
				p.at += len(hex) + 1
				return utf8.AppendRune(b, rune(n)), nil
			}
		}
	}
	return nil, p.fail("\\%c is no escape", rest[0])
}

// pattern reads a regular expression between slashes.
func (p *parser) pattern() (node, error) {
	p.at++
	var b []byte
	for p.at < len(p.s) && p.s[p.at] != '/' {
		if p.s[p.at] == '\\' && p.at+1 < len(p.s) {
			p.at++
			switch c := p.s[p.at]; c {
			case '/', '\\':
				b = append(b, c)
			default:
				b = append(b, '\\', c)
			}
			p.at++
			continue
		}
		b = append(b, p.s[p.at])
		p.at++
	}
	if p.at >= len(p.s) {
		return nil, p.fail("a regular expression does not end")
	}
	p.at++
	fold := false
	for p.at < len(p.s) && p.s[p.at] == 'i' {
		fold = true
		p.at++
	}
	return patternNode{string(b), fold}, nil
}
