package shell

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// simple runs a simple command.
func (s *Shell) simple(c *parse.Simple) int {
	t := s.t
	t.Command()
	s.line = c.Line
	inverted := s.inverted
	s.inverted = false
	if s.traps.running == 0 {
		s.cmdText = c.Src
	}
	if s.traps.debug != nil && s.debugTrap(c.Src) {
		return s.status
	}
	mark, base := len(s.procs), len(s.stack)
	args := c.Args
	s.subst = -1
	if args == nil && len(c.Words) > 0 {
		var err error
		if args, err = s.arguments(c); err != nil {
			s.stack = s.stack[:base]
			s.closeProcs(mark)
			return s.wordError(err)
		}
	}
	var st int
	if c == s.tail && len(args) > 0 {
		s.tailArgs = args
	}
	if len(args) == 0 {
		st = s.null(c)
	} else {
		st = s.named(c, args)
	}
	if len(s.stack) > base {
		clear(s.stack[base:])
		s.stack = s.stack[:base]
	}
	if len(s.procs) > mark {
		s.closeProcs(mark)
	}
	s.last, s.pipe = st, nil
	if st != 0 && s.ignore == 0 && s.flow == flowNone && !inverted {
		s.status = st
		return s.failure(st)
	}
	return st
}

// arguments expands the words of a command onto the stack.
func (s *Shell) arguments(c *parse.Simple) ([]string, error) {
	base := len(s.stack)
	declares := false
	for i := range c.Words {
		w := &c.Words[i]
		if w.Assign != nil && declares {
			break
		}
		if w.Fixed {
			s.stack = append(s.stack, w.Text)
		} else {
			var err error
			if s.stack, err = s.Expander().Fields(s.stack, w.X); err != nil {
				return nil, err
			}
		}
		if i == 0 || !declares {
			declares = c.Declares && len(s.stack) > base
		}
	}
	return s.stack[base:len(s.stack):len(s.stack)], nil
}

// null runs a command without a name: assignments and redirections.
func (s *Shell) null(c *parse.Simple) int {
	for _, a := range c.Assigns {
		if err := s.assign(a, false); err != nil {
			return s.assignError(err)
		}
	}
	if len(c.Redirs) > 0 {
		undo, err := s.redirect(c.Redirs)
		s.restore(undo)
		if err != nil {
			return 1
		}
	}
	s.lastArg = ""
	if s.subst >= 0 {
		return s.subst
	}
	return 0
}

// assignError tells of an assignment that failed, which ends the line of
// commands.
func (s *Shell) assignError(err error) int { return s.wordError(err) }

// lookup says what a name is.
type lookup struct {
	fn      *function
	builtin builtin
}

// find finds what a name means to the shell itself.
func (s *Shell) find(name string) lookup {
	if s.opt[oPosix] {
		if b := s.builtin(name); b.special {
			return lookup{builtin: b}
		}
	}
	if len(s.funcs) > 0 {
		if f, ok := s.funcs[name]; ok {
			return lookup{fn: f}
		}
	}
	return lookup{builtin: s.builtin(name)}
}

// builtin finds a builtin that is not disabled.
func (s *Shell) builtin(name string) builtin {
	if len(s.disabled) > 0 && s.disabled[name] {
		return builtin{}
	}
	return findBuiltin(name)
}

// named runs a command that has a name.
func (s *Shell) named(c *parse.Simple, args []string) int {
	what := s.find(args[0])
	if what.fn == nil && what.builtin.name == "" && s.jobName(args) {
		what.builtin = findBuiltin("fg")
		args = []string{"fg", args[0]}
	}
	if c.Declares && what.builtin.declare == nil {
		// A function has that name: to it they are arguments as any.
		args = args[:len(args):len(args)]
		for i := range c.Words {
			if c.Words[i].Assign == nil {
				continue
			}
			var err error
			if args, err = s.fields(args, c.Words[i:]); err != nil {
				return s.wordError(err)
			}
			break
		}
	}
	if len(c.Assigns) == 0 && len(c.Redirs) == 0 {
		if s.opt[oXtrace] {
			s.traceCommand(c, args)
		}
		st := s.execute(c, what, args)
		if n := len(args); n > 0 {
			s.lastArg = args[n-1]
		}
		return st
	}
	return s.prepared(c, what, args)
}

