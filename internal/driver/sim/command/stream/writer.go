package stream

import (
	"bufio"
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// A Writer is the buffered standard output of a task. Where it cannot write,
// the task complains of it and ends.
type Writer struct {
	t      *proc.Task
	w      *bufio.Writer
	status int
}

// Out gives a task's standard output; a failure ends it with status 1.
func Out(t *proc.Task) *Writer { return OutStatus(t, 1) }

// OutStatus is Out with another status.
func OutStatus(t *proc.Task, status int) *Writer { return &Writer{t, t.Out(), status} }

// Bytes writes b.
func (w *Writer) Bytes(b []byte) {
	if _, err := w.w.Write(b); err != nil {
		w.t.Exit(w.status)
	}
}

// Write writes b; it does not fail.
func (w *Writer) Write(b []byte) (int, error) {
	w.Bytes(b)
	return len(b), nil
}

// String writes s.
func (w *Writer) String(s string) {
	if _, err := w.w.WriteString(s); err != nil {
		w.t.Exit(w.status)
	}
}

// Byte writes c.
func (w *Writer) Byte(c byte) {
	if err := w.w.WriteByte(c); err != nil {
		w.t.Exit(w.status)
	}
}

// Line writes b and the delimiter.
func (w *Writer) Line(b []byte, delim byte) {
	w.Bytes(b)
	w.Byte(delim)
}

// Repeat writes c n times.
func (w *Writer) Repeat(c byte, n int) {
	for ; n > 0; n-- {
		w.Byte(c)
	}
}

// Printf writes formatted text.
func (w *Writer) Printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// Space gives an empty slice in the writer's own buffer, to append to and
// give to Bytes at once.
func (w *Writer) Space() []byte { return w.w.AvailableBuffer() }

// Flush writes out what is held.
func (w *Writer) Flush() {
	if err := w.w.Flush(); err != nil {
		w.t.Exit(w.status)
	}
}

// Direct writes b past the buffer, after what the buffer holds.
func (w *Writer) Direct(b []byte) {
	if w.w.Buffered() > 0 {
		w.Flush()
	}
	if _, err := w.t.Write(1, b); err != nil {
		w.Bytes(b) // and meet the error again where it is told of
		w.Flush()
	}
}
