//go:build linux

package internet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A watch records every packet that arrives over a link.
type watch struct {
	fd int

	mu   sync.Mutex
	seen map[protocol.Packet]bool
}

// newWatch watches a link of the calling thread's network.
func newWatch(name string) (*watch, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	all := uint16(unix.ETH_P_ALL)<<8 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(all))
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	if err := errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
	); err != nil {
		return nil, err
	}
	w := &watch{fd: fd, seen: map[protocol.Packet]bool{}}
	go func() {
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((100 * time.Millisecond).Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
			w.mu.Lock()
			w.drain()
			w.mu.Unlock()
		}
	}()
	return w, nil
}

// drain reads what has arrived. w.mu is held.
func (w *watch) drain() {
	buf := make([]byte, 256)
	for {
		n, from, err := unix.Recvfrom(w.fd, buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		if err != nil {
			return
		}
		if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if p, ok := parse(buf[:min(n, len(buf))]); ok {
			w.seen[p] = true
		}
	}
}

// take returns the kinds of packets since the last call.
func (w *watch) take() ([]protocol.Packet, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	var list []protocol.Packet
	for p := range w.seen {
		list = append(list, p)
	}
	w.seen = map[protocol.Packet]bool{}
	st, err := unix.GetsockoptTpacketStats(w.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return list, 1
	}
	return list, int(st.Drops)
}

// parse parses a frame. It leaves out answers of TCP and neighbour discovery.
func parse(f []byte) (protocol.Packet, bool) {
	if len(f) < 14 {
		return protocol.Packet{}, false
	}
	proto, to, rest := uint8(0), netip.Addr{}, f[14:]
	switch binary.BigEndian.Uint16(f[12:]) {
	case unix.ETH_P_IP:
		if len(rest) < 20 {
			return protocol.Packet{Proto: "short"}, true
		}
		proto, to = rest[9], netip.AddrFrom4([4]byte(rest[16:20]))
		rest = rest[min(len(rest), int(rest[0]&15)*4):]
	case unix.ETH_P_IPV6:
		if len(rest) < 40 {
			return protocol.Packet{Proto: "short"}, true
		}
		proto, to = rest[6], netip.AddrFrom16([16]byte(rest[24:40]))
		rest = rest[40:]
		if proto == 0 && to.IsMulticast() {
			return protocol.Packet{}, false // multicast membership
		}
	case unix.ETH_P_ARP:
		return protocol.Packet{}, false
	default:
		return protocol.Packet{Proto: fmt.Sprintf("ether %x", f[12:14])}, true
	}
	port := func() netip.AddrPort {
		if len(rest) < 4 {
			return netip.AddrPortFrom(to, 0)
		}
		return netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2:]))
	}
	switch proto {
	case unix.IPPROTO_TCP:
		const syn, ack = 2, 16
		begins := len(rest) > 13 && rest[13]&(syn|ack) == syn
		return protocol.Packet{Proto: "tcp", To: port()}, begins
	case unix.IPPROTO_UDP:
		return protocol.Packet{Proto: "udp", To: port()}, true
	case unix.IPPROTO_ICMP:
		// "Port unreachable" is an answer.
		return protocol.Packet{Proto: "icmp", To: netip.AddrPortFrom(to, 0)}, len(rest) == 0 || rest[0] != 3
	case unix.IPPROTO_ICMPV6:
		neighbours := len(rest) > 0 && (rest[0] >= 133 && rest[0] <= 137 || rest[0] == 143 || rest[0] == 1)
		return protocol.Packet{Proto: "icmp", To: netip.AddrPortFrom(to, 0)}, !neighbours
	}
	return protocol.Packet{Proto: strconv.Itoa(int(proto)), To: netip.AddrPortFrom(to, 0)}, true
}
