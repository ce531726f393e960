package supervisor

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/paddock-sandbox/paddock"
)

// A strict connection lets pass of a session (yamux) only what an agent sends: data
// on streams that were opened here, room for more, and the end of one. A session
// answers pings, and refuses streams, at the cost of memory and time of its own for
// each; so whoever sends those without end would be given without end. An agent sends
// none of them, and one that does was taken over.
type strict struct {
	net.Conn
	broken func(what string) // is told of it, once

	head  [frameHead]byte
	have  int    // bytes of head that were read
	left  uint64 // bytes of data until the next head
	ended error
}

// A frame of a session begins with its head: the protocol's version, the type, two
// bytes of flags, four of the stream's number, four of a length.
const (
	frameHead   = 12
	frameData   = 0
	frameWindow = 1
	framePing   = 2
	flagOpen    = 1
)

// Read implements net.Conn. A frame that no agent sends ends it.
func (c *strict) Read(p []byte) (int, error) {
	if c.ended != nil {
		return 0, c.ended
	}
	n, err := c.Conn.Read(p)
	if what := c.look(p[:n]); what != "" {
		c.ended = fmt.Errorf("the machine's agent %s, which no agent does: %w", what, paddock.Denied)
		c.broken(c.ended.Error())
		return 0, c.ended
	}
	return n, err
}

// look follows the frames, and says what is wrong with one.
func (c *strict) look(p []byte) string {
	for len(p) > 0 {
		if c.left > 0 {
			n := min(c.left, uint64(len(p)))
			c.left, p = c.left-n, p[n:]
			continue
		}
		n := copy(c.head[c.have:], p)
		c.have, p = c.have+n, p[n:]
		if c.have < frameHead {
			return ""
		}
		c.have = 0
		if what := c.frame(); what != "" {
			return what
		}
	}
	return ""
}

// frame judges a head. One that is none the session itself finds wrong.
func (c *strict) frame() string {
	flags := binary.BigEndian.Uint16(c.head[2:])
	switch kind := c.head[1]; {
	case kind == framePing:
		return "sends a ping"
	case kind <= frameWindow && flags&flagOpen != 0:
		return "opens a stream"
	case kind == frameData:
		c.left = uint64(binary.BigEndian.Uint32(c.head[8:]))
	}
	return ""
}
