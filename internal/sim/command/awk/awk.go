// Package awk is the language awk: POSIX's, with what gawk adds to it that
// scripts use. It has an interpreter of its own, because everything here is
// bounded: strings and arrays are counted while they live, calls and loops
// while they run, and files, commands and the environment are the task's.
//
// Characters are UTF-8 as in gawk; other bytes are characters by themselves.
package awk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{{Name: "awk", Aliases: []string{"gawk", "mawk", "nawk"}, Run: run}}
}

// options are what the command line says.
type options struct {
	sources  []source
	vars     []string
	fs       string
	hasFS    bool
	bytes    bool
	csv      bool
	operands []string
}

func run(t *kernel.Task) int {
	o, status, ok := parseOptions(t)
	if !ok {
		return status
	}
	load := func(name string) (string, error) {
		b, err := command.ReadAll(t, name)
		if err != nil {
			return "", fmt.Errorf("%s", vfs.Message(err))
		}
		return string(b), nil
	}
	size := 0
	for _, s := range o.sources {
		size += len(s.text)
	}
	t.Bound("source", int64(size), t.K.Limits.Source)
	t.Grow(8 * size) // about what the tree and its closures take
	t.Step(size)
	p, err := parse(o.sources, int(t.K.Limits.Nesting), load)
	if err != nil {
		t.Errorf("%s:%d: %s", err.file, err.line, err.msg)
		if name := t.Name(); !err.fatal && (name == "awk" || name == "gawk") {
			return 1 // as gawk, and 2 as others
		}
		return 2
	}
	m := newMachine(t, p)
	m.bytes = o.bytes || t.Bytewise()
	defer m.abandon()
	return m.main(o)
}

// main runs the program, and gives its status.
func (m *machine) main(o *options) int {
	status, failed := m.guard(func() { m.program(o) })
	end, late := m.guard(m.closeAll)
	if failed {
		return status
	}
	if late {
		return end
	}
	return m.status
}

// guard runs f, and tells of a fatal error.
func (m *machine) guard(f func()) (status int, failed bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *fatal:
			m.t.Errorf("fatal: %s", r.msg)
			status, failed = r.status, true
		case unwinding: // an exit
		default:
			panic(r)
		}
	}()
	f()
	return 0, false
}

// program is all of a program's run.
func (m *machine) program(o *options) {
	argv := m.globals[vARGV].arr
	m.put(argv, "0", str(m.t.Name()))
	for i, a := range o.operands {
		m.numKey(float64(i + 1))
		m.set(&m.getKey(argv).cell, input(a))
	}
	m.globals[vARGC].v = num(float64(len(o.operands) + 1))
	m.in.next = 1
	if o.csv {
		m.csv = true
		m.setFS(" ")
	}
	if o.hasFS {
		m.setSpecial(vFS, input(o.fs))
	}
	for _, v := range o.vars {
		name, value, _ := cut(v)
		m.setVar(name, value)
	}
	begin, rules, end := m.compile()
	c := goesOn
	for _, f := range begin {
		if c = m.catch(func() ctl { return f(m) }); c == exits {
			break
		}
		m.release()
	}
	if c != exits && (len(rules) > 0 || len(end) > 0 || len(m.in.begin) > 0 || len(m.in.end) > 0) {
		for {
			if c = m.catch(func() ctl { return m.records(rules) }); c != nexts && c != nextfiles {
				break
			}
			if c == nextfiles {
				m.closeMain()
			}
		}
	}
	for _, f := range end {
		if m.catch(func() ctl { return f(m) }) == exits {
			break
		}
		m.release()
	}
}

// compiledRule is a rule that is ready to run.
type compiledRule struct {
	from, to boolFn
	body     stmtFn
}

func (m *machine) compile() (begin []stmtFn, rules []compiledRule, end []stmtFn) {
	c := &compiler{m: m}
	names := sortedKeys(m.prog.functions)
	for i, name := range names {
		m.prog.functions[name].index = i
	}
	m.funcs = make([]compiled, len(names))
	for i, name := range names {
		f := m.prog.functions[name]
		c.deepest = 0
		body := c.block(f.body)
		m.funcs[i] = compiled{f, body, 4 + c.deepest}
	}
	blocks := func(list []*blockStmt) (out []stmtFn) {
		for _, b := range list {
			out = append(out, c.block(b))
		}
		return out
	}
	begin, end = blocks(m.prog.begin), blocks(m.prog.end)
	m.in.begin, m.in.end = blocks(m.prog.beginFile), blocks(m.prog.endFile)
	for _, r := range m.prog.rules {
		x := compiledRule{body: c.print(&printStmt{})}
		if r.from != nil {
			x.from = c.bool(r.from)
		}
		if r.to != nil {
			x.to = c.bool(r.to)
		}
		if !r.prints {
			x.body = c.block(r.body)
		}
		rules = append(rules, x)
	}
	m.inRange = make([]bool, len(rules))
	return begin, rules, end
}

// records runs the rules for each record.
func (m *machine) records(rules []compiledRule) ctl {
next:
	for {
		rec, ok := m.nextRecord()
		if !ok {
			return goesOn
		}
		m.setRecord(rec)
		for i := range rules {
			r := &rules[i]
			if r.from != nil && !m.selected(r, i) {
				continue
			}
			switch c := r.body(m); c {
			case goesOn:
			case nexts:
				m.release()
				continue next
			case nextfiles:
				m.release()
				m.closeMain()
				continue next
			default:
				return c
			}
		}
		if m.pending != 0 {
			m.release()
		}
	}
}

