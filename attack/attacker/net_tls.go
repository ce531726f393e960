//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func sortProbes(ps []probe) {
	slices.SortFunc(ps, func(a, b probe) int { return strings.Compare(a.name, b.name) })
}

// overTLS does a handshake and speaks.
func overTLS(b *protocol.Brief, c net.Conn, conf *tls.Config, data []byte) protocol.Try {
	conf.InsecureSkipVerify = conf.EncryptedClientHelloConfigList == nil
	t := tls.Client(c, conf)
	_ = c.SetDeadline(time.Now().Add(2 * waiting(b)))
	if err := t.Handshake(); err != nil {
		return told(err)
	}
	return say(t, 2*waiting(b), data)
}

// smuggle sends a request through the proxy, plainly or in inspected TLS.
func smuggle(b *protocol.Brief, way, rest string) protocol.Try {
	head := "POST /ok HTTP/1.1\r\nHost: " + protocol.Inspect + "\r\n"
	switch way {
	case "proxy":
		c, err := proxyTo(b, protocol.ProxyPort)
		if err != nil {
			return told(err)
		}
		defer c.Close()
		return sayTwo(c, b, "POST http://"+protocol.Inspect+"/ok HTTP/1.1\r\nHost: "+protocol.Inspect+"\r\n"+rest, "")
	case "plain":
		c, err := net.DialTimeout("tcp", protocol.Inspect+":80", waiting(b))
		if err != nil {
			return told(err)
		}
		defer c.Close()
		return sayTwo(c, b, head+rest, "")
	}
	c, err := net.DialTimeout("tcp", protocol.Inspect+":443", waiting(b))
	if err != nil {
		return told(err)
	}
	defer c.Close()
	t := tls.Client(c, &tls.Config{ServerName: protocol.Inspect, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	return sayTwo(t, b, head+rest, "")
}

// secure speaks TLS to an address.
func secure(b *protocol.Brief, to string, conf *tls.Config, data []byte) protocol.Try {
	c, err := net.DialTimeout("tcp", to, waiting(b))
	if err != nil {
		return told(err)
	}
	defer c.Close()
	return overTLS(b, c, conf, data)
}

func named(name string, protos ...string) *tls.Config {
	return &tls.Config{ServerName: name, NextProtos: protos, InsecureSkipVerify: true}
}

// fronting is N12.
func fronting() []probe {
	evil := web(protocol.Stranger, "/")
	return []probe{
		{"name in TLS, directly", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Stranger, protocol.NotInWild, protocol.Second, "", "allowed.test.stranger.test", "127.0.0.1"}, func(n string) protocol.Try {
				return secure(b, protocol.Allowed+":443", named(n), evil)
			})
		}},
		{"name in TLS, in a tunnel", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Stranger, protocol.NotInWild, protocol.Second, ""}, func(n string) protocol.Try {
				c, err := tunnel(b, protocol.Allowed+":443")
				if err != nil {
					return status(err)
				}
				defer c.Close()
				return overTLS(b, c, named(n), evil)
			})
		}},
		{"name in TLS, in SOCKS", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Stranger, protocol.NotInWild, protocol.Second, ""}, func(n string) protocol.Try {
				c, err := socksConn(b, 1, 3, []byte(protocol.Allowed), 443)
				if err != nil {
					return status(err)
				}
				defer c.Close()
				return overTLS(b, c, named(n), evil)
			})
		}},
		{"name in TLS on another port", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"80", "22"}, func(p string) protocol.Try {
				return secure(b, protocol.Allowed+":"+p, named(protocol.Stranger), evil)
			})
		}},
		{"name in TLS, looked into", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Stranger, protocol.InspectB, protocol.Secret}, func(n string) protocol.Try {
				return secure(b, protocol.Inspect+":443", named(n), web(protocol.Inspect, "/ok"))
			})
		}},
		{"host inside, looked into", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Stranger, protocol.InspectB, protocol.Secret, protocol.Allowed, "inspect.test:8443", "INSPECT.test@stranger.test"}, func(h string) protocol.Try {
				return secure(b, protocol.Inspect+":443", named(protocol.Inspect), web(h, "/ok"))
			})
		}},
		{"whole address inside, looked into", func(b *protocol.Brief) protocol.Try {
			return secure(b, protocol.Inspect+":443", named(protocol.Inspect), []byte(lines("GET https://stranger.test/ok HTTP/1.1", "Host: inspect.test", "Connection: close")))
		}},
		{"path inside, looked into", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"/", "/private", "/okay", "/ok/../private", "/ok/%2e%2e/private", "//ok", "/OK", "/ok/..;/x", "/./private", "/ok%2f..%2f..%2fprivate", "/ok/../../private", "/%6f%6b/../x", "/ok\\..\\private"}, func(p string) protocol.Try {
				return secure(b, protocol.Inspect+":443", named(protocol.Inspect), web(protocol.Inspect, p))
			})
		}},
		{"plain HTTP in a tunnel", func(b *protocol.Brief) protocol.Try { return connect(b, protocol.Allowed+":443", evil) }},
		{"plain HTTP in a tunnel, looked into", func(b *protocol.Brief) protocol.Try {
			return worst(connect(b, protocol.Inspect+":443", web(protocol.Inspect, "/private")), connect(b, protocol.Inspect+":443", evil))
		}},
		{"told: host inside what is not looked into", func(b *protocol.Brief) protocol.Try {
			return secure(b, protocol.Allowed+":443", named(protocol.Allowed), web(protocol.Stranger, "/told"))
		}},
	}
}

