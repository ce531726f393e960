package shell

import (
	"sort"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// traps are what a shell does at signals and other events. A handler that is
// empty ignores.
type traps struct {
	exit, err, debug, ret *string
	signals               map[linux.Signal]string // never changed in place
	shown                 *traps                  // what trap -p shows in a subshell that has set none
	ignored               map[linux.Signal]bool   // when the shell started; never changed
	running               int                     // > 0 within DEBUG, ERR or RETURN
	later                 []linux.Signal
	debugged              bool // the next command's DEBUG has been run
}

// inherit gives the traps of a subshell: signals that are caught are not, but
// what is ignored is.
func (t *traps) inherit(s *Shell, task *kernel.Task) traps {
	var c traps
	c.ignored = t.ignored
	if s.opt[oErrtrace] {
		c.err = t.err
	}
	if s.opt[oFunctrace] {
		c.debug, c.ret = t.debug, t.ret
	}
	c.running = t.running
	for sig, text := range t.signals {
		if text != "" {
			task.On(sig, kernel.Default)
			continue
		}
		if c.signals == nil {
			c.signals = map[linux.Signal]string{}
		}
		c.signals[sig] = text
	}
	if t.shown != nil {
		c.shown = t.shown
	} else if t.exit != nil || t.err != nil || t.debug != nil || t.ret != nil || len(t.signals) > 0 {
		old := *t
		c.shown = &old
	}
	return c
}

// hide takes away, for a function, what it does not inherit; show undoes it.
func (t *traps) hide(s *Shell, traced bool) (debug, err, ret *string) {
	if t.debug == nil && t.err == nil && t.ret == nil {
		return nil, nil, nil
	}
	debug, err, ret = t.debug, t.err, t.ret
	if !s.opt[oFunctrace] && !traced {
		t.debug, t.ret = nil, nil
	}
	if !s.opt[oErrtrace] {
		t.err = nil
	}
	return debug, err, ret
}

func (t *traps) show(debug, err, ret *string) {
	if t.debug == nil {
		t.debug = debug
	}
	if t.err == nil {
		t.err = err
	}
	if t.ret == nil {
		t.ret = ret
	}
}

// handler runs the text of a trap; $? and the line are what they were.
func (s *Shell) handler(text string, reset bool) {
	status, line, last, pipe, lastArg := s.status, s.line, s.last, s.pipe, s.lastArg
	begin := line
	if reset {
		begin = 1
	}
	s.trace++
	s.deepen()
	s.flushOut()
	entry, calls := s.entry, s.trapCalls
	s.entry, s.trapCalls = status, s.calls
	s.inTrap++
	s.interpret(parse.New([]byte(text), s.reading(begin)), false)
	s.inTrap--
	s.sources--
	s.entry, s.trapCalls = entry, calls
	s.trace--
	if s.flow == flowNone {
		s.status, s.last, s.pipe = status, last, pipe
	}
	s.line, s.lastArg = line, lastArg
}

// errTrap runs ERR.
func (s *Shell) errTrap(st int) {
	if s.traps.err == nil || *s.traps.err == "" || s.traps.running > 0 {
		return
	}
	s.status = st
	s.traps.running++
	s.handler(*s.traps.err, false)
	s.traps.running--
}

// debugTrap runs DEBUG before a command, which is to be skipped if it is true.
func (s *Shell) debugTrap(text string) bool {
	if s.traps.debug == nil || *s.traps.debug == "" || s.traps.running > 0 {
		return false
	}
	if s.traps.debugged {
		s.traps.debugged = false
		return false
	}
	s.cmdText = text
	status := s.status
	begin, line := s.line, s.line
	s.traps.running++
	s.flushOut()
	s.trace++
	s.interpret(parse.New([]byte(*s.traps.debug), s.reading(begin)), false)
	s.trace--
	s.traps.running--
	s.line = line
	result := s.status
	if s.flow != flowNone {
		return true
	}
	s.status = status
	return s.opt[oExtdebug] && result != 0
}

func (s *Shell) returnTrap() {
	if s.traps.ret == nil || *s.traps.ret == "" || s.traps.running > 0 {
		return
	}
	s.traps.running++
	s.handler(*s.traps.ret, false)
	s.traps.running--
}

// exitTrap runs EXIT, once.
func (s *Shell) exitTrap() {
	text := s.traps.exit
	s.traps.exit = nil
	if text == nil || *text == "" {
		return
	}
	st := s.status
	s.flow, s.exiting = flowNone, true
	s.loops, s.calls, s.ignore = 0, 0, 0
	s.inTrap++
	s.entry, s.trapCalls = st, 0
	s.interpret(parse.New([]byte(*text), s.reading(1)), false)
	s.inTrap--
	s.exiting = false
	if s.flow != flowExit {
		s.status = st
	}
	s.flow = flowExit
}

// caught runs the trap of a signal that has arrived.
func (s *Shell) caught(sig linux.Signal) {
	if s.handling {
		s.traps.later = append(s.traps.later, sig)
		return
	}
	s.handling = true
	defer func() { s.handling = false }()
	for sig != 0 {
		text, ok := s.traps.signals[sig]
		switch {
		case !ok && s.keyboard(sig):
		case !ok && s.fatal(sig):
			s.status = 128 + int(sig)
			s.exitTrap()
			s.flushOut()
			s.t.On(sig, kernel.Default)
			s.t.Die(sig)
		case ok && text != "":
			s.flushOut()
			s.handler(text, true)
		}
		if s.flow != flowNone {
			return
		}
		if len(s.traps.later) > 0 {
			sig = s.traps.later[0]
			s.traps.later = s.traps.later[1:]
			continue
		}
		sig = s.t.Caught()
	}
}

// caughtLater keeps a signal until the command that runs has ended.
func (s *Shell) caughtLater(sig linux.Signal) {
	s.traps.later = append(s.traps.later, sig)
	s.t.Signal(sig)
	_ = s.t.Caught()
}

// fatal reports whether a signal is caught only so that EXIT runs before it
// kills.
func (s *Shell) fatal(sig linux.Signal) bool {
	switch sig {
	case linux.SIGHUP, linux.SIGINT, linux.SIGTERM:
		return true
	}
	return false
}

// childTrap runs CHLD for children that have ended.
func (s *Shell) childTrap(int) {
	if text, ok := s.traps.signals[linux.SIGCHLD]; ok && text != "" {
		if sig := s.t.Caught(); sig != 0 {
			s.caught(sig)
		}
	}
}

// setTrap changes a trap; nil is the default.
func (s *Shell) setTrap(name string, text *string) bool {
	if s.traps.shown != nil {
		s.traps.shown = nil
	}
	switch name {
	case "EXIT":
		s.traps.exit = text
		s.watchFatal()
		return true
	case "ERR":
		s.traps.err = text
		return true
	case "DEBUG":
		s.traps.debug = text
		return true
	case "RETURN":
		s.traps.ret = text
		return true
	}
	sig, ok := findSignal(name)
	if !ok || sig == 0 {
		return false
	}
	if s.traps.ignored[sig] && !s.interactive {
		return true
	}
	if text != nil {
		s.t.Grow(len(*text))
	}
	s.t.Shrink(len(s.traps.signals[sig]))
	m := make(map[linux.Signal]string, len(s.traps.signals)+1)
	for k, v := range s.traps.signals {
		m[k] = v
	}
	switch {
	case text == nil:
		delete(m, sig)
		s.t.On(sig, kernel.Default)
	case *text == "":
		m[sig] = ""
		s.t.On(sig, kernel.Ignore)
	default:
		m[sig] = *text
		s.t.On(sig, kernel.Catch)
	}
	s.traps.signals = m
	s.watchFatal()
	return true
}

// watchFatal catches signals that would kill without EXIT having run.
func (s *Shell) watchFatal() {
	if s.interactive {
		return // it catches them anyway
	}
	for _, sig := range []linux.Signal{linux.SIGHUP, linux.SIGINT, linux.SIGTERM} {
		if _, ok := s.traps.signals[sig]; ok {
			continue
		}
		switch a := s.t.Action(sig); {
		case s.traps.exit != nil && *s.traps.exit != "" && a == kernel.Default:
			s.t.On(sig, kernel.Catch)
		case (s.traps.exit == nil || *s.traps.exit == "") && a == kernel.Catch:
			s.t.On(sig, kernel.Default)
		}
	}
}

// trapName gives the name that trap -p prints, for what a script may write.
func trapName(spec string) (string, bool) {
	up := strings.ToUpper(spec)
	switch up {
	case "EXIT", "ERR", "DEBUG", "RETURN":
		return up, true
	case "0":
		return "EXIT", true
	}
	sig, ok := findSignal(spec)
	if !ok {
		return "", false
	}
	if sig == 0 {
		return "EXIT", true
	}
	return "SIG" + signalName(sig), true
}

func biTrap(s *Shell, args []string) int {
	list, show := false, false
	o := getopt{s: s, args: args, spec: "lp"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'l':
			list = true
		case 'p':
			show = true
		default:
			return o.usage("trap: usage: trap [-lp] [[arg] signal_spec ...]")
		}
	}
	rest := o.rest()
	if list {
		return s.killList(nil)
	}
	if show || len(rest) == 0 {
		return s.showTraps(rest)
	}
	text := &rest[0]
	names := rest[1:]
	value := *text
	text = &value
	if len(names) == 0 || unsigned(value) && value != "" {
		// The first is a signal too.
		if len(names) == 0 && !unsigned(value) {
			if _, ok := trapName(value); !ok {
				s.line0("trap: usage: trap [-lp] [[arg] signal_spec ...]")
				return 2
			}
		}
		names, text = rest, nil
	} else if value == "-" {
		text = nil
	}
	st := 0
	for _, name := range names {
		n, ok := trapName(name)
		if !ok || !s.setTrap(strings.TrimPrefix(n, "SIG"), text) {
			s.Warn("trap: %s: invalid signal specification", name)
			st = 1
		}
	}
	return st
}

