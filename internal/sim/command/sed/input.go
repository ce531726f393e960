package sed

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An input is the files that are edited, one line after the other.
type input struct {
	m      *machine
	files  []string // that are still to come
	r      *command.Reader
	single *single // in place of r where no more is read than is needed
	opened string  // the name of the file that is open
	name   string  // of the file that the line came from
	number int64
	status int
	place  *place // where the file is edited in place
}

// close lets go of the file.
func (in *input) close() {
	if in.r != nil {
		in.r.Close()
		in.r = nil
	}
	if in.single != nil {
		in.single.close()
		in.single = nil
	}
	if in.place != nil {
		in.place.abandon()
		in.place = nil
	}
}

// finish ends the file as it was edited so far.
func (in *input) finish() {
	if in.r != nil {
		in.r.Return()
	}
	if in.place != nil {
		in.place.settle()
		in.place = nil
	}
	in.close()
}

// ready opens files until there is something to read. It is false at the end.
func (in *input) ready() bool {
	for {
		if in.opened != "" {
			if in.more() {
				return true
			}
			in.end()
		}
		if len(in.files) == 0 {
			return false
		}
		name := in.files[0]
		in.files = in.files[1:]
		in.open(name)
	}
}

// more says whether the file that is open has more.
func (in *input) more() bool {
	if in.single != nil {
		return in.single.more()
	}
	_, ok := in.r.Peek()
	if err := in.r.Err(); !ok && err != nil {
		in.m.die(trouble, "read error on %s: %s", in.shown(in.opened), reason(err))
	}
	return ok
}

func (in *input) shown(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// end ends the file that is open.
func (in *input) end() {
	in.finish()
	in.opened = ""
}

// open opens the next file. What cannot be read is left out.
func (in *input) open(name string) {
	m := in.m
	if m.o.follow && (name != "-" || m.o.inPlace) {
		name = m.target(name)
	}
	if name == "-" && !m.o.inPlace {
		if m.t.FD(0) == nil {
			in.lacks(name, linux.EBADF)
			return
		}
		in.opened = name
		if m.o.unbuffered {
			in.single = &single{t: m.t, d: m.t.FD(0).Hold()}
			return
		}
		r, err := command.StdinReader(m.t)
		if err != nil {
			in.lacks(name, err)
			in.opened = ""
			return
		}
		in.r = r
	} else {
		from := name
		if name == "-" {
			from = "./-" // not standard input, in place
		}
		r, err := command.OpenReader(m.t, from)
		if err != nil {
			in.lacks(name, err)
			return
		}
		in.r, in.opened = r, name
		if m.o.inPlace && !in.edit(name) {
			in.close()
			in.opened = ""
			return
		}
	}
	if m.o.separate {
		in.number = 0
		m.hold.text = m.hold.text[:0]
		for _, l := range m.readers {
			l.rewind()
		}
		for n := range m.program {
			m.program[n].rewind()
		}
	}
}

// maxLinks is how many links may lead to each other, as in Linux.
const maxLinks = 40

// target follows the links that a name leads to.
func (m *machine) target(name string) string {
	for range maxLinks {
		info, err := m.t.View.Lstat(name)
		if err == nil && !info.IsLink() {
			return name
		}
		to := ""
		if err == nil {
			to, err = m.t.View.Readlink(name)
		}
		if err != nil {
			m.die(trouble, "couldn't readlink %s: %s", name, reason(err))
		}
		dir, _ := path.Split(name)
		if strings.HasPrefix(to, "/") {
			dir = ""
		}
		name = dir + to
	}
	m.die(trouble, "couldn't follow symlink %s: %s", name, reason(linux.ELOOP))
	return name
}

func (in *input) lacks(name string, err error) {
	in.m.t.Errorf("can't read %s: %s", name, reason(err))
	in.status = missing
}

// read reads the next line into b. It is false at the end.
func (in *input) read(b *buffer) bool {
	b.text = b.text[:0]
	return in.join(b)
}

// join reads the next line behind what is in b.
func (in *input) join(b *buffer) bool {
	m := in.m
	if in.opened == "" || in.r == nil || m.o.separate {
		if !in.ready() {
			return false
		}
	}
	for {
		line, ended, ok := in.line()
		if !ok {
			if !in.ready() {
				return false
			}
			continue
		}
		b.text = append(b.text, line...)
		b.ended = ended
		break
	}
	in.name = in.opened
	in.number++
	m.t.Step(1)
	m.grown(b)
	return true
}

func (in *input) line() (line []byte, ended, ok bool) {
	if in.single != nil {
		return in.single.line(in.m.o.delim)
	}
	if in.r == nil {
		return nil, false, false
	}
	line, ended, ok = in.r.Line(in.m.o.delim)
	if err := in.r.Err(); err != nil {
		in.m.die(trouble, "read error on %s: %s", in.shown(in.opened), reason(err))
	}
	return line, ended, ok
}

// last says whether the line is the last one: of its file, where files are
// separate.
func (in *input) last() bool {
	if in.opened != "" && in.more() {
		return false
	}
	return in.m.o.separate || !in.ready()
}

// A single reads lines and nothing behind them.
type single struct {
	t    *kernel.Task
	d    *kernel.Desc
	buf  []byte
	held []byte // of a file that cannot show what it has: one byte at most
	done bool
}

func (s *single) close() {
	if s.d != nil {
		s.d.Drop()
		s.d = nil
	}
}

// peek shows what comes next, at least a byte.
func (s *single) peek() []byte {
	if len(s.held) > 0 {
		return s.held
	}
	if p, ok := s.d.File.(kernel.Peeker); ok {
		b, err := p.Peek(s.t)
		s.done = err != nil
		return b
	}
	if s.buf == nil {
		s.buf = make([]byte, 1)
	}
	n, err := s.d.File.Read(s.t, s.buf)
	if err != nil && !errors.Is(err, io.EOF) {
		s.done = true
	}
	s.held = s.buf[:n]
	return s.held
}

func (s *single) take(n int) {
	if len(s.held) > 0 {
		s.held = s.held[n:]
		return
	}
	if p, ok := s.d.File.(kernel.Peeker); ok {
		p.Discard(n)
	}
}

func (s *single) more() bool { return len(s.peek()) > 0 }

func (s *single) line(delim byte) (line []byte, ended, ok bool) {
	for {
		b := s.peek()
		s.t.Step(1)
		if len(b) == 0 {
			return line, false, len(line) > 0
		}
		if i := bytes.IndexByte(b, delim); i >= 0 {
			line = append(line, b[:i]...)
			s.take(i + 1)
			return line, true, true
		}
		line = append(line, b...)
		s.take(len(b))
		s.t.Bound("record", int64(len(line)), s.t.K.Limits.Record)
	}
}
