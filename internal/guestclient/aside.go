package guestclient

import (
	"crypto/rand"
	"fmt"
	"net"

	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// asideNumber gives a number for a connection that a transfer may take, or none where
// there can be no such connection.
func (g *Guest) asideNumber() []byte {
	if g.o.Aside == nil {
		return nil
	}
	n := make([]byte, guestpb.AsideNumber)
	_, _ = rand.Read(n) // never fails
	return n
}

// aside makes the connection of a number. It ends with the call, and with the way to
// the guest.
func (c *call) aside(number []byte) (net.Conn, error) {
	conn, err := exchange(c, func() (net.Conn, error) {
		conn, err := c.g.o.Aside(c.ctx)
		if err != nil {
			return nil, err
		}
		go func() { // until then
			select {
			case <-c.ctx.Done():
			case <-c.g.Done():
			}
			_ = conn.Close()
		}()
		return conn, nil
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("a connection for the file: %w", err)
	}
	err = c.patiently(func() error {
		_, err := conn.Write(append([]byte{guestpb.Aside}, number...))
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("a connection for the file: %w", err)
	}
	return conn, nil
}