// prepared is named for a command with assignments or redirections.
func (s *Shell) prepared(c *parse.Simple, what lookup, args []string) int {
	if what.fn == nil && what.builtin.name == "" && assigns(c.Redirs) {
		// A program's redirections are expanded where the program will run.
		return s.inSubshell(func(sub *Shell) int {
			sub.level--
			return sub.arranged(c, what, args)
		})
	}
	if what.builtin.declare != nil && len(c.Assigns) > 0 {
		// Its arguments do not see what is assigned for the command.
		defer func(old map[*parse.Assign]string) { s.early = old }(s.early)
		if err := s.expandEarly(c); err != nil {
			return s.wordError(err)
		}
	}
	return s.arranged(c, what, args)
}

// assignBeneath is assign of a value whose expansion changes variables: not the
// temporary ones that were assigned before it.
func (s *Shell) assignBeneath(before []*parse.Assign, a *parse.Assign) error {
	x := s.Expander()
	values := make([]string, len(before))
	for i, b := range before {
		values[i], _ = s.vars.Get(b.Name)
	}
	s.vars.Pop()
	var value string
	var err error
	if a.X.IsList() {
		_, err = x.Elements(a.X, false)
	} else {
		value, err = x.Value(a.X)
	}
	s.vars.PushTemporary()
	for i, b := range before {
		if _, at := b.X.Subscript(); !at && s.vars.SetTemporary(b.Name, values[i], false) != nil {
			continue // told when it was assigned first
		}
	}
	if err != nil {
		return err
	}
	if s.opt[oXtrace] {
		s.traceAssign(a, value)
	}
	switch _, at := a.X.Subscript(); {
	case a.X.IsList():
		return s.vars.SetTemporary(a.Name, "()", false)
	case at:
		s.noElement(a)
		return nil
	}
	return s.vars.SetTemporary(a.Name, value, a.X.Append)
}

// assigns reports whether the words of redirections may change variables.
func assigns(list []*parse.Redirect) bool {
	return slices.ContainsFunc(list, func(r *parse.Redirect) bool { return !r.Word.Fixed && changes(r.Word.Src) })
}

// changes reports whether an expansion in a text may change variables.
func changes(src string) bool {
	return strings.IndexByte(src, '$') >= 0 &&
		(strings.Contains(src, "=") || strings.Contains(src, "++") || strings.Contains(src, "--"))
}

// expandEarly expands the values of a command's arguments that are
// assignments.
func (s *Shell) expandEarly(c *parse.Simple) error {
	m := map[*parse.Assign]string{}
	for i := range c.Words {
		a := c.Words[i].Assign
		if a == nil || a.X.IsList() {
			continue
		}
		value, err := s.Expander().Value(a.X)
		if err != nil {
			return err
		}
		m[a] = value
	}
	s.early = m
	return nil
}

// arranged runs a command with its assignments and redirections.
func (s *Shell) arranged(c *parse.Simple, what lookup, args []string) int {
	persist := what.builtin.special && s.opt[oPosix]
	if len(c.Assigns) > 0 && len(c.Redirs) > 0 {
		// Redirections do not see what is assigned for the command.
		defer func(old map[*parse.Redirect]expanded) { s.targets = old }(s.targets)
		s.expandTargets(c.Redirs)
	}
	if len(c.Assigns) > 0 {
		if !persist {
			s.vars.PushTemporary()
			defer s.vars.Pop()
		}
		for i, a := range c.Assigns {
			var err error
			if _, value, _ := strings.Cut(a.Src, "="); !persist && changes(value) {
				err = s.assignBeneath(c.Assigns[:i], a)
			} else {
				err = s.assign(a, !persist)
			}
			var v *variable.Error
			if errors.As(err, &v) && !s.opt[oPosix] {
				// The command is run all the same.
				s.Warn("%s", err)
				err = nil
			}
			if err != nil {
				return s.assignError(err)
			}
		}
	}
	if s.opt[oXtrace] {
		s.traceCommand(c, args)
	}
	undo, err := s.redirect(c.Redirs)
	if err != nil {
		s.restore(undo)
		if what.builtin.special && s.posixExits() && s.flow == flowNone {
			s.exit(1)
		}
		return 1
	}
	if what.builtin.name == "exec" {
		// Its redirections stay, unless a program was to be run and was not.
		st := s.execute(c, what, args)
		if s.execFailedOnce {
			s.execFailedOnce = false
			s.restore(undo)
		} else {
			s.forget(&undo)
		}
		return st
	}
	st := s.execute(c, what, args)
	s.restore(undo)
	if n := len(args); n > 0 {
		s.lastArg = args[n-1]
	}
	return st
}

