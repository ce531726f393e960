package awk

// An expr is an expression of a program.
type expr interface{ expression() }

type (
	numberLit struct{ n float64 }
	stringLit struct{ s string }
	regexLit  struct {
		s     string
		typed bool // @/re/: a value, and not a match
	}
	// A nameExpr is a variable.
	nameExpr struct {
		name  string
		local bool
		index int
	}
	indexExpr struct {
		base expr // nameExpr or indexExpr
		subs []expr
	}
	fieldExpr struct{ e expr }
	unaryExpr struct {
		op byte // ! - +
		e  expr
	}
	binaryExpr struct {
		op   tok // + - * / % tPow, comparisons, ' ' for concatenation
		l, r expr
		line int
	}
	logicExpr struct {
		or   bool
		l, r expr
	}
	condExpr   struct{ c, yes, no expr }
	assignExpr struct {
		op   byte // 0 is plain
		l, r expr
		line int
	}
	incExpr struct {
		l     expr
		delta float64
		post  bool
	}
	matchExpr struct {
		not  bool
		l, r expr
	}
	inExpr struct {
		subs []expr
		a    expr
	}
	// A groupExpr is one in parentheses.
	groupExpr struct{ e expr }
	// A listExpr is (a, b), which only print may have, or in behind it.
	listExpr struct{ list []expr }
	callExpr struct {
		name string
		args []expr
		line int
	}
	indirectExpr struct {
		fn   expr
		args []expr
		line int
	}
	builtinExpr struct {
		f    builtin
		args []expr
		line int
	}
	getlineExpr struct {
		from tok  // '<', '|', tCoproc, or 0
		src  expr // of from
		lv   expr // nil is $0
	}
)

func (*numberLit) expression()    {}
func (*stringLit) expression()    {}
func (*regexLit) expression()     {}
func (*nameExpr) expression()     {}
func (*indexExpr) expression()    {}
func (*fieldExpr) expression()    {}
func (*unaryExpr) expression()    {}
func (*binaryExpr) expression()   {}
func (*logicExpr) expression()    {}
func (*condExpr) expression()     {}
func (*assignExpr) expression()   {}
func (*incExpr) expression()      {}
func (*matchExpr) expression()    {}
func (*inExpr) expression()       {}
func (*groupExpr) expression()    {}
func (*listExpr) expression()     {}
func (*callExpr) expression()     {}
func (*indirectExpr) expression() {}
func (*builtinExpr) expression()  {}
func (*getlineExpr) expression()  {}

// A stmt is a statement.
type stmt interface{ statement() }

type (
	exprStmt  struct{ e expr }
	printStmt struct {
		args   []expr
		format bool // printf
		to     tok  // '>', tAppend, '|', tCoproc, or 0
		dest   expr
	}
	blockStmt struct{ list []stmt }
	ifStmt    struct {
		c       expr
		yes, no stmt
	}
	whileStmt struct {
		c    expr
		body stmt
	}
	doStmt struct {
		c    expr
		body stmt
	}
	forStmt struct {
		init, step stmt
		c          expr
		body       stmt
	}
	eachStmt struct {
		v    expr
		a    expr
		body stmt
	}
	switchStmt struct {
		e     expr
		cases []switchCase
	}
	deleteStmt struct {
		a    expr // the array
		subs []expr
		all  bool
	}
	exitStmt   struct{ e expr }
	returnStmt struct{ e expr }
	jumpStmt   struct{ c ctl }
)

// A switchCase is a label with the statements up to the next one.
type switchCase struct {
	label expr // nil is default
	body  []stmt
}

func (*exprStmt) statement()   {}
func (*printStmt) statement()  {}
func (*blockStmt) statement()  {}
func (*ifStmt) statement()     {}
func (*whileStmt) statement()  {}
func (*doStmt) statement()     {}
func (*forStmt) statement()    {}
func (*eachStmt) statement()   {}
func (*switchStmt) statement() {}
func (*deleteStmt) statement() {}
func (*exitStmt) statement()   {}
func (*returnStmt) statement() {}
func (*jumpStmt) statement()   {}

// A ctl is how a statement ended.
type ctl uint8

const (
	goesOn ctl = iota
	breaks
	continues
	nexts
	nextfiles
	exits
	returns
)

// A function is one of the program.
type function struct {
	name   string
	params []string
	body   *blockStmt
	index  int
}

// A rule is a pattern with its action.
type rule struct {
	from, to expr // nil where there is none
	body     *blockStmt
	prints   bool // there is no action
}

// A program is what the parser read.
type program struct {
	begin, end, beginFile, endFile []*blockStmt
	rules                          []rule
	functions                      map[string]*function
	globals                        map[string]int
	names                          []string // of globals
}
