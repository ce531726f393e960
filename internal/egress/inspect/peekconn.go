package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A Protocol is the protocol that a connection begins with.
type Protocol int

const (
	OtherProtocol Protocol = iota // neither of the two
	TLS                           // a TLS record of any kind
	HTTP                          // a request line of HTTP, or the preface of HTTP/2
)

// peekMax is the maximum of bytes read ahead: a ClientHello of 64 KiB in records, or a
// request's head.
const peekMax = 160 << 10

// A PeekConn is a connection whose first bytes can be examined before they are read: Read returns them again. Its
// methods other than those of net.Conn are for one goroutine and for the time before the first Read. They do not affect
// writing.
type PeekConn struct {
	net.Conn

	ahead []byte // read and not yet returned
	err   error  // ended the reading ahead
}

// NewPeekConn makes a PeekConn on c, which it owns.
func NewPeekConn(c net.Conn) *PeekConn { return &PeekConn{Conn: c} }

// Protocol waits for the first bytes and returns the protocol that they begin. A limit of zero waits for ever. When the
// limit passes, the error is a Timeout, no byte is lost, and Protocol may be called again. A connection that ends too
// early is OtherProtocol. Bytes that may begin a request line and never end one are HTTP, which RequestHost then
// refuses.
func (c *PeekConn) Protocol(limit time.Duration) (Protocol, error) {
	defer c.within(limit)()
	for looked := 0; ; {
		// Within a long line, only its end changes the result.
		if n := len(c.ahead); looked < 8<<10 || n > headMax || bytes.IndexByte(c.ahead[looked:], '\n') >= 0 {
			if kind, ok := protocolOf(c.ahead); ok {
				return kind, nil
			}
			looked = n
		}
		if err := c.more(); err != nil {
			if errors.Is(err, paddock.Timeout) {
				return OtherProtocol, err
			}
			return OtherProtocol, nil
		}
	}
}

// Begun reports whether bytes have arrived that were not enough for Protocol.
func (c *PeekConn) Begun() bool { return len(c.ahead) > 0 }

// protocolOf returns the protocol that b begins, if b is long enough.
func protocolOf(b []byte) (kind Protocol, ok bool) {
	if len(b) == 0 {
		return OtherProtocol, false
	}
	if b[0] >= recordFirst && b[0] <= recordLast {
		return recordOf(b)
	}
	// Servers skip any number of empty lines before a request, and accept other blanks for
	// spaces.
	line := bytes.TrimLeft(b, "\r\n")
	if len(line) == 0 {
		return HTTP, len(b) > 64
	}
	line, _, whole := bytes.Cut(line, []byte("\n"))
	for i, ch := range line {
		if blank(ch) {
			break
		}
		// Some servers accept any word as a method, of any length.
		if ch < '!' || ch >= 0x7f || i > 64 && !letter(ch) {
			return OtherProtocol, true
		}
	}
	if !whole {
		return HTTP, len(b) > headMax
	}
	words := strings.Fields(string(line))
	if len(words) >= 2 && len(words[len(words)-1]) >= 5 && strings.EqualFold(words[len(words)-1][:5], "HTTP/") {
		return HTTP, true
	}
	return OtherProtocol, true
}

