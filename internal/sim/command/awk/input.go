package awk

import (
	"io"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// input0 is the main input: the files of ARGV, one after the other.
type input0 struct {
	r      *reader
	next   int  // of ARGV
	any    bool // there was a file
	ended  bool
	opened bool // r's file has begun, and ENDFILE is to run for it
	stdin  bool // r reads standard input

	begin, end []stmtFn // BEGINFILE and ENDFILE
}

// isAssignment reports whether an operand assigns to a variable.
func isAssignment(s string) (name, v string, ok bool) {
	name, v, ok = cut(s)
	if !ok || name == "" || !isNameStart(name[0]) {
		return "", "", false
	}
	for i := range len(name) {
		if !isName(name[i]) {
			return "", "", false
		}
	}
	return name, v, true
}

// openNext goes on to the next file. It tells whether there is one.
func (m *machine) openNext() bool {
	in := &m.in
	argv := m.array(&m.globals[vARGV], "ARGV")
	for float64(in.next) < m.globals[vARGC].v.num() {
		i := in.next
		in.next++
		m.t.Step(32)
		e, ok := argv.m[strconv.Itoa(i)]
		if !ok {
			continue
		}
		name := m.str(e.v)
		if name == "" {
			continue
		}
		if n, v, ok := isAssignment(name); ok {
			m.setVar(n, v)
			continue
		}
		m.set(&m.globals[vARGIND], num(float64(i)))
		if m.openMain(name) {
			return true
		}
	}
	if in.any {
		in.ended = true
		return false
	}
	return m.openMain("-")
}

// openMain opens a file of the main input. One that cannot be read is an
// error, but a directory is passed over.
func (m *machine) openMain(name string) bool {
	in := &m.in
	in.any = true
	d, err := open(m.t, name)
	m.fnr = 0
	m.set(&m.globals[vFILENAME], input(name))
	if err == nil {
		if i, ierr := d.File.Info(); ierr == nil && i.IsDir() {
			d.Drop()
			d, err = nil, linux.EISDIR
		}
	}
	if err != nil && len(in.begin) == 0 {
		if err == linux.EISDIR {
			m.warn("command line argument `%s' is a directory: skipped", name)
			return false
		}
		m.fatal("cannot open file `%s' for reading: %s", name, vfs.Message(err))
	}
	if err == nil {
		in.r, in.stdin = m.newReader(d), name == "-"
	} else {
		in.r = &reader{err: err}
	}
	m.set(&m.globals[vERRNO], str(""))
	if err != nil {
		m.set(&m.globals[vERRNO], str(vfs.Message(err)))
	}
	if len(in.begin) > 0 && !m.hook(in.begin) {
		return false
	}
	if err != nil {
		m.fatal("cannot open file `%s' for reading: %s", name, vfs.Message(err))
	}
	in.opened = true
	return true
}

// hook runs BEGINFILE or ENDFILE, and tells whether the file goes on.
func (m *machine) hook(list []stmtFn) bool {
	for _, f := range list {
		switch c := m.catch(func() ctl { return f(m) }); c {
		case nextfiles:
			m.closeMain()
			return false
		case exits:
			panic(unwinding{exits})
		}
	}
	return true
}

func open(t *kernel.Task, name string) (*kernel.Desc, error) {
	in, err := command.Open(t, name)
	if err != nil {
		return nil, err
	}
	return in.Desc(), nil
}

// closeMain ends the file at hand.
func (m *machine) closeMain() {
	in := &m.in
	if in.r == nil {
		return
	}
	in.r.drop(m)
	in.r = nil
	if in.opened {
		in.opened = false
		m.hook(in.end)
	}
}

// nextRecord reads the next record of the main input; it is not the record yet.
func (m *machine) nextRecord() (rec []byte, ok bool) {
	in := &m.in
	for {
		if in.r == nil {
			if in.ended || !m.openNext() {
				if in.ended {
					return nil, false
				}
				continue
			}
		}
		rec, end, ok := in.r.record(m)
		if ok {
			m.t.Step(32)
			m.nr++
			m.fnr++
			m.setRT(end)
			return rec, true
		}
		if err := in.r.err; err != io.EOF && err != nil {
			name := m.str(m.globals[vFILENAME].v)
			m.closeMain()
			m.fatal("error reading input file `%s': %s", name, vfs.Message(err))
		}
		m.closeMain()
	}
}

func (m *machine) setRT(end []byte) {
	if len(end) == 1 && end[0] == '\n' {
		m.globals[vRT].v = value{s: "\n", k: text}
		return
	}
	m.set(&m.globals[vRT], str(string(end)))
}

// getline reads from where the expression says: 1 is a record, 0 the end, -1
// an error. The record is valid until the next reading.
func (m *machine) getline(r *reader) ([]byte, float64) {
	if r.desc == nil && r.err != nil && r.err != io.EOF {
		return nil, -1
	}
	rec, end, ok := r.record(m)
	if ok {
		m.setRT(end)
		return rec, 1
	}
	if r.err != nil && r.err != io.EOF {
		m.set(&m.globals[vERRNO], str(vfs.Message(r.err)))
		return nil, -1
	}
	return nil, 0
}

// readerOf gives the reader of a file or command of getline.
func (m *machine) readerOf(from tok, name string) *reader {
	key := "<" + name
	switch from {
	case '|':
		key = "|" + name
	case tCoproc:
		return m.coprocess(name).from
	}
	if r, ok := m.sources[key]; ok {
		return r
	}
	if name == "" {
		m.fatal("expression for `%c' redirection has null string value", rune(from))
	}
	r, err := m.openSource(from, name)
	if err != nil {
		m.set(&m.globals[vERRNO], str(vfs.Message(err)))
		return nil
	}
	m.sources[key] = r
	m.count(weight + len(key))
	return r
}

func (m *machine) openSource(from tok, name string) (*reader, error) {
	if err := m.mayOpen(); err != nil {
		return nil, err
	}
	if from == '|' {
		m.flushAll()
		return m.command(name)
	}
	if name == "-" && m.in.r != nil && m.in.stdin {
		return m.in.r, nil // standard input goes on where the main input stands
	}
	if name == "/dev/stdin" {
		name = "-"
	}
	d, err := open(m.t, name)
	if err != nil {
		return nil, err
	}
	if i, err := d.File.Info(); err == nil && i.IsDir() {
		d.Drop()
		return nil, linux.EISDIR
	}
	return m.newReader(d), nil
}

// command starts a command to read from.
func (m *machine) command(line string) (*reader, error) {
	r, w := kernel.Pipe()
	r.Hold()
	w.Hold()
	defer w.Drop()
	child, err := m.t.Spawn(shell(line), func(child *kernel.Task) error { return child.SetFD(1, w, false) })
	if err != nil {
		r.Drop()
		return nil, err
	}
	return &reader{desc: r, child: child}, nil
}

func shell(line string) kernel.Command {
	return kernel.Command{Args: []string{"sh", "-c", line}}
}
