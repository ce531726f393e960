package jq

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A parser reads a program. Errors are panics of *syntaxError.
type parser struct {
	lexer
	nesting int
	level   int
	chained int
}

// A module is a program or a library: its imports, its definitions, and what
// it does.
type module struct {
	meta    *node
	imports []importing
	defs    []*function
	body    *node // nil in a library
}

type importing struct {
	path string
	name string // empty is include
	data bool   // $name
	meta *node
}

func parse(src string, nesting int) (mod *module, err *syntaxError) {
	return parseAs(src, nesting, false)
}

func parseAs(src string, nesting int, yq bool) (mod *module, err *syntaxError) {
	p := &parser{lexer: lexer{src: src, line: 1, yq: yq}, nesting: nesting}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *syntaxError:
			mod, err = nil, r
		default:
			panic(r)
		}
	}()
	p.next()
	return p.module(), nil
}

func (p *parser) is(word string) bool { return p.kind == tIdent && p.text == word }

func (p *parser) unexpected() {
	switch p.kind {
	case tEOF:
		p.fail("syntax error, unexpected end of file")
	case tBad:
		p.fail("syntax error, unexpected INVALID_CHARACTER")
	case tIdent:
		if keyword(p.text) {
			p.fail("syntax error, unexpected " + p.text)
		}
		p.fail("syntax error, unexpected IDENT")
	}
	p.fail("syntax error, unexpected '" + p.src[p.start:p.at] + "'")
}

func (p *parser) expect(k tok) {
	if p.kind != k {
		p.unexpected()
	}
	p.next()
}

func (p *parser) word(w string) {
	if !p.is(w) {
		p.unexpected()
	}
	p.next()
}

func (p *parser) down() {
	if p.level++; p.level > p.nesting {
		p.fail("syntax error, nested too deeply")
	}
}

func (p *parser) up() { p.level-- }

// maxChain is how many operators a program may have.
const maxChain = 100_000

func (p *parser) chain() {
	if p.chained++; p.chained > maxChain {
		p.fail("syntax error, too many operators")
	}
}

func (p *parser) module() *module {
	mod := &module{}
	if p.is("module") {
		p.next()
		mod.meta = p.constant()
		p.expect(';')
	}
	for p.is("import") || p.is("include") {
		include := p.text == "include"
		p.next()
		if p.kind != tString {
			p.unexpected()
		}
		s := p.str("")
		if s.op != opLiteral {
			p.fail("Import path must be constant")
		}
		i := importing{}
		i.path, _ = s.v.(string)
		if !include {
			p.word("as")
			switch p.kind {
			case tVar:
				i.data, i.name = true, p.text
			case tIdent:
				i.name = p.text
			default:
				p.unexpected()
			}
			p.next()
		}
		if p.kind != ';' {
			i.meta = p.constant()
		}
		p.expect(';')
		mod.imports = append(mod.imports, i)
	}
	for p.is("def") {
		mod.defs = append(mod.defs, p.def())
	}
	if p.kind != tEOF {
		mod.body = p.pipe()
		if p.kind != tEOF {
			p.unexpected()
		}
	}
	return mod
}

// constant reads the constant object of a module directive.
func (p *parser) constant() *node {
	if p.kind != '{' {
		p.fail("Module metadata must be an object")
	}
	n := p.postfix()
	if !constantNode(n) {
		p.fail("Module metadata must be constant")
	}
	return n
}

func constantNode(n *node) bool {
	switch n.op {
	case opLiteral:
		return true
	case opObject:
		for _, f := range n.fields {
			if !constantNode(f.key) || f.val == nil || !constantNode(f.val) {
				return false
			}
		}
		return true
	case opArray:
		return n.l == nil || constantNode(n.l)
	case opComma:
		return constantNode(n.l) && constantNode(n.r)
	}
	return false
}

func (p *parser) def() *function {
	p.down()
	defer p.up()
	p.next()
	if p.kind != tIdent {
		p.unexpected()
	}
	f := &function{name: p.text}
	p.next()
	if p.kind == '(' {
		for {
			p.next()
			switch p.kind {
			case tVar:
				f.params = append(f.params, "$"+p.text)
			case tIdent:
				f.params = append(f.params, p.text)
			default:
				p.unexpected()
			}
			p.next()
			if p.kind != ';' {
				break
			}
		}
		p.expect(')')
	}
	p.expect(':')
	f.body = p.pipe()
	p.expect(';')
	return f
}

