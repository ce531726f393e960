package sed

import (
	"bytes"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An output is a file that is written.
type output struct {
	m    *machine
	name string
	w    *command.Writer
	file *command.Output // nil for the standard ones
	open bool            // the last line has no end yet, because its input had none
}

func newStdout(m *machine) *output {
	return &output{m: m, name: "stdout", w: command.StdoutStatus(m.t, trouble)}
}

// file gives the output of that name, which is made empty.
func (m *machine) file(name string) *output {
	for _, o := range m.files {
		if o.name == name {
			return o
		}
	}
	o := &output{m: m, name: name}
	switch name {
	case "/dev/stdout":
		o.w = m.stdout.w
	case "/dev/stderr":
		o.w = command.NewWriter(m.t.Stream(2), o.fail)
	default:
		f, err := command.Create(m.t, name, linux.O_TRUNC)
		if err != nil {
			m.die(trouble, "couldn't open file %s: %s", name, reason(err))
		}
		o.file = f
		o.w = command.NewWriter(f, o.fail)
	}
	m.files = append(m.files, o)
	return o
}

// fail ends the task because o cannot be written.
func (o *output) fail(err error) {
	o.m.t.Errorf("couldn't write to %s: %s", o.name, reason(err))
	o.m.t.Exit(trouble)
}

func (o *output) close() {
	if o.file != nil {
		_ = o.file.Close() // what it was to hold was written before
		o.file = nil
	}
}

// begin ends a line that was left open.
func (o *output) begin() {
	if o.open {
		o.open = false
		o.w.Byte(o.m.o.delim)
	}
}

// line writes a buffer as a line.
func (o *output) line(b *buffer) {
	o.begin()
	o.w.Bytes(b.text)
	if b.ended {
		o.w.Byte(o.m.o.delim)
	} else {
		o.open = true
	}
}

// record writes b as a line that is ended.
func (o *output) record(b []byte) {
	o.begin()
	o.w.Line(b, o.m.o.delim)
}

// text writes b, which has its own end.
func (o *output) text(b []byte) {
	o.begin()
	o.w.Bytes(b)
}

// insert writes the text of i or c, whose last newline is the end of a line.
func (o *output) insert(b []byte) {
	if len(b) > 0 {
		o.record(b[:len(b)-1])
	}
}

// first writes the first line of a buffer.
func (o *output) first(b *buffer) {
	if i := bytes.IndexByte(b.text, o.m.o.delim); i >= 0 {
		o.record(b.text[:i])
	} else {
		o.line(b)
	}
}

// list runs the command l.
func (m *machine) list(width int) {
	o := m.out
	o.begin()
	column := 0
	var room [4]byte
	for _, c := range m.space.text {
		b := room[:0]
		switch {
		case c == '\\':
			b = append(b, `\\`...)
		case c >= ' ' && c < 0x7f:
			b = append(b, c)
		case c >= '\a' && c <= '\r':
			b = append(b, '\\', "abtnvfr"[c-'\a'])
		default:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		}
		if width > 0 && column+len(b) > width-1 {
			o.w.String("\\\n")
			column = 0
		}
		column += len(b)
		o.w.Bytes(b)
	}
	o.w.Byte('$')
	o.w.Byte(m.o.delim)
}
