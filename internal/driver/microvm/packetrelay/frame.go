// Package packetrelay copies packets between the network device of a virtual machine and the link of
// its box.
//
// The device speaks Ethernet and the link IP. Because there are only two ends, no address of the link
// layer is ever resolved: the machine's address is known, and each of its frames is for the other end.
// Frames that hold no IP packet of a valid length are dropped, in both directions.
package packetrelay

import "encoding/binary"

// Addresses of the link layer: the one that QEMU gives to a machine's first device, and an
// unused one for the other end.
const (
	machine = "\x52\x54\x00\x12\x34\x56"
	peer    = "\x02\x70\x61\x64\x64\x01"
)

// Lengths in bytes. MaxPacket is the link's MTU.
const (
	MaxPacket = 65520

	headSize = 14
	maxFrame = headSize + MaxPacket
)

// Ethernet types.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
)

// packet returns the IP packet in a frame, or nil if there is none.
func packet(frame []byte) []byte {
	if len(frame) < headSize || len(frame) > maxFrame {
		return nil
	}
	data, kind := sane(frame[headSize:])
	if kind == 0 || kind != binary.BigEndian.Uint16(frame[12:]) {
		return nil
	}
	return data
}

// sane returns an IP packet without trailing bytes, and its Ethernet type, or 0 if it is
// invalid.
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

// head writes the Ethernet header of a packet for the machine.
func head(to []byte, kind uint16) {
	copy(to, machine+peer)
	binary.BigEndian.PutUint16(to[12:], kind)
}

// Transport protocols whose checksum the link leaves out.
const (
	protocolTCP = 6
	protocolUDP = 17
)

// complete writes the checksum of a valid TCP or UDP packet. The other ends of links do not
// check it, but the machine's kernel does.
func complete(p []byte, kind uint16) {
	var protocol byte
	var addresses, data []byte
	switch kind {
	case typeIPv4:
		if binary.BigEndian.Uint16(p[6:])&0x3fff != 0 {
			return // a fragment has no transport header
		}
		protocol, addresses, data = p[9], p[12:20], p[int(p[0]&0xf)*4:]
	case typeIPv6:
		protocol, addresses, data = p[6], p[8:40], p[40:]
	}
	var at []byte
	switch {
	case protocol == protocolTCP && len(data) >= 20:
		at = data[16:18]
	case protocol == protocolUDP && len(data) >= 8:
		at = data[6:8]
	default:
		return
	}
	clear(at)
	sum := ^fold(add(add(uint64(protocol)+uint64(len(data)), addresses), data))
	if sum == 0 && protocol == protocolUDP {
		sum = 0xffff // zero means no checksum
	}
	binary.BigEndian.PutUint16(at, sum)
}

// add adds the words of data to an Internet checksum. A packet is too short to overflow it.
func add(sum uint64, data []byte) uint64 {
	for ; len(data) >= 4; data = data[4:] {
		sum += uint64(binary.BigEndian.Uint32(data))
	}
	if len(data) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(data))
		data = data[2:]
	}
	if len(data) == 1 {
		sum += uint64(data[0]) << 8
	}
	return sum
}

func fold(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
