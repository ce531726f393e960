package guestinit

import (
	"encoding/binary"
	"io"
)

// A Whole writes each short frame of a session (yamux) at once, which the session gives
// in two parts. What is written to a machine's port takes its other end's turn, and an
// interrupt, each time. One goroutine at a time may write.
type Whole struct {
	io.Writer

	frame [wholeMost]byte
	have  int // bytes of a head whose data is to follow
}

// A frame of a session begins with its head: the second byte is its kind, the last
// four say how much data follows one of data.
const (
	wholeHead = 12
	wholeData = 0
	// wholeMost is how long a frame is that is put together. It is as much as a
	// machine's kernel takes from its host at a time; to copy what is longer costs more
	// than a turn.
	wholeMost = 4096
)

// Write implements io.Writer. A head is only written with the data that it is for.
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