// upgrades is N19.
func upgrades() []probe {
	ask := func(host, path string) []byte {
		return []byte(lines("GET "+path+" HTTP/1.1", "Host: "+host, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="))
	}
	// An accepted upgrade is an answer of a server.
	agreed := func(t protocol.Try) protocol.Try {
		if contains(t, "101 Switching") {
			return reached("it was agreed to: %s", t.Detail)
		}
		return t
	}
	next := string(web(protocol.Inspect, "/smuggled"))
	return []probe{
		{"to another host", func(b *protocol.Brief) protocol.Try {
			return worst(agreed(direct(b, "tcp", protocol.Stranger+":80", ask(protocol.Stranger, "/"))), agreed(viaProxy(b, string(ask(protocol.Stranger, "http://stranger.test/")))), agreed(connect(b, "stranger.test:80", ask(protocol.Stranger, "/"))))
		}},
		{"with another host's header", func(b *protocol.Brief) protocol.Try {
			return worst(agreed(direct(b, "tcp", protocol.Allowed+":80", ask(protocol.Stranger, "/"))), agreed(direct(b, "tcp", protocol.Inspect+":80", ask(protocol.Stranger, "/ok"))))
		}},
		{"to another path", func(b *protocol.Brief) protocol.Try {
			return worst(agreed(direct(b, "tcp", protocol.Inspect+":80", ask(protocol.Inspect, "/private"))), agreed(secure(b, protocol.Inspect+":443", named(protocol.Inspect), ask(protocol.Inspect, "/private"))))
		}},
		{"by another method", func(b *protocol.Brief) protocol.Try {
			return agreed(direct(b, "tcp", protocol.Inspect+":80", bytes.Replace(ask(protocol.Inspect, "/ok"), []byte("GET"), []byte("PUT"), 1)))
		}},
		{"that was not agreed to, and then a request", func(b *protocol.Brief) protocol.Try {
			return notSmuggled(worst(direct(b, "tcp", protocol.Inspect+":80", append(ask(protocol.Inspect, "/ok/noupgrade"), next...)), secure(b, protocol.Inspect+":443", named(protocol.Inspect, "http/1.1"), append(ask(protocol.Inspect, "/ok/noupgrade"), next...))))
		}},
		{"to no protocol, and then a request", func(b *protocol.Brief) protocol.Try {
			return notSmuggled(direct(b, "tcp", protocol.Inspect+":80", append(bytes.Replace(ask(protocol.Inspect, "/ok"), []byte("websocket"), []byte("nothing/1"), 1), next...)))
		}},
		{"without saying so, and then a request", func(b *protocol.Brief) protocol.Try {
			return notSmuggled(direct(b, "tcp", protocol.Inspect+":80", append(bytes.Replace(ask(protocol.Inspect, "/ok"), []byte("Connection: Upgrade"), []byte("Connection: keep-alive"), 1), next...)))
		}},
	}
}

// otherHTTP is N20.
func otherHTTP() []probe {
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	// HEADERS on stream 1: GET, http, /smuggled and a host, as literals.
	head := func(host string) string {
		field := func(k, v string) string { return "\x00" + string(rune(len(k))) + k + string(rune(len(v))) + v }
		block := field(":method", "GET") + field(":scheme", "http") + field(":path", "/smuggled") + field(":authority", host)
		return preface + "\x00\x00" + string(rune(len(block))) + "\x01\x05\x00\x00\x00\x01" + block
	}
	settled := func(t protocol.Try) protocol.Try {
		// A further SETTINGS frame is an answer of an HTTP/2 server.
		if t.Errno == "answered" && !strings.Contains(t.Detail, "HTTP/1") {
			return reached("something answered: %s", t.Detail)
		}
		return t
	}
	return []probe{
		{"prior knowledge, another host", func(b *protocol.Brief) protocol.Try {
			return worst(settled(direct(b, "tcp", protocol.Allowed+":80", []byte(head(protocol.Stranger)))), settled(connect(b, protocol.Allowed+":80", []byte(head(protocol.Stranger)))))
		}},
		{"prior knowledge, looked into", func(b *protocol.Brief) protocol.Try {
			return worst(notSmuggled(direct(b, "tcp", protocol.Inspect+":80", []byte(head(protocol.Inspect)))), notSmuggled(viaProxy(b, head(protocol.Inspect))))
		}},
		{"upgrade to it", func(b *protocol.Brief) protocol.Try {
			ask := lines("GET /ok HTTP/1.1", "Host: "+protocol.Inspect, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA") + head(protocol.Inspect)
			t := direct(b, "tcp", protocol.Inspect+":80", []byte(ask))
			if contains(t, "101 Switching") {
				return reached("it was agreed to: %s", t.Detail)
			}
			return notSmuggled(t)
		}},
		{"other hosts on one connection", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.InspectB, protocol.Stranger, protocol.Secret, protocol.Allowed}, func(h string) protocol.Try { return coalesce(b, h, "/ok") })
		}},
		{"other paths on one connection", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"/private", "/ok/../private", "/ok/%2e%2e/x"}, func(p string) protocol.Try { return coalesce(b, protocol.Inspect, p) })
		}},
		{"CONNECT-UDP", func(b *protocol.Brief) protocol.Try {
			ask := lines("GET /.well-known/masque/udp/8.8.8.8/443/ HTTP/1.1", "Host: "+protocol.Inspect, "Connection: Upgrade", "Upgrade: connect-udp", "Capsule-Protocol: ?1")
			p := lines("CONNECT-UDP 8.8.8.8:53 HTTP/1.1", "Host: 8.8.8.8:53")
			return worst(direct(b, "tcp", protocol.Inspect+":80", []byte(ask)), viaProxy(b, p), viaProxy(b, strings.Replace(ask, "GET ", "GET http://"+protocol.GatewayAddr+":3128", 1)))
		}},
		{"QUIC", func(b *protocol.Brief) protocol.Try {
			initial := append([]byte{0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0}, make([]byte, 1200)...)
			return atOnce([]string{protocol.Allowed, protocol.InWild, protocol.Inspect, protocol.Stranger, "11.0.0.67", protocol.GatewayAddr, "[2a00:2::2]"}, func(h string) protocol.Try {
				return datagram(b, h+":443", initial)
			})
		}},
		{"TRACE and other methods", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"TRACE", "CONNECT", "PRI", "PROPFIND", "get", "Get", "GET\t", "X-METHOD", "\x00GET"}, func(m string) protocol.Try {
				return direct(b, "tcp", protocol.Inspect+":80", []byte(lines(m+" /ok HTTP/1.1", "Host: "+protocol.Inspect, "Connection: close")))
			})
		}},
	}
}

