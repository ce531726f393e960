package awk

import (
	"errors"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A sink is where print writes to.
type sink struct {
	w     *command.Writer
	desc  *kernel.Desc // held
	child *kernel.Task // of a command
	from  *reader      // of a coprocess, its other end
	std   bool         // it is standard output
	quick bool         // nothing is held back
	quiet bool         // a command that no longer reads is no error: it is being closed
	gone  bool         // and it no longer reads
}

// A tap is the file below a sink.
type tap struct {
	m *machine
	s *sink
}

func (x tap) Write(b []byte) (int, error) {
	x.m.t.Step(1)
	if x.s.gone {
		return len(b), nil
	}
	n, err := x.s.desc.File.Write(x.m.t, b)
	if errors.Is(err, linux.EPIPE) {
		if x.s.quiet {
			x.s.gone = true
			return len(b), nil
		}
		x.m.t.Signal(linux.SIGPIPE)
		x.m.t.Check()
	}
	return n, err
}

// sinkOf gives what print redirects to.
func (m *machine) sinkOf(to tok, name string) *sink {
	switch to {
	case 0:
		return &m.plain
	case tCoproc:
		return m.coprocess(name)
	case '|':
		name = "|" + name
	default:
		name = ">" + name
	}
	if s, ok := m.sinks[name]; ok {
		return s
	}
	if len(name) == 1 {
		m.fatal("expression for `%s' redirection has null string value", spell(to))
	}
	if to != '|' && (name == ">/dev/stdout" || name == ">/dev/fd/1" || name == ">-") {
		return &m.plain
	}
	s, err := m.openSink(to, name[1:])
	if err != nil {
		m.fatal("cannot redirect to `%s': %s", name[1:], vfs.Message(err))
	}
	m.sinks[name] = s
	m.count(weight + len(name))
	return s
}

func spell(to tok) string {
	switch to {
	case tAppend:
		return ">>"
	case tCoproc:
		return "|&"
	}
	return string(rune(to))
}

// buffer is about what a buffered writer takes.
const buffer = 32 << 10

func (m *machine) openSink(to tok, name string) (*sink, error) {
	if err := m.mayOpen(); err != nil {
		return nil, err
	}
	s := &sink{}
	if to == '|' {
		m.flushAll()
		if err := m.startSink(s, name); err != nil {
			return nil, err
		}
	} else if fd := descriptor(name); fd >= 0 {
		// The file itself, which a name would open anew, and cut.
		d := m.t.FD(fd)
		if d == nil {
			return nil, linux.EBADF
		}
		s.desc = d.Hold()
		s.quick = fd == 2
	} else {
		flags := linux.O_WRONLY | linux.O_CREAT | linux.O_TRUNC
		if to == tAppend {
			flags = linux.O_WRONLY | linux.O_CREAT | linux.O_APPEND
		}
		d, err := m.t.Open(name, flags, 0o666)
		if err != nil {
			return nil, err
		}
		s.desc = d.Hold()
	}
	m.sinkWriter(s, name)
	return s, nil
}

// descriptor gives the descriptor that a name stands for to awk, or -1.
func descriptor(name string) int {
	if name == "/dev/stderr" {
		return 2
	}
	digits, ok := strings.CutPrefix(name, "/dev/fd/")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil {
		return -1
	}
	return int(n)
}

func (m *machine) sinkWriter(s *sink, name string) {
	m.t.Grow(buffer)
	s.w = command.NewWriter(tap{m, s}, func(err error) {
		m.fatal("print to \"%s\" failed: %s", name, vfs.Message(err))
	})
}

func (m *machine) startSink(s *sink, line string) error {
	r, w := kernel.Pipe()
	w.Hold()
	r.Hold()
	defer r.Drop()
	child, err := m.t.Spawn(shell(line), func(child *kernel.Task) error { return child.SetFD(0, r, false) })
	if err != nil {
		w.Drop()
		return err
	}
	s.desc, s.child = w, child
	return nil
}

// coprocess gives a command that is both written to and read from.
func (m *machine) coprocess(line string) *sink {
	key := "&" + line
	if s, ok := m.sinks[key]; ok {
		return s
	}
	if err := m.mayOpen(); err != nil {
		m.fatal("cannot open two way pipe `%s': %s", line, vfs.Message(err))
	}
	m.flushAll()
	in, toIn := kernel.Pipe()
	fromOut, out := kernel.Pipe()
	for _, d := range []*kernel.Desc{in, toIn, fromOut, out} {
		d.Hold()
	}
	defer in.Drop()
	defer out.Drop()
	child, err := m.t.Spawn(shell(line), func(child *kernel.Task) error {
		return errors.Join(child.SetFD(0, in, false), child.SetFD(1, out, false))
	})
	if err != nil {
		toIn.Drop()
		fromOut.Drop()
		m.fatal("cannot open two way pipe `%s': %s", line, vfs.Message(err))
	}
	s := &sink{desc: toIn, child: child, quick: true}
	s.from = &reader{desc: fromOut, to: s}
	m.sinkWriter(s, line)
	m.sinks[key] = s
	return s
}

// flushAll writes out what is held, before somebody else writes.
func (m *machine) flushAll() {
	m.out.Flush()
	for _, key := range sortedKeys(m.sinks) {
		m.sinks[key].w.Flush()
	}
}

// end closes a sink, and gives a command's status.
func (s *sink) end(m *machine) float64 {
	if s.desc != nil {
		s.quiet = true
		s.w.Flush()
		s.desc.Drop()
		s.desc = nil
		m.t.Shrink(buffer)
	}
	if s.from != nil {
		s.from.drop(m)
	}
	return m.wait(s.child)
}

// wait waits for a command, and gives its status as close and system do.
func (m *machine) wait(child *kernel.Task) float64 {
	if child == nil {
		return 0
	}
	for {
		s, err := m.t.Wait(child)
		if err == nil {
			return float64(exit(s))
		}
		m.t.Caught()
	}
}

func exit(s kernel.Status) int {
	if s.Signal != 0 {
		return 256 + int(s.Signal)
	}
	return s.Code
}

// close closes whatever has a name; -1 is nothing.
func (m *machine) close(name, how string) float64 {
	for _, kind := range []string{">", "|", "&"} {
		s, ok := m.sinks[kind+name]
		if !ok {
			continue
		}
		if how == "to" && kind == "&" {
			if s.desc != nil {
				s.desc.Drop()
				s.desc, s.gone = nil, true
				m.t.Shrink(buffer)
			}
			return 0
		}
		delete(m.sinks, kind+name)
		m.count(-weight - len(kind+name))
		return s.end(m)
	}
	for _, kind := range []string{"<", "|"} {
		r, ok := m.sources[kind+name]
		if !ok {
			continue
		}
		delete(m.sources, kind+name)
		m.count(-weight - len(kind+name))
		if r != m.in.r {
			r.drop(m)
		}
		return m.wait(r.child)
	}
	return -1
}

// closeAll ends everything that is open, as a program does at its end.
func (m *machine) closeAll() {
	for _, key := range sortedKeys(m.sinks) {
		if m.sinks[key].child == nil {
			m.sinks[key].end(m)
			delete(m.sinks, key)
		}
	}
	if len(m.sinks) > 0 && m.live {
		m.out.Flush()
	}
	for _, key := range sortedKeys(m.sinks) {
		m.sinks[key].end(m)
		delete(m.sinks, key)
	}
	for _, key := range sortedKeys(m.sources) {
		r := m.sources[key]
		if r != m.in.r {
			r.drop(m)
		}
		m.wait(r.child)
		delete(m.sources, key)
	}
	m.out.Flush()
}

// abandon lets go of all files, where the task ends without ado.
func (m *machine) abandon() {
	for _, s := range m.sinks {
		if s.desc != nil {
			s.desc.Drop()
		}
		if s.from != nil {
			s.from.drop(m)
		}
	}
	for _, r := range m.sources {
		if r != m.in.r {
			r.drop(m)
		}
	}
	if m.in.r != nil {
		m.in.r.drop(m)
	}
}