// execute runs what a command name was found to be.
func (s *Shell) execute(c *parse.Simple, what lookup, args []string) int {
	if s.lazyLevel {
		s.lazyLevel = false
		s.level++
	}
	switch {
	case what.fn != nil:
		return s.call(what.fn, args)
	case what.builtin.name != "":
		return s.runBuiltin(c, what.builtin, args)
	}
	return s.external(args)
}

// runBuiltin runs a builtin and writes out what it printed.
func (s *Shell) runBuiltin(c *parse.Simple, b builtin, args []string) int {
	var st int
	if b.declare != nil {
		st = b.declare(s, c, args)
	} else {
		st = b.run(s, args)
	}
	if st == 2 && b.special && misused(b.name, args) && s.posixExits() && s.flow == flowNone {
		s.exit(2)
	}
	if s.flow == flowExit {
		// A trap may have ended the shell meanwhile.
		st = s.status
	}
	if len(s.out) > 0 {
		if err := s.flush(); err != nil {
			s.Warn("%s: write error: %s", args[0], message(err))
			return 1
		}
	}
	return st
}

// misused reports whether status 2 of a special builtin means that it was called
// wrongly, which ends a shell that follows POSIX.
func misused(name string, args []string) bool {
	switch name {
	case "set", "unset", "export", "readonly", "trap", "exec":
		return true
	case "eval":
		return len(args) > 1 && len(args[1]) > 1 && args[1][0] == '-' && args[1] != "--"
	}
	return false
}

// maxCalls bounds functions that call functions; FUNCNEST is the script's own.
func (s *Shell) deeper(name string) bool {
	s.calls++
	s.t.Bound("calls", int64(s.calls), s.t.K.Limits.Calls)
	if s.calls > 1 {
		if v, ok := s.vars.Get("FUNCNEST"); ok {
			if n, err := strconv.Atoi(v); err == nil && n > 0 && s.calls > n {
				s.Warn("%s: maximum function nesting level exceeded (%d)", name, n)
				return false
			}
		}
	}
	return true
}

// call runs a function.
func (s *Shell) call(f *function, args []string) int {
	if !s.deeper(f.name) {
		s.calls--
		s.status = 1
		s.flow = flowDiscard
		return 1
	}
	line, params, loops, set := s.line, s.params, s.loops, s.paramsSet
	debug, err, ret := s.traps.hide(s, f.trace)
	s.vars.PushFunction()
	s.params = slices.Clone(args[1:])
	s.loops = 0
	s.frames = append(s.frames, frame{name: f.name, source: f.source, line: line, call: true, params: s.params})
	if s.traps.debug != nil {
		s.line = f.line
		s.debugTrap(f.name)
	}
	st := s.run(f.body)
	shown := st
	if s.flow == flowReturn {
		s.flow = flowNone
		st, shown = s.status, s.before
	}
	if s.traps.ret != nil && s.flow == flowNone {
		s.line, s.status = f.line, shown
		s.returnTrap()
		if s.flow != flowNone {
			st = s.status
		}
	}
	s.status = st
	s.frames = s.frames[:len(s.frames)-1]
	if old, ok := s.vars.Pop().(*options); ok {
		s.setOptions(old)
	}
	s.params, s.loops, s.line, s.paramsSet = params, loops, line, set
	s.traps.show(debug, err, ret)
	s.calls--
	return st
}

// external runs a program.
func (s *Shell) external(args []string) int {
	name := args[0]
	file, err := s.program(name)
	if err == linux.EACCES {
		s.Warn("%s: Permission denied", file)
		return 126
	}
	if err != nil {
		return s.notFound(args, err)
	}
	return s.program1(file, args)
}

