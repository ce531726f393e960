// Package framing encodes messages as a fixed sequence of numbers and texts, whose order both ends
// know. It carries the few messages of a start to an emulated machine, where the amount of code costs
// time: JSON and reflection would execute thousands of translated blocks.
//
// A Reader trusts no length: it never returns more bytes than it received.
package framing

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
)

// A Message can be encoded and decoded.
type Message interface {
	// Append appends the encoded message to b.
	Append(b []byte) []byte
	// Take decodes the message from the reader's next bytes.
	Take(r *Reader)
}

// AppendInt appends a number as eight bytes, lowest first.
func AppendInt(b []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// AppendBool appends a byte that is 0 or 1.
func AppendBool(b []byte, yes bool) []byte {
	if yes {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendText appends a text: its length as four bytes, lowest first, and then its bytes.
func AppendText(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

// A Reader decodes one message. Missing values are zero, and End reports them.
type Reader struct {
	data []byte
	bad  bool
}

// NewReader returns a Reader of data, which must not change during its use.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

func (r *Reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.data)) {
		r.bad = true
		return nil
	}
	data := r.data[:n]
	r.data = r.data[n:]
	return data
}

// Int reads a number.
func (r *Reader) Int() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	b := r.take(1)
	if b == nil {
		return false
	}
	r.bad = r.bad || b[0] > 1
	return b[0] == 1
}

// Text reads a text.
func (r *Reader) Text() string {
	b := r.take(4)
	if b == nil {
		return ""
	}
	return string(r.take(uint64(binary.LittleEndian.Uint32(b))))
}

// Count reads the number of items that follow, each of which takes at least the given number of bytes.
func (r *Reader) Count(least int) int {
	n := r.Int()
	if n < 0 || n > int64(len(r.data)/least) {
		r.bad = true
		return 0
	}
	return int(n)
}

// Refuse marks the message as invalid, so that End returns an error.
func (r *Reader) Refuse() { r.bad = true }

// End returns an error unless every value that was read existed and no bytes are left.
func (r *Reader) End() error {
	if r.bad || len(r.data) > 0 {
		return fmt.Errorf("a message that makes no sense: %w", paddock.Invalid)
	}
	return nil
}

// Write writes a message in a frame.
func Write(w io.Writer, m Message) error {
	return writeFrame(w, m.Append(make([]byte, headSize, 256)))
}

// Read reads a message of at most the given number of bytes.
func Read(r io.Reader, m Message, most uint32) error {
	data, err := ReadFrame(r, most)
	if err != nil {
		return err
	}
	reader := NewReader(data)
	m.Take(reader)
	return reader.End()
}

// headSize is the length of what a frame begins with: its own length without that, the
// lowest byte first.
const headSize = 4

// WriteFrame writes bytes, in a frame.
func WriteFrame(w io.Writer, data []byte) error {
	return writeFrame(w, append(make([]byte, headSize, headSize+len(data)), data...))
}

func writeFrame(w io.Writer, frame []byte) error {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-headSize))
	_, err := w.Write(frame)
	return err
}

// ReadFrame reads the content of a frame of at most the given number of bytes.
func ReadFrame(r io.Reader, most uint32) ([]byte, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > most {
		return nil, fmt.Errorf("a message of %d bytes: %w", n, paddock.Invalid)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}
