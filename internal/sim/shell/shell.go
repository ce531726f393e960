package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// A flow is a reason why commands are not run on.
type flow uint8

const (
	flowNone     flow = iota
	flowBreak         // out of s.flowN loops
	flowContinue      // likewise, but the last goes on
	flowReturn        // out of a function or sourced file
	flowExit          // out of the shell
	flowDiscard       // out of the line of commands that is run
)

// A Shell is the state of one shell.
type Shell struct {
	t     *kernel.Task
	vars  *variable.Store
	x     *expand.Expander // nil until it is needed
	flags expand.Flags
	opt   options

	name      string   // $0
	params    []string // $1 and on; never changed in place
	paramsSet bool     // set has changed them in the file that is sourced
	status    int      // $?
	line      int      // of the command that runs
	pid       int      // $$

	flow  flow
	flowN int

	ignore                   int  // > 0 where a failure is no reason to end (set -e, ERR)
	loops                    int  // loops that break can leave
	depth                    int  // of commands within commands, on this goroutine
	calls                    int  // of functions
	sources                  int  // of sourced files and evals
	substs                   int  // of command substitutions
	level                    int  // $BASH_SUBSHELL
	inverted, execFailedOnce bool // the command that runs next follows "!"; exec has failed
	trace                    int  // how often PS4 repeats its first character
	tracing                  bool // a trace is being written
	subst                    int  // status of the last command substitution, -1 if there was none

	interactive, command, stdin, login bool
	exiting                            bool // the EXIT trap runs
	lazyLevel                          bool // the level counts when the command has been expanded
	plain                              int  // > 0 below "command": builtins are not special
	targets                            map[*parse.Redirect]expanded
	early                              map[*parse.Assign]string // values that were expanded before
	inTrap                             int                      // handlers that run
	handling                           bool                     // a handler of a signal runs: other signals wait
	before                             int                      // $? before return
	stdinGiven                         bool                     // background commands keep the standard input
	entry, trapCalls                   int                      // $? when the innermost began, and the functions that ran
	tailArgs                           []string
	tail                               *parse.Simple // the shell's last command: its program may take the shell's place

	funcs       map[string]*function
	exported    int  // how often a function was exported, about
	funcsShared bool // others have the map too: copy before changing it
	aliases     map[string]string
	aliasShared bool
	hash        map[string]*hashed     // where programs are
	hashShared  bool                   // others have the map too
	disabled    map[string]bool        // builtins; never changed in place
	completions map[string]*completion // what complete was told; never changed in place
	completing  *completion            // whose function runs

	frames []frame
	dirs   []string // of pushd, without the working directory
	cwd    string   // logical
	jobs   jobs
	traps  traps
	procs  []int // descriptors of process substitutions

	pipe        []int // PIPESTATUS, or nil where it is one
	last        int   // that one
	lastArg     string
	lastPID     int
	history     []string
	random      uint32
	ulimits     map[byte]ulimit // that were set; never changed in place
	cmdText     string          // $BASH_COMMAND
	lastRandom  int
	seeded      bool
	secondsBase int64
	optReset    bool

	out   []byte   // what a builtin has printed
	stack []string // arguments of commands that run
	bases *state   // what all shells of one program share
}

// state is shared by a shell and its subshells, and does not change.
type state struct {
	source string // BASH_SOURCE of the main script
	start  int64  // unix nanoseconds
}

// A function is one that was defined.
type function struct {
	name     string
	body     parse.Command
	source   string // file
	line     int
	export   bool
	trace    bool
	readonly bool
}

// A frame is a function or sourced file that runs.
type frame struct {
	name   string // FUNCNAME
	source string
	line   int // of the call
	call   bool
	params []string // of the function, for BASH_ARGV
}

// Options say how a shell starts.
type Options struct {
	Name   string   // $0
	Params []string // $1 and on
	Posix  bool     // sh
}

