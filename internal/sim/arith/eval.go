package arith

import (
	"errors"
	"strings"
)

// maxLevel is how many expressions deep a value may be one itself.
const maxLevel = 1024

// Eval evaluates the expression. Nothing is zero.
func (e *Expr) Eval(v Vars) (int64, error) {
	return e.eval(v, 0)
}

// small is a stack that needs no allocation.
const small = 8

func (e *Expr) eval(v Vars, level int) (int64, error) {
	if e.depth <= small {
		var stack [small]int64
		switch e.slots {
		case 0:
			return e.run(v, level, stack[:], nil)
		case 1:
			var slots [1]slot
			return e.run(v, level, stack[:], slots[:])
		}
	}
	return e.run(v, level, make([]int64, e.depth), make([]slot, e.slots))
}

// slot is an element whose subscript has been evaluated.
type slot struct {
	name string
	key  Key
}

func (e *Expr) run(v Vars, level int, stack []int64, slots []slot) (int64, error) {
	sp := -1
	for i := 0; i < len(e.code); i++ {
		in := &e.code[i]
		switch in.op {
		case opInt:
			sp++
			stack[sp] = int64(in.arg)
		case opConst:
			sp++
			stack[sp] = e.ints[in.arg]
		case opLoad:
			sp++
			name := e.names[in.arg]
			n, ok := v.Int(name)
			if !ok {
				text, err := v.Text(name)
				if err == nil {
					n, err = e.value(v, text, level, name)
				}
				if err != nil {
					return 0, err
				}
			}
			stack[sp] = n
		case opStore:
			if err := v.Set(e.names[in.arg], stack[sp]); err != nil {
				return 0, err
			}
		case opStep:
			if err := v.Set(e.names[in.arg], stack[sp]+int64(in.pos)); err != nil {
				return 0, err
			}
		case opKey:
			key, err := e.key(v, &e.elems[in.arg], level)
			if err != nil {
				return 0, err
			}
			slots[in.pos] = slot{e.elems[in.arg].name, key}
		case opGet:
			sp++
			s := &slots[in.arg]
			text, err := v.Element(s.name, s.key)
			if err == nil {
				stack[sp], err = e.value(v, text, level, s.name)
			}
			if err != nil {
				return 0, err
			}
		case opPut:
			s := &slots[in.arg]
			if err := v.SetElement(s.name, s.key, stack[sp]); err != nil {
				return 0, err
			}
		case opBump:
			s := &slots[in.arg]
			if err := v.SetElement(s.name, s.key, stack[sp]+int64(in.pos)); err != nil {
				return 0, err
			}
		case opAdd1:
			stack[sp] += int64(in.arg)
		case opPop:
			sp--
		case opJump:
			i = int(in.arg) - 1
		case opFalse:
			if stack[sp] == 0 {
				i = int(in.arg) - 1
			}
			sp--
		case opAnd:
			if stack[sp] == 0 {
				i = int(in.arg) - 1
			} else {
				sp--
			}
		case opOr:
			if stack[sp] != 0 {
				stack[sp] = 1
				i = int(in.arg) - 1
			} else {
				sp--
			}
		case opBool:
			stack[sp] = truth(stack[sp] != 0)
		case opNot:
			stack[sp] = truth(stack[sp] == 0)
		case opCompl:
			stack[sp] = ^stack[sp]
		case opNeg:
			stack[sp] = -stack[sp]
		default:
			n, message := binaryOp(in.op, stack[sp-1], stack[sp])
			if message != "" {
				return 0, e.fault(message, int(in.pos))
			}
			sp--
			stack[sp] = n
		}
	}
	switch {
	case e.bad != nil:
		return 0, e.bad
	case sp < 0:
		return 0, nil
	}
	return stack[sp], nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func binaryOp(op opcode, a, b int64) (n int64, message string) {
	switch op {
	case opAdd:
		return a + b, ""
	case opSub:
		return a - b, ""
	case opMul:
		return a * b, ""
	case opDiv, opMod:
		switch {
		case b == 0:
			return 0, "division by 0"
		case op == opDiv:
			return a / b, "" // the least number by -1 is itself, in Go too
		}
		return a % b, ""
	case opPow:
		if b < 0 {
			return 0, "exponent less than 0"
		}
		return power(a, b), ""
	case opShl:
		return a << (uint64(b) & 63), ""
	case opShr:
		return a >> (uint64(b) & 63), ""
	case opLT:
		return truth(a < b), ""
	case opLE:
		return truth(a <= b), ""
	case opGT:
		return truth(a > b), ""
	case opGE:
		return truth(a >= b), ""
	case opEQ:
		return truth(a == b), ""
	case opNE:
		return truth(a != b), ""
	case opBand:
		return a & b, ""
	case opXor:
		return a ^ b, ""
	}
	return a | b, ""
}

func power(a, b int64) int64 {
	n := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			n *= a
		}
		a *= a
	}
	return n
}

// fault is an error of an operation, which points at its right side.
func (e *Expr) fault(message string, pos int) *Error {
	return &Error{Expr: strings.TrimLeft(e.text, " \t"), Message: message, Token: e.text[min(pos, len(e.text)):]}
}

// value evaluates the value of a variable.
func (e *Expr) value(v Vars, text string, level int, name string) (int64, error) {
	if n, ok := plain(text); ok {
		return n, nil
	}
	if level+1 >= maxLevel {
		return 0, e.fault("expression recursion level exceeded", max(0, strings.LastIndex(e.text, name)))
	}
	if err := v.Step(32 + len(text)); err != nil {
		return 0, err
	}
	return Compile(text).eval(v, level+1)
}

// plain returns the value of a number as the shell writes it, which most values
// are.
func plain(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	digits := s
	if s[0] == '-' {
		digits = s[1:]
	}
	if digits == "" || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n int64
	for i := range len(digits) {
		if !digit(digits[i]) {
			return 0, false
		}
		n = n*10 + int64(digits[i]-'0')
	}
	if len(digits) < len(s) {
		n = -n
	}
	return n, true
}

// key evaluates a subscript.
func (e *Expr) key(v Vars, el *elem, level int) (Key, error) {
	keyed := v.Keyed(el.name)
	text, sub := el.text, el.sub
	if sub == nil && strings.ContainsAny(text, "\\\"'$`") {
		if err := v.Step(1 + len(text)/8); err != nil {
			return Key{}, err
		}
		var err error
		if text, err = v.Expand(text, keyed); err != nil {
			return Key{}, err
		}
	}
	switch {
	case keyed, text == "", text == "@", text == "*":
		return Key{Text: text}, nil
	case level+1 >= maxLevel:
		return Key{}, e.fault("expression recursion level exceeded", max(0, strings.LastIndex(e.text, el.name)))
	case sub == nil:
		sub = Compile(text)
	}
	n, err := sub.eval(v, level+1)
	var wrong *Error
	if errors.As(err, &wrong) && !wrong.Subscript {
		of := *wrong
		of.Subscript = true
		err = &of
	}
	return Key{Text: text, Index: n, Numeric: true}, err
}
