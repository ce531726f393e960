package shell

import (
	"slices"
	"sort"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
)

func biSet(s *Shell, args []string) int {
	if len(args) == 1 {
		s.showVariables()
		return 0
	}
	usage := "set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]"
	// A wrong option changes nothing.
	for i := 1; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' && a[0] != '+' || a == "--" {
			break
		}
		for j := 1; j < len(a); j++ {
			if a[j] == 'o' {
				continue
			}
			if _, ok := letterOption(a[j]); !ok {
				s.Warn("set: %c%c: invalid option", a[0], a[j])
				s.line0(usage)
				return 2
			}
		}
	}
	i := 1
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			s.paramsSet = true
			s.params = slices.Clone(args[i+1:])
			return 0
		}
		if a == "-" {
			s.setOption(oXtrace, false)
			s.setOption(oVerbose, false)
			if i+1 < len(args) {
				s.params = slices.Clone(args[i+1:])
			}
			return 0
		}
		if a == "+" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		on := a[0] == '-'
		for j := 1; j < len(a); j++ {
			if a[j] != 'o' {
				o, _ := letterOption(a[j])
				s.setOption(o, on)
				continue
			}
			if i+1 >= len(args) || len(args[i+1]) > 0 && (args[i+1][0] == '-' || args[i+1][0] == '+') {
				s.showOptions(on)
				continue
			}
			i++
			o, ok := findOption(args[i], true)
			if !ok {
				s.Warn("set: %s: invalid option name", args[i])
				return 2
			}
			s.setOption(o, on)
		}
	}
	if i < len(args) {
		s.paramsSet = true
		s.params = slices.Clone(args[i:])
	}
	return 0
}

// showOptions prints what set -o and set +o do.
func (s *Shell) showOptions(table bool) {
	for i, n := range optionList(true) {
		on := s.opt[i]
		if table {
			s.printf("%-15s\t%s\n", n, onOff(on))
			continue
		}
		sign := "+"
		if on {
			sign = "-"
		}
		s.print("set " + sign + "o " + n + "\n")
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// showVariables prints all variables and functions, as set does.
func (s *Shell) showVariables() {
	for _, n := range s.vars.Names() {
		v := s.vars.Lookup(n)
		if v == nil || v.Hidden() {
			continue
		}
		if v, _ := s.vars.Var(n); v == nil || !v.IsSet() {
			continue
		} else if v.Array() != nil || v.Assoc() != nil {
			s.print(n + "=" + expand.Compound(v) + "\n")
			continue
		}
		value, _ := s.vars.Get(n)
		s.print(n + "=" + quote.Listing(value) + "\n")
	}
	if s.opt[oPosix] {
		return
	}
	for _, n := range s.functionNames() {
		s.print(printFunction(s.funcs[n]))
	}
}

func (s *Shell) functionNames() []string {
	names := make([]string, 0, len(s.funcs))
	for n := range s.funcs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func biShopt(s *Shell, args []string) int {
	var on, off, quiet, reuse, sets bool
	o := getopt{s: s, args: args, spec: "psuoq"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 's':
			on = true
		case 'u':
			off = true
		case 'q':
			quiet = true
		case 'p':
			reuse = true
		case 'o':
			sets = true
		default:
			return o.usage("shopt: usage: shopt [-pqsu] [-o] [optname ...]")
		}
	}
	if on && off {
		s.Warn("shopt: cannot set and unset shell options simultaneously")
		return 1
	}
	rest := o.rest()
	show := func(name string, value bool) {
		switch {
		case quiet:
		case reuse && sets:
			sign := "+"
			if value {
				sign = "-"
			}
			s.print("set " + sign + "o " + name + "\n")
		case reuse:
			flag := "-u"
			if value {
				flag = "-s"
			}
			s.print("shopt " + flag + " " + name + "\n")
		default:
			s.printf("%-15s\t%s\n", name, onOff(value))
		}
	}
	if len(rest) == 0 {
		for _, n := range optionList(sets) {
			k, _ := findOption(n, sets)
			if on && !s.opt[k] || off && s.opt[k] {
				continue
			}
			show(n, s.opt[k])
		}
		return 0
	}
	st := 0
	for _, n := range rest {
		k, ok := findOption(n, sets)
		if !ok {
			what := "invalid shell option name"
			if sets {
				what = "invalid option name"
			}
			s.Warn("shopt: %s: %s", n, what)
			if !sets || !on && !off {
				st = 1
			}
			continue
		}
		switch {
		case on || off:
			s.setOption(k, on)
		default:
			show(n, s.opt[k])
			if !s.opt[k] {
				st = 1
			}
		}
	}
	return st
}
