package shell

import (
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

const getoptsUsage = "getopts: usage: getopts optstring name [arg ...]"

// biGetopts is getopts. Where it is within an argument of many letters is kept
// beside OPTIND, goes with that into scopes, and is forgotten when that is
// assigned to.
func biGetopts(s *Shell, args []string) int {
	rest, ok := s.noOptions(args, getoptsUsage)
	if !ok {
		return 2
	}
	if len(rest) < 2 {
		s.line0(getoptsUsage)
		return 2
	}
	spec, name := rest[0], rest[1]
	list := rest[2:]
	if len(rest) == 2 {
		list = s.params
	}
	silent := spec != "" && spec[0] == ':'
	if silent {
		spec = spec[1:]
	}
	g := s.optState()
	c, arg, hasArg, problem := g.next(list, spec)
	s.saveOptState(g)
	quiet := silent
	if v, ok := s.vars.Get("OPTERR"); ok && v == "0" {
		quiet = true
	}
	st := 0
	value := string([]byte{c})
	switch {
	case c == 0:
		st, value = 1, "?"
		_ = s.vars.Unset("OPTARG") // it may be readonly
	case problem == optUnknown:
		value = "?"
		if silent {
			s.optarg(string([]byte{c}))
		} else {
			_ = s.vars.Unset("OPTARG")
		}
		if !quiet {
			s.flushOut()
			s.errout(s.name + ": illegal option -- " + string([]byte{c}) + "\n")
		}
	case problem == optMissing:
		value = "?"
		if silent {
			value = ":"
			s.optarg(string([]byte{c}))
		} else {
			_ = s.vars.Unset("OPTARG")
		}
		if !quiet {
			s.flushOut()
			s.errout(s.name + ": option requires an argument -- " + string([]byte{c}) + "\n")
		}
	case hasArg:
		s.optarg(arg)
	default:
		_ = s.vars.Unset("OPTARG")
	}
	if !variable.Valid(name) {
		s.complain("getopts: `%s': not a valid identifier", name)
		return 1
	}
	if err := s.vars.Set(name, value); err != nil {
		s.complain("getopts: %s", err)
		return 1
	}
	return st
}

func (s *Shell) optarg(value string) {
	if err := s.vars.Set("OPTARG", value); err != nil {
		s.complain("getopts: %s", err)
	}
}

// An optProblem is what is wrong with an option.
type optProblem uint8

const (
	optFine optProblem = iota
	optUnknown
	optMissing
)

// An optState is how far getopts has come.
type optState struct {
	index int // OPTIND
	at    int // in an argument; 0 is its beginning
}

// next finds the next option; c is 0 at the end.
func (g *optState) next(list []string, spec string) (c byte, arg string, hasArg bool, p optProblem) {
	if g.index < 1 {
		g.index, g.at = 1, 0
	}
	if g.at == 0 {
		if g.index > len(list) {
			g.index = len(list) + 1
			return 0, "", false, optFine
		}
		a := list[g.index-1]
		if len(a) < 2 || a[0] != '-' {
			return 0, "", false, optFine
		}
		if a == "--" {
			g.index++
			return 0, "", false, optFine
		}
		g.at = 1
	}
	if g.index > len(list) || g.at >= len(list[g.index-1]) {
		g.index, g.at = g.index+1, 0
		return g.next(list, spec)
	}
	a := list[g.index-1]
	c = a[g.at]
	g.at++
	found := -1
	for i := range len(spec) {
		if spec[i] == c && c != ':' {
			found = i
			break
		}
	}
	last := g.at >= len(a)
	if found < 0 {
		if last {
			g.index, g.at = g.index+1, 0
		}
		return c, "", false, optUnknown
	}
	if found+1 >= len(spec) || spec[found+1] != ':' {
		if last {
			g.index, g.at = g.index+1, 0
		}
		return c, "", false, optFine
	}
	at := g.at
	g.index, g.at = g.index+1, 0
	if !last {
		return c, a[at:], true, optFine
	}
	if g.index > len(list) {
		return c, "", false, optMissing
	}
	g.index++
	return c, list[g.index-2], true, optFine
}

// optState reads how far getopts has come.
func (s *Shell) optState() *optState {
	g := &optState{index: 1, at: s.vars.Mark("OPTIND")}
	if v, ok := s.vars.Get("OPTIND"); ok {
		if i, err := strconv.Atoi(v); err == nil {
			g.index = i
		}
	}
	return g
}

func (s *Shell) saveOptState(g *optState) {
	if err := s.vars.Set("OPTIND", strconv.Itoa(g.index)); err != nil {
		s.complain("getopts: %s", err)
		return
	}
	s.vars.SetMark("OPTIND", g.at)
}
