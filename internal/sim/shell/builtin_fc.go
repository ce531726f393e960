package shell

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

const fcUsage = "fc: usage: fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]"

// A fcCall is what fc was told.
type fcCall struct {
	list, bare, reverse, again bool
	editor                     string
}

func biFc(s *Shell, args []string) int {
	var f fcCall
	at, ok := f.options(s, args)
	if !ok {
		s.line0(fcUsage)
		return 2
	}
	rest := args[min(at, len(args)):]
	if f.editor == "-" {
		f.again = true
	}
	if f.again {
		return s.runAgain(rest)
	}
	return s.fcRange(&f, rest)
}

// options reads the options and tells where the rest begins. A number is none.
func (f *fcCall) options(s *Shell, args []string) (rest int, ok bool) {
	for at := 1; at < len(args); at++ {
		a := args[at]
		if a == "--" {
			return at + 1, true
		}
		if len(a) < 2 || a[0] != '-' || a[1] >= '0' && a[1] <= '9' {
			return at, true
		}
		for k := 1; k < len(a); k++ {
			switch a[k] {
			case 'l':
				f.list = true
			case 'n':
				f.bare = true
			case 'r':
				f.reverse = true
			case 's':
				f.again = true
			case 'e':
				if f.editor = a[k+1:]; f.editor == "" {
					if at++; at >= len(args) {
						s.Warn("fc: -e: option requires an argument")
						return 0, false
					}
					f.editor = args[at]
				}
				k = len(a)
			default:
				s.Warn("fc: -%c: invalid option", a[k])
				return 0, false
			}
		}
	}
	return len(args), true
}

// lastCommand is the index of the command before the one that runs.
func (s *Shell) lastCommand() int {
	if s.recording() {
		return len(s.history) - 2
	}
	return len(s.history) - 1
}

// fcIndex finds the command that a number or the beginning of one means; -1 is
// none.
func (s *Shell) fcIndex(spec string, list bool) int {
	last := s.lastCommand()
	n, ok := number(spec)
	switch {
	case !ok:
		for i := last; i >= 0; i-- {
			if strings.HasPrefix(s.history[i], spec) {
				return i
			}
		}
		return -1
	case n < 0:
		return max(n+last+1, 0)
	case n == 0 && spec[0] == '-' && list:
		return len(s.history) - 1
	case n == 0 && spec[0] == '-':
		return -1
	case n == 0:
		return last
	}
	return min(n-1, last)
}

// runAgain is fc -s.
func (s *Shell) runAgain(rest []string) int {
	var pairs []string
	for len(rest) > 0 && strings.Contains(rest[0], "=") {
		from, to, _ := strings.Cut(rest[0], "=")
		pairs = append(pairs, from, to)
		rest = rest[1:]
	}
	i := s.lastCommand()
	if len(rest) > 0 {
		i = s.fcIndex(rest[0], false)
	}
	if i < 0 {
		s.Warn("fc: no command found")
		return 1
	}
	text := s.history[i]
	for p := 0; p < len(pairs); p += 2 {
		text = kernel.ReplaceAll(s.t, text, pairs[p], pairs[p+1])
	}
	return s.runCommand(text)
}

// runCommand shows a command, keeps it instead of the one that runs, and runs
// it.
func (s *Shell) runCommand(text string) int {
	s.line0(text)
	s.forgetCommand()
	s.addHistory(text)
	return s.runText(text, s.line)
}

// fcRange lists commands, or lets them be edited.
func (s *Shell) fcRange(f *fcCall, rest []string) int {
	last := s.lastCommand()
	from, to := last, last
	switch {
	case len(rest) > 1:
		from, to = s.fcIndex(rest[0], f.list), s.fcIndex(rest[1], f.list)
	case len(rest) == 1:
		if from = s.fcIndex(rest[0], f.list); !f.list || from > last {
			to = from
		}
	case f.list:
		from = max(0, last-15)
	}
	if len(s.history) == 0 || len(rest) == 0 && last < 0 {
		if f.list {
			return 0
		}
		from = -1
	}
	if from < 0 || to < 0 {
		s.Warn("fc: history specification out of range")
		return 1
	}
	reverse := f.reverse
	if to < from {
		from, to, reverse = to, from, true
	}
	if !f.list {
		return s.edited(f.editor, s.history[from:to+1])
	}
	mark := "\t "
	if s.opt[oPosix] {
		mark = "\t"
	}
	for k := range to - from + 1 {
		i := from + k
		if reverse {
			i = to - k
		}
		if !f.bare {
			s.printf("%d", i+1)
		}
		s.print(mark + s.history[i] + "\n")
	}
	return 0
}

// edited lets an editor change commands, and runs them.
func (s *Shell) edited(editor string, list []string) int {
	if editor == "" {
		editor = "${FCEDIT:-${EDITOR:-vi}}"
	}
	file := "/tmp/bash-fc." + strconv.Itoa(s.t.PID)
	if err := s.writeFile(file, strings.Join(list, "\n")+"\n", false); err != nil {
		s.Warn("fc: %s: %s", file, message(err))
		return 1
	}
	st := s.runText(editor+" "+file, s.line)
	text, err := s.readFile(file)
	_ = s.t.View.Unlink(file) // it was this shell's own
	if st != 0 || err != nil || s.flow != flowNone {
		return st
	}
	return s.runCommand(strings.TrimSuffix(string(text), "\n"))
}
