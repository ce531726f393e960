package shell

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// Version is what the shell says that it is.
const Version = "5.2.37(1)-release"

// environment sets the variables of a new shell: those of the task's
// environment, those that are computed, and those that have defaults.
func (s *Shell) environment() {
	v := s.vars
	for _, e := range s.t.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			continue
		}
		if fn, isFunc := strings.CutPrefix(name, "BASH_FUNC_"); isFunc && strings.HasSuffix(fn, "%%") {
			s.importFunction(strings.TrimSuffix(fn, "%%"), value)
			continue
		}
		if !parse.Name(name) {
			continue
		}
		if name == "SHELLOPTS" || name == "BASHOPTS" {
			s.importOptions(name, value)
			continue
		}
		s.must(v.Set(name, value))
		s.must(v.Declare(name, variable.Export, 0))
	}
	s.directory()
	level := 0
	if old, ok := v.Get("SHLVL"); ok {
		level, _ = strconv.Atoi(old) // what is no number is 0
	}
	if level < 0 || level >= 999 {
		level = 0
	}
	s.must(v.Set("SHLVL", strconv.Itoa(level+1)))
	s.must(v.Declare("SHLVL", variable.Export, 0))
	if _, ok := v.Get("PATH"); !ok {
		s.must(v.Set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
	}
	s.must(v.Set("IFS", " \t\n"))
	s.must(v.Declare("IFS", 0, variable.Export))
	s.must(v.Set("OPTIND", "1"))
	s.must(v.Set("OPTERR", "1"))
	s.must(v.Set("PS4", or(v, "PS4", "+ ")))
	s.must(v.Set("BASH", "/bin/bash"))
	s.must(v.Set("BASH_VERSION", Version))
	s.must(v.Set("HOSTTYPE", "x86_64"))
	s.must(v.Set("OSTYPE", "linux-gnu"))
	s.must(v.Set("MACHTYPE", "x86_64-pc-linux-gnu"))
	s.must(v.Set("HOSTNAME", or(v, "HOSTNAME", s.t.K.Hostname)))
	s.must(v.Set("TERM", or(v, "TERM", "dumb")))
	version := []string{"5", "2", "37", "1", "release", "x86_64-pc-linux-gnu"}
	list := make([]variable.Element, len(version))
	for i, x := range version {
		list[i].Value = x
	}
	s.must(v.SetList("BASH_VERSINFO", list, false))
	s.must(v.Declare("BASH_VERSINFO", variable.ReadOnly, 0))
	s.must(v.Set("PPID", strconv.Itoa(s.t.PPID)))
	s.must(v.Declare("PPID", variable.Integer|variable.ReadOnly, 0))
	s.must(v.Set("UID", strconv.Itoa(s.t.View.UID)))
	s.must(v.Declare("UID", variable.Integer|variable.ReadOnly, 0))
	s.must(v.Set("EUID", strconv.Itoa(s.t.View.UID)))
	s.must(v.Declare("EUID", variable.Integer|variable.ReadOnly, 0))
	s.dynamic()
}

func or(v *variable.Store, name, other string) string {
	if value, ok := v.Get(name); ok {
		return value
	}
	return other
}

// must is for what cannot fail in a new shell; an environment that makes it
// fail is told.
func (s *Shell) must(err error) {
	if err != nil {
		s.Warn("%s", err)
	}
}

// directory finds the working directory's name: PWD, where it is right.
func (s *Shell) directory() {
	real, err := s.t.View.Getwd()
	if err != nil {
		return
	}
	s.cwd = real
	if pwd, ok := s.vars.Get("PWD"); ok && strings.HasPrefix(pwd, "/") {
		clean, err := s.canonical(pwd)
		a, errA := s.t.View.Stat(pwd)
		b, errB := s.t.View.Stat(".")
		if err == nil && clean == pwd && errA == nil && errB == nil && a.Ino == b.Ino {
			s.cwd = pwd
		}
	}
	s.must(s.vars.Set("PWD", s.cwd))
	s.must(s.vars.Declare("PWD", variable.Export, 0))
	if old, ok := s.vars.Get("OLDPWD"); ok {
		if i, err := s.t.View.Stat(old); err != nil || !i.IsDir() {
			s.must(s.vars.Unset("OLDPWD"))
		}
	}
	if s.vars.Lookup("OLDPWD") == nil {
		s.must(s.vars.Declare("OLDPWD", variable.Export, 0))
	}
}

