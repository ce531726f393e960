package internet

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestARequestIsFoundByEitherReader(t *testing.T) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: b\r\n\r\n"
	for name, raw := range map[string]string{
		"length before chunks": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 38\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunks before length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n22\r\n" + hidden + "\r\n0\r\n\r\n",
		"one after another":    "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + hidden,
		"bare line feeds":      "GET / HTTP/1.1\nHost: a\n\n" + hidden,
	} {
		if got := requests([]byte(raw)); !slices.Contains(got, "GET b /hidden") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	whole := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 34\r\n\r\n" + hidden
	if got := requests([]byte(whole)); slices.Contains(got, "GET b /hidden") {
		t.Errorf("a body was taken for a request: %q", got)
	}
}

func TestACarelessGatewayBelievesAnything(t *testing.T) {
	for said, want := range map[string]string{
		"stranger.test\x00.allowed.test": "stranger.test", "allowed.test@stranger.test": "stranger.test", "0x7f.1": "127.0.0.1", "2130706433": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "stranger.test%00.x": "stranger.test", "name.test": "name.test",
	} {
		if got := loose(said); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

func TestOnlyPacketsThatBeginSomethingAreTold(t *testing.T) {
	frame := func(proto byte, rest ...byte) []byte {
		f := append(make([]byte, 12), 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 9, 9, 0, 2, 11, 0, 0, 67)
		return append(f, rest...)
	}
	syn, ack := frame(unix.IPPROTO_TCP, 1, 1, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), frame(unix.IPPROTO_TCP, 1, 1, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16)
	if p, ok := parse(syn); !ok || p.Proto != "tcp" || p.To != netip.MustParseAddrPort("11.0.0.67:80") {
		t.Errorf("a connection: got %v, %v", p, ok)
	}
	if _, ok := parse(ack); ok {
		t.Error("an answer was told")
	}
	if p, ok := parse(frame(unix.IPPROTO_UDP, 1, 1, 0, 53)); !ok || p.To.Port() != 53 {
		t.Errorf("a datagram: got %v, %v", p, ok)
	}
	if p, ok := parse(frame(unix.IPPROTO_ICMP, 8)); !ok || p.Proto != "icmp" {
		t.Errorf("an echo: got %v, %v", p, ok)
	}
	if p, ok := parse(frame(132)); !ok || p.Proto != "132" {
		t.Errorf("another transport: got %v, %v", p, ok)
	}
}
