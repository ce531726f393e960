package shell

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// A builtin is a command that is part of the shell.
type builtin struct {
	name    string
	special bool // in the sense of POSIX
	run     func(s *Shell, args []string) int
	declare func(s *Shell, c *parse.Simple, args []string) int // of those that take assignments
}

// builtinNames are the names of all builtins.
const builtinNames = ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs " +
	"disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile " +
	"popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type " +
	"typeset ulimit umask unalias unset wait"

// specialBuiltin tells those that POSIX calls special.
func specialBuiltin(name string) bool {
	switch name {
	case ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift",
		"source", "times", "trap", "unset":
		return true
	}
	return false
}

// findBuiltin finds a builtin; one without a name is none.
func findBuiltin(name string) builtin {
	b := builtin{name: name}
	switch name {
	case ":", "true":
		b.run = biTrue
	case "false":
		b.run = biFalse
	case ".", "source":
		b.run = biSource
	case "[":
		b.run = biTest
	case "alias":
		b.run = biAlias
	case "bg":
		b.run = biBg
	case "bind":
		b.run = biBind
	case "break":
		b.run = biBreak
	case "builtin":
		b.declare = biBuiltin
	case "caller":
		b.run = biCaller
	case "cd":
		b.run = biCd
	case "command":
		b.declare = biCommand
	case "compgen":
		b.run = biCompgen
	case "complete":
		b.run = biComplete
	case "compopt":
		b.run = biCompopt
	case "continue":
		b.run = biContinue
	case "declare", "typeset", "local", "export", "readonly":
		b.declare = biDeclare
	case "dirs":
		b.run = biDirs
	case "disown":
		b.run = biDisown
	case "echo":
		b.run = biEcho
	case "enable":
		b.run = biEnable
	case "eval":
		b.run = biEval
	case "exec":
		b.run = biExec
	case "exit":
		b.run = biExit
	case "fc":
		b.run = biFc
	case "fg":
		b.run = biFg
	case "getopts":
		b.run = biGetopts
	case "hash":
		b.run = biHash
	case "help":
		b.run = biHelp
	case "history":
		b.run = biHistory
	case "jobs":
		b.run = biJobs
	case "kill":
		b.run = biKill
	case "let":
		b.run = biLet
	case "logout":
		b.run = biLogout
	case "mapfile", "readarray":
		b.run = biMapfile
	case "popd":
		b.run = biPopd
	case "printf":
		b.run = biPrintf
	case "pushd":
		b.run = biPushd
	case "pwd":
		b.run = biPwd
	case "read":
		b.run = biRead
	case "return":
		b.run = biReturn
	case "set":
		b.run = biSet
	case "shift":
		b.run = biShift
	case "shopt":
		b.run = biShopt
	case "suspend":
		b.run = biSuspend
	case "test":
		b.run = biTest
	case "times":
		b.run = biTimes
	case "trap":
		b.run = biTrap
	case "type":
		b.run = biType
	case "ulimit":
		b.run = biUlimit
	case "umask":
		b.run = biUmask
	case "unalias":
		b.run = biUnalias
	case "unset":
		b.run = biUnset
	case "wait":
		b.run = biWait
	default:
		return builtin{}
	}
	b.special = specialBuiltin(name)
	return b
}

// A getopt reads the options of a builtin: single letters, those before a
// colon with an argument.
type getopt struct {
	s    *Shell
	args []string // the first is the builtin's name
	spec string
	plus bool // options may begin with a plus sign too

	i, at int
	arg   string
	sign  byte
	bad   bool
}

// next gives the next option, 0 at the end, '?' where one is wrong (it has
// said so).
func (o *getopt) next() byte {
	if o.i == 0 {
		o.i = 1
	}
	if o.at == 0 {
		if o.i >= len(o.args) {
			return 0
		}
		a := o.args[o.i]
		if len(a) < 2 || a[0] != '-' && !(o.plus && a[0] == '+') {
			return 0
		}
		if a == "--" {
			o.i++
			return 0
		}
		o.sign = a[0]
		o.at = 1
	}
	a := o.args[o.i]
	c := a[o.at]
	o.at++
	k := strings.IndexByte(o.spec, c)
	if k < 0 || c == ':' {
		o.s.Warn("%s: %c%c: invalid option", o.args[0], o.sign, c)
		o.bad = true
		return '?'
	}
	if k+1 < len(o.spec) && o.spec[k+1] == ':' {
		switch {
		case o.at < len(a):
			o.arg = a[o.at:]
		case o.i+1 < len(o.args):
			o.i++
			o.arg = o.args[o.i]
		default:
			o.s.Warn("%s: -%c: option requires an argument", o.args[0], c)
			o.bad = true
			return '?'
		}
		o.i++
		o.at = 0
		return c
	}
	if o.at >= len(a) {
		o.i++
		o.at = 0
	}
	return c
}

