package sys_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestThePeerOfASocketIsWhoConnected(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if uid, err := sys.PeerUID(s); err != nil || uid != os.Geteuid() {
		t.Errorf("user %d: %v", uid, err)
	}
}

func TestASocketOfAnotherKindHasNoPeer(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, err := sys.PeerUID(c); err == nil {
		t.Errorf("a user %d", uid)
	}
}