// coalesce asks for another host over an HTTP/2 connection to Inspect.
func coalesce(b *protocol.Brief, host, path string) protocol.Try {
	tr := &http.Transport{
		ForceAttemptHTTP2: true,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := tls.Dialer{Config: named(protocol.Inspect, "h2")}
			return d.DialContext(ctx, "tcp", protocol.Inspect+":443")
		},
	}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: 2 * waiting(b)}
	req, err := http.NewRequest("GET", "https://"+protocol.Inspect, http.NoBody)
	if err != nil {
		return refused(err)
	}
	req.URL.Opaque, req.Host = path, host
	a, err := c.Do(req)
	if err != nil {
		return told(err)
	}
	defer a.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(a.Body, 4096))
	if bytes.Contains(body, []byte(protocol.ServerBanner)) {
		return reached("it answered %q", body)
	}
	return protocol.Try{Outcome: protocol.Denied, Errno: fmt.Sprint(a.StatusCode), Detail: string(short(body))}
}

// hellos is N21.
func hellos() []probe {
	// A hello in pieces: of bytes, of records, or of both.
	pieces := func(size int, records bool) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Allowed, protocol.InWild, protocol.Inspect}, func(to string) protocol.Try {
				c, err := net.DialTimeout("tcp", to+":443", waiting(b))
				if err != nil {
					return told(err)
				}
				defer c.Close()
				return overTLS(b, &cutting{Conn: c, size: size, records: records}, named(protocol.Stranger), web(protocol.Stranger, "/"))
			})
		}
	}
	raw := func(data ...[]byte) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(data, func(d []byte) protocol.Try {
				t := direct(b, "tcp", protocol.Allowed+":443", d)
				if strings.HasPrefix(t.Loot, "\x16") {
					return reached("a server shook hands")
				}
				return t
			})
		}
	}
	return []probe{
		{"no name", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Allowed, protocol.InWild, protocol.Inspect}, func(to string) protocol.Try { return secure(b, to+":443", named(""), web(protocol.Stranger, "/")) })
		}},
		{"in pieces of one byte", pieces(1, false)},
		{"in records of 3 bytes", pieces(3, true)},
		{"in records of 100 bytes", pieces(100, true)},
		{"in records of 1024 bytes", pieces(1024, true)},
		{"post-quantum", func(b *protocol.Brief) protocol.Try {
			conf := named(protocol.Stranger)
			conf.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768}
			return secure(b, protocol.Allowed+":443", conf, web(protocol.Stranger, "/"))
		}},
		{"of many protocols, large", func(b *protocol.Brief) protocol.Try {
			var protos []string
			for i := range 60 {
				protos = append(protos, fmt.Sprintf("%0200d", i))
			}
			return secure(b, protocol.Allowed+":443", named(protocol.Stranger, protos...), web(protocol.Stranger, "/"))
		}},
		{"hidden in another, whose name is not allowed", func(b *protocol.Brief) protocol.Try { return hiddenHello(b, protocol.Stranger, protocol.Allowed) }},
		{"hidden in another, whose name is the other one", func(b *protocol.Brief) protocol.Try { return hiddenHello(b, protocol.Second, protocol.Stranger) }},
		{"told: hidden in another, whose name is allowed", func(b *protocol.Brief) protocol.Try { return hiddenHello(b, protocol.Allowed, protocol.Stranger) }},
		{"hidden, where it is looked into", func(b *protocol.Brief) protocol.Try {
			conf := named(protocol.Stranger)
			list, err := hiding(protocol.Inspect)
			if err != nil {
				return refused(err)
			}
			conf.EncryptedClientHelloConfigList = list
			return secure(b, protocol.Inspect+":443", conf, web(protocol.Stranger, "/ok"))
		}},
		{"of an old protocol", func(b *protocol.Brief) protocol.Try {
			conf := named(protocol.Stranger)
			conf.MinVersion, conf.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			return secure(b, protocol.Allowed+":443", conf, web(protocol.Stranger, "/"))
		}},
		{"two names", raw(helloOf(protocol.Allowed, protocol.Stranger), helloOf(protocol.Stranger, protocol.Allowed))},
		{"names that are none", raw(helloOf("stranger.test\x00.allowed.test"), helloOf("127.0.0.1"), helloOf(strings.Repeat("a", 3000)), helloOf(""))},
		{"another message first", raw(append([]byte{21, 3, 1, 0, 2, 1, 0}, helloOf(protocol.Stranger)...), append([]byte{22, 3, 1, 0, 0}, helloOf(protocol.Stranger)...), append([]byte{20, 3, 1, 0, 1, 1}, helloOf(protocol.Stranger)...))},
		{"told: of SSL 2, which names nobody", raw([]byte("\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10\x01\x00\x80\x03\x00\x80\x07\x00\xc0\x06\x00\x40\x02\x00\x80\x04\x00\x80AAAAAAAAAAAAAAAA"))},
	}
}

