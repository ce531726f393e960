package egresstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Patience bounds each wait of a guest.
const Patience = 3 * time.Minute

// A Guest is a network stack on the sandbox's end of a link.
type Guest struct {
	stack *stack.Stack
}

// New makes a link. It returns the guest on one end, which exists until the test ends, and
// the file of the gateway's end, which the test closes.
func New(tb testing.TB) (*Guest, *os.File) {
	tb.Helper()
	fd, theirs, err := sys.PacketPair(4 << 20)
	if err != nil {
		tb.Fatal(err)
	}
	return on(tb, theirs), os.NewFile(uintptr(fd), "link")
}

func on(tb testing.TB, f *os.File) *Guest {
	tb.Helper()
	g := &Guest{stack: stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})}
	end, err := fdbased.New(&fdbased.Options{
		FDs: []int{int(f.Fd())}, MTU: netstack.MTU, RXChecksumOffload: true, TXChecksumOffload: true,
		PacketDispatchMode: fdbased.Readv, ProcessorsPerChannel: 1, PreConfigured: true, IsPacketSocket: []bool{false},
	})
	if err != nil {
		tb.Fatal(err)
	}
	sack := tcpip.TCPSACKEnabled(true)
	if err := g.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		tb.Fatal(err)
	}
	if err := g.stack.CreateNIC(1, end); err != nil {
		tb.Fatal(err)
	}
	for p, a := range map[tcpip.NetworkProtocolNumber]netip.Addr{ipv4.ProtocolNumber: netstack.Guest4(), ipv6.ProtocolNumber: netstack.Guest6()} {
		whole := tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(a.AsSlice()), PrefixLen: a.BitLen()}
		if err := g.stack.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: p, AddressWithPrefix: whole}, stack.AddressProperties{}); err != nil {
			tb.Fatal(err)
		}
	}
	g.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1}})
	tb.Cleanup(func() {
		end.Attach(nil)
		g.stack.Destroy()
		f.Close()
	})
	return g
}

// DialAddr connects to an address.
func (g *Guest) DialAddr(ctx context.Context, to netip.AddrPort) (*gonet.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	a, p := full(to)
	c, err := gonet.DialContextTCP(ctx, g.stack, a, p)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(Patience))
}

// Dial resolves a name and connects to it.
func (g *Guest) Dial(ctx context.Context, host string, port uint16) (*gonet.TCPConn, error) {
	addrs, _, err := g.Lookup(host, dnsmessage.TypeA)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return g.DialAddr(ctx, netip.AddrPortFrom(addrs[0], port))
}

// DialUDP returns a socket for datagrams to an address.
func (g *Guest) DialUDP(to netip.AddrPort) (net.Conn, error) {
	a, p := full(to)
	c, err := gonet.DialUDP(g.stack, nil, &a, p)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(Patience))
}

// Lookup queries the gateway by a datagram for the addresses of a name.
func (g *Guest) Lookup(host string, kind dnsmessage.Type) ([]netip.Addr, dnsmessage.RCode, error) {
	name, err := dnsmessage.NewName(host + ".")
	if err != nil {
		return nil, 0, err
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: name, Type: kind, Class: dnsmessage.ClassINET}}}
	query, err := m.Pack()
	if err != nil {
		return nil, 0, err
	}
	c, err := g.DialUDP(netip.AddrPortFrom(netstack.Gateway4(), netstack.DNSPort))
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	if _, err := c.Write(query); err != nil {
		return nil, 0, err
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil {
		return nil, 0, err
	}
	return answers(buf[:n])
}

func answers(data []byte) ([]netip.Addr, dnsmessage.RCode, error) {
	var m dnsmessage.Message
	if err := m.Unpack(data); err != nil {
		return nil, 0, err
	}
	if m.RCode != dnsmessage.RCodeSuccess {
		return nil, m.RCode, errors.New(m.RCode.String())
	}
	var list []netip.Addr
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			list = append(list, netip.AddrFrom4(b.A))
		case *dnsmessage.AAAAResource:
			list = append(list, netip.AddrFrom16(b.AAAA))
		}
	}
	return list, m.RCode, nil
}

func full(a netip.AddrPort) (tcpip.FullAddress, tcpip.NetworkProtocolNumber) {
	to := tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
	if a.Addr().Is4() {
		return to, ipv4.ProtocolNumber
	}
	return to, ipv6.ProtocolNumber
}
