package api

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
)

// FrameType is the content type of a stream of frames.
const FrameType = "application/vnd.paddock.frames"

// MaxFrame is the largest payload of a frame. The texts of an exit or an error are
// shortened to fit.
const MaxFrame = 64 << 10

// A Kind is the kind of a frame.
type Kind byte

const (
	// Begin is the first frame: a [Begun] in JSON.
	Begin Kind = 1
	// Stdout and Stderr hold output. The offset of a byte is the offset in the Begun frame
	// plus the number of output bytes before it, of both kinds.
	Stdout Kind = 2
	Stderr Kind = 3
	// End is the last frame: a paddock.Exit in JSON.
	End Kind = 4
	// Fail is the last frame instead of End: an [Error] in JSON.
	Fail Kind = 5
	// Alive has no payload. It shows that the other side is alive.
	Alive Kind = 6
)

// A Begun is the payload of the first frame.
type Begun struct {
	PID    paddock.PID `json:"pid"`
	Offset int64       `json:"offset"` // offset of the first byte of output that follows
}

// headLength is the size of a frame's header: the kind, and the length of the payload,
// big-endian.
const headLength = 5

// AppendFrame appends a frame to b.
func AppendFrame(b []byte, k Kind, payload []byte) []byte {
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// AppendJSON appends a frame with a payload in JSON.
func AppendJSON(b []byte, k Kind, v any) ([]byte, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return b, fmt.Errorf("frame: %w", err)
	}
	if len(payload) > MaxFrame {
		return b, fmt.Errorf("frame of %d bytes: %w", len(payload), paddock.Exhausted)
	}
	return AppendFrame(b, k, payload), nil
}

// A FrameReader reads frames.
type FrameReader struct {
	r    io.Reader
	head [headLength]byte
	buf  []byte
}

// NewFrameReader returns a reader of frames from r.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{r: r} }

// Next returns the next frame. The payload is valid until the next call. An end between two
// frames is io.EOF, and an end inside a frame is io.ErrUnexpectedEOF. If a frame of output
// is cut, Next first returns the bytes that arrived, so that even a short connection makes
// progress.
func (f *FrameReader) Next() (Kind, []byte, error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		return 0, nil, err
	}
	k, n := Kind(f.head[0]), binary.BigEndian.Uint32(f.head[1:])
	if k < Begin || k > Alive {
		return 0, nil, fmt.Errorf("frame of the unknown kind %d: %w", k, paddock.Invalid)
	}
	if n > MaxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes, at most %d are allowed: %w", n, MaxFrame, paddock.Invalid)
	}
	if f.buf == nil {
		f.buf = make([]byte, MaxFrame)
	}
	got, err := io.ReadFull(f.r, f.buf[:n])
	if err != nil && got > 0 && (k == Stdout || k == Stderr) {
		return k, f.buf[:got], nil // the next call gets the reader's error again
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return k, f.buf[:n], nil
}
