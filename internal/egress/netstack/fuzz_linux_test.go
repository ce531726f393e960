package netstack

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A raw is the box's end of a link, for arbitrary packets.
type raw struct {
	end     *os.File
	replies chan [8]byte // payloads of answered pings
	count   uint64
}

func newRaw(t testing.TB, end *os.File) *raw {
	r := &raw{end: end, replies: make(chan [8]byte, 16)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.read()
	}()
	t.Cleanup(func() { // the link is closed by now, which ends the reader
		<-over
		end.Close()
	})
	return r
}

func (r *raw) read() {
	b := make([]byte, 70_000)
	for {
		n, err := r.end.Read(b)
		if err != nil {
			return
		}
		if n != header.IPv4MinimumSize+header.ICMPv4MinimumSize+8 || b[9] != uint8(header.ICMPv4ProtocolNumber) || b[20] != uint8(header.ICMPv4EchoReply) {
			continue
		}
		select {
		case r.replies <- [8]byte(b[n-8 : n]):
		default:
		}
	}
}

// settle waits until everything that was sent is processed, by a ping after it.
func (r *raw) settle(t testing.TB) {
	t.Helper()
	r.count++
	var mark [8]byte
	binary.BigEndian.PutUint64(mark[:], r.count<<16|0xabcd)
	late := time.After(20 * time.Second)
	for {
		if _, err := r.end.Write(ping4(web4.Addr(), mark[:])); err != nil {
			t.Fatal(err)
		}
		again := time.After(500 * time.Millisecond) // either packet may be lost
	wait:
		for {
			select {
			case got := <-r.replies:
				if got == mark {
					return
				}
			case <-again:
				break wait
			case <-late:
				t.Fatal("the link answers no ping any more")
			}
		}
	}
}

func ping4(to netip.Addr, payload []byte) []byte {
	b := make([]byte, header.IPv4MinimumSize+header.ICMPv4MinimumSize, 64)
	b = append(b, payload...)
	ip4(b, header.ICMPv4ProtocolNumber, to)
	icmp := header.ICMPv4(b[header.IPv4MinimumSize:])
	icmp.SetType(header.ICMPv4Echo)
	icmp.SetChecksum(header.ICMPv4Checksum(icmp[:header.ICMPv4MinimumSize], 0))
	return b
}

func ip4(b []byte, protocol tcpip.TransportProtocolNumber, to netip.Addr) {
	header.IPv4(b).Encode(&header.IPv4Fields{
		TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(protocol),
		SrcAddr: tcpip.AddrFromSlice(box4.AsSlice()), DstAddr: tcpip.AddrFromSlice(to.AsSlice()),
	})
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
}

// datagram4 returns a datagram of the box, or a fragment of one.
func datagram4(from uint16, payload []byte, id, offset uint16, more bool) []byte {
	b := make([]byte, header.IPv4MinimumSize, header.IPv4MinimumSize+header.UDPMinimumSize+len(payload))
	if offset == 0 {
		u := make([]byte, header.UDPMinimumSize)
		header.UDP(u).Encode(&header.UDPFields{SrcPort: from, DstPort: 9, Length: uint16(header.UDPMinimumSize + len(payload))})
		b = append(b, u...)
	}
	b = append(b, payload...)
	f := &header.IPv4Fields{
		TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.UDPProtocolNumber), ID: id, FragmentOffset: offset,
		SrcAddr: tcpip.AddrFromSlice(box4.AsSlice()), DstAddr: tcpip.AddrFromSlice(web4.Addr().AsSlice()),
	}
	if more {
		f.Flags = header.IPv4FlagMoreFragments
	}
	header.IPv4(b).Encode(f)
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	return b
}

// packets splits the fuzzer's input: two bytes of length before each packet.
func packets(b []byte) [][]byte {
	var out [][]byte
	for len(b) > 2 && len(out) < 64 {
		n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
		if n > 0 { // an empty packet would end the link
			out = append(out, b[2:2+n])
		}
		b = b[2+n:]
	}
	return out
}

func joined(packets ...[]byte) []byte {
	var b []byte
	for _, p := range packets {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(p))), p...)
	}
	return b
}

