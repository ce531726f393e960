package sed

import (
	"bytes"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// include copies a file to an output, if it can be read.
func (m *machine) include(name string, w *command.Writer) {
	r, err := command.OpenReader(m.t, name)
	if err != nil {
		return
	}
	defer r.Close()
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		w.Bytes(b)
	}
}

// lines is the file of R, of which each run takes a line.
type lines struct {
	m    *machine
	name string
	r    *command.Reader
	done bool
}

// lines gives the file of that name.
func (m *machine) lines(name string) *lines {
	for _, l := range m.readers {
		if l.name == name {
			return l
		}
	}
	l := &lines{m: m, name: name}
	m.readers = append(m.readers, l)
	return l
}

// next takes a line with its end.
func (l *lines) next() ([]byte, bool) {
	if l.done {
		return nil, false
	}
	if l.r == nil {
		r, err := command.OpenReader(l.m.t, l.name)
		if err != nil {
			l.done = true
			return nil, false
		}
		l.r = r
	}
	line, ok := l.r.Record(l.m.o.delim)
	if !ok {
		l.done = true
		return nil, false
	}
	return bytes.Clone(line), true
}

// rewind begins again.
func (l *lines) rewind() {
	l.close()
	l.done = false
}

func (l *lines) close() {
	if l.r != nil {
		l.r.Close()
		l.r = nil
	}
}

// perform runs the command e: of a command, or of what is in the pattern
// space.
func (m *machine) perform(text []byte) {
	if len(text) == 0 {
		m.evaluate()
		return
	}
	m.out.begin()
	m.shell(text, func(b []byte) { m.out.w.Bytes(b) })
}

// evaluate puts what a command prints in the place of the command.
func (m *machine) evaluate() {
	var got []byte
	m.shell(m.space.text, func(b []byte) {
		got = append(got, b...)
		m.room(len(got))
	})
	if n := len(got); n > 0 && got[n-1] == '\n' && m.o.delim == '\n' {
		got = got[:n-1]
	}
	m.space.text = append(m.space.text[:0], got...)
	m.grown(&m.space)
}

// shell runs a command and gives what it prints.
func (m *machine) shell(text []byte, take func([]byte)) {
	m.flush()
	m.out.w.Flush()
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	r, w := kernel.Pipe()
	defer r.Drop()
	child, err := m.t.Spawn(kernel.Command{Args: []string{"sh", "-c", string(text)}}, func(c *kernel.Task) error { return c.SetFD(1, w, false) })
	if err != nil {
		w.Drop()
		m.die(trouble, "error running subprocess: %s", reason(err))
	}
	buf := make([]byte, 4096)
	for {
		n, err := r.File.Read(m.t, buf)
		take(buf[:n])
		if err != nil {
			break // its end
		}
	}
	if _, err := m.t.Wait(child); err != nil {
		m.die(trouble, "error subprocess: %s", reason(err))
	}
}
