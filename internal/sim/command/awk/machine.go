package awk

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// The special variables, in the order of specials.
const (
	vNF = iota
	vNR
	vFNR
	vFS
	vOFS
	vORS
	vRS
	vSUBSEP
	vCONVFMT
	vOFMT
	vIGNORECASE
	vFIELDWIDTHS
	vFPAT
	hooked // assigning to one before this has effects
)

const (
	vRSTART = iota + hooked
	vRLENGTH
	vFILENAME
	vRT
	vARGC
	vARGV
	vENVIRON
	vPROCINFO
	vERRNO
	vARGIND
)

func specials() []string {
	return []string{
		"NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "SUBSEP", "CONVFMT", "OFMT", "IGNORECASE", "FIELDWIDTHS", "FPAT",
		"RSTART", "RLENGTH", "FILENAME", "RT", "ARGC", "ARGV", "ENVIRON", "PROCINFO", "ERRNO", "ARGIND",
	}
}

// A fatal error ends the program with a status.
type fatal struct {
	msg    string
	status int
}

// An unwinding ends a statement from within an expression.
type unwinding struct{ c ctl }

// A machine runs a program.
type machine struct {
	t    *kernel.Task
	prog *program

	globals []cell
	frame   []cell
	stack   []cell // the free part of the stack of frames
	level   int    // Go's frames below, about
	ret     value
	status  int

	funcs []compiled

	convfmt, ofmt, ofs, ors, subsep string
	fs, rs                          string
	ignoreCase                      bool
	bytes                           bool // -b: characters are bytes
	csv                             bool // --csv

	// Of the record.
	rec     []byte // the record, while line is not made of it
	made    bool   // line is the record
	line    string
	lineIs  kind    // maybe, or text where the program assigned a string
	split   bool    // fields are of the record
	dirty   bool    // line is to be made of the fields
	nf      int     // once split
	fields  []value // from $1 on
	how     splitter
	fsHow   splitter
	fsSplit splitter // of FS, where fields are split otherwise
	nr      float64
	fnr     float64

	in      input0
	sources map[string]*reader // of getline
	sinks   map[string]*sink
	out     *command.Writer
	plain   sink // standard output
	live    bool // standard output is a terminal

	regexes map[string]*matcher
	formats map[string][]verb

	formatCost int // that the task was charged for formats
	regs       []int

	key, buf, subject []byte
	random            random
	seed              float64

	counts   int // bytes that are not yet told to the task
	searched int // steps of searches that are not yet told to the task
	pending  int // bytes of values that nothing holds when the statement ends

	inRange []bool
	zone    *time.Location
}

// A compiled function is one that is ready to run.
type compiled struct {
	f     *function
	body  stmtFn
	depth int
}

// count counts bytes that live values take, or no longer do.
func (m *machine) count(n int) {
	m.counts += n
	if m.counts > 16<<10 || m.counts < -64<<10 {
		m.settle()
	}
}

func (m *machine) settle() {
	n := m.counts
	m.counts = 0
	if n > 0 {
		m.t.Grow(n)
	} else {
		m.t.Shrink(-n)
	}
}

// large is how long a string may be that is not counted while an expression
// holds it.
const large = 64 << 10

// fresh counts a string that an expression has made, until the statement ends.
func (m *machine) fresh(n int) {
	if n < large {
		return
	}
	m.t.Bound("string", int64(n), m.t.K.Limits.String)
	m.t.Step(n >> 4)
	m.t.Grow(n)
	m.pending += n
}

// release ends what fresh began.
func (m *machine) release() {
	m.t.Shrink(m.pending)
	m.pending = 0
}

// maxLevel bounds Go's stack.
const maxLevel = 400_000

func (m *machine) down() {
	m.level++
	m.t.Bound("calls", int64(m.level), maxLevel)
}

func (m *machine) fatal(format string, args ...any) {
	panic(&fatal{fmt.Sprintf(format, args...), 2})
}

func (m *machine) warn(format string, args ...any) {
	m.t.Errorf("warning: "+format, args...)
}

// newMachine makes a machine for a program.
func newMachine(t *kernel.Task, p *program) *machine {
	m := &machine{
		t: t, prog: p, globals: make([]cell, len(p.names)),
		convfmt: "%.6g", ofmt: "%.6g", ofs: " ", ors: "\n", subsep: "\x1c", fs: " ", rs: "\n",
		sources: map[string]*reader{}, sinks: map[string]*sink{},
		regexes: map[string]*matcher{}, formats: map[string][]verb{},
		out: command.StdoutStatus(t, 2), made: true, split: true, lineIs: maybe,
	}
	m.plain = sink{w: m.out, std: true}
	if d := t.FD(1); d != nil {
		if _, ok := d.File.(kernel.Terminal); ok {
			m.live = true
		}
	}
	m.random.seed(1)
	for i, v := range map[int]string{
		vFS: " ", vOFS: " ", vORS: "\n", vRS: "\n", vSUBSEP: "\x1c", vCONVFMT: "%.6g", vOFMT: "%.6g",
		vFIELDWIDTHS: "", vFPAT: "[^[:space:]]+", vFILENAME: "", vRT: "", vERRNO: "",
	} {
		m.globals[i].v = str(v)
	}
	m.globals[vFILENAME].v = value{}
	for _, i := range []int{vIGNORECASE, vRSTART, vARGIND} {
		m.globals[i].v = num(0)
	}
	m.globals[vRLENGTH].v = num(-1)
	for _, i := range []int{vARGV, vENVIRON, vPROCINFO} {
		m.array(&m.globals[i], "")
	}
	m.setFS(" ")
	m.how = m.fsHow
	for _, e := range t.Env {
		if name, v, ok := cut(e); ok {
			m.put(m.globals[vENVIRON].arr, name, input(v))
		}
	}
	m.procinfo()
	return m
}