// pipe reads an expression of the lowest precedence.
func (p *parser) pipe() *node {
	p.down()
	defer p.up()
	if p.is("def") {
		f := p.def()
		return &node{op: opDef, def: f, l: p.pipe()}
	}
	l := p.comma()
	if p.kind != '|' {
		return l
	}
	p.chain()
	p.next()
	p.level-- // a chain of pipes nests to the right, but not in the text
	r := p.pipe()
	p.level++
	return &node{op: opPipe, l: l, r: r}
}

func (p *parser) comma() *node {
	l := p.bound()
	for p.kind == ',' {
		p.chain()
		p.next()
		l = &node{op: opComma, l: l, r: p.bound()}
	}
	return l
}

// bound reads an expression, and what is done with its values under names.
func (p *parser) bound() *node {
	l := p.alternative()
	if !p.is("as") {
		return l
	}
	p.next()
	b := &node{op: opBind, l: l}
	b.pats = p.patterns()
	if p.yq && p.is("ireduce") {
		return p.ireduce(b)
	}
	p.expect('|')
	b.r = p.pipe()
	return b
}

// alternative reads // and what binds tighter, among it the assignments,
// which do not associate.
func (p *parser) alternative() *node {
	p.down()
	defer p.up()
	l := p.assignment()
	if p.kind != tAlt {
		return l
	}
	p.chain()
	p.next()
	return &node{op: opAlternative, l: l, r: p.alternative()}
}

func (p *parser) assignment() *node {
	l := p.or()
	if p.yq && p.kind == tIdent && p.attribute() {
		return p.marked(l)
	}
	if p.kind != tSet {
		return l
	}
	n := &node{op: opArithmetic, l: l, str: strings.TrimSuffix(p.text, "=")}
	switch p.text {
	case "=":
		n.op = opAssign
	case "|=":
		n.op = opUpdate
	}
	p.next()
	n.r = p.alternative()
	if p.kind == tSet {
		p.unexpected()
	}
	return n
}

func (p *parser) or() *node {
	l := p.and()
	for p.is("or") {
		p.chain()
		p.next()
		l = &node{op: opOr, l: l, r: p.and()}
	}
	return l
}

func (p *parser) and() *node {
	l := p.comparison()
	for p.is("and") {
		p.chain()
		p.next()
		l = &node{op: opAnd, l: l, r: p.comparison()}
	}
	return l
}

func (p *parser) comparison() *node {
	l := p.sum()
	o := p.compares()
	if o == "" {
		return l
	}
	p.next()
	n := &node{op: opCompare, str: o, l: l, r: p.sum()}
	if p.compares() != "" {
		p.unexpected()
	}
	return n
}

func (p *parser) compares() string {
	switch p.kind {
	case tEQ, tNE, tLE, tGE, '<', '>':
		return p.src[p.start:p.at]
	}
	return ""
}

func (p *parser) sum() *node {
	l := p.product()
	for p.kind == '+' || p.kind == '-' {
		p.chain()
		o := string(rune(p.kind))
		p.next()
		l = &node{op: opMath, str: o, l: l, r: p.product()}
	}
	return l
}

func (p *parser) product() *node {
	l := p.unary()
	for p.kind == '*' || p.kind == '/' || p.kind == '%' {
		p.chain()
		o := string(rune(p.kind))
		if p.yq && p.kind == '*' {
			o = p.text
		}
		p.next()
		l = &node{op: opMath, str: o, l: l, r: p.unary()}
	}
	return l
}

func (p *parser) unary() *node {
	if p.kind == '-' {
		p.down()
		defer p.up()
		p.next()
		n := p.unary()
		return &node{op: opNegate, l: n}
	}
	return p.postfix()
}

