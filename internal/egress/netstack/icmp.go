package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// quoted is how many bytes of a packet an ICMP error quotes, so that the error fits any
// network.
const quoted = 512

// quote copies the beginning of a packet, from its network header.
func quote(pkt *stack.PacketBuffer) []byte {
	var b []byte
	b = append(b, pkt.NetworkHeader().Slice()...)
	b = append(b, pkt.TransportHeader().Slice()...)
	if len(b) < quoted {
		data := pkt.Data().AsRange().ToSlice()
		b = append(b, data[:min(len(data), quoted-len(b))]...)
	}
	return b
}

// unreachable sends "port unreachable", within the rate limit of ICMP errors.
func (l *Link) unreachable(route *stack.Route, first []byte) {
	if !l.stack.AllowICMPMessage() {
		return
	}
	if route.NetProto() == header.IPv6ProtocolNumber {
		h := header.ICMPv6(make([]byte, header.ICMPv6DstUnreachableMinimumSize))
		h.SetType(header.ICMPv6DstUnreachable)
		h.SetCode(header.ICMPv6PortUnreachable)
		l.send6(route, h, first)
		return
	}
	h := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize))
	h.SetType(header.ICMPv4DstUnreachable)
	h.SetCode(header.ICMPv4PortUnreachable)
	l.send4(route, h, first)
}

// echo4 answers echo requests to addresses that may answer. The stack itself would answer
// for all addresses. It reports true if the stack must not answer.
func (l *Link) echo4(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	h := header.ICMPv4(pkt.TransportHeader().Slice())
	if len(h) < header.ICMPv4MinimumSize || h.Type() != header.ICMPv4Echo {
		return true
	}
	if route := l.pinged(id, pkt); route != nil {
		defer route.Release()
		reply := header.ICMPv4(append([]byte{}, h...))
		reply.SetType(header.ICMPv4EchoReply)
		l.send4(route, reply, pkt.Data().AsRange().ToSlice())
	}
	return true
}

func (l *Link) echo6(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	h := header.ICMPv6(pkt.TransportHeader().Slice())
	if len(h) < header.ICMPv6EchoMinimumSize || h.Type() != header.ICMPv6EchoRequest {
		return true
	}
	if route := l.pinged(id, pkt); route != nil {
		defer route.Release()
		reply := header.ICMPv6(append([]byte{}, h[:header.ICMPv6EchoMinimumSize]...))
		reply.SetType(header.ICMPv6EchoReply)
		l.send6(route, reply, append(append([]byte{}, h[header.ICMPv6EchoMinimumSize:]...), pkt.Data().AsRange().ToSlice()...))
	}
	return true
}

// pinged returns the route back if the address may answer.
func (l *Link) pinged(id stack.TransportEndpointID, pkt *stack.PacketBuffer) *stack.Route {
	to, ok := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	if !ok || l.pings == nil || !l.pings(to) {
		return nil
	}
	route, err := l.stack.FindRoute(nic, id.LocalAddress, id.RemoteAddress, pkt.NetworkProtocolNumber, false)
	if err != nil {
		return nil
	}
	return route
}

func (l *Link) send4(route *stack.Route, h header.ICMPv4, payload []byte) {
	pkt := message(route, h, payload)
	defer pkt.DecRef()
	on := header.ICMPv4(pkt.TransportHeader().Slice())
	on.SetChecksum(0)
	on.SetChecksum(header.ICMPv4Checksum(on, pkt.Data().Checksum()))
	pkt.TransportProtocolNumber = header.ICMPv4ProtocolNumber
	_ = route.WritePacket(stack.NetworkHeaderParams{Protocol: header.ICMPv4ProtocolNumber, TTL: route.DefaultTTL()}, pkt) // may be lost
}

func (l *Link) send6(route *stack.Route, h header.ICMPv6, payload []byte) {
	pkt := message(route, h, payload)
	defer pkt.DecRef()
	on := header.ICMPv6(pkt.TransportHeader().Slice())
	on.SetChecksum(0)
	on.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
		Header: on, Src: route.LocalAddress(), Dst: route.RemoteAddress(),
		PayloadCsum: pkt.Data().Checksum(), PayloadLen: pkt.Data().Size(),
	}))
	pkt.TransportProtocolNumber = header.ICMPv6ProtocolNumber
	_ = route.WritePacket(stack.NetworkHeaderParams{Protocol: header.ICMPv6ProtocolNumber, TTL: route.DefaultTTL()}, pkt) // may be lost
}

func message(route *stack.Route, h, payload []byte) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: len(h) + int(route.MaxHeaderLength()),
		Payload:            buffer.MakeWithData(payload),
	})
	copy(pkt.TransportHeader().Push(len(h)), h)
	return pkt
}
