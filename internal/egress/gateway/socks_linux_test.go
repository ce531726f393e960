package gateway_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// socks returns a connection to the SOCKS proxy after its greeting.
func (w *host) socks(t *testing.T) net.Conn {
	t.Helper()
	c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), netstack.SOCKSPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	write(t, c, []byte{5, 2, 1, 0})
	if got := take(t, c, 2); got[0] != 5 || got[1] != 0 {
		t.Fatalf("the greeting is answered by %v", got)
	}
	return c
}

func write(t *testing.T, c net.Conn, data []byte) {
	t.Helper()
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatal(err)
	}
	return buf
}

func byName(command byte, host string, port uint16) []byte {
	data := append([]byte{5, command, 0, 3, byte(len(host))}, host...)
	return binary.BigEndian.AppendUint16(data, port)
}

func byAddr(host string, port uint16) []byte {
	a := netip.MustParseAddr(host)
	kind := byte(1)
	if a.Is6() {
		kind = 4
	}
	return binary.BigEndian.AppendUint16(append([]byte{5, 1, 0, kind}, a.AsSlice()...), port)
}

func TestSOCKSCarriesWhatTheRulesAllow(t *testing.T) {
	port := serve(t, echo)
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port), allow("127.0.0.1", port))})
	addrs, _, err := w.Lookup("a.test", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string][]byte{
		"by name":                        byName(1, "A.Test.", port),
		"by an address for a name":       byAddr(addrs[0].String(), port),
		"by an address that is listed":   byAddr("127.0.0.1", port),
		"by the same one in IPv6's form": byAddr("::ffff:127.0.0.1", port),
	} {
		c := w.socks(t)
		// Bytes that follow the request immediately are for the destination.
		write(t, c, append(request, "early\n"...))
		if got := take(t, c, 10); got[0] != 5 || got[1] != 0 {
			t.Fatalf("%s: %v", name, got)
		}
		if got := take(t, c, 6); string(got) != "early\n" {
			t.Fatalf("%s: %q came back", name, got)
		}
		talk(t, c, "hello")
	}
}

func TestSOCKSRefusesInItsOwnWords(t *testing.T) {
	port := serve(t, echo)
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port), allow("a.test", 1))})
	const failed, denied, refused, command, kind = 1, 2, 5, 7, 8
	for name, c := range map[string]struct {
		request []byte
		reply   byte
	}{
		"a name that no rule allows":        {byName(1, "b.test", port), denied},
		"another port":                      {byName(1, "a.test", port+1), denied},
		"an address that no rule lists":     {byAddr("192.0.2.1", 443), denied},
		"one in IPv6's form":                {byAddr("::ffff:10.0.0.1", 443), denied},
		"the metadata service":              {byAddr("169.254.169.254", 80), denied},
		"an address for no name":            {byAddr("198.18.9.9", port), denied},
		"the gateway itself":                {byAddr("198.18.0.1", 1080), denied},
		"a port where nobody listens":       {byName(1, "a.test", 1), refused},
		"a name with NUL":                   {byName(1, "a.test\x00.b.test", port), failed},
		"a name with an escape":             {byName(1, "a%00.test", port), failed},
		"a name with a space":               {byName(1, "a .test", port), failed},
		"a name with a line's end":          {byName(1, "a.test\r\n", port), failed},
		"an address in decimal":             {byName(1, "2130706433", port), failed},
		"no name":                           {byName(1, "", port), failed},
		"port 0":                            {byName(1, "a.test", 0), failed},
		"BIND":                              {byName(2, "a.test", port), command},
		"UDP ASSOCIATE":                     {byName(3, "a.test", port), command},
		"an address of a kind there is not": {[]byte{5, 1, 0, 9, 0, 0, 0}, kind},
		"a reserved byte that is set":       {[]byte{5, 1, 1, 1, 127, 0, 0, 1, 0, 80}, failed},
	} {
		s := w.socks(t)
		write(t, s, c.request)
		if got := take(t, s, 10); got[0] != 5 || got[1] != c.reply {
			t.Errorf("%s: %v", name, got)
		}
		if n, err := s.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection goes on with %d bytes", name, n)
		}
	}
	w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == "proxy" && e.Host == `"a.test\x00.b.test"` })
}

func TestOtherVersionsOfSOCKSAreClosed(t *testing.T) {
	w := open(t, gateway.Options{Policy: policy()})
	for name, hello := range map[string][]byte{
		"SOCKS4":               {4, 1, 0, 80, 127, 0, 0, 1, 0},
		"SOCKS4a":              append([]byte{4, 1, 0, 80, 0, 0, 0, 1, 0}, "a.test\x00"...),
		"HTTP":                 []byte("CONNECT a.test:443 HTTP/1.1\r\n\r\n"),
		"who wants a password": {5, 1, 2},
	} {
		c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), netstack.SOCKSPort))
		if err != nil {
			t.Fatal(err)
		}
		write(t, c, hello)
		if got, _ := io.ReadAll(c); len(got) > 2 || len(got) == 2 && got[1] != 0xff {
			t.Errorf("%s is answered by %v", name, got)
		}
		c.Close()
	}
}

func TestATunnelIsCutWithTheRuleThatAllowedIt(t *testing.T) {
	port := serve(t, echo)
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	c := w.socks(t)
	write(t, c, byName(1, "a.test", port))
	take(t, c, 10)
	talk(t, c, "hello")
	if err := w.Update(paddock.NetworkPolicy{Mode: paddock.NetworkList}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Fatalf("the tunnel goes on: %v", err)
	}
}