// postfix reads a term with what stands behind it.
func (p *parser) postfix() *node {
	p.down()
	defer p.up()
	access := p.kind != '(' // what stands in parentheses is one thing
	n := p.term()
	for {
		if p.yq {
			n = lenient(n)
		}
		switch {
		case p.kind == tField:
			access = true
			p.chain()
			n = &node{op: opField, l: n, str: p.text}
			p.next()
		case p.kind == '.':
			access = true
			p.next()
			switch p.kind {
			case tString:
				n = &node{op: opIndex, l: n, r: p.str("")}
			case '[':
				n = p.bracket(n)
			default:
				p.unexpected()
			}
		case p.kind == '[':
			access = true
			n = p.bracket(n)
		case p.kind == '?':
			p.chain()
			p.next()
			n = p.optional(n, access)
		case p.kind == tAltPattern && !p.patternsFollow():
			// "?//" is "?" and "//" where no pattern follows.
			p.kind = tAlt
			return p.optional(n, access)
		default:
			return n
		}
	}
}

// optional makes "n?": of an access, only the last step may fail.
func (p *parser) optional(n *node, access bool) *node {
	switch n.op {
	case opField, opIndex, opSlice, opIterate:
		if access && !p.yq {
			return &node{op: opOptional, l: n}
		}
	}
	return &node{op: opTry, l: n}
}

// patternsFollow reports whether ?// stands between patterns; in postfix
// position it does not.
func (p *parser) patternsFollow() bool { return false }

// bracket reads what an index or slice is, from its bracket.
func (p *parser) bracket(l *node) *node {
	p.chain()
	p.next()
	if p.kind == ']' {
		p.next()
		return &node{op: opIterate, l: l}
	}
	if p.kind == ':' {
		p.next()
		n := &node{op: opSlice, l: l, y: p.pipe()}
		p.expect(']')
		return n
	}
	x := p.pipe()
	if p.kind != ':' {
		p.expect(']')
		return &node{op: opIndex, l: l, r: x}
	}
	p.next()
	n := &node{op: opSlice, l: l, x: x}
	if p.kind != ']' {
		n.y = p.pipe()
	}
	p.expect(']')
	return n
}

func (p *parser) patterns() []*pattern {
	list := []*pattern{p.pattern()}
	for p.kind == tAltPattern {
		p.next()
		list = append(list, p.pattern())
	}
	return list
}

func (p *parser) pattern() *pattern {
	p.down()
	defer p.up()
	switch p.kind {
	case tVar:
		n := &pattern{kind: '$', name: p.text}
		p.next()
		return n
	case '[':
		n := &pattern{kind: '['}
		for {
			p.next()
			n.list = append(n.list, p.pattern())
			if p.kind != ',' {
				p.expect(']')
				return n
			}
		}
	case '{':
		n := &pattern{kind: '{'}
		for {
			p.next()
			n.pairs = append(n.pairs, p.patternPair())
			if p.kind != ',' {
				p.expect('}')
				return n
			}
		}
	}
	p.unexpected()
	return nil
}

func (p *parser) patternPair() patternPair {
	var x patternPair
	switch p.kind {
	case tVar:
		x.name = p.text
		x.key = literalNode(p.text)
		p.next()
		if p.kind != ':' {
			return x
		}
	case tIdent:
		x.key = literalNode(p.text)
		p.next()
	case tString:
		x.key = p.str("")
	case '(':
		p.next()
		x.key = p.pipe()
		p.expect(')')
	default:
		p.unexpected()
	}
	p.expect(':')
	x.val = p.pattern()
	return x
}

func literalNode(v value) *node { return &node{op: opLiteral, v: v} }

