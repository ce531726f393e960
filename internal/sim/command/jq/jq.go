// Package jq is the language jq, as of version 1.7, with what 1.8 adds, and
// the tools jq and yq that are made of it. The interpreter is our own: objects
// keep their keys in order, numbers their digits, and everything that a
// program makes is counted while it lives.
package jq

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{{Name: "jq", Run: run}, {Name: "yq", Run: runYQ}}
}

// options are what the command line says.
type options struct {
	null, raw, slurp, stream, seq bool
	compact, text, nul, joined    bool
	exit, unbuffered              bool
	color                         int // 1 is on, -1 off
	style                         style
	program                       string
	hasProgram                    bool
	file                          string
	search                        []string
	names                         []string
	named                         *table
	positional                    []value
}

// newMachine makes a machine for a task.
func newMachine(t *kernel.Task) *machine {
	m := &machine{
		t: t, debt: least, globals: map[string]value{}, builtins: map[string]*function{}, natives: map[string]*native{},
		regexes: map[string]*regex.Regexp{},
		modules: &modules{t: t, home: t.Getenv("HOME"), loaded: map[string]*library{}},
		input:   func() (value, error) { return nil, failf("break") },
		file:    func() value { return nil },
		line:    func() float64 { return 0 },
	}
	m.now = func() float64 { return float64(t.K.Now().UnixMicro()) / 1e6 }
	m.stderr = func(b []byte) {
		_ = t.Flush() // the end of the program tells of it
		_, _ = t.Write(2, b)
	}
	m.debug = func(v value) {
		m.stderr([]byte(`["DEBUG:",` + m.text(v) + "]\n"))
	}
	return m
}

func run(t *kernel.Task) int {
	m := newMachine(t)
	o := &options{named: &table{}, style: style{indent: "  "}}
	if status, ok := o.parse(m); !ok {
		return status
	}
	file := "<top-level>"
	if o.file != "" {
		b, err := command.ReadAll(t, o.file)
		if err != nil {
			t.Errorf("error: Could not open %s: %s", o.file, vfs.Message(err))
			return 2
		}
		o.program = string(b)
		if strings.HasPrefix(o.program, "#!") {
			_, o.program, _ = strings.Cut(o.program, "\n")
		}
	}
	m.modules.search = append(m.modules.search, o.search...)
	if len(o.search) == 0 {
		m.modules.search = []string{"~/.jq", "/usr/lib/jq", "/usr/lib"}
	}
	n, e, err := m.compile(o.program)
	if err != nil {
		t.Errorf("error: %s at %s, line %d:\n%s", err.msg, file, err.line, lineOf(o.program, err.line))
		_, _ = t.Write(2, []byte(t.Name()+": 1 compile error\n"))
		return 3
	}
	return m.main(o, n, e)
}

func lineOf(s string, n int) string {
	lines := strings.Split(s, "\n")
	if n >= 1 && n <= len(lines) && len(lines[n-1]) < 400 {
		return lines[n-1]
	}
	return ""
}

// compile reads a program.
func (m *machine) compile(src string) (*node, *env, *syntaxError) {
	m.t.Bound("source", int64(len(src)), m.t.K.Limits.Source)
	m.t.Grow(16 * len(src))
	m.t.Step(len(src))
	mod, err := parse(src, int(m.t.K.Limits.Nesting))
	if err != nil {
		return nil, nil, err
	}
	s, e, r, lerr := m.modules.link(m, mod, ".")
	if lerr != nil {
		return nil, nil, &syntaxError{lerr.Error(), 1}
	}
	body := mod.body
	if body == nil {
		body = &node{op: opIdentity}
	}
	for i := len(mod.defs) - 1; i >= 0; i-- {
		body = &node{op: opDef, def: mod.defs[i], l: body}
	}
	if bad := resolving(func() { r.resolve(body, s) }); bad != nil {
		return nil, nil, &syntaxError{bad.msg, max(1, bad.line)}
	}
	return body, e, nil
}

