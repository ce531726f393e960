package shell

import (
	"slices"
	"sort"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell/expand"
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
			width := 20
			if sets {
				width = 15
			}
			s.printf("%-*s\t%s\n", width, name, onOff(value))
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
			st = 1
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

// A resource is one that ulimit knows.
type resource struct {
	flag  byte
	text  string
	unit  string // as the list shows it
	scale int64
}

func resources() []resource {
	return []resource{
		{'R', "real-time non-blocking time", "microseconds, ", 1},
		{'c', "core file size", "blocks, ", 512},
		{'d', "data seg size", "kbytes, ", 1024},
		{'e', "scheduling priority", "", 1},
		{'f', "file size", "blocks, ", 512},
		{'i', "pending signals", "", 1},
		{'l', "max locked memory", "kbytes, ", 1024},
		{'m', "max memory size", "kbytes, ", 1024},
		{'n', "open files", "", 1},
		{'p', "pipe size", "512 bytes, ", 512},
		{'q', "POSIX message queues", "bytes, ", 1},
		{'r', "real-time priority", "", 1},
		{'s', "stack size", "kbytes, ", 1024},
		{'t', "cpu time", "seconds, ", 1},
		{'u', "max user processes", "", 1},
		{'v', "virtual memory", "kbytes, ", 1024},
		{'x', "file locks", "", 1},
	}
}

// unlimited is the greatest value of a resource.
const unlimited = int64(-1)

// limitOf gives what a resource is limited to.
func (s *Shell) limitOf(flag byte) int64 {
	if v, ok := s.ulimits[flag]; ok {
		return v
	}
	l := &s.t.K.Limits
	switch flag {
	case 'c', 'e', 'r', 'i':
		return 0
	case 'f':
		return l.FileSize / 512
	case 'n':
		return int64(s.t.K.MaxDescriptors())
	case 'p':
		return 8
	case 's':
		return 8192
	case 'u':
		return int64(s.t.K.MaxTasks())
	case 'q':
		return 819200
	}
	return unlimited
}

func biUlimit(s *Shell, args []string) int {
	all := false
	var flags []byte
	spec := "HSab"
	list := resources()
	for _, r := range list {
		spec += string(r.flag)
	}
	o := getopt{s: s, args: args, spec: spec}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case '?':
			return o.usage("ulimit: usage: ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]")
		case 'a':
			all = true
		case 'H', 'S':
		default:
			flags = append(flags, c)
		}
	}
	rest := o.rest()
	if all {
		for _, r := range list {
			unit := "(" + r.unit + "-" + string(r.flag) + ")"
			s.printf("%-20s %20s %s\n", r.text, unit, limitText(s.limitOf(r.flag)))
		}
		return 0
	}
	if len(flags) == 0 {
		flags = []byte{'f'}
	}
	for i, f := range flags {
		if len(rest) == 0 || i < len(flags)-1 {
			if len(flags) > 1 {
				for _, r := range list {
					if r.flag == f {
						unit := "(" + r.unit + "-" + string(r.flag) + ")"
						s.printf("%-20s %20s %s\n", r.text, unit, limitText(s.limitOf(f)))
					}
				}
				continue
			}
			s.print(limitText(s.limitOf(f)) + "\n")
			continue
		}
		value := unlimited
		switch rest[0] {
		case "unlimited", "hard", "soft":
			if rest[0] != "unlimited" {
				value = s.limitOf(f)
			}
		default:
			n, err := strconv.ParseInt(rest[0], 10, 64)
			if err != nil || n < 0 {
				s.Warn("ulimit: %s: invalid number", rest[0])
				return 1
			}
			value = n
		}
		m := map[byte]int64{}
		for k, v := range s.ulimits {
			m[k] = v
		}
		m[f] = value
		s.ulimits = m
	}
	return 0
}

func limitText(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}
