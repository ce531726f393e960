package packetrelay

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
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

// framed returns a packet in a frame of the device.
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
		want int // bytes; 0 means dropped
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

// Another program computed the checksums.
func TestWhatTheMachineGetsHasItsChecksum(t *testing.T) {
	const (
		tcp    = "01bb9c4000000001000000025012faf000000000"
		udp    = "00359c40000b0000616263"
		from4  = "c6120100"
		to4    = "0a00020f"
		prefix = "fd0000000000000000000000000000"
	)
	four := func(fragment, protocol, data string) string {
		return "450000" + hex.EncodeToString([]byte{byte(20 + len(data)/2)}) + "0000" + fragment + "40" + protocol + "0000" + from4 + to4 + data
	}
	six := func(protocol, data string) string {
		return "60000000" + "00" + hex.EncodeToString([]byte{byte(len(data) / 2)}) + protocol + "40" + prefix + "01" + prefix + "02" + data
	}
	for _, c := range []struct {
		name, packet string
		at           int // of the checksum, from the end
		want         string
	}{
		{"TCP", four("0000", "06", tcp), 4, "43c2"},
		{"UDP", four("0000", "11", udp), 5, "cbde"},
		{"TCP by IPv6", six("06", tcp), 4, "1cdf"},
		{"UDP by IPv6", six("11", udp), 5, "a4fb"},
		{"a fragment", four("0001", "06", tcp), 4, "0000"},
		{"the first fragment", four("2000", "06", tcp), 4, "0000"},
		{"another protocol", four("0000", "2f", tcp), 4, "0000"},
		{"one that is too short", four("0000", "06", tcp[:38]), 3, "0000"},
	} {
		data, err := hex.DecodeString(c.packet)
		if err != nil {
			t.Fatal(err)
		}
		p, kind := sane(data)
		if kind == 0 {
			t.Fatalf("%s is not sane", c.name)
		}
		complete(p, kind)
		if got := hex.EncodeToString(p[len(p)-c.at:][:2]); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
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
		complete(bytes.Clone(p), binary.BigEndian.Uint16(data[12:]))
	})
}
