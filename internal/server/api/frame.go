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

// MaxFrame is the largest payload of a frame. An exit or an error is never
// larger: their texts are cut.
const MaxFrame = 64 << 10

// A Kind says what a frame holds.
type Kind byte

const (
	// Begin is the first frame: a [Begun] in JSON.
	Begin Kind = 1
	// Stdout and Stderr hold output. The offset of a byte is that of the stream's
	// begin and the number of bytes of both kinds before it.
	Stdout Kind = 2
	Stderr Kind = 3
	// End is the last frame: a paddock.Exit in JSON.
	End Kind = 4
	// Fail is the last frame in place of End: an [Error] in JSON.
	Fail Kind = 5
	// Alive holds nothing: it shows that the other side is there.
	Alive Kind = 6
)

// A Begun says what a stream of frames is of.
type Begun struct {
	PID    paddock.PID `json:"pid"`
	Offset int64       `json:"offset"` // of the first byte of output that follows
}

// headLength is a kind and the length of the payload, big-endian.
const headLength = 5

// AppendFrame appends a frame to b.
func AppendFrame(b []byte, k Kind, payload []byte) []byte {
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// AppendJSON appends a frame whose payload is JSON.
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

// NewFrameReader reads frames from r.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{r: r} }

// Next gives the next frame. Its payload is valid until the next call. The end
// between two frames is io.EOF, one inside a frame io.ErrUnexpectedEOF; of output
// that was cut there it gives first what came, so that however short connections
// live, each carries some.
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
		return k, f.buf[:got], nil // the reader tells its error again
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return k, f.buf[:n], nil
}
