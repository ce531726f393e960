package shell

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// Program is bash, and sh by that name.
func Program(t *kernel.Task) int {
	args := t.Args
	name := "bash"
	if len(args) > 0 {
		name = args[0]
	}
	base := path.Base(name)
	s := New(t, Options{Name: name, Posix: base == "sh" || base == "-sh"})
	s.login = strings.HasPrefix(name, "-")
	for sig := linux.Signal(1); sig < 32; sig++ {
		if t.Action(sig) == kernel.Ignore {
			if s.traps.ignored == nil {
				s.traps.ignored = map[linux.Signal]bool{}
			}
			s.traps.ignored[sig] = true
			if s.traps.signals == nil {
				s.traps.signals = map[linux.Signal]string{}
			}
			s.traps.signals[sig] = ""
		}
	}
	st, ok := s.start(args)
	if !ok {
		return st
	}
	return s.End()
}

// invocation is what the arguments of bash say.
type invocation struct {
	command, stdin, norc bool
	rcfile               string // instead of ~/.bashrc
	script               string // what a script from elsewhere is called: see [ScriptName]
	rest                 []string
}

// ScriptName is an option that bash has not: its argument is what the script is
// called, of which the command string or the file is a copy. $0 and BASH_SOURCE
// are as if bash ran the file of that name.
const ScriptName = "--script-name"

// start reads the arguments and runs what they say; false is that there was
// nothing to run.
func (s *Shell) start(args []string) (int, bool) {
	in, st, ok := s.arguments0(args)
	if !ok {
		return st, false
	}
	rest := in.rest
	if s.interactive || s.asks(in) {
		s.becomeInteractive(in)
	}
	if s.login {
		s.profile()
	} else if file, ok := s.vars.Get("BASH_ENV"); ok && file != "" && !s.interactive && !s.opt[oPosix] {
		if text, err := s.Expander().Text(file); err == nil {
			s.startup(text)
		}
	}
	if s.flow == flowExit {
		return s.status, true
	}
	switch {
	case in.command:
		if len(rest) == 0 {
			s.errout(s.name + ": -c: option requires an argument\n")
			return 2, false
		}
		s.command = true
		text := rest[0]
		if len(rest) > 1 {
			s.name = rest[1]
			s.params = rest[2:]
		}
		s.bases.source = in.script
		s.runMain(parse.New([]byte(text), s.reading(1)))
	case len(rest) > 0 && !in.stdin:
		return s.script(rest, in.script)
	case s.interactive:
		s.stdin = true
		s.params = rest
		s.converse()
	default:
		s.stdin = true
		s.params = rest
		s.runMain(parse.NewReader(s.stdinLine(), s.reading(1)))
	}
	return s.status, true
}

func (s *Shell) runMain(p *parse.Parser) { s.interpret(p, true) }

// script runs a file, which is called otherwise unless name is empty.
func (s *Shell) script(rest []string, name string) (int, bool) {
	file := rest[0]
	d, err := s.t.Open(file, linux.O_RDONLY, 0)
	if err == linux.ENOENT && !strings.Contains(file, "/") {
		p, _ := s.vars.Get("PATH")
		if found, e := s.t.Lookup(file, p); e == nil {
			file = found
			d, err = s.t.Open(file, linux.O_RDONLY, 0)
		}
	}
	if err != nil {
		s.errout(s.name + ": " + rest[0] + ": " + message(err) + "\n")
		if err == linux.ENOENT {
			return 127, false
		}
		return 126, false
	}
	d.Hold()
	if i, err := d.File.Info(); err == nil && i.IsDir() {
		d.Drop()
		s.errout(s.name + ": " + rest[0] + ": Is a directory\n")
		return 126, false
	}
	text, err := s.readAll(d)
	d.Drop()
	if err != nil {
		s.errout(s.name + ": " + rest[0] + ": " + message(err) + "\n")
		return 126, false
	}
	if bytesBinary(text) {
		s.errout(rest[0] + ": " + rest[0] + ": cannot execute binary file\n")
		return 126, false
	}
	if name == "" {
		name = rest[0]
	}
	s.name, s.params = name, rest[1:]
	s.bases.source = name
	s.runMain(parse.New(text, s.reading(1)))
	return s.status, true
}

