package interpreter

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A message stands between the user's bytes in one or more pieces, each
//
//	RS mark kind length payload
//
// RS is the byte 0x1e, mark 32 hexadecimal digits that were drawn for this kernel,
// kind "+" where more pieces follow and "." for the last, length four hexadecimal
// digits, and payload so many bytes of JSON. Kind "!" says that the pieces of a message
// that came before are to be forgotten: its sender was interrupted. A piece is written
// at once and has at most 4096 bytes, which a pipe never mixes with what others write.
const (
	markSize  = 32
	headSize  = 1 + markSize + 1 + 4
	maxPiece  = 4096 - headSize
	maxParts  = 8 << 20 // bytes of one message, put together
	separator = 0x1e
)

// A stream takes one of a kernel's two streams apart. The zero value with a mark is
// at the beginning.
type stream struct {
	mark string
	room *budget // of messages in several pieces; nil has no bound

	hold []byte // the beginning of what may be a piece

	mu   sync.Mutex
	part []byte // guarded by mu; the pieces of a message so far
	took int    // guarded by mu; bytes of room
	skip bool   // guarded by mu; the rest of a message is passed over
}

// errRoom is a message that the host has no room for. Its bytes are passed over.
var errRoom = fmt.Errorf("no room for a message: %w", paddock.Exhausted)

// drop forgets the message that is not whole yet, if there is one.
func (s *stream) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.part) > 0 {
		s.skip = true
	}
	s.forget()
}

// begin forgets the pieces of a message whose sender was interrupted: a new one begins.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skip = false
	s.forget()
}

// forget needs mu.
func (s *stream) forget() {
	s.room.give(s.took)
	s.part, s.took = nil, 0
}

// add keeps the payload of a piece, and gives the message with the bytes of room that
// it holds, which are now the caller's, where the piece is the last.
func (s *stream) add(payload []byte, last bool) (whole []byte, took int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.skip:
		s.skip = !last
		return nil, 0, nil
	case last && s.took == 0: // of one piece
		return bytes.Clone(payload), 0, nil
	case len(s.part)+len(payload) > maxParts:
		return nil, 0, broken("a message that is too long")
	case !s.room.take(len(payload)):
		s.forget()
		s.skip = !last
		return nil, 0, errRoom
	}
	s.part = append(s.part, payload...)
	s.took += len(payload)
	if !last {
		return nil, 0, nil
	}
	whole, took = s.part, s.took
	s.part, s.took = nil, 0
	return whole, took, nil
}

// write hands the user's bytes to text and whole messages to message, in order, these
// with the bytes of room that they hold and are message's to give back; nil is one
// that there was no room for. What it hands over is valid during the call. An error is
// a kernel that does not keep to the form; after it the stream is not to be used.
func (s *stream) write(p []byte, text func([]byte) error, message func(p []byte, took int) error) error {
	data := p
	if len(s.hold) > 0 {
		s.hold = append(s.hold, p...)
		data = s.hold
	}
	for len(data) > 0 {
		at := bytes.IndexByte(data, separator)
		if at != 0 {
			if at < 0 {
				at = len(data)
			}
			if err := text(data[:at]); err != nil {
				return err
			}
			data = data[at:]
			continue
		}
		n, err := s.piece(data)
		switch {
		case err != nil:
			return err
		case n == 0: // the rest is to come
			s.hold = append(s.hold[:0], data...)
			return nil
		case n < headSize: // not of ours
			if err := text(data[:n]); err != nil {
				return err
			}
		case data[1+markSize] == '!':
			s.begin()
		default:
			whole, took, err := s.add(data[headSize:n], data[1+markSize] == '.')
			if err != nil && !errors.Is(err, errRoom) {
				return err
			}
			if whole != nil || err != nil {
				if err := message(whole, took); err != nil {
					return err
				}
			}
		}
		data = data[n:]
	}
	s.hold = nil
	return nil
}

// piece looks at what begins with a separator. n is how many bytes it is: zero
// where more must come to know, one where it is the user's.
func (s *stream) piece(data []byte) (n int, err error) {
	have := min(len(data)-1, markSize)
	if string(data[1:1+have]) != s.mark[:have] {
		return 1, nil
	}
	if len(data) < headSize {
		return 0, nil
	}
	size := 0
	for _, c := range data[headSize-4 : headSize] {
		switch {
		case c >= '0' && c <= '9':
			size = size<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			size = size<<4 | int(c-'a'+10)
		default:
			return 0, broken("a length that is no number")
		}
	}
	kind := data[1+markSize]
	switch {
	case kind != '+' && kind != '.' && kind != '!':
		return 0, broken("a piece of an unknown kind")
	case size > maxPiece:
		return 0, broken("a piece that is too long")
	case len(data) < headSize+size:
		return 0, nil
	}
	return headSize + size, nil
}

// broken is the error of a kernel that does not keep to the form.
func broken(what string) error {
	return fmt.Errorf("the kernel sent %s: %w", what, errBroken)
}

var errBroken = fmt.Errorf("it does not keep to the form: %w", paddock.Invalid)
