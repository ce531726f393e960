// Package relay carries packets between a machine's network device and the link
// of its box.
//
// The device speaks Ethernet, as a stream of frames that begin with their length;
// the link carries IP packets, each by itself. There are only two ends, so no
// address of the link layer is ever asked for: the machine's is known, and every
// frame of its own is for whoever is at the other end. What is no IP packet of a
// sane length is dropped, in both directions.
package relay

import "encoding/binary"

// A MAC is an address of the link layer.
type MAC [6]byte

// peer is the address of whoever is at the other end: one that is nobody's.
var peer = MAC{0x02, 0x70, 0x61, 0x64, 0x64, 0x01}

// Lengths in bytes. MaxPacket is the link's MTU.
const (
	MaxPacket = 65520

	lengthSize   = 4
	ethernetSize = 14
	headSize     = lengthSize + ethernetSize
	maxFrame     = ethernetSize + MaxPacket
)

// Kinds of packets, as Ethernet calls them.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
)

// packet gives the IP packet in a frame, or nil where there is none.
func packet(frame []byte) []byte {
	if len(frame) < ethernetSize || len(frame) > maxFrame {
		return nil
	}
	data, kind := sane(frame[ethernetSize:])
	if kind == 0 || kind != binary.BigEndian.Uint16(frame[12:]) {
		return nil
	}
	return data
}

// sane gives an IP packet without what may follow it, and its kind; 0 is none.
func sane(data []byte) ([]byte, uint16) {
	const head4, head6 = 20, 40
	switch {
	case len(data) < head4 || len(data) > MaxPacket:
		return nil, 0
	case data[0]>>4 == 4:
		n, head := int(binary.BigEndian.Uint16(data[2:])), int(data[0]&0xf)*4
		if head < head4 || n < head || n > len(data) {
			return nil, 0
		}
		return data[:n], typeIPv4
	case data[0]>>4 == 6 && len(data) >= head6:
		n := head6 + int(binary.BigEndian.Uint16(data[4:]))
		if n > len(data) {
			return nil, 0
		}
		return data[:n], typeIPv6
	}
	return nil, 0
}

// A splitter takes a stream apart.
type splitter struct {
	skip uint64 // bytes of a frame that is too long
}

// next gives the first frame of data and what follows it. Without a frame, what
// follows is the beginning of one; what was left out is gone from it.
func (s *splitter) next(data []byte) (frame, rest []byte, ok bool) {
	for {
		n := min(s.skip, uint64(len(data)))
		data, s.skip = data[n:], s.skip-n
		if len(data) < lengthSize {
			return nil, data, false
		}
		size := binary.BigEndian.Uint32(data)
		if size > maxFrame {
			s.skip = lengthSize + uint64(size)
			continue
		}
		if len(data)-lengthSize < int(size) {
			return nil, data, false
		}
		return data[lengthSize : lengthSize+size], data[lengthSize+size:], true
	}
}

// head writes what comes before a packet on the device's stream.
func head(to []byte, size int, kind uint16, machine, peer MAC) {
	binary.BigEndian.PutUint32(to, uint32(ethernetSize+size))
	copy(to[4:], machine[:])
	copy(to[10:], peer[:])
	binary.BigEndian.PutUint16(to[16:], kind)
}