func (s *Shell) importOptions(name, value string) {
	for _, n := range strings.Split(value, ":") {
		if o, ok := findOption(n, name == "SHELLOPTS"); ok {
			s.opt[o] = true
		}
	}
}

// host gives the shell that asks for a computed variable.
func host(h variable.Host) *Shell {
	s, ok := h.(*Shell)
	if !ok {
		return &Shell{}
	}
	return s
}

// dynamic makes the variables that are computed.
func (s *Shell) dynamic() {
	v := s.vars
	scalar := func(name string, f func(s *Shell) string) {
		v.Compute(name, &variable.Dynamic{Scalar: func(h variable.Host) string { return f(host(h)) }}, 0)
	}
	array := func(name string, f func(s *Shell) []string) {
		v.Compute(name, &variable.Dynamic{Array: func(h variable.Host) []string { return f(host(h)) }}, 0)
	}
	v.Compute("LINENO", &variable.Dynamic{
		Scalar: func(h variable.Host) string { return strconv.Itoa(host(h).line) },
	}, 0)
	v.Compute("RANDOM", &variable.Dynamic{
		Scalar: func(h variable.Host) string { return strconv.Itoa(host(h).rand()) },
		Assign: func(h variable.Host, value string) {
			n, _ := strconv.ParseInt(value, 10, 64) // what is no number is 0
			host(h).random, host(h).lastRandom = uint32(n), 0
		},
	}, variable.Integer)
	scalar("SRANDOM", func(s *Shell) string { return strconv.FormatUint(uint64(s.rand())<<17^uint64(s.rand())<<2, 10) })
	v.Compute("SECONDS", &variable.Dynamic{
		Scalar: func(h variable.Host) string {
			s := host(h)
			return strconv.FormatInt((s.t.K.Now().UnixNano()-s.bases.start)/1e9+s.secondsBase, 10)
		},
		Assign: func(h variable.Host, value string) {
			s := host(h)
			n, _ := strconv.ParseInt(value, 10, 64)
			s.secondsBase = n - (s.t.K.Now().UnixNano()-s.bases.start)/1e9
		},
	}, variable.Integer)
	scalar("EPOCHSECONDS", func(s *Shell) string { return strconv.FormatInt(s.t.K.Now().Unix(), 10) })
	scalar("EPOCHREALTIME", func(s *Shell) string {
		now := s.t.K.Now()
		return fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	})
	scalar("BASHPID", func(s *Shell) string { return strconv.Itoa(s.t.PID) })
	scalar("BASH_SUBSHELL", func(s *Shell) string { return strconv.Itoa(s.level) })
	scalar("BASH_COMMAND", func(s *Shell) string { return s.cmdText })
	scalar("_", func(s *Shell) string { return s.lastArg })
	v.Compute("BASH_ARGV0", &variable.Dynamic{
		Scalar: func(h variable.Host) string { return host(h).name },
		Assign: func(h variable.Host, value string) { host(h).name = value },
	}, 0)
	scalar("HISTCMD", func(s *Shell) string { return strconv.Itoa(len(s.history) + 1) })
	scalar("SHELLOPTS", func(s *Shell) string { return s.optionText(true) })
	scalar("BASHOPTS", func(s *Shell) string { return s.optionText(false) })
	for _, n := range []string{"SHELLOPTS", "BASHOPTS"} {
		s.must(v.Declare(n, variable.ReadOnly, 0))
	}
	array("PIPESTATUS", func(s *Shell) []string {
		if s.pipe == nil {
			return []string{strconv.Itoa(s.last)}
		}
		list := make([]string, len(s.pipe))
		for i, n := range s.pipe {
			list[i] = strconv.Itoa(n)
		}
		return list
	})
	array("FUNCNAME", func(s *Shell) []string {
		if s.calls == 0 {
			return nil
		}
		list := make([]string, 0, len(s.frames)+1)
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, s.frames[i].name)
		}
		if s.bases.source == "" {
			return list
		}
		return append(list, "main")
	})
	array("BASH_SOURCE", func(s *Shell) []string {
		list := make([]string, 0, len(s.frames)+1)
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, s.frames[i].source)
		}
		if s.bases.source != "" {
			list = append(list, s.bases.source)
		}
		return list
	})
	array("BASH_LINENO", func(s *Shell) []string {
		list := make([]string, 0, len(s.frames)+1)
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, strconv.Itoa(s.frames[i].line))
		}
		if s.bases.source != "" {
			list = append(list, "0")
		}
		return list
	})
	array("GROUPS", func(s *Shell) []string {
		list := []string{strconv.Itoa(s.t.View.GID)}
		for _, g := range s.t.View.Groups {
			if g != s.t.View.GID {
				list = append(list, strconv.Itoa(g))
			}
		}
		return list
	})
	array("DIRSTACK", (*Shell).stackDirs)
	v.Compute("BASH_ALIASES", &variable.Dynamic{
		Assoc: func(h variable.Host) []string {
			var list []string
			for _, k := range slices.Sorted(maps.Keys(host(h).aliases)) {
				list = append(list, k, host(h).aliases[k])
			}
			return list
		},
		Chains: 64,
		AssignAt: func(h variable.Host, name, value string) {
			s := host(h)
			s.ownAliases()
			s.aliases[name] = value
		},
		UnsetAt: func(h variable.Host, name string) {
			s := host(h)
			s.ownAliases()
			delete(s.aliases, name)
		},
	}, 0)
	v.Compute("BASH_CMDS", &variable.Dynamic{
		Assoc: func(h variable.Host) []string {
			var list []string
			for _, k := range slices.Sorted(maps.Keys(host(h).hash)) {
				list = append(list, k, host(h).hash[k].file)
			}
			return list
		},
		Chains: hashChains,
		AssignAt: func(h variable.Host, name, value string) {
			host(h).remember(name, value)
			host(h).hash[name].hits = 0
		},
		UnsetAt: func(h variable.Host, name string) {
			s := host(h)
			s.ownHash()
			delete(s.hash, name)
		},
	}, 0)
}

