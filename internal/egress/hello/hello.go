// Package hello tells what a connection begins with, without taking it: TLS with
// the name that its ClientHello asks for, an HTTP request with its host, or
// something else. What it reads comes from the guest and is bounded in size and
// time.
package hello

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
	"github.com/paddock-sandbox/paddock/internal/egress/head"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// A Kind is what a connection begins with.
type Kind int

const (
	Other Kind = iota // neither of the two
	TLS               // a TLS record, of whatever kind
	HTTP              // a request line of HTTP, or the preface of HTTP/2
)

// most is how much is read ahead: a ClientHello of 64 KiB in records, or a
// request's head.
const most = 160 << 10

// A Conn is a connection whose first bytes can be looked at before they are
// read: Read gives them again. Its methods of looking are for one goroutine, and
// end with the first Read. Writing is not affected by any of them.
type Conn struct {
	net.Conn

	ahead []byte // read, and not yet given
	err   error  // that ended the reading ahead
}

// NewConn gives a Conn on c, which belongs to it.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c} }

// Kind waits for the first bytes, for limit if that is not zero, and tells what they
// begin. A connection that ends before it can be told is Other. Where limit
// passes the error is a Timeout and nothing is lost: Kind may be called again. What
// begins as a request line may and never ends is HTTP, which Request then refuses.
func (c *Conn) Kind(limit time.Duration) (Kind, error) {
	defer c.within(limit)()
	for looked := 0; ; {
		// As long as a long line is not whole, only its end is news.
		if n := len(c.ahead); looked < 8<<10 || n > head.Max || bytes.IndexByte(c.ahead[looked:], '\n') >= 0 {
			if kind, ok := kindOf(c.ahead); ok {
				return kind, nil
			}
			looked = n
		}
		if err := c.more(); err != nil {
			if errors.Is(err, paddock.Timeout) {
				return Other, err
			}
			return Other, nil
		}
	}
}

// Begun tells whether something was read that Kind could not tell yet.
func (c *Conn) Begun() bool { return len(c.ahead) > 0 }

// kindOf tells what b begins, if b is enough for it.
func kindOf(b []byte) (kind Kind, ok bool) {
	if len(b) == 0 {
		return Other, false
	}
	if b[0] >= recordFirst && b[0] <= recordLast {
		return recordOf(b)
	}
	// Servers pass over empty lines before a request, however many, and take
	// other blanks for spaces.
	line := bytes.TrimLeft(b, "\r\n")
	if len(line) == 0 {
		return HTTP, len(b) > 64
	}
	line, _, whole := bytes.Cut(line, []byte("\n"))
	for i, ch := range line {
		if blank(ch) {
			break
		}
		// There are servers that take any word for a method, however long.
		if ch < '!' || ch >= 0x7f || i > 64 && !letter(ch) {
			return Other, true
		}
	}
	if !whole {
		return HTTP, len(b) > head.Max
	}
	words := strings.Fields(string(line))
	if len(words) >= 2 && len(words[len(words)-1]) >= 5 && strings.EqualFold(words[len(words)-1][:5], "HTTP/") {
		return HTTP, true
	}
	return Other, true
}

// recordOf tells whether b, whose first byte is the type of a record of TLS,
// begins one. Servers look at the first number of its version alone, and some take
// any that is small; they pass over an alert or another record before the hello.
func recordOf(b []byte) (kind Kind, ok bool) {
	const otherVersions = 0x10 // are no TLS to anybody
	switch {
	case len(b) < 2:
		return Other, false
	case b[1] == 3:
		return TLS, true
	case b[1] >= otherVersions || b[0] != recordAlert && b[0] != recordHandshake:
		return Other, true
	case len(b) < 6:
		return Other, false
	case b[0] == recordHandshake && b[5] == messageHello, b[0] == recordAlert && b[3] == 0 && b[4] == 2:
		return TLS, true
	}
	return Other, true
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' }

// Hello gives the ClientHello of a connection whose Kind is TLS, whole or not at
// all: what is cut off, too long (64 KiB) or no ClientHello is Invalid, what is
// not there within limit is Timeout.
func (c *Conn) Hello(limit time.Duration) (Hello, error) {
	defer c.within(limit)()
	var m message
	for {
		whole, err := m.read(c.ahead)
		if err != nil {
			return Hello{}, fmt.Errorf("ClientHello: %w: %w", err, paddock.Invalid)
		}
		if whole {
			h, err := parse(m.body)
			if err != nil {
				return Hello{}, fmt.Errorf("ClientHello: %w: %w", err, paddock.Invalid)
			}
			return h, nil
		}
		if err := c.more(); err != nil {
			return Hello{}, fmt.Errorf("ClientHello: %w", err)
		}
	}
}

// Request gives the host and port that the first request of a connection of Kind HTTP
// is for; port is 0 where the request names none. A head that is not plain
// HTTP/1 to the letter, has not one Host, or a target that differs from it, is
// Invalid; what is not there within limit is Timeout.
func (c *Conn) Request(limit time.Duration) (host rule.Host, port uint16, err error) {
	defer c.within(limit)()
	for from := 0; ; {
		// What was looked through is not looked through again: the guest may
		// send byte by byte.
		end := bytes.Index(c.ahead[from:], []byte("\r\n\r\n"))
		switch {
		case bytes.HasPrefix(c.ahead, []byte("PRI * HTTP/2")):
			return rule.Host{}, 0, fmt.Errorf("HTTP/2 without TLS cannot be told apart by its host: %w", paddock.Invalid)
		case end >= 0:
			h, err := head.Parse(c.ahead[:from+end+4])
			if err != nil {
				return rule.Host{}, 0, err
			}
			_, host, port, err := h.Destination()
			return host, port, err
		case len(c.ahead) > head.Max || bytes.Contains(c.ahead[from:], []byte("\n\n")):
			return rule.Host{}, 0, fmt.Errorf("request head: longer than %d bytes, or its lines end with LF alone: %w", head.Max, paddock.Invalid)
		}
		from = max(0, len(c.ahead)-3)
		if err := c.more(); err != nil {
			return rule.Host{}, 0, fmt.Errorf("request head: %w", err)
		}
	}
}

// within sets the time that reading may take, and gives what takes it away.
func (c *Conn) within(limit time.Duration) func() {
	if limit <= 0 {
		return func() {}
	}
	// A connection that cannot have a limit ends with its reads.
	_ = c.SetReadDeadline(time.Now().Add(limit))
	return func() { _ = c.SetReadDeadline(time.Time{}) }
}

// more reads on.
func (c *Conn) more() error {
	if c.err != nil {
		return c.err
	}
	if len(c.ahead) >= most {
		return fmt.Errorf("longer than %d bytes: %w", most, paddock.Invalid)
	}
	buffer := make([]byte, min(16<<10, most-len(c.ahead)))
	n, err := c.Conn.Read(buffer)
	c.ahead = append(c.ahead, buffer[:n]...)
	switch {
	case n > 0 || err == nil:
		return nil // an error comes again with the next read
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the other side is slow: %w", paddock.Timeout)
	case errors.Is(err, io.EOF):
		c.err = fmt.Errorf("it is cut off: %w", paddock.Invalid)
	default:
		c.err = fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	return c.err
}

// Read gives what was read ahead, then what comes.
func (c *Conn) Read(b []byte) (int, error) {
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

// CloseWrite ends the direction of writing. Where the connection under it cannot,
// it is Unsupported.
func (c *Conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("end one direction: %w", paddock.Unsupported)
	}
	return half.CloseWrite()
}
