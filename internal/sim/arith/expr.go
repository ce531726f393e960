// Package arith evaluates shell arithmetic as bash 5.2 does, with its messages:
// $(( )), (( )), let, subscripts and integer variables.
//
// It works on expanded text: the shell puts the values of $x in first, as bash
// does, and what is left is names, numbers and operators. Compile the text once
// and keep the Expr where it does not change; a loop then only evaluates.
//
// An expression that is wrong somewhere in the middle has done what stands
// before, in bash and here: the error comes out of Eval, after the assignments
// to the left of it.
package arith

import "strings"

// Vars is where an expression finds its variables. An error of any of its
// methods ends the evaluation and comes out of Eval as it is.
type Vars interface {
	// Int returns the value of a variable that is known to hold a decimal
	// number. It is the fast path of Text and may always say no.
	Int(name string) (n int64, ok bool)
	// Text returns the value of a variable, "" if it has none. A value that is
	// not a number is evaluated in its turn.
	Text(name string) (string, error)
	// Set assigns to a variable.
	Set(name string, n int64) error

	// Keyed reports whether the variable is an associative array.
	Keyed(name string) bool
	// Element is Text for an element of an array.
	Element(name string, key Key) (string, error)
	// SetElement is Set for an element of an array.
	SetElement(name string, key Key, n int64) error
	// Expand expands a subscript that holds quotes, backslashes or a dollar:
	// as a word if it is the key of an associative array, and else as
	// arithmetic.
	Expand(subscript string, key bool) (string, error)

	// Step counts work: it is told of each value that is an expression itself.
	Step(n int) error
}

// Key says which element of an array is meant.
type Key struct {
	Text    string // the subscript, expanded
	Index   int64  // its value, if Numeric; below zero it counts from the end
	Numeric bool   // false for associative arrays, and for the subscripts "", "@" and "*"
}

// Error is a mistake in an expression.
type Error struct {
	Expr    string // as far as it had been read
	Message string
	Token   string // the rest of the expression, from the place of the mistake on
	// Subscript says that it is the expression of a subscript, for which bash
	// gives up the whole line and not only the command.
	Subscript bool
}

func (e *Error) Error() string {
	return e.Expr + ": " + e.Message + ` (error token is "` + e.Token + `")`
}

// Expr is a compiled expression. It does not change: many may evaluate it at
// once.
type Expr struct {
	text  string
	code  []inst
	names []string
	ints  []int64
	elems []elem
	slots int // keys of elements that are alive at once
	depth int // of the stack
	bad   *Error
}

// elem is an element of an array that an expression names.
type elem struct {
	name string
	text string
	sub  *Expr // nil if the text must be expanded first, or is none
}

// inst is one instruction of a stack machine: few bytes, since a script may
// write long expressions.
type inst struct {
	op  opcode
	arg int32
	pos int32 // where an error of the operation points to
}

type opcode uint8

const (
	opInt   opcode = iota // push arg
	opConst               // push ints[arg]
	opLoad                // push the variable names[arg]
	opStore               // assign the top to names[arg]
	opStep                // assign the top plus pos to names[arg]
	opKey                 // work out which element elems[arg] is, into slot pos
	opGet                 // push the element in slot arg
	opPut                 // assign the top to the element in slot arg
	opBump                // assign the top plus pos to the element in slot arg
	opAdd1                // add arg to the top
	opPop                 // drop the top
	opJump                // go on at arg
	opFalse               // pop; if zero go on at arg
	opAnd                 // if the top is zero go on at arg, else pop
	opOr                  // if the top is not zero make it 1 and go on at arg, else pop
	opBool                // make the top 0 or 1
	opNot
	opCompl
	opNeg
	opMul
	opDiv
	opMod
	opPow
	opAdd
	opSub
	opShl
	opShr
	opLT
	opLE
	opGT
	opGE
	opEQ
	opNE
	opBand
	opXor
	opBor
)

// Text returns the text that the expression was compiled from.
func (e *Expr) Text() string { return e.text }

// Err returns the syntax error that Eval will end with, at the latest.
func (e *Expr) Err() error {
	if e.bad == nil {
		return nil
	}
	return e.bad
}

// QuoteSubscript makes the key of an associative array, which may hold anything, safe
// to be put in a text for Compile: Vars.Expand takes the backslashes away again.
func QuoteSubscript(s string) string {
	if !strings.ContainsAny(s, "[]\\\"'$`") {
		return s
	}
	b := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		switch s[i] {
		case '[', ']', '\\', '"', '\'', '$', '`':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}
