package shell

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// workdir gives the logical working directory.
func (s *Shell) workdir() string {
	if s.cwd == "" {
		dir, err := s.t.View.Getwd()
		if err != nil {
			return ""
		}
		s.cwd = dir
	}
	return s.cwd
}

func biPwd(s *Shell, args []string) int {
	physical := s.opt[oPhysical]
	o := getopt{s: s, args: args, spec: "LP"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'L':
			physical = false
		case 'P':
			physical = true
		default:
			return o.usage("pwd: usage: pwd [-LP]")
		}
	}
	dir := s.workdir()
	if physical || dir == "" {
		real, err := s.t.View.Getwd()
		if err != nil {
			s.Warn("pwd: error retrieving current directory: getcwd: cannot access parent directories: %s", message(err))
			return 1
		}
		dir = real
	}
	s.print(dir + "\n")
	return 0
}

func biCd(s *Shell, args []string) int {
	physical := s.opt[oPhysical]
	o := getopt{s: s, args: args, spec: "LPe@"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'L':
			physical = false
		case 'P':
			physical = true
		case 'e', '@':
		default:
			return o.usage("cd: usage: cd [-L|[-P [-e]] [-@]] [dir]")
		}
	}
	rest := o.rest()
	if len(rest) > 1 {
		s.Warn("cd: too many arguments")
		return 1
	}
	dir, show := "", false
	switch {
	case len(rest) == 0:
		home, ok := s.vars.Get("HOME")
		if !ok {
			s.Warn("cd: HOME not set")
			return 1
		}
		dir = home
	case rest[0] == "-":
		old, ok := s.vars.Get("OLDPWD")
		if !ok {
			s.Warn("cd: OLDPWD not set")
			return 1
		}
		dir, show = old, true
	default:
		dir = rest[0]
	}
	if cdpath, ok := s.vars.Get("CDPATH"); ok && cdpath != "" && len(rest) > 0 && rest[0] != "-" && !strings.HasPrefix(dir, "/") &&
		dir != "." && dir != ".." && !strings.HasPrefix(dir, "./") && !strings.HasPrefix(dir, "../") {
		for _, base := range strings.Split(cdpath, ":") {
			full := dir
			if base != "" {
				full = strings.TrimRight(base, "/") + "/" + dir
			}
			if s.chdir(full, physical) == nil {
				if base != "" && base != "." {
					s.print(s.cwd + "\n")
				}
				return 0
			}
		}
	}
	err := s.chdir(dir, physical)
	if err != nil && s.opt[oCdableVars] && len(rest) > 0 && rest[0] != "-" {
		if v, ok := s.vars.Get(dir); ok && s.chdir(v, physical) == nil {
			s.print(s.cwd + "\n")
			return 0
		}
	}
	if err != nil {
		s.Warn("cd: %s: %s", dir, message(err))
		return 1
	}
	switch {
	case show && dir == "":
		s.print("\n")
	case show:
		s.print(s.cwd + "\n")
	}
	return 0
}

// chdir moves to a directory and sets PWD and OLDPWD.
func (s *Shell) chdir(dir string, physical bool) error {
	view := &s.t.View
	logical := dir
	if dir == "" {
		// cd "" stays, and is no error.
		logical = s.workdir()
		dir = "."
	}
	if !strings.HasPrefix(logical, "/") {
		logical = strings.TrimSuffix(s.workdir(), "/") + "/" + logical
	}
	var to string
	if physical {
		if err := view.Chdir(dir); err != nil {
			return err
		}
		real, err := view.Getwd()
		if err != nil {
			return err
		}
		to = real
	} else {
		clean, err := s.canonical(logical)
		if err == nil {
			err = view.Chdir(clean)
		}
		if err != nil {
			if s.opt[oPosix] {
				return err
			}
			if e := view.Chdir(dir); e != nil {
				return err
			}
			if clean, err = view.Getwd(); err != nil {
				s.errout("cd: error retrieving current directory: getcwd: cannot access parent directories: " + message(err) + "\n")
				clean = logical
			}
		}
		to = clean
	}
	old := s.workdir()
	s.cwd = to
	if v, ok := s.vars.Get("PWD"); ok {
		old = v
	}
	s.setDir("OLDPWD", old)
	s.setDir("PWD", to)
	return nil
}

func (s *Shell) setDir(name, value string) {
	if err := s.vars.Set(name, value); err != nil {
		s.Warn("%s", err)
	}
}

// canonical takes "." and ".." out of an absolute path; a directory before
// ".." must be there.
func (s *Shell) canonical(p string) (string, error) {
	double := strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///")
	out := []byte("/")
	s.t.Step(1 + len(p))
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			s.t.Step(16 + len(out))
			i, err := s.t.View.Stat(string(out))
			if err != nil {
				return "", err
			}
			if !i.IsDir() {
				return "", linux.ENOTDIR
			}
			out = out[:max(1, bytes.LastIndexByte(out, '/'))]
		default:
			if len(out) > 1 {
				out = append(out, '/')
			}
			out = append(out, part...)
		}
	}
	if double {
		return "/" + string(out), nil
	}
	return string(out), nil
}

// tilde shortens a directory in the home directory.
func (s *Shell) tildeDir(dir string, long bool) string {
	home, _ := s.vars.Get("HOME")
	if !long && home != "" && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		return "~" + dir[len(home):]
	}
	return dir
}

// stackDirs gives the directory stack, the working directory first.
func (s *Shell) stackDirs() []string { return append([]string{s.workdir()}, s.dirs...) }