// rest gives the operands.
func (o *getopt) rest() []string {
	if o.i == 0 {
		o.i = 1
	}
	return o.args[min(o.i, len(o.args)):]
}

// usage ends a builtin that was called wrongly.
func (o *getopt) usage(text string) int {
	o.s.line0(text)
	return 2
}

// line0 writes a line to standard error as it stands.
func (s *Shell) line0(text string) {
	s.flushOut()
	s.errout(text + "\n")
}

// noOptions takes the "--" from a builtin that has no options; false is that
// there was one.
func (s *Shell) noOptions(args []string, usage string) ([]string, bool) {
	if len(args) > 1 && len(args[1]) > 1 && args[1][0] == '-' && args[1][1] >= '0' && args[1][1] <= '9' {
		return args[1:], true // a number
	}
	o := getopt{s: s, args: args}
	if o.next() != 0 {
		o.usage(usage)
		return nil, false
	}
	return o.rest(), true
}

func biTrue(*Shell, []string) int { return 0 }

func biFalse(*Shell, []string) int { return 1 }

// number reads the number of break, shift, return and exit.
func number(text string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return int(n), err == nil
}

func biBreak(s *Shell, args []string) int { return s.leave(args, flowBreak) }

func biContinue(s *Shell, args []string) int { return s.leave(args, flowContinue) }

// leave is break and continue.
func (s *Shell) leave(args []string, f flow) int {
	rest, ok := s.noOptions(args, args[0]+": usage: "+args[0]+" [n]")
	if !ok {
		return 2
	}
	if s.loops == 0 {
		s.Warn("%s: only meaningful in a `for', `while', or `until' loop", args[0])
		return 0
	}
	n := 1
	if len(rest) > 0 {
		if n, ok = number(rest[0]); !ok {
			s.Warn("%s: %s: numeric argument required", args[0], rest[0])
			s.exit(128)
			return 128
		}
		if len(rest) > 1 {
			return s.tooMany(args[0])
		}
		if n < 1 {
			s.Warn("%s: %s: loop count out of range", args[0], rest[0])
			s.flow, s.flowN = flowBreak, s.loops
			return 1
		}
	}
	s.flow, s.flowN = f, min(n, s.loops)
	return 0
}

// tooMany gives up the line of commands.
func (s *Shell) tooMany(name string) int {
	s.Warn("%s: too many arguments", name)
	s.status = 1
	s.flow = flowDiscard
	return 1
}

func biReturn(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, "return: usage: return [n]")
	if !ok {
		return 2
	}
	st := s.lastStatus()
	if len(rest) > 0 {
		n, ok := number(rest[0])
		if !ok {
			s.Warn("return: %s: numeric argument required", rest[0])
			n = 2
		} else if len(rest) > 1 {
			return s.tooMany("return")
		}
		st = n & 0xff
	}
	if s.calls == 0 && s.sourcing() == 0 {
		s.Warn("return: can only `return' from a function or sourced script")
		if s.posixExits() {
			s.exit(2)
		}
		return 2
	}
	s.before = s.status
	s.status = st
	s.flow = flowReturn
	return st
}

// lastStatus is what exit and return give without a number: $?, or in a trap
// what that was when it began.
func (s *Shell) lastStatus() int {
	if s.inTrap > 0 && s.calls == s.trapCalls {
		return s.entry
	}
	return s.status
}

// sourcing tells how many sourced files run.
func (s *Shell) sourcing() int {
	n := 0
	for i := range s.frames {
		if !s.frames[i].call {
			n++
		}
	}
	return n
}

func biExit(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, "exit: usage: exit [n]")
	if !ok {
		return 2
	}
	st := s.lastStatus()
	if len(rest) > 0 {
		n, ok := number(rest[0])
		if !ok {
			s.Warn("exit: %s: numeric argument required", rest[0])
			n = 2
		} else if len(rest) > 1 {
			return s.tooMany("exit")
		}
		st = n & 0xff
	}
	s.farewell()
	s.exit(st)
	return s.status
}