// program1 runs a program by its file.
func (s *Shell) program1(file string, args []string) int {
	name := args[0]
	s.flushOut()
	s.t.Nest = s.depth
	cmd := kernel.Command{Path: file, Args: args, Env: s.environ()}
	if s.last1(args) {
		code, err := s.t.Exec(cmd)
		if err != nil {
			return s.cannotRun(file, name, err)
		}
		s.t.Exit(code)
	}
	st, err := s.t.Call(cmd)
	if err != nil {
		return s.cannotRun(file, name, err)
	}
	if st.Signal != 0 {
		s.tellSignal(st.Signal, s.t.PID, s.cmdText)
	}
	return st.Shell()
}

// atTail says that a list is the last that the shell runs: if it is a program,
// that may take the shell's place.
func (s *Shell) atTail(l *parse.List) {
	if len(l.Items) == 1 {
		s.tail, _ = l.Items[0].(*parse.Simple)
	}
}

// last1 reports whether the program that starts now may take the shell's place.
func (s *Shell) last1(args []string) bool {
	if s.tail == nil || s.tailArgs == nil || &s.tailArgs[0] != &args[0] {
		return false
	}
	t := &s.traps
	if t.exit != nil || t.err != nil || t.debug != nil || s.opt[oErrexit] && s.calls > 0 {
		return false
	}
	for _, text := range t.signals {
		if text != "" {
			return false
		}
	}
	return true
}

// program finds the file of a program; EACCES is that of a file that is there
// and cannot be executed.
func (s *Shell) program(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if h, ok := s.hash[name]; ok {
		if !s.opt[oCheckhash] || s.t.View.Access(h.file, 1) == nil {
			file := h.file
			if !s.hashShared || s.level == 0 {
				s.ownHash()
				s.hash[name].hits++
			}
			return file, nil
		}
		s.ownHash()
		delete(s.hash, name)
	}
	path, _ := s.vars.Get("PATH")
	if path == "" {
		return name, nil // is looked for where the shell is
	}
	file, err := s.t.Lookup(name, path)
	if err == linux.EACCES {
		// To execvp, a directory is a program that may not be run.
		if file = s.unrunnable(name, path); file == "" {
			err = linux.ENOENT
		}
	}
	if err != nil {
		return file, err
	}
	if s.opt[oHashall] && !s.vars.Temporary("PATH") {
		s.remember(name, file)
	}
	return file, nil
}

// notFound tells that there is no such command.
func (s *Shell) notFound(args []string, err error) int {
	name := args[0]
	if f, ok := s.funcs["command_not_found_handle"]; ok && err == linux.ENOENT {
		return s.inSubshell(func(c *Shell) int {
			return c.call(f, append([]string{f.name}, args...))
		})
	}
	if err == linux.EACCES {
		s.Warn("%s: Permission denied", name)
		return 126
	}
	if err == linux.ENOENT || err == linux.ENOTDIR {
		if name == "" {
			s.Warn(": command not found")
		} else {
			s.Warn("%s: command not found", name)
		}
		return 127
	}
	s.Warn("%s: %s", name, message(err))
	return 126
}

// cannotRun tells why a file is no program.
func (s *Shell) cannotRun(file, name string, err error) int {
	var in *kernel.Interpreter
	switch {
	case errors.As(err, &in):
		s.Warn("%s: cannot execute: required file not found", file)
		if in.Err == linux.ENOENT {
			return 127
		}
		return 126
	case err == linux.EAGAIN:
		s.Warn("fork: retry: Resource temporarily unavailable")
		return 254
	case err == linux.ENOENT || err == linux.ENOTDIR && !strings.Contains(name, "/"):
		s.Warn("%s: No such file or directory", name)
		return 127
	case err == linux.EACCES:
		if i, e := s.t.View.Stat(file); e == nil && i.IsDir() {
			s.Warn("%s: Is a directory", name)
			return 126
		}
	case errors.Is(err, linux.ENOEXEC):
		s.Warn("%s: cannot execute binary file: Exec format error", file)
		return 126
	case err == linux.ENOTDIR:
		s.Warn("%s: Not a directory", name)
		return 126
	}
	s.Warn("%s: %s", name, message(err))
	return 126
}
