package sys

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPortReadsSeveralBuffersAtATime(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	host := os.NewFile(uintptr(fds[1]), "host")
	defer host.Close()
	p, err := NewPort(os.NewFile(uintptr(fds[0]), "port"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	data := make([]byte, 20*portBuffer+5)
	for i := range data {
		data[i] = byte(i / 7)
	}
	if _, err := host.Write(data); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(data))
	n, err := p.Read(buf)
	if err != nil || n != 16*portBuffer {
		t.Errorf("the first read: %d bytes, %v", n, err)
	}
	more, err := p.Read(buf[n:])
	if err != nil || n+more != len(data) || !bytes.Equal(buf, data) {
		t.Errorf("the second: %d bytes, %v", more, err)
	}
	if _, err := host.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(buf); err != nil || string(buf[:n]) != "end" {
		t.Errorf("what is short: %q, %v", buf[:n], err)
	}
	host.Close()
	if n, err := p.Read(buf); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the end: %d, %v", n, err)
	}
}