// A cutting connection splits what is written: into pieces, or the hello into records.
type cutting struct {
	net.Conn

	size    int
	records bool
	wrote   bool
}

func (c *cutting) Write(p []byte) (int, error) {
	if c.wrote {
		return c.Conn.Write(p)
	}
	c.wrote = true
	head, body := p[:5], p[5:]
	if !c.records {
		head, body = nil, p
	}
	for len(body) > 0 {
		n := min(c.size, len(body))
		var piece []byte
		if c.records {
			piece = binary.BigEndian.AppendUint16(append(piece, head[:3]...), uint16(n))
		}
		if _, err := c.Conn.Write(append(piece, body[:n]...)); err != nil {
			return 0, err
		}
		body = body[n:]
	}
	return len(p), nil
}

// hiding returns an ECH configuration with the public name name. Nobody has its key.
func hiding(name string) ([]byte, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	public := key.PublicKey().Bytes()
	content := append([]byte{7, 0, 0x20, 0, byte(len(public))}, public...)
	content = append(content, 0, 4, 0, 1, 0, 1, 32, byte(len(name)))
	content = append(append(content, name...), 0, 0)
	conf := append([]byte{0xfe, 0x0d}, binary.BigEndian.AppendUint16(nil, uint16(len(content)))...)
	conf = append(conf, content...)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(conf))), conf...), nil
}

