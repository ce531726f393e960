// Package shell is a shell that is compatible with bash 5.2, on a simulated
// computer. Every effect of a script goes through the [kernel.Task] that runs the
// shell and counts what it uses.
//
// Words are trees of mvdan.cc/sh/v3/syntax. The commands above them, and the
// reader that makes both, are the shell's own: syntax refuses bytes that are
// not UTF-8, knows no aliases, decides about arithmetic and subscripts before
// variables are known, and recurses without bound. (Of 2,772 scripts of public
// suites it refuses 106 that bash takes.) What the reader makes of words is a
// part of what syntax can say:
//
//   - Every arithmetic expression and every subscript is a [syntax.Word] with
//     the source text: expand it as if in double quotes, then evaluate the
//     text. In ParamExp.Index the words "@" and "*" mean what they do in bash.
//   - A Lit is source text: backslashes are still there (unquoted and in double
//     quotes), but a backslash before a newline is gone with it.
//   - SglQuoted.Value is source text too, also with Dollar.
//   - Extended patterns are no ExtGlob but parts of the word: Lit "@(a|", a
//     DblQuoted, Lit ")".
//   - Brace expansions are in the Lits, not split.
//   - CmdSubst and ProcSubst have no Stmts: the shell knows them by the node.
//   - A ParamExp that bash finds wrong only when it gets there ("${a b}") is one
//     whose Param says the text between the braces and whose Flags is not nil.
//
// The parts below: variable keeps variables, expand turns words into fields.
// They know the shell by the methods of [Shell] that they need, as interfaces
// of their own.
//
// A Shell belongs to the goroutine of its task. A subshell is another Shell
// on a task that was forked: on the same goroutine where nothing runs beside
// the parent, else on its own.
package shell