func (p *parser) term() *node {
	line := p.line
	switch p.kind {
	case '.':
		p.next()
		switch p.kind {
		case tString:
			return &node{op: opIndex, r: p.str("")}
		case '[':
			return p.bracket(nil)
		}
		return &node{op: opIdentity}
	case tRec:
		n := &node{op: opRecurse, str: p.text}
		p.next()
		return n
	case tField:
		n := &node{op: opField, str: p.text}
		p.next()
		return n
	case tNumber:
		n := literalNode(parseNumber(normalized(p.text)))
		p.next()
		return n
	case tString:
		return p.str("")
	case tFormat:
		name := p.text
		p.next()
		if p.kind == tString {
			return p.str(name)
		}
		return &node{op: opFormat, str: name}
	case '(':
		p.next()
		n := p.pipe()
		p.expect(')')
		return n
	case '[':
		p.next()
		if p.kind == ']' {
			p.next()
			return &node{op: opArray}
		}
		n := &node{op: opArray, l: p.pipe()}
		p.expect(']')
		return n
	case '{':
		return p.object()
	case tVar:
		name := p.text
		p.next()
		if name == "__loc__" {
			return p.location(line)
		}
		return &node{op: opVar, str: name, line: line}
	case '-':
		p.next()
		return &node{op: opNegate, l: p.postfix()}
	case tIdent:
		return p.named(line)
	}
	p.unexpected()
	return nil
}

func normalized(s string) string {
	if strings.HasPrefix(s, ".") {
		return "0" + s
	}
	return s
}

func (p *parser) location(line int) *node {
	t := &table{}
	t.put("file", "<top-level>")
	t.put("line", float64(line))
	return literalNode(&object{t: t, depth: 1})
}

func (p *parser) named(line int) *node {
	name := p.text
	switch name {
	case "if":
		p.next()
		return p.conditional()
	case "reduce", "foreach":
		p.next()
		return p.fold(name)
	case "try":
		p.next()
		n := &node{op: opTry, l: p.tried()}
		if p.is("catch") {
			p.next()
			n.r = p.tried()
		}
		return n
	case "label":
		p.next()
		if p.kind != tVar {
			p.unexpected()
		}
		n := &node{op: opLabel, str: p.text}
		p.next()
		p.expect('|')
		n.l = p.pipe()
		return n
	case "def":
		f := p.def()
		return &node{op: opDef, def: f, l: p.pipe()}
	case "break":
		mark := p.lexer
		p.next()
		if p.kind == tVar {
			n := &node{op: opBreak, str: p.text, line: line}
			p.next()
			return n
		}
		p.lexer = mark
	}
	if keyword(name) {
		p.unexpected()
	}
	p.next()
	if p.yq && (name == "env" || name == "strenv" || name == "envsubst") && p.kind == '(' {
		return p.environment(name, line)
	}
	if p.kind != '(' {
		switch name {
		case "null":
			return literalNode(nil)
		case "true":
			return literalNode(true)
		case "false":
			return literalNode(false)
		}
	}
	n := &node{op: opCall, str: name, line: line}
	if p.kind == '(' {
		for {
			p.next()
			n.list = append(n.list, p.pipe())
			if p.kind != ';' {
				break
			}
		}
		p.expect(')')
	}
	if p.yq && name == "explode" && len(n.list) == 1 {
		return &node{op: opMark, str: "explode", l: n.list[0], r: literalNode("")}
	}
	if p.yq && name == "with" && len(n.list) == 2 {
		return &node{op: opUpdate, l: n.list[0], r: n.list[1]}
	}
	return n
}

// tried reads the body of try or catch: a term with what stands behind it, but
// without "as".
func (p *parser) tried() *node {
	p.down()
	defer p.up()
	if p.kind == '-' {
		p.next()
		return &node{op: opNegate, l: p.tried()}
	}
	return p.postfix()
}

// conditional reads an if behind its word.
func (p *parser) conditional() *node {
	p.down()
	defer p.up()
	n := &node{op: opIf, l: p.pipe()}
	p.word("then")
	n.r = p.pipe()
	switch {
	case p.is("elif"):
		p.next()
		n.x = p.conditional()
		return n
	case p.is("else"):
		p.next()
		n.x = p.pipe()
	}
	p.word("end")
	return n
}

func (p *parser) fold(name string) *node {
	n := &node{op: opReduce}
	if name == "foreach" {
		n.op = opForeach
	}
	n.l = p.alternative()
	p.word("as")
	n.pats = p.patterns()
	p.expect('(')
	n.r = p.pipe()
	p.expect(';')
	n.x = p.pipe()
	if n.op == opForeach && p.kind == ';' {
		p.next()
		n.y = p.pipe()
	}
	p.expect(')')
	return n
}

