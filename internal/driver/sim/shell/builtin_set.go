package shell

import (
	"math"
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

// A ulimit is what a resource is limited to, in the unit of the list.
type ulimit struct{ soft, hard int64 }

// limitOf gives what a resource is limited to.
func (s *Shell) limitOf(flag byte) ulimit {
	if v, ok := s.ulimits[flag]; ok {
		return v
	}
	switch flag {
	case 'c':
		return ulimit{0, unlimited}
	case 'e', 'r', 'i':
		return ulimit{0, 0}
	case 'n':
		n := int64(s.t.K.MaxDescriptors())
		return ulimit{n, n}
	case 'p':
		return ulimit{8, 8}
	case 's':
		return ulimit{8192, unlimited}
	case 'u':
		n := int64(s.t.K.MaxTasks())
		return ulimit{n, n}
	case 'q':
		return ulimit{819200, 819200}
	}
	return ulimit{unlimited, unlimited}
}

func biUlimit(s *Shell, args []string) int {
	var all, hard, soft bool
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
		case 'H':
			hard = true
		case 'S':
			soft = true
		default:
			flags = append(flags, c)
		}
	}
	rest := o.rest()
	shown := func(flag byte) string {
		l := s.limitOf(flag)
		if hard && !soft {
			return limitText(l.hard)
		}
		return limitText(l.soft)
	}
	line := func(r *resource) {
		unit := "(" + r.unit + "-" + string(r.flag) + ")"
		s.printf("%-20s %20s %s\n", r.text, unit, shown(r.flag))
	}
	if all {
		for i := range list {
			line(&list[i])
		}
		return 0
	}
	if len(flags) == 0 {
		flags = []byte{'f'}
	}
	if len(rest) > 1 {
		s.Warn("ulimit: too many arguments")
		return 2
	}
	for i, f := range flags {
		k := slices.IndexFunc(list, func(r resource) bool { return r.flag == f })
		if k < 0 {
			continue
		}
		switch {
		case len(rest) > 0 && i == len(flags)-1:
			return s.setLimit(&list[k], rest[0], hard, soft)
		case len(flags) > 1:
			line(&list[k])
		default:
			s.print(shown(f) + "\n")
		}
	}
	return 0
}

// setLimit changes what the shell says about a resource; the limits of the
// sandbox are not the script's to change.
func (s *Shell) setLimit(r *resource, text string, hard, soft bool) int {
	old := s.limitOf(r.flag)
	var value int64
	switch text {
	case "unlimited":
		value = unlimited
	case "hard":
		value = old.hard
	case "soft":
		value = old.soft
	default:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			s.Warn("ulimit: %s: invalid number", text)
			return 1
		}
		if n > uint64(math.MaxInt64)/uint64(r.scale) {
			s.Warn("ulimit: %s: limit out of range", text)
			return 1
		}
		value = int64(n)
	}
	above := func(a, b int64) bool { return b != unlimited && (a == unlimited || a > b) }
	if !hard && !soft {
		hard, soft = true, true
	}
	now := old
	if soft {
		now.soft = value
	}
	if hard {
		now.hard = value
	}
	switch {
	case above(now.hard, old.hard):
		s.Warn("ulimit: %s: cannot modify limit: Operation not permitted", r.text)
		return 1
	case above(now.soft, now.hard):
		s.Warn("ulimit: %s: cannot modify limit: Invalid argument", r.text)
		return 1
	}
	m := map[byte]ulimit{}
	for k, v := range s.ulimits {
		m[k] = v
	}
	m[r.flag] = now
	s.ulimits = m
	return 0
}

func limitText(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}
