package netstack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

const inNamespace = "PADDOCK_TEST_LINK_NAMESPACE"

// The tests of a TUN device run in a network namespace of their own.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) != "" {
		tun = newTUN()
	}
	os.Exit(m.Run())
}

// tun is set if this process has a namespace of its own.
var tun *os.File

func newTUN() *os.File {
	f, err := sys.OpenTUN()
	if err == nil {
		err = sys.Link{Name: "tun0", MTU: 65520, Addresses: []netip.Addr{box4, box6}}.Make(f)
	}
	if err != nil {
		os.Stdout.WriteString("no TUN device: " + err.Error() + "\n")
		os.Exit(3)
	}
	return f
}

func TestAKernelIsOnTheOtherEnd(t *testing.T) {
	if tun == nil {
		enter(t)
		return
	}
	l, err := Open(tun, Options{
		Pings: func(netip.Addr) bool { return true },
		Handler: handler{
			tcp: func(a *Attempt) {
				if a.To.Port() == 81 {
					return
				}
				accepted(t, echo).TCP(a)
			},
			udp: func(d *Datagrams) {
				if d.To.Port() == 81 {
					return
				}
				if c, err := d.Accept(); err == nil {
					defer c.Close()
					echo(c)
				}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	addresses := []netip.Addr{web4.Addr()}
	if c, err := net.Dial("udp", web6.String()); err == nil {
		c.Close()
		addresses = append(addresses, web6.Addr())
	}
	for _, a := range addresses {
		t.Run(a.String(), func(t *testing.T) { talk(t, a) })
	}
	open, err := net.Dial("tcp", web4.String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := l.Keep(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.InterfaceByName("tun0"); err != nil {
		t.Errorf("when the link is closed that was kept: %v", err)
	}
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ENETDOWN) && !errors.Is(err, syscall.ECONNABORTED) {
		t.Errorf("when the link is closed: %v", err)
	}
}

// talk uses an address as programs do.
func talk(t *testing.T, a netip.Addr) {
	within := func(c net.Conn, err error) net.Conn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := within(net.Dial("tcp", netip.AddrPortFrom(a, 80).String()))
	want, got := sha256.New(), sha256.New()
	sent := make(chan error, 1)
	go func() {
		piece := bytes.Repeat([]byte("paddock"), 10_000)
		var err error
		for i := 0; i < 500 && err == nil; i++ {
			piece[0] = byte(i)
			want.Write(piece)
			_, err = c.Write(piece)
		}
		if half, ok := c.(*net.TCPConn); ok && err == nil {
			err = half.CloseWrite()
		}
		sent <- err
	}()
	if _, err := io.Copy(got, c); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		t.Errorf("other bytes came back; %v", err)
	}
	if c, err := net.Dial("tcp", netip.AddrPortFrom(a, 81).String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a refused connection: %v, %v", c, err)
	}
	u := within(net.Dial("udp", netip.AddrPortFrom(a, 80).String()))
	b := make([]byte, 100_000)
	for _, size := range []int{1, 1400, 60_000} {
		if _, err := u.Write(b[:size]); err != nil {
			t.Fatal(err)
		}
		if n, err := u.Read(b); err != nil || n != size {
			t.Errorf("a datagram of %d bytes came back with %d, %v", size, n, err)
		}
	}
	u = within(net.Dial("udp", netip.AddrPortFrom(a, 81).String()))
	if _, err := u.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Read(b); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a refused datagram: %v", err)
	}
}

// enter runs the test in new namespaces.
func enter(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 3, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC):
		t.Skipf("not on this host: %v: %s", err, out)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}
