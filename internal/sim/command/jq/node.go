package jq

type op uint8

const (
	opIdentity op = iota
	opRecurse
	opField   // .name of l, or of . where l is nil
	opIndex   // l[r]
	opSlice   // l[x:y]; either may be nil
	opIterate // l[]
	opLiteral
	opString // a string with expressions in it
	opFormat // @name by itself
	opArray
	opObject
	opNegate
	opPipe
	opComma
	opMath
	opCompare
	opAnd
	opOr
	opAlternative
	opAssign
	opUpdate
	opArithmetic // op= with another operator, name in str
	opIf
	opTry
	opOptional // an access l, without the error of its last step
	opReduce
	opForeach
	opCall   // of a function of the program
	opNative // of one of ours
	opVar
	opGlobal // a variable that is known from the start
	opBind
	opDef
	opLabel
	opBreak
	opMark // of yq: l gets the attribute str, which is r
)

// A node is an expression.
type node struct {
	op     op
	single bool // it gives one value, or an error
	l, r   *node
	x, y   *node
	list   []*node
	str    string
	v      value
	hops   int // to where the variable or function is in the environment
	pats   []*pattern
	def    *function
	native *native
	fields []field
	line   int
}

// A field is a member of an object that is constructed.
type field struct{ key, val *node }

// A pattern takes a value apart.
type pattern struct {
	name  string // $name
	list  []*pattern
	pairs []patternPair
	kind  byte // '$', '[' or '{'
	vars  []string
}

type patternPair struct {
	name string // of {$name}
	key  *node
	val  *pattern // nil where there is only a name
}

// A function is one that a program defines.
type function struct {
	name   string
	params []string // those of values with their $
	body   *node
	bound  bool
}

func (f *function) arity() int { return len(f.params) }

// A native is a function of ours.
type native struct {
	name  string
	arity int
	// one is for functions of one value each; args are values.
	one func(m *machine, v value, args []value) (value, error)
	// gen is for functions that take expressions, or give many values.
	gen func(m *machine, n *node, e *env, v value, yield yieldFn) error
	// path is gen for path expressions; nil is that it is none.
	path func(m *machine, n *node, e *env, p pathValue, yield pathFn) error
}