func unsigned(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// showTraps prints traps as commands that set them.
func (s *Shell) showTraps(names []string) int {
	t := &s.traps
	if t.shown != nil {
		t = t.shown
	}
	show := func(name, text string) {
		s.print("trap -- " + quote.Single(text) + " " + name + "\n")
	}
	event := func(name string) *string {
		switch name {
		case "EXIT":
			return t.exit
		case "ERR":
			return t.err
		case "DEBUG":
			return t.debug
		case "RETURN":
			return t.ret
		}
		return nil
	}
	if len(names) > 0 {
		st := 0
		for _, spec := range names {
			name, ok := trapName(spec)
			if !ok {
				s.Warn("trap: %s: invalid signal specification", spec)
				st = 1
				continue
			}
			if p := event(name); p != nil {
				show(name, *p)
			} else if sig, ok := findSignal(name); ok {
				if text, ok := t.signals[sig]; ok {
					show(name, text)
				}
			}
		}
		return st
	}
	if t.exit != nil {
		show("EXIT", *t.exit)
	}
	nums := make([]int, 0, len(t.signals))
	for sig := range t.signals {
		nums = append(nums, int(sig))
	}
	sort.Ints(nums)
	for _, n := range nums {
		show("SIG"+signalName(linux.Signal(n)), t.signals[linux.Signal(n)])
	}
	for _, name := range []string{"DEBUG", "ERR", "RETURN"} {
		if p := event(name); p != nil {
			show(name, *p)
		}
	}
	return 0
}
