package gateway

import (
	"net"
)

// A Traffic counts the bytes that connections and datagrams carry between the world and a sandbox, without the headers
// of packets. Its methods are called concurrently. Sent is called before the bytes leave, and again with a negative
// number for those that could not be sent.
type Traffic interface {
	Received(n int)
	Sent(n int)
}

// counted is a counted connection to a destination. Bytes are counted before they are
// passed to a reader, and before they are sent.
type counted struct {
	net.Conn

	to Traffic
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.to.Received(n)
	}
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	c.to.Sent(len(p))
	n, err := c.Conn.Write(p)
	if n < len(p) {
		c.to.Sent(n - len(p))
	}
	return n, err
}

// CloseWrite closes the direction to the destination.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// Reset ends the connection at once.
func (c *counted) Reset() { reset(c.Conn) }

// count wraps a connection if traffic is counted.
func (g *Gateway) count(c net.Conn, err error) (net.Conn, error) {
	if err != nil || g.o.Traffic == nil {
		return c, err
	}
	return &counted{c, g.o.Traffic}, nil
}
