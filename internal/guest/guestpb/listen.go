package guestpb

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A connection that begins with Listen, where another one begins with HTTP/2's preface or with Aside, makes the agent
// listen on a Unix socket of the sandbox for the host. A text follows, the socket's path. The agent answers with
// Listening, or with ListenFailed and a text. When a program has connected to the socket, it sends ListenCame, the host
// answers with ListenTaken, and from then on the connection carries what the program and the host say to each other.
//
// The host makes such a connection for each program that it is willing to serve. They may name the same socket.
const (
	Listen       = 'L'
	Listening    = 'R'
	ListenFailed = 'E'
	ListenCame   = 'C'
	ListenTaken  = 'T'

	// MaxListenText bounds a text, in bytes.
	MaxListenText = 512
)

// WriteListenText writes a text. One that is too long is cut.
func WriteListenText(w io.Writer, first byte, text string) error {
	text = text[:min(len(text), MaxListenText)]
	message := binary.BigEndian.AppendUint16([]byte{first}, uint16(len(text)))
	_, err := w.Write(append(message, text...))
	return err
}

// ReadListenText reads a text, whose first byte was read.
func ReadListenText(r io.Reader) (string, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > MaxListenText {
		return "", fmt.Errorf("a text of %d bytes, at most %d", n, MaxListenText)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}