// selected reports whether a rule's pattern takes the record.
func (m *machine) selected(r *compiledRule, i int) bool {
	if r.to == nil {
		return r.from(m)
	}
	if !m.inRange[i] && !r.from(m) {
		return false
	}
	m.inRange[i] = !r.to(m)
	return true
}

// parseOptions reads the command line, in the ways of gawk and mawk.
func parseOptions(t *kernel.Task) (o *options, status int, ok bool) {
	o = &options{}
	args := t.Args[1:]
	var texts []source
	whole := false // the program is there; what is included is none by itself
	end := false
	for len(args) > 0 && !end {
		a := args[0]
		if a == "-" || !strings.HasPrefix(a, "-") {
			break
		}
		args = args[1:]
		if a == "--" {
			break
		}
		key, value, given := option(a)
		if wants(key) && !given {
			if len(args) == 0 {
				t.Errorf("option requires an argument -- %s", strings.TrimLeft(a, "-"))
				return nil, 2, false
			}
			value, args = args[0], args[1:]
		}
		switch key {
		case "F":
			o.fs, o.hasFS = value, true
			o.fs = unescape(o.fs)
		case "v":
			if _, _, ok := isAssignment(value); !ok {
				t.Errorf("fatal: `%s' argument to `-v' not in `var=value' form", value)
				return nil, 2, false
			}
			o.vars = append(o.vars, value)
		case "f", "E", "i":
			s, err := readSource(t, value)
			if err != nil {
				t.Errorf("fatal: cannot open source file `%s' for reading: %s", value, vfs.Message(err))
				return nil, 2, false
			}
			texts = append(texts, source{value, s})
			end = key == "E"
			whole = whole || key != "i"
		case "e":
			texts = append(texts, source{"cmd. line", value})
			whole = true
		case "b":
			o.bytes = true
		case "k":
			o.csv = true
		case "W":
			if strings.HasPrefix(value, "v") {
				version(t)
				return nil, 0, false
			}
			if strings.HasPrefix(value, "h") || strings.HasPrefix(value, "u") {
				usage(t)
				return nil, 0, false
			}
		case "V":
			version(t)
			return nil, 0, false
		case "h":
			usage(t)
			return nil, 0, false
		case "n", "r", "P", "c", "O", "s", "S", "t", "N", "L", "M", "I":
		default:
			t.Errorf("not an option: %s", a)
			return nil, 2, false
		}
	}
	if !whole {
		if len(args) == 0 {
			usageTo(t, 2)
			return nil, 2, false
		}
		texts = append(texts, source{"cmd. line", args[0]})
		args = args[1:]
	}
	o.sources = texts
	o.operands = slices.Clone(args)
	return o, 0, true
}

func readSource(t *kernel.Task, name string) (string, error) {
	if name == "/dev/stdin" {
		name = "-"
	}
	b, err := command.ReadAll(t, name)
	return string(b), err
}

// option reads one option: its letter, and its value where it has one.
func option(a string) (key, value string, given bool) {
	if !strings.HasPrefix(a, "--") {
		key = a[1:2]
		if wants(key) || key == "L" || key == "d" || key == "o" || key == "p" {
			return key, a[2:], len(a) > 2
		}
		if len(a) > 2 {
			return "?", "", false
		}
		return key, "", false
	}
	name, value, given := strings.Cut(a[2:], "=")
	var found []string
	for _, l := range longOptions() {
		if l[0] == name {
			return l[1], value, given
		}
		if len(name) > 1 && strings.HasPrefix(l[0], name) {
			found = append(found, l[1])
		}
	}
	if len(found) == 1 {
		return found[0], value, given
	}
	return "?", "", false
}

// wants reports whether an option takes a value.
func wants(key string) bool {
	switch key {
	case "F", "v", "f", "e", "E", "i", "W":
		return true
	}
	return false
}

func longOptions() [][2]string {
	return [][2]string{
		{"field-separator", "F"}, {"assign", "v"}, {"file", "f"}, {"source", "e"}, {"exec", "E"}, {"include", "i"},
		{"characters-as-bytes", "b"}, {"traditional", "c"}, {"posix", "P"}, {"re-interval", "r"}, {"non-decimal-data", "n"},
		{"optimize", "O"}, {"no-optimize", "s"}, {"sandbox", "S"}, {"lint-old", "t"}, {"lint", "L"}, {"use-lc-numeric", "N"},
		{"bignum", "M"}, {"csv", "k"}, {"version", "V"}, {"help", "h"}, {"trace", "I"},
	}
}

func version(t *kernel.Task) {
	fmt.Fprintf(t.Out(), "awk (Paddock), with the language of GNU Awk 5.2\n")
}

func usage(t *kernel.Task) {
	w := t.Out()
	name := t.Name()
	fmt.Fprintf(w, "Usage: %s [OPTION]... 'program' [file]...\n   or: %s [OPTION]... -f progfile [file]...\n", name, name)
	fmt.Fprintf(w, `
  -F fs, --field-separator=fs   what separates fields
  -v var=val, --assign=var=val  set a variable
  -f file, --file=file          read the program from a file
  -e text, --source=text        a part of the program
  -b, --characters-as-bytes     bytes are characters
  -k, --csv                     read comma-separated values
  -r, -P, -c, -n, -O, -S, -L    accepted, without effect
      --help, --version
`)
}

func usageTo(t *kernel.Task, fd int) {
	_, _ = t.Write(fd, []byte("Usage: "+t.Name()+" [OPTION]... 'program' [file]...\n"))
}