func biLogout(s *Shell, args []string) int {
	if !s.login {
		s.Warn("logout: not login shell: use `exit'")
		return 1
	}
	return biExit(s, args)
}

func biShift(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, "shift: usage: shift [n]")
	if !ok {
		return 2
	}
	n := 1
	if len(rest) > 0 {
		if n, ok = number(rest[0]); !ok {
			s.Warn("shift: %s: numeric argument required", rest[0])
			s.status = 1
			return 1
		}
		if len(rest) > 1 {
			return s.tooMany("shift")
		}
	}
	if n < 0 {
		s.Warn("shift: %s: shift count out of range", rest[0])
		return 1
	}
	if n > len(s.params) {
		if s.opt[oShiftVerbose] {
			s.Warn("shift: %d: shift count out of range", n)
		}
		return 1
	}
	s.params = s.params[n:]
	return 0
}

func biEval(s *Shell, args []string) int {
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	} else if len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		s.Warn("eval: %s: invalid option", rest[0][:2])
		s.line0("eval: usage: eval [arg ...]")
		return 2
	}
	text := strings.Join(rest, " ")
	if strings.Trim(text, " \t\n") == "" {
		return 0
	}
	s.trace++
	defer func() { s.trace-- }()
	return s.runText(text, s.line)
}

// runText runs a text as eval does; its first line has a number.
func (s *Shell) runText(text string, line int) int {
	s.deepen()
	defer func() { s.sources-- }()
	s.t.Bound("source", int64(len(text)), s.t.K.Limits.Source)
	s.flushOut()
	at := s.line
	if !s.interpret(parse.New([]byte(text), s.reading(line)), false) {
		s.status = 0
	}
	s.line = at
	return s.status
}

func (s *Shell) deepen() {
	s.sources++
	s.t.Bound("sources", int64(s.sources), s.t.K.Limits.Sources)
}

func biCaller(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, "caller: usage: caller [expr]")
	if !ok {
		return 2
	}
	n := len(s.frames)
	if n == 0 {
		return 1
	}
	up := 0
	if len(rest) > 0 {
		var good bool
		if up, good = number(rest[0]); !good {
			s.Warn("caller: %s: invalid number", rest[0])
			s.line0("caller: usage: caller [expr]")
			return 2
		}
		if up < 0 || up >= n {
			return 1
		}
	}
	line := s.frames[n-1-up].line
	source := s.mainSource()
	name := "main"
	if n-2-up >= 0 {
		source, name = s.frames[n-2-up].source, s.frames[n-2-up].name
	}
	if source == "" {
		source = "NULL"
	}
	if len(rest) == 0 {
		s.printf("%d %s\n", line, source)
		return 0
	}
	if n-2-up < 0 && source == "NULL" {
		return 1
	}
	s.printf("%d %s %s\n", line, name, source)
	return 0
}

func (s *Shell) mainSource() string { return s.bases.source }

func biTimes(s *Shell, args []string) int {
	if _, ok := s.noOptions(args, "times: usage: times"); !ok {
		return 2
	}
	s.print("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
	return 0
}

func biEcho(s *Shell, args []string) int {
	newline, escapes := true, s.opt[oXpgEcho]
	i := 1
	if !s.opt[oPosix] || !s.opt[oXpgEcho] {
	options:
		for ; i < len(args); i++ {
			a := args[i]
			if len(a) < 2 || a[0] != '-' {
				break
			}
			for j := 1; j < len(a); j++ {
				switch a[j] {
				case 'n', 'e', 'E':
				default:
					break options
				}
			}
			for j := 1; j < len(a); j++ {
				switch a[j] {
				case 'n':
					newline = false
				case 'e':
					escapes = true
				case 'E':
					escapes = false
				}
			}
		}
	}
	for k, a := range args[i:] {
		if k > 0 {
			s.out = append(s.out, ' ')
		}
		if !escapes || strings.IndexByte(a, '\\') < 0 {
			s.out = append(s.out, a...)
			continue
		}
		var stop bool
		if s.out, stop = echoEscapes(s.out, a); stop {
			return 0
		}
	}
	if newline {
		s.out = append(s.out, '\n')
	}
	return 0
}