// main runs a program over its input, and gives the status.
func (m *machine) main(o *options, n *node, e *env) int {
	t := m.t
	f := &feed{m: m, t: t, names: o.names, raw: o.raw, slurp: o.slurp, stream: o.stream, seq: o.seq}
	if len(f.names) == 0 {
		f.names = []string{"-"}
	}
	defer f.close()
	m.input = func() (value, error) {
		v, err := f.value()
		if errors.Is(err, errEnd) {
			return nil, failf("break")
		}
		return v, err
	}
	m.file = func() value {
		if f.name == "" {
			return nil
		}
		return f.name
	}
	m.line = func() float64 { return f.lines }
	w := &printer{m: m, o: o}
	status := 0
	first := true
	for {
		var v value
		if !o.null {
			var err error
			v, err = f.value()
			if errors.Is(err, errEnd) {
				break
			}
			if err != nil {
				t.Errorf("error (at %s:%d): %s", place(f), int(f.lines), err)
				return 2
			}
		} else if !first {
			break
		}
		first = false
		m.holds = m.holds[:0]
		err := m.eval(n, e, v, w.print)
		m.frames = m.frames[:0]
		if err == nil {
			if status == 5 {
				status = 0
			}
			continue
		}
		end, s := m.failed(o, f, err)
		status = s
		if end {
			return status
		}
	}
	if err := t.Flush(); err != nil {
		t.Errorf("error: writing output failed: %s", vfs.Message(err))
		t.Exit(2)
	}
	switch {
	case f.bad:
		return 2
	case status != 0:
		return status
	case o.exit && !w.any:
		return 4
	case o.exit && !truthy(w.last):
		return 1
	}
	return 0
}

func place(f *feed) string {
	if f.name == "" {
		return "<unknown>"
	}
	return f.name
}

// failed tells of an error of the program, and whether it ends.
func (m *machine) failed(o *options, f *feed, err error) (end bool, status int) {
	t := m.t
	at := "(at <unknown>)"
	if !o.null && f.name != "" {
		at = "(at " + f.name + ":" + strconv.Itoa(int(f.lines)) + ")"
	}
	switch err := unpass(err).(type) {
	case *haltError:
		if err.say {
			m.stderrRaw(err.v)
		}
		return true, err.status
	case *inputError:
		t.Errorf("error %s: %s", at, err)
		return true, 2
	case *breakError:
		t.Errorf("error %s: break", at)
	case *jqError:
		if s, ok := err.v.(string); ok {
			t.Errorf("error %s: %s", at, s)
		} else {
			t.Errorf("error %s (not a string): %s", at, m.text(err.v))
		}
	default:
		t.Errorf("error %s: %s", at, err)
	}
	return false, 5
}

// stderrRaw writes what halt_error says.
func (m *machine) stderrRaw(v value) {
	if s, ok := v.(string); ok {
		m.stderr([]byte(s))
		return
	}
	m.stderr([]byte(m.text(v) + "\n"))
}

// A printer writes the values of a program.
type printer struct {
	m    *machine
	o    *options
	b    []byte
	any  bool
	last value
}

func (p *printer) print(v value) error {
	p.any, p.last = true, v
	o := p.o
	b := p.b[:0]
	if o.seq {
		b = append(b, 0x1e)
	}
	s, isString := v.(string)
	switch {
	case isString && o.text:
		if o.style.ascii {
			b = p.m.quote(b, s, true)
			break
		}
		if o.nul && strings.IndexByte(s, 0) >= 0 {
			return failf("Cannot dump a string containing NUL with --raw-output0 option")
		}
		b = append(p.m.room(b, len(s)), s...)
	default:
		b = p.m.encode(b, v, &o.style, 0)
	}
	switch {
	case o.nul:
		b = append(b, 0)
	case !o.joined:
		b = append(b, '\n')
	}
	_, err := p.m.t.Out().Write(b)
	if cap(b) <= 1<<20 {
		p.b = b
	} else {
		p.b = nil
	}
	if err != nil || o.unbuffered {
		if err = p.m.t.Flush(); err != nil {
			p.m.t.Exit(2)
		}
	}
	return nil
}

// colors are those of JQ_COLORS, or the usual ones.
func colors(spec string) []string {
	list := []string{"1;30", "0;39", "0;39", "0;39", "0;32", "1;39", "1;39", "34;1"}
	valid := true
	for _, c := range spec {
		if c != ';' && c != ':' && (c < '0' || c > '9') {
			valid = false
		}
	}
	if spec != "" && valid {
		for i, c := range strings.Split(spec, ":") {
			if i < len(list) {
				list[i] = c
			}
		}
	}
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = "\x1b[" + c + "m"
	}
	return out
}

// count reads the argument of --indent.
func count(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < math.MaxInt32
}
