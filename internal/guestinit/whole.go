package guestinit

import (
	"encoding/binary"
	"io"
)

// A Whole writes each short frame of a session (yamux) in one piece, which the session
// writes in two parts. Each write to a machine's port makes the other end run, and costs an
// interrupt. Only one goroutine at a time may write.
type Whole struct {
	io.Writer

	frame [wholeMost]byte
	have  int // bytes of a header whose data follows
}

// A frame of a session begins with a header. Its second byte is the frame's type, and for
// data frames the last four bytes are the length of the data.
const (
	wholeHead = 12
	wholeData = 0
	// wholeMost is the maximum size of a combined frame. A machine's kernel reads as much
	// from its host at a time. Copying more costs more than a separate write.
	wholeMost = 4096
)

// Write implements io.Writer. It writes a header only together with its data.
func (w *Whole) Write(p []byte) (int, error) {
	if w.have == 0 {
		if len(p) != wholeHead || p[1] != wholeData || binary.BigEndian.Uint32(p[8:]) == 0 {
			return w.Writer.Write(p)
		}
		w.have = copy(w.frame[:], p)
		return len(p), nil
	}
	head := w.have
	w.have = 0
	if head+len(p) > wholeMost {
		if _, err := w.Writer.Write(w.frame[:head]); err != nil {
			return 0, err
		}
		return w.Writer.Write(p)
	}
	n := copy(w.frame[head:], p)
	written, err := w.Writer.Write(w.frame[:head+n])
	return max(written-head, 0), err
}
