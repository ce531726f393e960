package gateway

import (
	"net"
)

// A Traffic is told how many bytes came from the world for a sandbox, and how many
// went out for it: what connections and datagrams carry, without the headers of
// packets. Its functions are called from many goroutines. Sent is told before they go,
// and a negative number of those that then did not.
type Traffic interface {
	Received(n int)
	Sent(n int)
}

// counted is a connection to the world. What is read is counted before anybody gets
// it, and what is written before anybody can answer it.
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

// CloseWrite ends the direction to the destination.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// Reset ends the connection at once.
func (c *counted) Reset() { reset(c.Conn) }

// count has a connection counted, where anybody wants that.
func (g *Gateway) count(c net.Conn, err error) (net.Conn, error) {
	if err != nil || g.o.Traffic == nil {
		return c, err
	}
	return &counted{c, g.o.Traffic}, nil
}
