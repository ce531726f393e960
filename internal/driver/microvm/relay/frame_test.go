package relay

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func packet4(size int) []byte {
	p := make([]byte, size)
	p[0] = 0x45
	binary.BigEndian.PutUint16(p[2:], uint16(size))
	return p
}

func packet6(size int) []byte {
	p := make([]byte, size)
	p[0] = 0x60
	binary.BigEndian.PutUint16(p[4:], uint16(size-40))
	return p
}

// framed is a packet as the device has it.
func framed(p []byte, kind uint16) []byte {
	f := make([]byte, headSize+len(p))
	head(f, kind)
	copy(f[headSize:], p)
	return f
}

func TestOnlySanePacketsPass(t *testing.T) {
	cut := packet4(100)
	binary.BigEndian.PutUint16(cut[2:], 101)
	options := packet4(20)
	options[0] = 0x46
	for _, c := range []struct {
		name string
		data []byte
		kind uint16
		want int // bytes; 0 is dropped
	}{
		{"IPv4", packet4(100), typeIPv4, 100},
		{"the smallest", packet4(20), typeIPv4, 20},
		{"the largest", packet4(MaxPacket), typeIPv4, MaxPacket},
		{"IPv6", packet6(40), typeIPv6, 40},
		{"without what fills the frame", append(packet4(28), make([]byte, 18)...), typeIPv4, 28},
		{"one byte too large", packet4(MaxPacket + 1), typeIPv4, 0},
		{"longer than its frame", cut, typeIPv4, 0},
		{"a header longer than the packet", options, typeIPv4, 0},
		{"another kind than its frame says", packet4(60), typeIPv6, 0},
		{"address resolution", make([]byte, 28), 0x0806, 0},
		{"a tag", append([]byte{0, 1, 8, 0}, packet4(60)...), 0x8100, 0},
		{"nothing", nil, typeIPv4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := packet(framed(c.data, c.kind)); len(got) != c.want || !bytes.HasPrefix(c.data, got) {
				t.Errorf("a packet of %d bytes, and not %d", len(got), c.want)
			}
		})
	}
}

func FuzzPacket(f *testing.F) {
	f.Add(framed(packet4(100), typeIPv4))
	f.Add(framed(packet6(100), typeIPv6))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := packet(data)
		if p == nil {
			return
		}
		if len(p) < 20 || len(p) > MaxPacket || !bytes.HasPrefix(data[headSize:], p) {
			t.Fatalf("a packet of %d bytes out of %d", len(p), len(data))
		}
		if again, kind := sane(p); len(again) != len(p) || kind != binary.BigEndian.Uint16(data[12:]) {
			t.Fatalf("of a packet of %d bytes %d are one, of kind %#x", len(p), len(again), kind)
		}
	})
}