// hiddenHello hides a hello for inner in one for outer, on a connection to Allowed. It does
// not matter that nobody can decrypt it, if it arrives.
func hiddenHello(b *protocol.Brief, outer, inner string) protocol.Try {
	list, err := hiding(outer)
	if err != nil {
		return refused(err)
	}
	conf := &tls.Config{ServerName: inner, EncryptedClientHelloConfigList: list, MinVersion: tls.VersionTLS13}
	conf.EncryptedClientHelloRejectionVerify = func(tls.ConnectionState) error { return nil }
	c, err := net.DialTimeout("tcp", protocol.Allowed+":443", waiting(b))
	if err != nil {
		return told(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * waiting(b)))
	err = tls.Client(c, conf).Handshake()
	if err == nil || strings.Contains(err.Error(), "rejected ECH") {
		return reached("a server shook hands: %v", err)
	}
	return told(err)
}

// helloOf builds a small hello with server names.
func helloOf(names ...string) []byte {
	vector := func(size int, data []byte) []byte {
		n := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		return append(n[4-size:], data...)
	}
	var list []byte
	for _, n := range names {
		list = append(append(list, 0), vector(2, []byte(n))...)
	}
	extension := func(kind byte, data []byte) []byte { return append([]byte{0, kind}, vector(2, data)...) }
	key, _ := ecdh.X25519().GenerateKey(rand.Reader)
	share := append([]byte{0, 0x1d}, vector(2, key.PublicKey().Bytes())...)
	ext := extension(0, vector(2, list))
	ext = append(ext, extension(43, []byte{2, 3, 4})...)
	ext = append(ext, extension(10, vector(2, []byte{0, 0x1d}))...)
	ext = append(ext, extension(13, vector(2, []byte{4, 3, 8, 4}))...)
	ext = append(ext, extension(51, vector(2, share))...)
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0)
	body = append(body, vector(2, []byte{0x13, 1, 0x13, 2})...)
	body = append(body, 1, 0)
	body = append(body, vector(2, ext)...)
	msg := append([]byte{1}, vector(3, body)...)
	return append([]byte{22, 3, 1}, vector(2, msg)...)
}

// otherBytes is N22.
func otherBytes() []probe {
	bytesOf := map[string][]byte{"SSH": []byte("SSH-2.0-x\r\n"), "mail": []byte("EHLO x\r\n"), "nothing known": []byte("\x00\x01\x02exfil\r\n")}
	list := []string{"SSH", "mail", "nothing known"}
	via := func(open func(b *protocol.Brief) (net.Conn, error)) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return atOnce(list, func(n string) protocol.Try {
				c, err := open(b)
				if err != nil {
					return status(err)
				}
				defer c.Close()
				return say(c, waiting(b), bytesOf[n])
			})
		}
	}
	return []probe{
		{"to what is looked into", via(func(b *protocol.Brief) (net.Conn, error) {
			return net.DialTimeout("tcp", protocol.Inspect+":443", waiting(b))
		})},
		{"to what is looked into, plainly", via(func(b *protocol.Brief) (net.Conn, error) {
			return net.DialTimeout("tcp", protocol.Inspect+":80", waiting(b))
		})},
		{"to what is looked into, in a tunnel", via(func(b *protocol.Brief) (net.Conn, error) { return tunnel(b, protocol.Inspect+":443") })},
		{"to what is looked into, in SOCKS", via(func(b *protocol.Brief) (net.Conn, error) { return socksConn(b, 1, 3, []byte(protocol.Inspect), 443) })},
		{"to another, in a tunnel", via(func(b *protocol.Brief) (net.Conn, error) { return tunnel(b, protocol.Stranger+":443") })},
		{"told: to what is allowed, in a tunnel", via(func(b *protocol.Brief) (net.Conn, error) { return tunnel(b, protocol.Allowed+":443") })},
		{"inside TLS that is looked into", func(b *protocol.Brief) protocol.Try {
			return atOnce(list, func(n string) protocol.Try {
				return secure(b, protocol.Inspect+":443", named(protocol.Inspect), bytesOf[n])
			})
		}},
	}
}