// stackIndex reads +N and -N.
func (s *Shell) stackIndex(spec string) (int, bool) {
	n, err := strconv.Atoi(spec[1:])
	if err != nil || n < 0 {
		return 0, false
	}
	if spec[0] == '-' {
		n = len(s.dirs) - n
	}
	return n, n >= 0 && n <= len(s.dirs)
}

// indexSign reports whether an argument is +N or -N, or wants to be.
func indexSign(a string) bool { return len(a) > 1 && (a[0] == '+' || a[0] == '-') }

func isIndex(a string) bool {
	return len(a) > 1 && (a[0] == '+' || a[0] == '-') && a[1] >= '0' && a[1] <= '9'
}

func biDirs(s *Shell, args []string) int {
	var lines, numbers, long bool
	index := -1
	for _, a := range args[1:] {
		switch {
		case a == "-c":
			s.dirs = nil
			return 0
		case a == "-l":
			long = true
		case a == "-p":
			lines = true
		case a == "-v":
			lines, numbers = true, true
		case a == "--":
		case isIndex(a):
			n, ok := s.stackIndex(a)
			if !ok {
				s.Warn("dirs: %s: directory stack index out of range", a[1:])
				return 1
			}
			index = n
		default:
			if indexSign(a) {
				s.Warn("dirs: %s: invalid number", a)
			} else {
				s.Warn("dirs: %s: invalid option", a)
			}
			s.line0("dirs: usage: dirs [-clpv] [+N] [-N]")
			return 2
		}
	}
	stack := s.stackDirs()
	if index >= 0 {
		if numbers {
			s.printf("%2d  ", index)
		}
		s.print(s.tildeDir(stack[index], long) + "\n")
		return 0
	}
	for i, d := range stack {
		s.t.Step(16 + len(d))
		d = s.tildeDir(d, long)
		switch {
		case numbers:
			s.printf("%2d  %s\n", i, d)
		case lines:
			s.print(d + "\n")
		case i > 0:
			s.print(" " + d)
		default:
			s.print(d)
		}
	}
	if !lines {
		s.print("\n")
	}
	return 0
}

func biPushd(s *Shell, args []string) int {
	stay := false
	rest := args[1:]
	for len(rest) > 0 {
		if rest[0] == "-n" {
			stay = true
			rest = rest[1:]
			continue
		}
		if rest[0] == "--" {
			rest = rest[1:]
		}
		break
	}
	switch {
	case len(rest) == 0 && stay:
		return 0
	case len(rest) == 0:
		if len(s.dirs) == 0 {
			s.Warn("pushd: no other directory")
			return 1
		}
		here, to := s.workdir(), s.dirs[0]
		if !stay {
			if err := s.chdir(to, false); err != nil {
				s.Warn("pushd: %s: %s", to, message(err))
				return 1
			}
		}
		s.dirs = append([]string{here}, s.dirs[1:]...)
	case isIndex(rest[0]):
		n, ok := s.stackIndex(rest[0])
		if !ok {
			s.Warn("pushd: %s: directory stack index out of range", rest[0])
			return 1
		}
		stack := s.stackDirs()
		stack = append(stack[n:len(stack):len(stack)], stack[:n]...)
		if !stay {
			if err := s.chdir(stack[0], false); err != nil {
				s.Warn("pushd: %s: %s", stack[0], message(err))
				return 1
			}
		}
		s.dirs = stack[1:]
	case indexSign(rest[0]):
		s.Warn("pushd: %s: invalid number", rest[0])
		s.line0("pushd: usage: pushd [-n] [+N | -N | dir]")
		return 2
	case len(rest) > 1:
		s.Warn("pushd: too many arguments")
		return 1
	default:
		s.t.Bound("array", int64(len(s.dirs)), s.t.K.Limits.Array)
		s.t.Grow(len(rest[0]) + 32)
		if stay {
			s.dirs = append([]string{rest[0]}, s.dirs...)
			break
		}
		here, to := s.workdir(), rest[0]
		if to == "-" {
			to, _ = s.vars.Get("OLDPWD")
		}
		if err := s.chdir(to, false); err != nil {
			s.Warn("pushd: %s: %s", to, message(err))
			return 1
		}
		s.dirs = append([]string{here}, s.dirs...)
	}
	return biDirs(s, []string{"dirs"})
}

func biPopd(s *Shell, args []string) int {
	stay := false
	rest := args[1:]
	for len(rest) > 0 && (rest[0] == "-n" || rest[0] == "--") {
		stay = stay || rest[0] == "-n"
		rest = rest[1:]
	}
	if len(s.dirs) == 0 && (len(rest) == 0 || isIndex(rest[0])) {
		s.Warn("popd: directory stack empty")
		return 1
	}
	n := 0
	if len(rest) > 0 {
		if !isIndex(rest[0]) {
			what := "argument"
			if indexSign(rest[0]) {
				what = "number"
			}
			s.Warn("popd: %s: invalid %s", rest[0], what)
			s.line0("popd: usage: popd [-n] [+N | -N]")
			return 2
		}
		var ok bool
		if n, ok = s.stackIndex(rest[0]); !ok {
			s.Warn("popd: %s: directory stack index out of range", rest[0])
			return 1
		}
	}
	dirs := append([]string(nil), s.dirs...)
	switch {
	case n > 0:
		dirs = append(dirs[:n-1], dirs[n:]...)
	case stay:
		dirs = dirs[1:]
	default:
		if err := s.chdir(dirs[0], false); err != nil {
			s.Warn("popd: %s: %s", dirs[0], message(err))
			return 1
		}
		dirs = dirs[1:]
	}
	s.dirs = dirs
	return biDirs(s, []string{"dirs"})
}
