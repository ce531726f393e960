package arith

import "math"

// maxDepth bounds the recursion of the parser.
const maxDepth = 5000

type parser struct {
	text     string
	base     int // of text in the whole, which brackets count from
	brackets *brackets

	pos     int // of what has not been read
	start   int // of the last token
	tok     token
	num     int64
	name    string
	subFrom int // the subscript of the name, -1 for none
	subTo   int
	assign  opcode // of tokAssign
	stepped bool   // the name stands after ++ or --
	peeked  int    // up to where names have been looked after
	peeking bool   // it is only a look

	// target is what an assignment that follows would assign to: set if the
	// last operand was a name and nothing else.
	target target

	e     *Expr
	bad   *Error
	stack int
	slots int
	depth int
}

// target is a place to assign to.
type target struct {
	kind targetKind
	arg  int32 // of names, or of elems
	slot int32 // of the key, once it is known
}

type targetKind uint8

const (
	noTarget targetKind = iota
	variable
	element
)

// Compile never fails: an error in the text is an error of Eval, which Err
// tells in advance. It takes up to 20 bytes of memory for each byte of text.
func Compile(text string) *Expr {
	return compile(text, 0, nil, 0)
}

func compile(text string, base int, b *brackets, depth int) *Expr {
	p := parser{text: text, base: base, brackets: b, e: &Expr{text: text}, depth: depth}
	p.advance()
	if p.tok == tokEnd && p.bad == nil {
		return p.e // nothing is zero
	}
	p.e.code = make([]inst, 0, min(len(text)/2+2, 32))
	p.comma()
	if p.bad == nil && p.tok != tokEnd {
		p.mistake("syntax error in expression")
	}
	p.e.bad = p.bad
	return p.e
}

func (p *parser) emit(op opcode, arg, pos int) {
	if p.bad == nil {
		p.e.code = append(p.e.code, inst{op: op, arg: int32(arg), pos: int32(pos)})
	}
}

// push counts a value on the stack.
func (p *parser) push(n int) {
	p.stack += n
	p.e.depth = max(p.e.depth, p.stack)
}

// jump emits a jump whose place land fills in.
func (p *parser) jump(op opcode) int {
	if p.bad != nil {
		return -1
	}
	p.emit(op, 0, 0)
	return len(p.e.code) - 1
}

// land makes a jump lead to what is emitted next. After a mistake that is the
// end of the code: what is skipped is skipped, but not the mistake.
func (p *parser) land(jump int) {
	if jump >= 0 {
		p.e.code[jump].arg = int32(len(p.e.code))
	}
}

// enter counts the nesting of what is being parsed.
func (p *parser) enter() bool {
	p.depth++
	if p.depth <= maxDepth {
		return true
	}
	p.mistake("expression recursion level exceeded")
	return false
}

func (p *parser) comma() {
	p.assignment()
	for p.tok == ',' {
		p.emit(opPop, 0, 0)
		p.push(-1)
		p.advance()
		p.assignment()
	}
}

func (p *parser) assignment() {
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	slots := p.slots
	p.ternary()
	if p.tok == '=' || p.tok == tokAssign {
		to, plain, op := p.target, p.tok == '=', p.assign
		if to.kind == noTarget {
			p.mistake("attempted assignment to non-variable")
			return
		}
		if plain && p.bad == nil {
			p.e.code = p.e.code[:len(p.e.code)-1]
			p.push(-1)
		}
		p.advance()
		p.assignment()
		if !plain {
			p.emit(op, 0, p.start)
			p.push(-1)
		}
		p.store(to, plain)
		p.target = target{}
	}
	p.slots = slots
}

// store assigns the top of the stack.
func (p *parser) store(to target, plain bool) {
	if to.kind == variable {
		p.emit(opStore, int(to.arg), 0)
		return
	}
	if plain {
		to.slot = p.key(to.arg)
	}
	p.emit(opPut, int(to.slot), 0)
}

// key emits the evaluation of a subscript and returns the slot it goes to.
func (p *parser) key(arg int32) int32 {
	slot := p.slots
	p.slots++
	p.e.slots = max(p.e.slots, p.slots)
	p.emit(opKey, int(arg), slot)
	return int32(slot)
}

func (p *parser) ternary() {
	p.infix(1)
	if p.tok != '?' {
		return
	}
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	other := p.jump(opFalse)
	p.push(-1)
	p.advance()
	if p.tok == tokEnd || p.tok == ':' {
		p.mistake("expression expected")
	}
	p.comma()
	end := p.jump(opJump)
	p.push(-1)
	if p.tok != ':' {
		p.mistake("`:' expected for conditional expression")
	}
	p.land(other)
	p.advance()
	if p.tok == tokEnd {
		p.mistake("expression expected")
	}
	p.ternary()
	p.land(end)
	p.target = target{}
}

