package packetrelay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// start returns the far ends of a running relay.
func start(t testing.TB) (device, link *os.File, ended chan error) {
	t.Helper()
	pair := func() (*os.File, *os.File) {
		fd, far, err := sys.PacketPair(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), "near"), far
	}
	device, theirs := pair()
	link, far := pair()
	r, err := New(theirs, far)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- r.Run() }()
	t.Cleanup(func() { device.Close(); link.Close() })
	return device, link, ended
}

func TestPacketsPassInBothDirections(t *testing.T) {
	device, link, ended := start(t)
	for _, p := range [][]byte{packet4(100), packet6(1280), packet4(MaxPacket)} {
		kind := uint16(typeIPv4)
		if p[0]>>4 == 6 {
			kind = typeIPv6
		}
		for _, f := range [][]byte{framed(make([]byte, 50), 0x0806), {1}, make([]byte, maxFrame+100), framed(p, kind)} {
			if _, err := device.Write(f); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, MaxPacket+1)
		n, err := link.Read(got)
		if err != nil || !bytes.Equal(got[:n], p) {
			t.Fatalf("%d bytes came out of %d: %v", n, len(p), err)
		}
		for _, q := range [][]byte{{0x45}, p} {
			if _, err := link.Write(q); err != nil {
				t.Fatal(err)
			}
		}
		back := make([]byte, maxFrame+1)
		n, err = device.Read(back)
		if err != nil || !bytes.Equal(back[:n], framed(p, kind)) {
			t.Fatalf("a packet of %d bytes came in otherwise: %v", len(p), err)
		}
	}
	device.Close()
	if err := <-ended; err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	if _, err := link.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the link did not end with the device: %v", err)
	}
}

func BenchmarkOut(b *testing.B) {
	device, link, _ := start(b)
	p := packet4(9000)
	f := framed(p, typeIPv4)
	buf := make([]byte, MaxPacket+1)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := device.Write(f); err != nil {
			b.Fatal(err)
		}
		if _, err := link.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
