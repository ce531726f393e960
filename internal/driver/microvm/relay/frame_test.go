package relay

import (
	"bytes"
	"encoding/binary"
	"testing"
)

var machine = MAC{2, 0, 0, 0, 0, 9}

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

// framed is a packet as the device's stream has it.
func framed(p []byte, kind uint16) []byte {
	f := make([]byte, headSize+len(p))
	head(f, len(p), kind, machine, peer)
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
			if got := packet(framed(c.data, c.kind)[lengthSize:]); len(got) != c.want || !bytes.HasPrefix(c.data, got) {
				t.Errorf("a packet of %d bytes, and not %d", len(got), c.want)
			}
		})
	}
}

func TestAStreamIsTakenApartHoweverItComes(t *testing.T) {
	long := make([]byte, 300000)
	binary.BigEndian.PutUint32(long, uint32(len(long)-lengthSize))
	stream := bytes.Join([][]byte{framed(packet4(100), typeIPv4), long, framed(packet6(1000), typeIPv6), {0, 0, 0, 0}, framed(packet4(20), typeIPv4)}, nil)
	for _, step := range []int{1, 3, 1000, len(stream)} {
		var s splitter
		var sizes []int
		var kept []byte
		for at := 0; at < len(stream); at += step {
			kept = append(kept, stream[at:min(at+step, len(stream))]...)
			for {
				frame, rest, ok := s.next(kept)
				if kept = rest; !ok {
					break
				}
				if p := packet(frame); p != nil {
					sizes = append(sizes, len(p))
				}
			}
		}
		if len(sizes) != 3 || sizes[0] != 100 || sizes[1] != 1000 || sizes[2] != 20 || len(kept) != 0 {
			t.Errorf("in steps of %d: %v, and %d bytes are left", step, sizes, len(kept))
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(framed(packet4(100), typeIPv4), 7)
	f.Add(framed(packet6(100), typeIPv6), 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		if step < 1 {
			step = 1
		}
		var s splitter
		var kept []byte
		for len(data) > 0 {
			n := min(step, len(data))
			kept, data = append(kept, data[:n]...), data[n:]
			for {
				frame, rest, ok := s.next(kept)
				if len(frame) > maxFrame || len(rest) > len(kept) {
					t.Fatal("a frame that is too long")
				}
				if kept = rest; !ok {
					break
				}
				if p := packet(frame); p != nil && (len(p) < 20 || len(p) > MaxPacket) {
					t.Fatalf("a packet of %d bytes", len(p))
				}
			}
			if len(kept) > lengthSize+maxFrame {
				t.Fatalf("%d bytes are kept", len(kept))
			}
		}
	})
}