// precedence returns how tight a binary operator binds, 0 if it is none.
func precedence(t token) (level int, op opcode) {
	switch t {
	case tokOr:
		return 1, opOr
	case tokAnd:
		return 2, opAnd
	case '|':
		return 3, opBor
	case '^':
		return 4, opXor
	case '&':
		return 5, opBand
	case tokEQ:
		return 6, opEQ
	case tokNE:
		return 6, opNE
	case tokLE:
		return 7, opLE
	case tokGE:
		return 7, opGE
	case '<':
		return 7, opLT
	case '>':
		return 7, opGT
	case tokShl:
		return 8, opShl
	case tokShr:
		return 8, opShr
	case '+':
		return 9, opAdd
	case '-':
		return 9, opSub
	case '*':
		return 10, opMul
	case '/':
		return 10, opDiv
	case '%':
		return 10, opMod
	case tokPow:
		return powerLevel, opPow
	}
	return 0, 0
}

const powerLevel = 11

func (p *parser) infix(least int) {
	p.unary()
	for {
		level, op := precedence(p.tok)
		if level < least || level == 0 {
			return
		}
		p.advance()
		from := p.start
		switch {
		case op == opAnd || op == opOr:
			skip := p.jump(op)
			p.push(-1)
			p.infix(level + 1)
			p.emit(opBool, 0, 0)
			p.land(skip)
			p.target = target{}
			continue
		case level == powerLevel:
			if !p.enter() {
				return
			}
			p.infix(level)
			p.depth--
			from = p.start
		default:
			p.infix(level + 1)
		}
		p.emit(op, 0, from)
		p.push(-1)
		p.target = target{}
	}
}

func (p *parser) unary() {
	var op opcode
	switch p.tok {
	case '!':
		op = opNot
	case '~':
		op = opCompl
	case '-':
		op = opNeg
	case '+':
	default:
		p.primary()
		return
	}
	if !p.enter() {
		return
	}
	p.advance()
	p.unary()
	p.depth--
	if op != 0 {
		p.emit(op, 0, 0)
	}
	p.target = target{}
}

func (p *parser) primary() {
	switch p.tok {
	case tokPreInc, tokPreDec:
		delta := 1
		if p.tok == tokPreDec {
			delta = -1
		}
		p.advance()
		if p.tok != tokName {
			p.mistake("identifier expected after pre-increment or pre-decrement")
			return
		}
		to := p.load(true)
		p.emit(opAdd1, delta, 0)
		p.store(to, false)
		p.stepped = true
		p.advance()
		p.stepped = false
	case '(':
		if !p.enter() {
			return
		}
		p.advance()
		p.comma()
		p.depth--
		if p.tok != ')' {
			p.mistake("missing `)'")
			return
		}
		p.advance()
		p.target = target{}
	case tokNumber:
		p.literal(p.num)
		p.advance()
	case tokName:
		p.operand()
	default:
		p.mistake("syntax error: operand expected")
	}
}

func (p *parser) literal(n int64) {
	if int64(int32(n)) == n {
		p.emit(opInt, int(n), 0)
	} else {
		p.e.ints = append(p.e.ints, n)
		p.emit(opConst, len(p.e.ints)-1, 0)
	}
	p.push(1)
	p.target = target{}
}

// operand parses a name and what is stuck to its end.
func (p *parser) operand() {
	plain := p.assigned()
	to := p.load(!plain)
	p.advance()
	if p.tok != tokPostInc && p.tok != tokPostDec {
		p.target = to
		return
	}
	delta := 1
	if p.tok == tokPostDec {
		delta = -1
	}
	if to.kind == variable {
		p.emit(opStep, int(to.arg), delta)
	} else {
		p.emit(opBump, int(to.slot), delta)
	}
	p.target = target{}
	p.tok = tokNumber // what the next token follows
	p.advance()
}

// load emits the value of the name that was read, and returns where it is. If
// it is not needed the value is a zero, which the assignment takes back.
func (p *parser) load(needed bool) target {
	if p.subFrom < 0 {
		to := target{kind: variable, arg: p.nameIndex(p.name)}
		if needed {
			p.emit(opLoad, int(to.arg), 0)
		} else {
			p.emit(opInt, 0, 0)
		}
		p.push(1)
		return to
	}
	text := p.text[p.subFrom:p.subTo]
	el := elem{name: p.name, text: text}
	if text != "" && text != "@" && text != "*" && !p.quoted(p.subFrom, p.subTo) {
		if !p.enter() {
			return target{}
		}
		el.sub = compile(text, p.base+p.subFrom, p.brackets, p.depth)
		p.depth--
	}
	p.e.elems = append(p.e.elems, el)
	to := target{kind: element, arg: int32(len(p.e.elems) - 1)}
	if needed {
		to.slot = p.key(to.arg)
		p.emit(opGet, int(to.slot), 0)
	} else {
		p.emit(opInt, 0, 0)
	}
	p.push(1)
	return to
}

// nameIndex returns the place of a name in the table of names.
func (p *parser) nameIndex(name string) int32 {
	const look = 16 // a longer table may hold a name twice: it is only a table
	for i := range min(len(p.e.names), look) {
		if p.e.names[i] == name {
			return int32(i)
		}
	}
	if len(p.e.names) >= math.MaxInt32 {
		p.mistake("expression recursion level exceeded")
		return 0
	}
	p.e.names = append(p.e.names, name)
	return int32(len(p.e.names) - 1)
}
