// Package address says which addresses of the host's network a gateway may dial
// for a box, finds those of a name, and dials exactly what it has checked.
package address

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// Check tells in words why an address must not be dialled: it is Denied where
// the address is the host's or a network's own (loopback, private, link-local,
// metadata, multicast and the like, in whatever form it is written), unless
// lists says that a rule lists it. Nil lists nothing. The addresses of the
// host's interfaces are checked by a [Dialer].
func Check(addr netip.Addr, lists func(netip.Addr) bool) error { return paddock.Unsupported }

// A Target is what is to be dialled.
type Target struct {
	Host  rule.Host
	Port  uint16
	UDP   bool                  // datagrams; not together with Via
	Lists func(netip.Addr) bool // the addresses that a rule lists; nil is none
	Via   *url.URL              // an upstream proxy (http, https or socks5), which is given the name; nil is none
}

// A Dialer dials targets. Its zero value is ready: the host's network, with Go's
// own resolver. It keeps nothing between calls.
type Dialer struct {
	// Lookup gives the addresses of a name that is not an address.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Connect connects to an address ("tcp" or "udp").
	Connect func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
	// Own gives the host's own addresses; it is asked for each dial.
	Own func() ([]netip.Addr, error)
	// Timeout bounds a dial with its lookup; 0 is 30 seconds.
	Timeout time.Duration
}

// Dial looks the target's name up once, checks each address, and connects to
// the first of the checked ones that answers. What is refused is Denied; a
// failure of the network wraps what the system said (syscall.ECONNREFUSED and
// the like). With Via the name passes to the proxy by name, and the proxy alone is
// dialled: it is the word of the policy's author, and so may be anywhere.
func (d *Dialer) Dial(ctx context.Context, t Target) (net.Conn, error) {
	return nil, paddock.Unsupported
}