// FuzzPackets sends arbitrary packets from a box. The link must not break, must keep
// answering, and must stay within its memory bounds.
func FuzzPackets(f *testing.F) {
	six := make([]byte, header.IPv6MinimumSize+20)
	header.IPv6(six).Encode(&header.IPv6Fields{PayloadLength: 20, TransportProtocol: header.TCPProtocolNumber, HopLimit: 64, SrcAddr: tcpip.AddrFromSlice(box6.AsSlice()), DstAddr: tcpip.AddrFromSlice(web6.Addr().AsSlice())})
	header.TCP(six[header.IPv6MinimumSize:]).Encode(&header.TCPFields{SrcPort: 1, DstPort: 2, DataOffset: 20, Flags: header.TCPFlagSyn, WindowSize: 100})
	land := syn(web4.Addr(), web4)
	f.Add(joined(syn(box4, web4), syn(box4, web4)))
	f.Add(joined(six, land))
	f.Add(joined(datagram4(1000, []byte("hello"), 0, 0, false), datagram4(1000, nil, 0, 0, false)))
	f.Add(joined(datagram4(1000, make([]byte, 16), 7, 0, true), datagram4(1000, make([]byte, 16), 7, 24, false)))
	f.Add(joined(ping4(web4.Addr(), []byte("12345678")), []byte{0x45}, []byte{0x60, 0}, []byte{0}))
	for _, next := range []byte{0, 43, 44, 58, 60} { // extension headers, and ICMP of neighbour discovery
		p := bytes.Clone(six)
		p[6] = next
		f.Add(joined(p))
	}
	ours, theirs := pair(f)
	r := newRaw(f, theirs)
	const most = 32
	l, err := Open(ours, Options{MaxConns: most, MaxFlows: most, Pings: func(netip.Addr) bool { return true }, Handler: handler{
		tcp: func(a *Attempt) {
			if a.To.Port()%2 == 1 {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			c, err := a.Accept(ctx)
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(100 * time.Millisecond))
			echo(c)
		},
		udp: func(d *Datagrams) {
			c, err := d.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(100 * time.Millisecond))
			echo(c)
		},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range packets(b) {
			if _, err := r.end.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		r.settle(t)
		l.mu.Lock()
		flows := len(l.flows)
		l.mu.Unlock()
		if n := l.conns.Load(); n > most+halfOpen || flows > most || l.queued.Load() > allFlows {
			t.Errorf("%d connections, %d flows, %d bytes wait", n, flows, l.queued.Load())
		}
	})
}

func TestAFloodOfConnectionsIsBounded(t *testing.T) {
	ours, theirs := pair(t)
	r := newRaw(t, theirs)
	held := make(chan struct{})
	l, err := Open(ours, Options{Pings: func(netip.Addr) bool { return true }, Handler: handler{tcp: func(*Attempt) { <-held }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Cleanup(func() { close(held) })
	for i := range 5000 {
		p := syn(box4, web4)
		binary.BigEndian.PutUint16(p[header.IPv4MinimumSize:], uint16(1000+i))
		if _, err := r.end.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	r.settle(t)
	eventually(t, "they are begun", func() bool { return l.conns.Load() == halfOpen })
	if n := l.conns.Load(); n != halfOpen {
		t.Errorf("%d connections are begun, want %d", n, halfOpen)
	}
}

func TestPiecesOfDatagramsAreJoinedAndBounded(t *testing.T) {
	ours, theirs := pair(t)
	r := newRaw(t, theirs)
	got := make(chan string, 1)
	l, err := Open(ours, Options{Pings: func(netip.Addr) bool { return true }, Handler: handler{udp: func(d *Datagrams) {
		c, err := d.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		b := make([]byte, 100)
		n, _ := c.Read(b)
		got <- string(b[:n])
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	// Many incomplete datagrams do not block a complete one.
	for i := range 20_000 {
		if _, err := r.end.Write(datagram4(1, make([]byte, 1000), uint16(i), 1024, true)); err != nil {
			t.Fatal(err)
		}
	}
	whole := []byte("one datagram in two pieces")
	first := datagram4(7, whole, 40_000, 0, true)[:header.IPv4MinimumSize+16]
	header.IPv4(first).SetTotalLength(uint16(len(first)))
	header.IPv4(first).SetChecksum(0)
	header.IPv4(first).SetChecksum(^header.IPv4(first).CalculateChecksum())
	for _, p := range [][]byte{first, datagram4(7, whole[8:], 40_000, 16, false)} {
		if _, err := r.end.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if s := <-got; s != string(whole) {
		t.Errorf("got %q", s)
	}
}
