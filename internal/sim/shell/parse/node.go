// Package parse parses scripts as bash does: line by line and with aliases, so
// that a line can change how the next one is parsed.
//
// The result is trees of commands whose words are those of
// mvdan.cc/sh/v3/syntax. A tree does not change once it is made, so many may
// run it at once. How deep it nests is limited; walking it needs no care.
package parse

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

// A Command is a node of the tree: one of the types of this package.
type Command interface{ command() }

// A List is commands one after another.
type List struct{ Items []Command }

// An Async is a command followed by "&".
type Async struct {
	Cmd  Command
	Line int
	Src  string // for the job table
}

// An AndOr is commands joined by && and ||.
type AndOr struct {
	First Command
	Rest  []AndOrPart
}

// An AndOrPart is a command with the operator before it.
type AndOrPart struct {
	Or  bool
	Cmd Command
}

// A Pipeline is commands joined by pipes, or one that is negated or timed.
type Pipeline struct {
	Cmds  []Command // none after a "!" or "time" by itself
	Not   bool
	Timed bool
	Posix bool // time -p
	Line  int
	Src   string
}

// A Word is one word of a command.
type Word struct {
	W      *syntax.Word
	X      *expand.Word // nil if Fixed, as an argument
	Src    string
	Text   string  // what it expands to, if Fixed
	Fixed  bool    // it expands to one field, the same each time
	Assign *Assign // of an argument that looks like an assignment
}

// An Assign is name=value, name[subscript]=value or name=( … ).
type Assign struct {
	X    *expand.Assignment
	Name string
	Src  string
	Line int
}

// A Simple is a simple command.
type Simple struct {
	Line    int
	Assigns []*Assign
	Words   []Word
	Redirs  []*Redirect
	Args    []string // what Words expand to, if each is Fixed
	Src     string

	// Declares says that the name is one of a builtin that takes assignments
	// as arguments, also after "command" and "builtin".
	Declares bool
	wrapped  bool
}

// A Redirected is a compound command with redirections.
type Redirected struct {
	Body   Command
	Redirs []*Redirect
	Line   int
}

// A Group is { list; }.
type Group struct{ Body *List }

// A Subshell is ( list ).
type Subshell struct {
	Body *List
	Line int
	Src  string
}

// An If is if, with Else another If, a List or nil.
type If struct {
	Cond, Then *List
	Else       Command
}

// A While is while or until.
type While struct {
	Until      bool
	Cond, Body *List
}

// A For is for or select over words.
type For struct {
	Line   int
	Name   string
	In     bool // there was "in"
	Items  []Word
	Body   *List
	Select bool
}

// A CFor is for (( )). An empty part is nil.
type CFor struct {
	Line             int
	Init, Cond, Post *Expr
	Body             *List
}

// A Case is case.
type Case struct {
	Line  int
	Word  Word
	Items []CaseItem
}

// A CaseItem is a branch of a Case.
type CaseItem struct {
	Patterns []Word
	Body     *List
	Op       syntax.CaseOperator
}

// A Cond is [[ ]]. Words in it are syntax.Words.
type Cond struct {
	Line int
	X    syntax.TestExpr
	Src  string
}

// An Arith is (( )).
type Arith struct {
	Line int
	X    *Expr
	Src  string
}

// An Expr is an arithmetic expression.
type Expr struct {
	W   *syntax.Word
	X   *expand.Arith
	Src string
}

// A Func is the definition of a function.
type Func struct {
	Line int
	Name string
	Body Command
}

// A Coproc is coproc.
type Coproc struct {
	Line int
	Name string // empty is COPROC
	Body Command
	Src  string
}

// A Redirect is one redirection.
type Redirect struct {
	Op     syntax.RedirOperator
	FD     int    // -1 is the operator's own
	Var    string // of {name}
	Word   Word
	Hdoc   *expand.Word // the body of a here-document; nil is Raw as it stands
	Raw    string       // of the body, as it was read
	Quoted bool         // the here-document's delimiter was
	Line   int
}

func (*List) command()       {}
func (*Async) command()      {}
func (*AndOr) command()      {}
func (*Pipeline) command()   {}
func (*Simple) command()     {}
func (*Redirected) command() {}
func (*Group) command()      {}
func (*Subshell) command()   {}
func (*If) command()         {}
func (*While) command()      {}
func (*For) command()        {}
func (*CFor) command()       {}
func (*Case) command()       {}
func (*Cond) command()       {}
func (*Arith) command()      {}
func (*Func) command()       {}
func (*Coproc) command()     {}

// A Body hangs below a substitution in a word.
type Body struct {
	syntax.Command // nil; Body is a Command of that package so that it fits in

	List *List
	Text string // of one in backquotes, which is read when it is run
	Line int
}

// SubstBody returns what a command substitution runs.
func SubstBody(c *syntax.CmdSubst) *Body { return body(c.Stmts) }

// ProcBody returns what a process substitution runs.
func ProcBody(p *syntax.ProcSubst) *Body { return body(p.Stmts) }

func body(stmts []*syntax.Stmt) *Body {
	if len(stmts) != 1 {
		return nil
	}
	b, _ := stmts[0].Cmd.(*Body)
	return b
}

func carry(b *Body) []*syntax.Stmt { return []*syntax.Stmt{{Cmd: b}} }
