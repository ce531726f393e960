// Package hello tells what a connection begins with, without taking it: TLS with
// the name that its ClientHello asks for, an HTTP request with its host, or
// something else. What it reads comes from the guest and is bounded in size and
// time.
package hello

import (
	"fmt"
	"net"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// A Kind is what a connection begins with.
type Kind int

const (
	Other Kind = iota // neither of the two
	TLS               // a TLS handshake record
	HTTP              // a request line of HTTP, or the preface of HTTP/2
)

// A Hello is what a ClientHello says.
type Hello struct {
	Named     bool      // it has a server name, which is Host
	Host      rule.Host // of server_name
	Protocols []string  // of ALPN, in its order
	ECH       bool      // it hides another ClientHello, whose name may differ
}

// A Conn is a connection whose first bytes can be looked at before they are
// read: Read gives them again. Its methods of looking are for one goroutine, and
// end with the first Read.
type Conn struct {
	net.Conn
}

// NewConn gives a Conn on c, which belongs to it.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c} }

// Kind waits for the first bytes, limit at most, and tells what they begin. A
// connection that ends before is Other. A limit that passes is a Timeout: the
// guest waits for the other side to speak first; nothing is lost by it.
func (c *Conn) Kind(limit time.Duration) (Kind, error) {
	return Other, fmt.Errorf("look at a connection's begin: %w", paddock.Unsupported)
}

// Hello gives the ClientHello of a connection whose Kind is TLS, whole or not at
// all: what is cut off, too long (64 KiB) or no ClientHello is Invalid, what is
// not there within limit is Timeout.
func (c *Conn) Hello(limit time.Duration) (Hello, error) {
	return Hello{}, fmt.Errorf("read a ClientHello: %w", paddock.Unsupported)
}

// Request gives the host and port that the first request of a connection of Kind HTTP
// is for; port is 0 where the request names none. More than one Host, none, a
// target that differs from it, or a head that is not plain HTTP/1.1 are Invalid.
func (c *Conn) Request(limit time.Duration) (host rule.Host, port uint16, err error) {
	return rule.Host{}, 0, fmt.Errorf("read a request: %w", paddock.Unsupported)
}

// CloseWrite ends the direction of writing, where the connection under it can.
func (c *Conn) CloseWrite() error {
	return fmt.Errorf("close one direction: %w", paddock.Unsupported)
}
