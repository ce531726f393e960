package attack

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func TestOnlyTrafficThatIsAllowedIsNoEvidence(t *testing.T) {
	to := netip.MustParseAddrPort
	good := protocol.Stream{To: to("11.0.0.1:80"), Requests: []string{"GET allowed.test /alive"}}
	w := &world{secret: "canary0123456789", brief: protocol.Brief{Alive: protocol.Allowed}}
	for name, c := range map[string]struct {
		t    protocol.Traffic
		want string // a part of the evidence; empty expects none
	}{
		"what is allowed":            {t: protocol.Traffic{Packets: []protocol.Packet{{Proto: "tcp", To: to("11.0.0.1:443")}, {Proto: "udp", To: to("9.9.0.53:53")}}, Asked: []string{"Allowed.test.", "x.wild.test"}}},
		"a packet elsewhere":         {t: protocol.Traffic{Packets: []protocol.Packet{{Proto: "tcp", To: to("11.0.0.67:80")}}}, want: "a packet (tcp) went to 11.0.0.67:80"},
		"another port":               {t: protocol.Traffic{Packets: []protocol.Packet{{Proto: "tcp", To: to("11.0.0.1:25")}}}, want: "went to"},
		"a datagram":                 {t: protocol.Traffic{Packets: []protocol.Packet{{Proto: "udp", To: to("11.0.0.1:443")}}}, want: "went to"},
		"an echo":                    {t: protocol.Traffic{Packets: []protocol.Packet{{Proto: "icmp", To: to("11.0.0.1:0")}}}, want: "went to"},
		"a name":                     {t: protocol.Traffic{Asked: []string{"stranger.test"}}, want: "asked for"},
		"a name that is none":        {t: protocol.Traffic{Asked: []string{`"a\x00.wild.test"`}}, want: "asked for"},
		"data in a name":             {t: protocol.Traffic{Asked: []string{"exfil-1.wild.test"}}, want: "asked for"},
		"a name denied below":        {t: protocol.Traffic{Asked: []string{"denied.wild.test"}}, want: "asked for"},
		"the host's server":          {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("127.0.0.1:80"), Host: true}}}, want: "server of the host"},
		"another name in TLS":        {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.1:443"), TLS: true, SNI: protocol.Stranger}}}, want: "certificate"},
		"no name in TLS":             {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.1:443"), TLS: true}}}, want: "certificate"},
		"another host":               {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.1:80"), Requests: []string{"GET stranger.test /"}}}}, want: "stranger.test"},
		"another path":               {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.4:80"), Requests: []string{"GET inspect.test /private"}}}}, want: "/private"},
		"another method":             {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.4:80"), Requests: []string{"PUT inspect.test /ok"}}}}, want: "PUT"},
		"a path that leads out":      {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.4:80"), Requests: []string{"GET inspect.test /ok/../x"}}}}, want: ".."},
		"coalesced":                  {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.4:443"), TLS: true, SNI: protocol.Inspect, Requests: []string{"GET inspect-b.test /ok"}}}}, want: "inspect-b"},
		"the secret, where it may":   {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.6:443"), TLS: true, SNI: protocol.Secret, Raw: []byte("GET /ok?canary0123456789 HTTP/1.1\r\nHost: secret.test\r\nA: canary0123456789\r\n\r\n")}}}},
		"the secret elsewhere":       {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.1:80"), Raw: []byte("canary0123456789")}}}, want: "the secret"},
		"the secret without TLS":     {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.6:80"), Raw: []byte("canary0123456789")}}}, want: "the secret"},
		"the secret in a body":       {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.6:443"), TLS: true, SNI: protocol.Secret, Raw: []byte("POST /ok HTTP/1.1\r\n\r\ncanary0123456789")}}}, want: "in a body"},
		"the secret in Host":         {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.6:443"), TLS: true, SNI: protocol.Secret, Raw: []byte("GET /ok HTTP/1.1\r\nhost: canary0123456789\r\n\r\n")}}}, want: "wrong place"},
		"the secret in the path":     {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.6:443"), TLS: true, SNI: protocol.Secret, Raw: []byte("GET /ok/canary0123456789?x HTTP/1.1\r\n\r\n")}}}, want: "wrong place"},
		"more than may be exchanged": {t: protocol.Traffic{Streams: []protocol.Stream{{To: to("11.0.0.7:80"), Total: 1 << 20}}}, want: "bytes came"},
	} {
		c.t.Streams = append(c.t.Streams, good)
		found, err := w.traffic(c.t, Case{way: &way{}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(found, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestWithoutAllowedTrafficThereIsNoVerdict(t *testing.T) {
	w := &world{brief: protocol.Brief{Alive: protocol.Allowed}}
	if _, err := w.traffic(protocol.Traffic{}, Case{way: &way{}}); err == nil {
		t.Error("silence was taken for a refusal")
	}
	if _, err := w.traffic(protocol.Traffic{Missed: 1, Streams: []protocol.Stream{{Requests: []string{"GET allowed.test /alive"}}}}, Case{way: &way{}}); err == nil {
		t.Error("packets that nobody saw were taken for none")
	}
}
