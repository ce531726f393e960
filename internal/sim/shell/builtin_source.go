package shell

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

func biSource(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, args[0]+": usage: "+args[0]+" filename [arguments]")
	if !ok {
		return 2
	}
	if len(rest) == 0 {
		s.Warn("%s: filename argument required", args[0])
		s.line0(args[0] + ": usage: " + args[0] + " filename [arguments]")
		if s.posixExits() {
			s.exit(2)
		}
		return 2
	}
	file := rest[0]
	found := strings.Contains(file, "/")
	if !found && s.opt[oSourcepath] {
		path, _ := s.vars.Get("PATH")
		for _, dir := range strings.Split(path, ":") {
			if dir == "" {
				dir = "."
			}
			if i, err := s.t.View.Stat(dir + "/" + file); err == nil && !i.IsDir() && s.t.View.Access(dir+"/"+file, 4) == nil {
				file = dir + "/" + file
				found = true
				break
			}
		}
	}
	if !found && s.opt[oPosix] {
		// The working directory is not looked in.
		s.Warn("%s: %s: file not found", args[0], rest[0])
		if s.posixExits() {
			s.exit(1)
		}
		return 1
	}
	text, err := s.readFile(file)
	if err != nil {
		if err == linux.EISDIR {
			s.Warn("%s: %s: is a directory", args[0], rest[0])
		} else {
			s.Warn("%s: %s", rest[0], message(err))
		}
		if s.posixExits() {
			s.exit(1)
		}
		return 1
	}
	return s.source1(rest[0], file, text, rest[1:])
}

// source1 runs a script in this shell.
func (s *Shell) source1(name, file string, text []byte, params []string) int {
	if bytesBinary(text) {
		s.Warn("%s: cannot execute binary file", name)
		return 126
	}
	s.deepen()
	s.trace++
	defer func() { s.trace--; s.sources-- }()
	old, line, loops := s.params, s.line, s.loops
	s.frames = append(s.frames, frame{name: "source", source: file, line: line, params: params})
	if len(params) > 0 {
		s.params = slices.Clone(params)
	}
	changed := s.paramsSet
	s.paramsSet = false
	s.status = 0
	s.flushOut()
	s.interpret(parse.New(text, s.reading(1)), false)
	if s.flow == flowReturn {
		s.flow = flowNone
	}
	if s.traps.ret != nil && s.flow == flowNone {
		s.returnTrap()
	}
	s.frames = s.frames[:len(s.frames)-1]
	if len(params) > 0 && !s.paramsSet {
		// Those that the script set stay.
		s.params = old
	}
	s.paramsSet = changed || s.paramsSet
	s.line, s.loops = line, loops
	return s.status
}

// bytesBinary reports whether a file is no script.
func bytesBinary(b []byte) bool {
	for _, c := range b[:min(len(b), 80)] {
		if c == '\n' {
			return false
		}
		if c == 0 {
			return true
		}
	}
	return false
}

// readFile reads a script.
func (s *Shell) readFile(file string) ([]byte, error) {
	d, err := s.t.Open(file, linux.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	d.Hold()
	defer d.Drop()
	if i, err := d.File.Info(); err == nil && i.IsDir() {
		return nil, linux.EISDIR
	}
	return s.readAll(d)
}

func biExec(s *Shell, args []string) int {
	var empty, login bool
	name := ""
	o := getopt{s: s, args: args, spec: "cla:"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'c':
			empty = true
		case 'l':
			login = true
		case 'a':
			name = o.arg
		default:
			return o.usage("exec: usage: exec [-cl] [-a name] [command [argument ...]] [redirection ...]")
		}
	}
	rest := slices.Clone(o.rest())
	if len(rest) == 0 {
		return 0
	}
	file, err := s.program(rest[0])
	if err == linux.EACCES {
		return s.execFailed(s.cannotExec(file, file, err))
	}
	if err != nil {
		return s.execFailed(s.execNotFound(rest[0], err))
	}
	env := s.environ()
	if empty {
		env = []string{}
	}
	path := rest[0]
	if name != "" {
		rest[0] = name
	}
	if login {
		rest[0] = "-" + rest[0]
	}
	s.flushOut()
	s.t.Nest = s.depth
	st, err := s.t.Exec(kernel.Command{Path: file, Args: rest, Env: env})
	if err != nil {
		return s.execFailed(s.cannotExec(file, path, err))
	}
	s.t.Exit(st)
	return st
}

func (s *Shell) execNotFound(name string, err error) int {
	if i, e := s.t.View.Stat(name); e == nil && i.IsDir() {
		s.Warn("exec: %s: cannot execute: Is a directory", name)
		return 126
	}
	if err == linux.ENOENT || err == linux.ENOTDIR {
		s.Warn("exec: %s: not found", name)
		return 127
	}
	s.Warn("exec: %s: %s", name, message(err))
	return 126
}

func (s *Shell) cannotExec(file, name string, err error) int {
	if i, e := s.t.View.Stat(file); e == nil && i.IsDir() {
		s.Warn("%s: Is a directory", name)
		s.Warn("exec: %s: cannot execute: Is a directory", name)
		return 126
	}
	s.Warn("%s: %s", name, message(err))
	s.Warn("exec: %s: cannot execute: %s", name, message(err))
	if err == linux.ENOENT {
		return 127
	}
	return 126
}

// execFailed ends a shell that could not become another program.
func (s *Shell) execFailed(st int) int {
	if s.interactive || s.opt[oExecfail] {
		s.execFailedOnce = true
		return st
	}
	s.exit(st)
	return st
}
