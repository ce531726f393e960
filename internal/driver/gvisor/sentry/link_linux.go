package sentry

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
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A link is how the host reaches the agent: a pair of sockets that carry IP
// packets, with a network stack of ours on this end. Nothing is forwarded. It is
// the only interface of a box without a network.
type link struct {
	stack  *stack.Stack
	theirs *os.File           // given to gVisor
	way    *os.File           // that of the way out, likewise; nil without one
	first  *gonet.TCPListener // takes the agent's first connection; nil where there is none to come
}

// What the link is made of. There is no hardware, and so no address of any.
const (
	mtu    = 65520
	buffer = 4 << 20 // bytes on their way, each direction
	nic    = 1
)

var (
	ourAddress   = net.ParseIP(guestinit.Peer).To4()
	theirAddress = net.ParseIP(guestinit.Address).To4()
)

func newLink() (*link, error) {
	ours, theirs, err := kernel.PacketPair(buffer)
	if err != nil {
		return nil, err
	}
	l := &link{theirs: theirs}
	if l.stack, err = newStack(ours); err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	return l, nil
}

// newStack makes the stack on our end; the end belongs to it.
func newStack(end int) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	// A port that was used is free again at once: the other side is one box.
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

// expect gets ready for the agent's first connection, which it makes itself, and
// before there is a command.
func (l *link) expect() (err error) {
	l.first, err = gonet.ListenTCP(l.stack, tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(ourAddress), Port: guestinit.Port}, ipv4.ProtocolNumber)
	return err
}

// accept waits for that connection, and for no other.
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

// newWay makes the link of the way out, and hands the host's end of it over.
func (l *link) newWay(give func(*os.File) error) error {
	end, theirs, err := kernel.PacketPair(buffer)
	if err != nil {
		return err
	}
	l.way = theirs
	ours := os.NewFile(uintptr(end), "way")
	defer ours.Close()
	return give(ours)
}

// closeTheirs closes what gVisor has.
func (l *link) closeTheirs() {
	l.theirs.Close()
	if l.way != nil {
		l.way.Close()
	}
}

// arguments tell gVisor of the links. There is no way on from the other end of
// the agent's, and so no route to anywhere else.
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
	args.LoopbackLinks[0].Addresses = append(args.LoopbackLinks[0].Addresses, boot.IPWithPrefix{Address: net.IPv6loopback, PrefixLen: 128})
	return args
}

// ownArguments are those of a box without a way out.
func (l *link) ownArguments() *boot.CreateLinksAndRoutesArgs {
	mask := func(ones int) net.IPMask { return net.CIDRMask(ones, 32) }
	return &boot.CreateLinksAndRoutesArgs{
		FilePayload:   urpc.FilePayload{Files: []*os.File{l.theirs}},
		LoopbackLinks: []boot.LoopbackLink{{Name: "lo", Addresses: []boot.IPWithPrefix{{Address: net.IP{127, 0, 0, 1}, PrefixLen: 8}}}},
		FDBasedLinks: []boot.FDBasedLink{{
			Name: "eth0", InterfaceIndex: 2, MTU: mtu,
			Addresses:         []boot.IPWithPrefix{{Address: theirAddress, PrefixLen: 32}},
			Routes:            []boot.Route{{Destination: net.IPNet{IP: ourAddress, Mask: mask(32)}}},
			TXChecksumOffload: true, RXChecksumOffload: true, QDisc: config.QDiscNone, NumChannels: 1, ProcessorsPerChannel: 1,
		}},
	}
}
