package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/config"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A link is the connection between the host and the agent: a pair of sockets that carry IP
// packets, with a network stack of Paddock on this end. It forwards nothing. In a box
// without a network it is the only interface.
type link struct {
	stack  *stack.Stack
	theirs *os.File           // given to gVisor
	way    *os.File           // the gateway's link, also given to gVisor; nil without a gateway
	first  *gonet.TCPListener // accepts the agent's first connection; nil if none is expected
}

// Properties of the link. It has no hardware, and so no hardware address.
const (
	mtu    = 65520
	buffer = 4 << 20 // bytes in transit in each direction
	nic    = 1
)

var (
	ourAddress   = net.ParseIP(guestinit.Peer).To4()
	theirAddress = net.ParseIP(guestinit.Address).To4()
)

func newLink() (*link, error) {
	ours, theirs, err := sys.PacketPair(buffer)
	if err != nil {
		return nil, err
	}
	l := &link{theirs: theirs}
	if l.stack, err = newStack(ours); err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	return l, nil
}

// newStack makes the stack on our end, and takes over the descriptor.
func newStack(end int) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	// A used port is free again at once, because the other side is one box.
	wait := tcpip.TCPTimeWaitTimeoutOption(0)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &wait); err != nil {
		return nil, fmt.Errorf("network stack: %s", err)
	}
	e, err := fdbased.New(&fdbased.Options{
		FDs: []int{end}, MTU: mtu, TXChecksumOffload: true, RXChecksumOffload: true,
		PacketDispatchMode: fdbased.Readv, ProcessorsPerChannel: 1, IsPacketSocket: []bool{false},
	})
	if err != nil {
		return nil, fmt.Errorf("network stack: %w", err)
	}
	if err := s.CreateNIC(nic, e); err != nil {
		return nil, fmt.Errorf("network stack: %s", err)
	}
	at := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(ourAddress), PrefixLen: 32}}
	if err := s.AddProtocolAddress(nic, at, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("network stack: %s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

// expect listens for the agent's first connection, which the agent makes before any command
// runs.
func (l *link) expect() (err error) {
	l.first, err = gonet.ListenTCP(l.stack, tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(ourAddress), Port: guestinit.Port}, ipv4.ProtocolNumber)
	return err
}

// accept accepts that connection, and no other.
func (l *link) accept(ctx context.Context) (net.Conn, error) {
	first := l.first
	l.first = nil
	defer context.AfterFunc(ctx, first.Shutdown)()
	conn, err := first.Accept()
	err = errors.Join(err, ctx.Err(), first.Close())
	if err != nil && conn != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, err
}

// dial connects to the agent.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	to := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(theirAddress), Port: guestinit.Port}
	return gonet.DialContextTCP(ctx, l.stack, to, ipv4.ProtocolNumber)
}

// newWay makes the gateway's link, and hands over the host's end.
func (l *link) newWay(give func(*os.File) error) error {
	end, theirs, err := sys.PacketPair(buffer)
	if err != nil {
		return err
	}
	l.way = theirs
	ours := os.NewFile(uintptr(end), "way")
	defer ours.Close()
	return give(ours)
}

// closeTheirs closes the ends that gVisor has.
func (l *link) closeTheirs() {
	l.theirs.Close()
	if l.way != nil {
		l.way.Close()
	}
}

// arguments describe the links to gVisor. The agent's link leads nowhere else, so it has
// only the route to this end.
func (l *link) arguments() *boot.CreateLinksAndRoutesArgs {
	args := l.ownArguments()
	if l.way == nil {
		return args
	}
	args.FDBasedLinks[0].Name = "paddock0"
	way := args.FDBasedLinks[0]
	way.Name, way.InterfaceIndex = boxinit.LinkName, 3
	v4, v6 := net.ParseIP(boxinit.Address4).To4(), net.ParseIP(boxinit.Address6)
	way.Addresses = []boot.IPWithPrefix{{Address: v4, PrefixLen: 32}, {Address: v6, PrefixLen: 128}}
	way.Routes = []boot.Route{
		{Destination: net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}},
		{Destination: net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}},
	}
	args.FDBasedLinks = append(args.FDBasedLinks, way)
	args.Files = append(args.Files, l.way)
	return args
}

// ownArguments are the arguments for a box without a gateway.
func (l *link) ownArguments() *boot.CreateLinksAndRoutesArgs {
	mask := func(ones int) net.IPMask { return net.CIDRMask(ones, 32) }
	return &boot.CreateLinksAndRoutesArgs{
		FilePayload:   urpc.FilePayload{Files: []*os.File{l.theirs}},
		LoopbackLinks: []boot.LoopbackLink{{Name: "lo", Addresses: []boot.IPWithPrefix{{Address: net.IP{127, 0, 0, 1}, PrefixLen: 8}, {Address: net.IPv6loopback, PrefixLen: 128}}}},
		FDBasedLinks: []boot.FDBasedLink{{
			Name: "eth0", InterfaceIndex: 2, MTU: mtu,
			Addresses:         []boot.IPWithPrefix{{Address: theirAddress, PrefixLen: 32}},
			Routes:            []boot.Route{{Destination: net.IPNet{IP: ourAddress, Mask: mask(32)}}},
			TXChecksumOffload: true, RXChecksumOffload: true, QDisc: config.QDiscNone, NumChannels: 1, ProcessorsPerChannel: 1,
		}},
	}
}
