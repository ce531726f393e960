package command

import (
	"bufio"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A Writer is a buffered output whose methods return no error: a failed write
// calls the function that was given when the Writer was made.
type Writer struct {
	t    *kernel.Task // of standard output
	w    *bufio.Writer
	fail func(error) // does not return
}

// Stdout returns a writer of a task's standard output. If a write fails, the
// task reports it and ends with status 1.
func Stdout(t *kernel.Task) *Writer { return StdoutStatus(t, 1) }

// StdoutStatus is Stdout with another status.
func StdoutStatus(t *kernel.Task, status int) *Writer {
	return &Writer{t, t.Out(), func(error) { t.Exit(status) }}
}

// NewWriter returns a writer of another output, which the caller flushes in the
// end. The function fail gets the error and ends the task.
func NewWriter(w io.Writer, fail func(error)) *Writer {
	return &Writer{nil, bufio.NewWriterSize(w, 32<<10), fail}
}

// Bytes writes b.
func (w *Writer) Bytes(b []byte) {
	if _, err := w.w.Write(b); err != nil {
		w.fail(err)
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
		w.fail(err)
	}
}

// Byte writes c.
func (w *Writer) Byte(c byte) {
	if err := w.w.WriteByte(c); err != nil {
		w.fail(err)
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

// Space returns an empty slice in the writer's own buffer, to append to and
// give to Bytes at once.
func (w *Writer) Space() []byte { return w.w.AvailableBuffer() }

// Flush writes out what is held.
func (w *Writer) Flush() {
	if err := w.w.Flush(); err != nil {
		w.fail(err)
	}
}

// Direct writes b to standard output past the buffer, after what the buffer
// holds.
func (w *Writer) Direct(b []byte) {
	if w.w.Buffered() > 0 {
		w.Flush()
	}
	if _, err := w.t.Write(1, b); err != nil {
		w.Bytes(b) // and meet the error again where it is told of
		w.Flush()
	}
}