// optionText gives SHELLOPTS or BASHOPTS.
func (s *Shell) optionText(set bool) string {
	var on []string
	for _, n := range optionList(set) {
		if o, _ := findOption(n, set); s.opt[o] {
			on = append(on, n)
		}
	}
	return strings.Join(on, ":")
}

// rand gives $RANDOM: bash's generator, so that a seed gives bash's numbers.
func (s *Shell) rand() int {
	if s.random == 0 && !s.seeded {
		s.random = uint32(s.t.K.Now().UnixNano()) ^ uint32(s.t.PID)<<16
	}
	s.seeded = true
	for {
		r := int32(s.random)
		if r == 0 {
			r = 123459876
		}
		h := r / 127773
		l := r - 127773*h
		t := 16807*l - 2836*h
		if t < 0 {
			t += 0x7fffffff
		}
		s.random = uint32(t)
		n := int(uint32(t)>>16^uint32(t)&0xffff) & 32767
		if n != s.lastRandom {
			s.lastRandom = n
			return n
		}
	}
}

// watch is told when a variable that means something to the shell changes.
func (s *Shell) watch(name string) {
	switch name {
	case "POSIXLY_CORRECT":
		_, on := s.vars.Get(name)
		if on != s.opt[oPosix] {
			s.opt[oPosix] = on
			s.flag(oPosix)
		}
	case "PATH":
		s.hash = nil
	case "OPTIND":
		s.optReset = true
	case "GLOBIGNORE":
		// Names with a dot are found from now on; an empty value leaves it so.
		if v, set := s.vars.Get(name); !set || v != "" {
			s.setOption(oDotglob, set)
		}
	}
}

// posixVariable keeps POSIXLY_CORRECT as set -o posix has it.
func (s *Shell) posixVariable(on bool) {
	_, set := s.vars.Get("POSIXLY_CORRECT")
	if on == set {
		return
	}
	if on {
		s.must(s.vars.Set("POSIXLY_CORRECT", "y"))
	} else {
		s.must(s.vars.Unset("POSIXLY_CORRECT"))
	}
}

// strftime formats the time for prompts.
func (s *Shell) strftime(format string, now time.Time) string {
	if format == "" {
		format = "%X"
	}
	return formatTime(format, now)
}