// object reads a constructor.
func (p *parser) object() *node {
	p.next()
	n := &node{op: opObject}
	for p.kind != '}' {
		n.fields = append(n.fields, p.member())
		if p.kind != ',' {
			break
		}
		p.next()
		if p.kind == '}' {
			p.unexpected()
		}
	}
	p.expect('}')
	return n
}

func (p *parser) member() field {
	line := p.line
	var f field
	switch p.kind {
	case tVar:
		name := p.text
		p.next()
		if name == "__loc__" {
			return field{literalNode(name), p.location(line)}
		}
		v := &node{op: opVar, str: name, line: line}
		if p.kind != ':' {
			return field{literalNode(name), v}
		}
		f.key = v
	case tIdent:
		f.key = literalNode(p.text)
		p.next()
		if p.kind != ':' {
			return field{f.key, nil}
		}
	case tNumber:
		f.key = literalNode(parseNumber(normalized(p.text)))
		p.next()
	case tString:
		f.key = p.str("")
		if p.kind != ':' {
			return field{f.key, nil}
		}
	case tFormat:
		name := p.text
		p.next()
		if p.kind == tString {
			f.key = p.str(name)
			if p.kind != ':' {
				return field{f.key, nil}
			}
		} else {
			f.key = &node{op: opFormat, str: name}
		}
	case '(':
		p.next()
		f.key = p.pipe()
		p.expect(')')
	default:
		p.unexpected()
	}
	p.expect(':')
	f.val = p.memberValue()
	return f
}

// memberValue reads a value: an expression without commas, but with pipes.
func (p *parser) memberValue() *node {
	p.down()
	defer p.up()
	l := p.alternative()
	if p.kind != '|' {
		return l
	}
	p.next()
	return &node{op: opPipe, l: l, r: p.memberValue()}
}

// str reads a string behind its quote, and the token after it.
func (p *parser) str(format string) *node {
	p.down()
	defer p.up()
	n := &node{op: opString, str: format}
	var b []byte
	for {
		if p.at >= len(p.src) {
			p.kind = tEOF
			p.fail("syntax error, unexpected end of file, expecting QQSTRING_TEXT or QQSTRING_INTERP_START or QQSTRING_END")
		}
		c := p.src[p.at]
		switch c {
		case '"':
			p.at++
			p.next()
			if len(n.list) == 0 {
				return literalNode(clean(b))
			}
			if len(b) > 0 {
				n.list = append(n.list, literalNode(clean(b)))
			}
			return n
		case '\\':
			if strings.HasPrefix(p.src[p.at+1:], "(") {
				if len(b) > 0 {
					n.list = append(n.list, literalNode(clean(b)))
					b = nil
				}
				p.at += 2
				p.next()
				n.list = append(n.list, &node{op: opPipe, l: p.pipe(), r: &node{op: opFormat, str: formatName(format)}})
				if p.kind != ')' {
					p.unexpected()
				}
				continue // the lexer stands right behind the parenthesis
			}
			b = p.escape(b)
		default:
			if c == '\n' {
				p.line++
			}
			b = append(b, c)
			p.at++
		}
	}
}

func formatName(s string) string {
	if s == "" {
		return "text"
	}
	return s
}

func clean(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return replaceEach(b)
}

func (p *parser) escape(b []byte) []byte {
	if p.at+1 >= len(p.src) {
		p.fail("syntax error, unexpected end of file")
	}
	c := p.src[p.at+1]
	p.at += 2
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		r, ok := p.unit()
		if !ok {
			p.fail("syntax error, invalid \\uXXXX escape")
		}
		if utf16.IsSurrogate(r) && r < 0xdc00 && strings.HasPrefix(p.src[p.at:], `\u`) {
			mark := p.at
			p.at += 2
			if low, ok := p.unit(); ok && low >= 0xdc00 && low < 0xe000 {
				r = utf16.DecodeRune(r, low)
			} else {
				p.at = mark
			}
		}
		return utf8.AppendRune(b, r)
	}
	p.fail("syntax error, invalid escape")
	return nil
}

func (p *parser) unit() (rune, bool) {
	if p.at+4 > len(p.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(p.src[p.at:p.at+4], 16, 32)
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(n), true
}