// New makes a shell on a task, with the task's environment.
func New(t *kernel.Task, o Options) *Shell {
	s := &Shell{t: t, name: o.Name, params: o.Params, pid: t.PID, subst: -1, depth: t.Nest}
	s.bases = &state{start: t.K.Now().UnixNano()}
	s.opt.setDefaults()
	s.vars = variable.New(t, s, t.K.Limits)
	s.vars.Watched = map[string]bool{"POSIXLY_CORRECT": true, "PATH": true, "OPTIND": true, "GLOBIGNORE": true}
	s.vars.Changed = s.watch
	s.environment()
	for i := range optionCount {
		s.flag(i)
	}
	if o.Posix {
		s.setOption(oPosix, true)
	}
	return s
}

// Use returns the shell another task, for the next run.
func (s *Shell) Use(t *kernel.Task) {
	s.t, s.x = t, nil
	s.vars.Meter = t
	s.depth = t.Nest
}

// fork makes the state of a subshell on a task that was forked. With beside,
// this shell goes on while it runs.
func (s *Shell) fork(t *kernel.Task, beside bool) *Shell {
	c := *s
	c.t, c.x, c.out, c.stack, c.procs = t, nil, nil, nil, nil
	if beside {
		c.vars = s.vars.Fork(t, &c)
		c.depth = 0
	} else {
		c.vars = s.vars.Borrow(t, &c)
	}
	c.vars.Changed = c.watch
	s.funcsShared, c.funcsShared = true, true
	s.aliasShared, c.aliasShared = true, true
	c.frames = s.frames[:len(s.frames):len(s.frames)]
	c.dirs = s.dirs[:len(s.dirs):len(s.dirs)]
	c.history = s.history[:len(s.history):len(s.history)]
	s.hashShared, c.hashShared = true, true
	c.jobs = s.jobs.inherit()
	c.traps = s.traps.inherit(s, t)
	c.level++
	c.interactive = false
	c.opt[oMonitor] = false
	c.exiting, c.handling = false, false
	c.loops, c.inverted, c.tail, c.lazyLevel, c.targets = 0, false, nil, false, nil
	return &c
}

// Task returns the task that the shell runs on: where to count, read and write.
func (s *Shell) Task() *kernel.Task { return s.t }

// Variables returns the shell's variables.
func (s *Shell) Variables() *variable.Store { return s.vars }

// Flags returns the options that change expansions.
func (s *Shell) Flags() *expand.Flags { return &s.flags }

// Params returns $1 and on. They must not be changed.
func (s *Shell) Params() []string { return s.params }

// Name returns $0.
func (s *Shell) Name() string { return s.name }

// Line returns the number of the line of the command that runs.
func (s *Shell) Line() int { return s.line }

// Status returns $?.
func (s *Shell) Status() int { return s.status }

// Special returns the values of $? $$ $! $- $# $_ and $0 by that character; ok
// is false for $! before the first background command.
func (s *Shell) Special(name byte) (value string, ok bool) {
	switch name {
	case '?':
		return strconv.Itoa(s.status), true
	case '$':
		return strconv.Itoa(s.pid), true
	case '!':
		return strconv.Itoa(s.lastPID), s.lastPID != 0
	case '-':
		return s.dash(), true
	case '#':
		return strconv.Itoa(len(s.params)), true
	case '_':
		return s.lastArg, true
	case '0':
		return s.name, true
	}
	return "", false
}

// Expander returns what expands the shell's words.
func (s *Shell) Expander() *expand.Expander {
	if s.x == nil {
		s.x = expand.New(s)
	}
	return s.x
}

// Warn writes "NAME: line N: message" to standard error.
func (s *Shell) Warn(format string, args ...any) {
	_ = s.flush() // the builtin that printed it is told later
	s.errout(s.prefix() + fmt.Sprintf(format, args...) + "\n")
}

// prefix is what messages begin with.
func (s *Shell) prefix() string {
	if s.interactive {
		return s.messageName() + ": "
	}
	name := s.name
	if n := len(s.frames); n > 0 && s.frames[n-1].source != "" {
		name = s.frames[n-1].source
	}
	return name + ": line " + strconv.Itoa(s.line) + ": "
}

