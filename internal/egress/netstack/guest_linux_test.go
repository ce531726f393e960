package netstack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A handler is made of functions; a nil function refuses.
type handler struct {
	tcp func(*Attempt)
	udp func(*Datagrams)
}

func (h handler) TCP(a *Attempt) {
	if h.tcp != nil {
		h.tcp(a)
	}
}

func (h handler) UDP(d *Datagrams) {
	if h.udp != nil {
		h.udp(d)
	}
}

// accepted is a handler that passes each connection to serve.
func accepted(t testing.TB, serve func(Conn)) handler {
	return handler{tcp: func(a *Attempt) {
		c, err := a.Accept(context.Background())
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		defer c.Close()
		serve(c)
	}}
}

// A guest is a network stack on the other end of a link, like that of a box.
type guest struct {
	stack *stack.Stack
	end   stack.LinkEndpoint
	stop  func()
}

var (
	box4 = netip.MustParseAddr("198.18.0.2")
	box6 = netip.MustParseAddr("fd7a:6f74::2")
	web4 = netip.MustParseAddrPort("198.18.1.7:80")
	web6 = netip.MustParseAddrPort("[fd7a:6f74::1:7]:80")
)

func pair(t testing.TB) (ours, theirs *os.File) {
	t.Helper()
	fd, theirs, err := sys.PacketPair(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "link"), theirs
}

// open makes a link with a guest on its other end.
func open(t testing.TB, o Options) (*Link, *guest) {
	t.Helper()
	ours, theirs := pair(t)
	l, err := Open(ours, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, newGuest(t, theirs)
}

func newGuest(t testing.TB, f *os.File) *guest {
	t.Helper()
	g := &guest{stack: stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})}
	var err error
	if g.end, err = newEndpoint(f, 65520, func() {}); err != nil {
		t.Fatal(err)
	}
	sack := tcpip.TCPSACKEnabled(true)
	must(t, g.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	must(t, g.stack.CreateNIC(1, g.end))
	for p, a := range map[tcpip.NetworkProtocolNumber]netip.Addr{ipv4.ProtocolNumber: box4, ipv6.ProtocolNumber: box6} {
		must(t, g.stack.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: p, AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(a.AsSlice()), PrefixLen: a.BitLen()}}, stack.AddressProperties{}))
	}
	g.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1}})
	var once sync.Once
	stop := func() {
		once.Do(func() {
			g.end.Attach(nil)
			g.stack.Destroy()
			f.Close()
		})
	}
	g.stop = stop
	t.Cleanup(stop)
	return g
}

func must(t testing.TB, err tcpip.Error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func full(a netip.AddrPort) (tcpip.FullAddress, tcpip.NetworkProtocolNumber) {
	to := tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
	if a.Addr().Is4() {
		return to, ipv4.ProtocolNumber
	}
	return to, ipv6.ProtocolNumber
}

func (g *guest) dial(ctx context.Context, to netip.AddrPort) (*gonet.TCPConn, error) {
	a, p := full(to)
	return gonet.DialContextTCP(ctx, g.stack, a, p)
}

func (g *guest) mustDial(t testing.TB, to netip.AddrPort) *gonet.TCPConn {
	t.Helper()
	c, err := g.dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })

	if err := c.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (g *guest) udp(t testing.TB, to netip.AddrPort) *gonet.UDPConn {
	t.Helper()
	a, p := full(to)
	c, err := gonet.DialUDP(g.stack, nil, &a, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually polls for a condition.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(3 * time.Minute); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("never: " + what)
		}
	}
}

// goroutines counts goroutines with code of this package or of the stack.
func goroutines() int {
	buf := make([]byte, 4<<20)
	n := 0
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "egress/link.(") || strings.Contains(g, "gvisor") {
			n++
		}
	}
	return n
}

func echo(c Conn) {
	_, _ = io.CopyBuffer(c, c, make([]byte, 70_000)) // a whole datagram
	_ = c.CloseWrite()
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