func cut(s string) (string, string, bool) {
	for i := range len(s) {
		if s[i] == '=' {
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

func (m *machine) procinfo() {
	a := m.globals[vPROCINFO].arr
	t := m.t
	for name, n := range map[string]int{
		"pid": t.PID, "ppid": t.PPID, "pgrpid": t.PGID(),
		"uid": t.View.UID, "euid": t.View.UID, "gid": t.View.GID, "egid": t.View.GID,
	} {
		m.put(a, name, num(float64(n)))
	}
	m.put(a, "version", str("5.2.1"))
	m.put(a, "platform", str("posix"))
	m.put(a, "strftime", str(defaultTime))
	m.put(a, "FS", str("FS"))
}

// setSpecial does what assigning to a special variable entails.
func (m *machine) setSpecial(i int, v value) {
	if i == vNF {
		m.setNF(v.num())
		return
	}
	m.set(&m.globals[i], v)
	switch i {
	case vNR:
		m.nr = v.num()
	case vFNR:
		m.fnr = v.num()
	case vFS:
		m.setFS(m.str(v))
		if v.k == pattern {
			m.fsHow = splitter{kind: byRegex, re: m.regex(v.s)}
			m.fsSplit = m.fsHow
		}
	case vOFS:
		if m.dirty {
			m.join()
		}
		m.ofs = m.str(v)
	case vORS:
		m.ors = m.str(v)
	case vRS:
		m.rs = m.str(v)
	case vSUBSEP:
		m.subsep = m.str(v)
	case vCONVFMT:
		m.convfmt = m.str(v)
	case vOFMT:
		m.ofmt = m.str(v)
	case vIGNORECASE:
		m.ignoreCase = v.bool()
	case vFIELDWIDTHS:
		m.setWidths(m.str(v))
	case vFPAT:
		m.fsHow = splitter{kind: byContent, re: m.regex(m.str(v))}
		m.put(m.globals[vPROCINFO].arr, "FS", str("FPAT"))
	}
}

// setVar assigns to a variable from outside: -v, and operands.
func (m *machine) setVar(name, v string) {
	v = unescape(v)
	i, ok := m.prog.globals[name]
	if !ok {
		return // the program does not know it
	}
	if i < hooked {
		m.setSpecial(i, input(v))
		return
	}
	if m.globals[i].arr != nil {
		m.fatal("cannot use array `%s' as a variable", name)
	}
	m.set(&m.globals[i], input(v))
}

// get1 reads a global variable.
func (m *machine) special(i int) value {
	switch i {
	case vNF:
		m.ensure()
		return num(float64(m.nf))
	case vNR:
		return num(m.nr)
	case vFNR:
		return num(m.fnr)
	}
	return m.globals[i].v
}

// catch runs f, and tells how it ended where that was not by itself.
func (m *machine) catch(f func() ctl) (c ctl) {
	frame, stack, level := m.frame, m.stack, m.level
	defer func() {
		switch r := recover().(type) {
		case nil:
			return
		case unwinding:
			c = r.c
		default:
			panic(r)
		}
		m.frame, m.stack, m.level = frame, stack, level
		m.leave(stack)
	}()
	return f()
}

// call runs a function of the program.
func (m *machine) call(fn *compiled, args []argFn, line int) value {
	n := len(fn.f.params)
	m.t.Step(round + n)
	if len(args) > n { // what is too much is computed all the same
		for _, arg := range args[n:] {
			var c cell
			arg(m, &c)
			m.leave([]cell{c})
		}
		args = args[:n]
	}
	stack := m.stack
	if len(m.stack) < n {
		size := max(256, n)
		m.t.Grow(size * 56)
		defer m.t.Shrink(size * 56)
		m.stack = make([]cell, size)
	}
	frame := m.stack[:n:n]
	m.stack = m.stack[n:]
	rest := m.stack
	m.level += fn.depth
	m.t.Bound("calls", int64(m.level), maxLevel)
	for i, arg := range args {
		arg(m, &frame[i])
	}
	m.stack = rest
	saved, pending := m.frame, m.pending
	m.frame, m.pending = frame, 0
	m.ret = value{}
	c := fn.body(m)
	m.release()
	m.frame, m.pending = saved, pending
	m.level -= fn.depth
	m.leave(frame)
	m.stack = stack
	if c != goesOn && c != returns {
		panic(unwinding{c})
	}
	v := m.ret
	m.ret = value{}
	m.fresh(len(v.s))
	return v
}

// leave clears the local variables of a call.
func (m *machine) leave(frame []cell) {
	for i := range frame {
		c := &frame[i]
		if c.arr != nil {
			if c.own {
				m.empty(c.arr)
				m.count(-weight)
			}
		} else if d := counted(c.v.s); d != 0 {
			m.count(-d)
		}
		*c = cell{}
	}
}

// A task's descriptors are bounded, and so are a program's open files.
func (m *machine) mayOpen() error {
	if len(m.sources)+len(m.sinks) >= m.t.K.MaxDescriptors() {
		return linux.EMFILE
	}
	return nil
}

// names lists what is open, in an order that is always the same.
func sortedKeys[T any](x map[string]T) []string {
	list := make([]string, 0, len(x))
	for k := range x {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