// errout writes to standard error; where that fails nobody can be told.
func (s *Shell) errout(text string) { _, _ = s.t.Write(2, []byte(text)) }

// print adds to what the running builtin writes to standard output.
func (s *Shell) print(text string) {
	s.out = append(s.out, text...)
	if len(s.out) > 64<<10 {
		_ = s.flush() // as above
	}
}

func (s *Shell) printf(format string, args ...any) {
	s.out = fmt.Appendf(s.out, format, args...)
}

// flush writes out what was printed.
func (s *Shell) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := s.t.Write(1, s.out)
	s.out = s.out[:0]
	if cap(s.out) > 128<<10 {
		s.out = nil
	}
	return err
}

// Run reads commands and runs them until the end, and gives the status. It
// may be called again and again. The EXIT trap is not run: see [Shell.End].
func (s *Shell) Run(line func() ([]byte, error)) int {
	s.interpret(parse.NewReader(line, s.reading(1)), true)
	return s.status
}

// RunString is Run of a text.
func (s *Shell) RunString(script string) int {
	s.interpret(parse.New([]byte(script), s.reading(1)), true)
	return s.status
}

// posixExits reports whether an error of a special builtin ends the shell.
func (s *Shell) posixExits() bool { return s.opt[oPosix] && !s.interactive && s.plain == 0 }

// environ gives the environment of programs: variables and functions that are
// exported.
func (s *Shell) environ() []string {
	env := s.vars.Environ()
	if s.exported == 0 {
		return env
	}
	env = env[:len(env):len(env)]
	for _, n := range s.functionNames() {
		if f := s.funcs[n]; f.export {
			p := &printer{}
			p.function("", f.body)
			env = append(env, "BASH_FUNC_"+n+"%%=() "+strings.TrimPrefix(p.b.String(), " () \n"))
		}
	}
	return env
}

// Exited reports whether a command has ended the shell.
func (s *Shell) Exited() bool { return s.flow == flowExit }

// End runs the EXIT trap and gives the shell's status.
func (s *Shell) End() int {
	s.exitTrap()
	return s.status
}

// reading gives the options for reading a script.
func (s *Shell) reading(line int) parse.Options {
	return parse.Options{
		Alias: func(name string) (string, bool) {
			if !s.opt[oExpandAliases] {
				return "", false
			}
			v, ok := s.aliases[name]
			return v, ok
		},
		ExtGlob: func() bool { return s.opt[oExtglob] },
		Posix:   func() bool { return s.opt[oPosix] },
		Depth:   int(s.t.K.Limits.Nesting),
		Line:    line,
		Step:    s.t.Step,
		Grow:    s.t.Grow,
		Warn: func(line int, format string, args ...any) {
			s.line = line
			s.Warn("warning: "+format, args...)
		},
	}
}

// interpret runs what a parser reads. What one line does has its effect on
// how the next is read. At the outermost level, an error in a line ends the
// script, and a line that was given up is followed by the next.
func (s *Shell) interpret(p *parse.Parser, outermost bool) (ran bool) {
	for {
		l, err := p.Next()
		if err == io.EOF {
			return ran
		}
		if err != nil {
			s.unreadable(p, err, outermost)
			if outermost && p.Resume(err) {
				continue
			}
			return true
		}
		if l == nil || s.opt[oNoexec] && !s.interactive {
			continue
		}
		ran = true
		if outermost && s.command && p.Ended() {
			s.atTail(l)
		}
		s.list(l)
		if n, all := p.Size(); all && n > 0 {
			s.t.Shrink(n)
		}
		if s.flow == flowDiscard && s.level == 0 {
			s.flow = flowNone
			if s.status == 0 {
				s.status = 1
			}
		}
		if s.flow != flowNone {
			if outermost && s.flow != flowExit && s.flow != flowReturn {
				s.flow = flowNone
				continue
			}
			return ran
		}
		if s.opt[oOnecmd] && outermost {
			s.flow = flowExit
			return ran
		}
	}
}
