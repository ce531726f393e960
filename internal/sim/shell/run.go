package shell

import (
	"errors"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// maxStack is how deep commands may be within each other on one goroutine,
// whatever they are: what all limits on nesting would allow together is more
// than its stack may be.
const maxStack = 100_000

// run executes a command and gives its status, which is $? too. Where s.flow
// is set afterwards, the caller returns at once.
func (s *Shell) run(c parse.Command) int {
	switch c := c.(type) {
	case *parse.Simple:
		return s.simple(c)
	case *parse.AndOr:
		return s.andOr(c)
	case *parse.List:
		return s.list(c)
	}
	s.depth++
	if s.depth > maxStack {
		s.t.Bound("nesting", int64(s.depth), maxStack)
	}
	st := s.other(c)
	s.depth--
	return st
}

func (s *Shell) other(c parse.Command) int {
	switch c := c.(type) {
	case *parse.Arith:
		return s.arith(c)
	case *parse.Cond:
		return s.cond(c)
	case *parse.If:
		return s.ifCmd(c)
	case *parse.While:
		return s.while(c)
	case *parse.For:
		if c.Select {
			return s.selectCmd(c)
		}
		return s.forCmd(c)
	case *parse.CFor:
		return s.cfor(c)
	case *parse.Case:
		return s.caseCmd(c)
	case *parse.Group:
		return s.list(c.Body)
	case *parse.Redirected:
		return s.redirected(c)
	case *parse.Pipeline:
		return s.pipeline(c)
	case *parse.Subshell:
		return s.subshell(c)
	case *parse.Async:
		return s.async(c)
	case *parse.Func:
		return s.define(c)
	case *parse.Coproc:
		return s.coproc(c)
	}
	return 0
}

func (s *Shell) list(l *parse.List) int {
	if len(l.Items) == 0 {
		s.status = 0
		return 0
	}
	for _, c := range l.Items {
		if s.opt[oNoexec] && !s.interactive {
			return s.status
		}
		st := s.run(c)
		s.status = st
		if !s.handling {
			if sig := s.t.Caught(); sig != 0 {
				s.caught(sig)
			}
		}
		if s.flow != flowNone {
			return s.status
		}
	}
	return s.status
}

func (s *Shell) andOr(c *parse.AndOr) int {
	s.ignore++
	st := s.run(c.First)
	s.status = st
	for i := range c.Rest {
		if s.flow != flowNone {
			break
		}
		r := &c.Rest[i]
		if r.Or == (st == 0) {
			continue
		}
		if i == len(c.Rest)-1 {
			s.ignore--
			st = s.run(r.Cmd)
			s.status = st
			return st
		}
		st = s.run(r.Cmd)
		s.status = st
	}
	s.ignore--
	return st
}

// failed looks at the status of a command by itself: where it is a failure
// that nothing looks at, ERR is run and set -e ends the shell.
func (s *Shell) failed(st int) int {
	s.last, s.pipe = st, nil
	if s.inverted {
		s.inverted = false
		return st
	}
	if st != 0 && s.ignore == 0 && s.flow == flowNone {
		s.status = st
		return s.failure(st)
	}
	return st
}

func (s *Shell) failure(st int) int {
	s.errTrap(st)
	if s.opt[oErrexit] && s.flow == flowNone {
		s.exit(st)
	}
	return st
}

// exit ends the shell.
func (s *Shell) exit(st int) {
	s.status = st & 0xff
	s.flow = flowExit
}

// condition runs a list whose failure has no further effect.
func (s *Shell) condition(l *parse.List) int {
	s.ignore++
	st := s.list(l)
	s.ignore--
	return st
}

func (s *Shell) ifCmd(c *parse.If) int {
	for {
		st := s.condition(c.Cond)
		if s.flow != flowNone {
			return st
		}
		if st == 0 {
			return s.list(c.Then)
		}
		switch e := c.Else.(type) {
		case *parse.If:
			c = e
			continue
		case *parse.List:
			return s.list(e)
		}
		s.status = 0
		return 0
	}
}

// looped tells, after a round of a loop, whether the loop ends.
func (s *Shell) looped() bool {
	switch s.flow {
	case flowNone:
		return false
	case flowBreak:
		if s.flowN--; s.flowN <= 0 {
			s.flow = flowNone
		}
		return true
	case flowContinue:
		if s.flowN--; s.flowN <= 0 {
			s.flow = flowNone
			return false
		}
		return true
	}
	return true
}

func (s *Shell) while(c *parse.While) int {
	s.loops++
	defer func() { s.loops-- }()
	st := 0
	for {
		s.t.Iterate()
		cond := s.condition(c.Cond)
		if s.flow != flowNone {
			if s.looped() {
				if s.flow == flowNone {
					s.status = 0
					return 0
				}
				return s.status
			}
			continue
		}
		if (cond == 0) == c.Until {
			break
		}
		st = s.list(c.Body)
		if s.flow != flowNone && s.looped() {
			return s.leftLoop(st)
		}
	}
	s.status = st
	return st
}

// leftLoop gives the status of a loop that ended early.
func (s *Shell) leftLoop(st int) int {
	if s.flow == flowNone {
		return s.status
	}
	return st
}

func (s *Shell) forCmd(c *parse.For) int {
	s.line = c.Line
	if !s.validName(c.Name) {
		return 1
	}
	items := s.params
	if c.In {
		var err error
		if items, err = s.fields(nil, c.Items); err != nil {
			return s.wordError(err)
		}
	}
	s.loops++
	defer func() { s.loops-- }()
	st := 0
	for _, v := range items {
		s.t.Iterate()
		if s.traps.debug != nil || s.opt[oXtrace] {
			s.line = c.Line
			if s.opt[oXtrace] {
				s.traceText("for " + c.Name + " in " + sources(c))
			}
			s.debugTrap("for " + c.Name + " in " + sources(c))
		}
		if err := s.setLoop(c.Name, v); err != nil {
			s.line = c.Line
			s.Warn("%s", err)
			s.status = 1
			if s.posixExits() {
				s.exit(1)
				return 1
			}
			return s.failed(1)
		}
		st = s.list(c.Body)
		if s.flow != flowNone && s.looped() {
			return s.leftLoop(st)
		}
	}
	s.status = st
	return st
}

func sources(c *parse.For) string {
	if !c.In {
		return `"$@"`
	}
	text := ""
	for i := range c.Items {
		if i > 0 {
			text += " "
		}
		text += c.Items[i].Src
	}
	return text
}

// validName complains where a loop's variable is no name.
func (s *Shell) validName(name string) bool {
	if parse.Name(name) {
		return true
	}
	s.Warn("`%s': not a valid identifier", name)
	s.status = 1
	if s.opt[oPosix] {
		s.exit(1)
	}
	return false
}

func (s *Shell) cfor(c *parse.CFor) int {
	s.line = c.Line
	trace := func(src string) {
		if s.opt[oXtrace] {
			s.traceText("(( " + strings.Trim(src, " ") + " ))")
		}
	}
	eval := func(x *parse.Expr) (int64, bool) {
		s.line = c.Line
		if s.traps.debug != nil {
			s.debugTrap("((" + x.Src + "))")
		}
		trace(x.Src)
		n, err := s.evalWord(x)
		if err != nil {
			s.arithError("((", err)
			return 0, false
		}
		return n, true
	}
	if c.Init != nil {
		if _, ok := eval(c.Init); !ok {
			return s.failed(1)
		}
	} else {
		trace("1")
	}
	s.loops++
	defer func() { s.loops-- }()
	st := 0
	for {
		s.t.Iterate()
		if c.Cond != nil {
			n, ok := eval(c.Cond)
			if !ok {
				return s.failed(1)
			}
			if n == 0 {
				break
			}
		} else {
			trace("1")
		}
		st = s.list(c.Body)
		if s.flow != flowNone && s.looped() {
			return s.leftLoop(st)
		}
		if c.Post != nil {
			if _, ok := eval(c.Post); !ok {
				return s.failed(1)
			}
		} else {
			trace("1")
		}
	}
	s.status = st
	return st
}

func (s *Shell) caseCmd(c *parse.Case) int {
	s.line = c.Line
	if s.traps.debug != nil {
		s.debugTrap("case " + c.Word.Src + " in ")
	}
	value, err := s.single(&c.Word)
	if err != nil {
		return s.wordError(err)
	}
	if s.opt[oXtrace] {
		s.traceText("case " + c.Word.Src + " in")
	}
	st := 0
	through := false
	for i := range c.Items {
		item := &c.Items[i]
		if !through {
			found := false
			for j := range item.Patterns {
				ok, err := s.match(&item.Patterns[j], value)
				if err != nil {
					return s.wordError(err)
				}
				if ok {
					found = true
					break
				}
			}
			if !found {
				continue
			}
		}
		st = s.list(item.Body)
		if s.flow != flowNone {
			return st
		}
		switch item.Op {
		case syntax.Fallthrough:
			through = true
		case syntax.Resume:
			through = false
		default:
			return st
		}
	}
	s.status = st
	return st
}

func (s *Shell) arith(c *parse.Arith) int {
	s.line = c.Line
	if s.traps.debug != nil {
		s.debugTrap(c.Src)
	}
	s.t.Command()
	if s.opt[oXtrace] {
		s.traceText("(( " + trimParens(c.Src) + " ))")
	}
	n, err := s.evalWord(c.X)
	st := 0
	switch {
	case err != nil:
		s.arithError("((", err)
		st = 1
	case n == 0:
		st = 1
	}
	s.status = st
	return s.failed(st)
}

func trimParens(src string) string {
	if len(src) < 4 {
		return src
	}
	src = src[2 : len(src)-2]
	for len(src) > 0 && (src[0] == ' ' || src[0] == '\n') {
		src = src[1:]
	}
	for len(src) > 0 && (src[len(src)-1] == ' ' || src[len(src)-1] == '\n') {
		src = src[:len(src)-1]
	}
	return src
}

func (s *Shell) cond(c *parse.Cond) int {
	s.line = c.Line
	if s.traps.debug != nil {
		s.debugTrap(c.Src)
	}
	s.t.Command()
	st := s.testExpr(c.X)
	s.status = st
	return s.failed(st)
}

func (s *Shell) selectCmd(c *parse.For) int {
	s.line = c.Line
	if !s.validName(c.Name) {
		return 1
	}
	items := s.params
	if c.In {
		var err error
		if items, err = s.fields(nil, c.Items); err != nil {
			return s.wordError(err)
		}
	}
	if s.opt[oXtrace] {
		s.traceText("select " + c.Name + " in " + sources(c))
	}
	if len(items) == 0 {
		s.status = 0
		return 0
	}
	s.loops++
	defer func() { s.loops-- }()
	menu := true
	st := 0
	for {
		s.t.Iterate()
		if menu {
			s.menu(items)
			menu = false
		}
		prompt, ok := s.vars.Get("PS3")
		if !ok {
			prompt = "#? "
		}
		s.errout(s.Prompt(prompt))
		line, err := s.readLine(0)
		if err != nil && line == "" {
			s.print("\n")
			_ = s.flush()
			s.status = 1
			return 1
		}
		if err := s.vars.Set("REPLY", line); err != nil {
			s.Warn("%s", err)
		}
		if line == "" {
			menu = true
			continue
		}
		choice := ""
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(items) {
			choice = items[n-1]
		}
		if err := s.setLoop(c.Name, choice); err != nil {
			s.Warn("%s", err)
			return s.failed(1)
		}
		st = s.list(c.Body)
		if s.flow != flowNone && s.looped() {
			return s.leftLoop(st)
		}
		if v, _ := s.vars.Get("REPLY"); v == "" {
			menu = true
		}
	}
}

// define makes a function.
func (s *Shell) define(c *parse.Func) int {
	s.line = c.Line
	if !functionName(c.Name) || s.opt[oPosix] && !parse.Name(c.Name) {
		s.Warn("`%s': not a valid identifier", c.Name)
		s.status = 1
		if s.opt[oPosix] {
			s.exit(1)
		}
		return s.failed(1)
	}
	if s.opt[oPosix] && specialBuiltin(c.Name) {
		s.Warn("`%s': is a special builtin", c.Name)
		s.exit(2)
		return 2
	}
	if old := s.funcs[c.Name]; old != nil && old.readonly {
		s.Warn("%s: readonly function", c.Name)
		return s.failed(1)
	}
	s.ownFuncs()
	f := &function{name: c.Name, body: c.Body, source: s.origin(), line: c.Line}
	if old := s.funcs[c.Name]; old != nil {
		f.export, f.trace = old.export, old.trace
	}
	s.funcs[c.Name] = f
	s.t.Grow(256)
	s.status = 0
	return 0
}

func functionName(name string) bool {
	if name == "" {
		return false
	}
	for i := range len(name) {
		switch name[i] {
		case '$', '`', '"', '\'', '\\', '<', '>', '&', ';', '|', '(', ')', ' ', '\t', '\n':
			return false
		}
	}
	return true
}

// source gives the name of the file that commands come from now.
func (s *Shell) source() string {
	if n := len(s.frames); n > 0 {
		return s.frames[n-1].source
	}
	return s.bases.source
}

// origin is source with bash's names for what is no file.
func (s *Shell) origin() string {
	switch from := s.source(); {
	case from != "":
		return from
	case s.command:
		return "environment"
	}
	return "main"
}

func (s *Shell) ownFuncs() {
	if s.funcsShared || s.funcs == nil {
		m := make(map[string]*function, len(s.funcs)+1)
		for k, v := range s.funcs {
			m[k] = v
		}
		s.funcs, s.funcsShared = m, false
	}
}

// message gives the words for an error of the system.
func message(err error) string {
	var e *budget.Exceeded
	if errors.As(err, &e) {
		return e.Error()
	}
	return vfs.Message(err)
}

// redirected runs a compound command with redirections.
func (s *Shell) redirected(c *parse.Redirected) int {
	mark := len(s.procs)
	line := s.line
	undo, err := s.redirect(c.Redirs)
	if err != nil {
		s.restore(undo)
		s.closeProcs(mark)
		s.line = line
		return s.redirError(err)
	}
	given := s.stdinGiven
	for _, r := range c.Redirs {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
			s.stdinGiven = s.stdinGiven || r.FD <= 0 && r.Var == ""
		}
	}
	st := s.run(c.Body)
	s.stdinGiven = given
	s.restore(undo)
	s.closeProcs(mark)
	return st
}

func (s *Shell) redirError(err error) int {
	_ = err
	if s.flow != flowNone {
		return s.status
	}
	s.status = 1
	return s.failed(1)
}
