package supervisor

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/paddock-sandbox/paddock"
)

// A strict connection admits only those frames of a yamux session that an agent sends: data
// on streams that were opened here, window updates, and the end of a stream. A session
// answers pings and refuses new streams, each at a cost of memory and time, so unlimited
// pings would cost without limit. An agent sends none of them. An agent that does is
// compromised.
type strict struct {
	net.Conn
	broken func(what string) // called once, with the problem

	head  [frameHead]byte
	have  int    // bytes of the header that were read
	left  uint64 // bytes of data before the next header
	ended error
}

// A frame begins with a header: version, type, two bytes of flags, four of the stream
// number, four of a length.
const (
	frameHead   = 12
	frameData   = 0
	frameWindow = 1
	framePing   = 2
	flagOpen    = 1
)

// Read implements net.Conn. A frame that no agent sends ends the connection.
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

// look parses frames, and describes the first invalid one.
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

// frame checks a header. The session itself rejects a malformed one.
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