// recordOf reports whether b, whose first byte is a TLS content type, begins a record.
// Servers check only the major version, and some accept any small one. They skip an alert
// or another record before the hello.
func recordOf(b []byte) (kind Protocol, ok bool) {
	const otherVersions = 0x10 // no server takes these for TLS
	switch {
	case len(b) < 2:
		return OtherProtocol, false
	case b[1] == 3:
		return TLS, true
	case b[1] >= otherVersions || b[0] != recordAlert && b[0] != recordHandshake:
		return OtherProtocol, true
	case len(b) < 6:
		return OtherProtocol, false
	case b[0] == recordHandshake && b[5] == messageHello, b[0] == recordAlert && b[3] == 0 && b[4] == 2:
		return TLS, true
	}
	return OtherProtocol, true
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' }

// ClientHello returns the ClientHello of a connection whose protocol is TLS. One that is cut off, longer than 64 KiB,
// or no ClientHello is Invalid. One that is not complete within limit is a Timeout.
func (c *PeekConn) ClientHello(limit time.Duration) (ClientHello, error) {
	defer c.within(limit)()
	var m helloMessage
	for {
		whole, err := m.read(c.ahead)
		if err != nil {
			return ClientHello{}, fmt.Errorf("ClientHello: %w: %w", err, paddock.Invalid)
		}
		if whole {
			h, err := parseClientHello(m.body)
			if err != nil {
				return ClientHello{}, fmt.Errorf("ClientHello: %w: %w", err, paddock.Invalid)
			}
			return h, nil
		}
		if err := c.more(); err != nil {
			return ClientHello{}, fmt.Errorf("ClientHello: %w", err)
		}
	}
}

// RequestHost returns the host and port of the first request on a connection whose protocol is HTTP. The port is 0 if
// the request names none. A head that is not strict HTTP/1, that has not exactly one Host, or whose target differs from
// it, is Invalid. A head that is not complete within limit is a Timeout.
func (c *PeekConn) RequestHost(limit time.Duration) (host decide.Host, port uint16, err error) {
	defer c.within(limit)()
	for from := 0; ; {
		// Do not search the same bytes again, because the guest may send byte by byte.
		end := bytes.Index(c.ahead[from:], []byte("\r\n\r\n"))
		switch {
		case bytes.HasPrefix(c.ahead, []byte("PRI * HTTP/2")):
			return decide.Host{}, 0, fmt.Errorf("HTTP/2 without TLS cannot be told apart by its host: %w", paddock.Invalid)
		case end >= 0:
			h, err := parseHead(c.ahead[:from+end+4])
			if err != nil {
				return decide.Host{}, 0, err
			}
			_, host, port, err := h.Destination()
			return host, port, err
		case len(c.ahead) > headMax || bytes.Contains(c.ahead[from:], []byte("\n\n")):
			return decide.Host{}, 0, fmt.Errorf("request head: longer than %d bytes, or its lines end with LF alone: %w", headMax, paddock.Invalid)
		}
		from = max(0, len(c.ahead)-3)
		if err := c.more(); err != nil {
			return decide.Host{}, 0, fmt.Errorf("request head: %w", err)
		}
	}
}

// within sets a deadline for reading, and returns a function that removes it.
func (c *PeekConn) within(limit time.Duration) func() {
	if limit <= 0 {
		return func() {}
	}
	// If the connection supports no deadline, reading ends with the connection.
	_ = c.SetReadDeadline(time.Now().Add(limit))
	return func() { _ = c.SetReadDeadline(time.Time{}) }
}

// more reads more bytes.
func (c *PeekConn) more() error {
	if c.err != nil {
		return c.err
	}
	if len(c.ahead) >= peekMax {
		return fmt.Errorf("longer than %d bytes: %w", peekMax, paddock.Invalid)
	}
	buffer := make([]byte, min(16<<10, peekMax-len(c.ahead)))
	n, err := c.Conn.Read(buffer)
	c.ahead = append(c.ahead, buffer[:n]...)
	switch {
	case n > 0 || err == nil:
		return nil // the next read returns the error
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the other side is slow: %w", paddock.Timeout)
	case errors.Is(err, io.EOF):
		c.err = fmt.Errorf("it is cut off: %w", paddock.Invalid)
	default:
		c.err = fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	return c.err
}

// Read returns the bytes that were examined, and then those that follow.
func (c *PeekConn) Read(b []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.ahead)
	c.ahead = c.ahead[n:]
	if len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// CloseWrite ends the direction of writing. It is Unsupported if the underlying connection has no CloseWrite.
func (c *PeekConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("end one direction: %w", paddock.Unsupported)
	}
	return half.CloseWrite()
}
