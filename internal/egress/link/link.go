// Package link is the end of a box's only interface that the box does not
// have: a network stack of ours in user space, on a descriptor that carries IP
// packets. Whatever the box sends arrives here and nowhere else. No packet is
// forwarded; connections and datagrams are given to a [Handler], which decides.
//
// All that comes from the descriptor is hostile: the count of connections,
// of those that are half open, of flows of datagrams and of fragments is bounded,
// and so is the memory that each one takes.
package link

import (
	"context"
	"net"
	"net/netip"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// A Handler decides about what the box begins. Its methods are called on
// goroutines of their own, many at once, and may take their time; the link waits
// for them when it is closed.
type Handler interface {
	// TCP is called for a connection that is asked for (a SYN). It calls Accept or
	// Refuse of a; where it calls neither, the connection is refused when it
	// returns.
	TCP(a *Attempt)
	// UDP is called for the first datagram from one address and port to another.
	// The flow is the handler's when it has called Accept; it is refused as that
	// of TCP is.
	UDP(f *Datagrams)
}

// Options say how a link is made. The zero value of each is its default.
type Options struct {
	Handler  Handler
	MTU      uint32 // of the interface; 65520
	MaxConns int    // TCP connections at once, with those that are not accepted yet; 4096. More are refused
	MaxFlows int    // flows of datagrams at once; 1024. More are refused

	// Pings tells whether an address answers to ICMP echo. Nil is none.
	Pings func(netip.Addr) bool
}

// A Conn is a connection of the box, or a flow of its datagrams.
type Conn interface {
	net.Conn
	// CloseWrite ends what is sent and goes on receiving. For a flow of datagrams
	// it does nothing.
	CloseWrite() error
}

// An Attempt is a connection that the box asks for and that is not answered yet.
type Attempt struct {
	From, To netip.AddrPort
}

// Accept answers, and gives the connection once the box has acknowledged it.
// It is called once, and not together with Refuse.
func (a *Attempt) Accept(ctx context.Context) (Conn, error) { return nil, paddock.Unsupported }

// Refuse tells the box that nobody listens there (RST). What is accepted or
// refused already is left alone.
func (a *Attempt) Refuse() {}

// Datagrams are what the box sends from one address and port to another, and
// what goes back.
type Datagrams struct {
	From, To netip.AddrPort
}

// Accept takes the flow. Each Read of the connection gives one datagram, and each
// Write sends one. A flow on which nothing moves for a minute ends: Read gives
// io.EOF.
func (d *Datagrams) Accept() (Conn, error) { return nil, paddock.Unsupported }

// Refuse tells the box that nobody is there (ICMP port unreachable).
func (d *Datagrams) Refuse() {}

// A Link is the stack on a descriptor.
type Link struct{}

// Open makes the stack on f, a TUN device without packet information
// (IFF_TUN|IFF_NO_PI) or a socket of packets (SOCK_SEQPACKET), whose other end is
// the box's. f belongs to the link, also when Open fails.
func Open(f *os.File, o Options) (*Link, error) { return nil, paddock.Unsupported }

// Close ends the link with all its connections, and waits for all calls of the
// handler. The second call does nothing.
func (l *Link) Close() error { return nil }

// Done is closed when the other end is gone, or the link is closed.
func (l *Link) Done() <-chan struct{} { return nil }