// stdinLine reads the standard input a line at a time, so that commands find
// there what follows.
func (s *Shell) stdinLine() func() ([]byte, error) {
	return func() ([]byte, error) {
		line, err := s.readLine(0)
		b := []byte(line)
		if err == nil {
			b = append(b, '\n')
		}
		if s.opt[oVerbose] {
			s.errout(string(b))
		}
		if err != nil && len(b) > 0 && err == io.EOF {
			return b, nil
		}
		return b, err
	}
}

// arguments0 reads the arguments of bash.
func (s *Shell) arguments0(args []string) (in invocation, status int, ok bool) {
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i], "--") && len(args[i]) > 2; i++ {
		switch args[i][2:] {
		case "help":
			s.errout("")
			s.print("GNU bash, version " + Version + "-(x86_64-pc-linux-gnu)\nUsage:\tbash [GNU long option] [option] ...\n\tbash [GNU long option] [option] script-file ...\n")
			s.flushOut()
			return in, 0, false
		case "version":
			s.print("GNU bash, version " + Version + " (x86_64-pc-linux-gnu)\n")
			s.flushOut()
			return in, 0, false
		case "login":
			s.login = true
		case "posix":
			s.setOption(oPosix, true)
		case "verbose":
			s.setOption(oVerbose, true)
		case "norc", "noprofile", "noediting", "restricted", "debugger", "protected", "wordexp":
			in.norc = true
		case "rcfile", "init-file":
			if i++; i >= len(args) {
				s.errout(s.name + ": " + args[i-1] + ": option requires an argument\n")
				return in, 2, false
			}
			in.rcfile = args[i]
		case strings.TrimLeft(ScriptName, "-"):
			if i++; i >= len(args) {
				s.errout(s.name + ": " + args[i-1] + ": option requires an argument\n")
				return in, 2, false
			}
			in.script = args[i]
		default:
			s.errout(s.name + ": " + args[i] + ": invalid option\n")
			return in, 2, false
		}
	}
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		on := a[0] == '-'
		for j := 1; j < len(a); j++ {
			switch a[j] {
			case 'c':
				in.command = true
			case 's':
				in.stdin = true
			case 'i':
				s.interactive = on
			case 'l':
				s.login = true
			case 'r', 'D':
			case 'o', 'O':
				if i+1 >= len(args) {
					if a[j] == 'o' {
						s.showOptions(on)
					}
					s.flushOut()
					continue
				}
				i++
				o, ok := findOption(args[i], a[j] == 'o')
				if !ok {
					what := "invalid shell option name"
					if a[j] == 'o' {
						what = "invalid option name"
					}
					s.errout(s.name + ": " + args[i] + ": " + what + "\n")
					return in, 2, false
				}
				s.setOption(o, on)
			default:
				o, ok := letterOption(a[j])
				if !ok {
					s.errout(s.name + ": " + a[:1] + a[j:j+1] + ": invalid option\n")
					return in, 2, false
				}
				s.setOption(o, on)
			}
		}
	}
	in.rest = args[min(i, len(args)):]
	return in, 0, true
}

// profile runs the files of a login shell.
func (s *Shell) profile() {
	s.startup("/etc/profile")
	home, _ := s.vars.Get("HOME")
	for _, f := range []string{"/.bash_profile", "/.bash_login", "/.profile"} {
		if s.t.View.Access(home+f, 4) == nil {
			s.startup(home + f)
			return
		}
	}
}

// startup runs a file if it is there.
func (s *Shell) startup(file string) {
	text, err := s.readFile(file)
	if err != nil {
		return
	}
	s.source1(file, file, bytes.Clone(text), nil)
}
