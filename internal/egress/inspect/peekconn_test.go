package inspect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// hello returns the first bytes of a client.
func hello(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, c).HandshakeContext(context.Background())
		client.Close()
	}()
	b := make([]byte, 16<<10)
	n, err := io.ReadAtLeast(server, b, 5)
	if err != nil {
		t.Fatal(err)
	}
	size := 5 + int(binary.BigEndian.Uint16(b[3:]))
	if n < size {
		if _, err := io.ReadFull(server, b[n:size]); err != nil {
			t.Fatal(err)
		}
	}
	return b[:size]
}

// feed returns a Conn that reads b in pieces of a given size, and then ends.
func feed(t testing.TB, b []byte, piece int) *PeekConn {
	t.Helper()
	guest, ours := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer guest.Close()
		for part := range slices.Chunk(b, piece) {
			if _, err := guest.Write(part); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { ours.Close(); <-done })
	return NewPeekConn(ours)
}

// split splits the message of one record into smaller records.
func split(record []byte, size int) []byte {
	var out []byte
	for part := range slices.Chunk(record[5:], size) {
		out = append(out, record[0], record[1], record[2], byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

func TestAClientHelloIsReadHoweverItIsCut(t *testing.T) {
	record := hello(t, &tls.Config{ServerName: "Example.COM", NextProtos: []string{"h2", "http/1.1"}})
	if len(record) < 1024 {
		t.Fatalf("a hello with a post-quantum share has %d bytes", len(record))
	}
	for name, b := range map[string][]byte{"whole": record, "in records of 100 bytes": split(record, 100), "in records of one byte": split(record, 1)} {
		for _, piece := range []int{1, 7, 1 << 20} {
			c := feed(t, b, piece)
			if kind, err := c.Protocol(time.Minute); kind != TLS || err != nil {
				t.Fatalf("%s: %v, %v", name, kind, err)
			}
			h, err := c.ClientHello(time.Minute)
			if err != nil || !h.Named || h.Host.String() != "example.com" || !slices.Equal(h.Protocols, []string{"h2", "http/1.1"}) || h.ECH {
				t.Fatalf("%s: %+v, %v", name, h, err)
			}
			if again, err := io.ReadAll(c); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("%s: reading gives %d of %d bytes, %v", name, len(again), len(b), err)
			}
		}
	}
}

func TestAClientHelloWithoutNameSaysSo(t *testing.T) {
	h, err := feed(t, hello(t, &tls.Config{InsecureSkipVerify: true}), 1<<20).ClientHello(time.Minute)
	if err != nil || h.Named || h.Host.IsValid() {
		t.Fatalf("%+v, %v", h, err)
	}
}

// client makes a ClientHello with extensions.
func client(extensions ...[]byte) []byte {
	joined := slices.Concat(extensions...)
	body := slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0, 2, 0x13, 1, 1, 0}, []byte{byte(len(joined) >> 8), byte(len(joined))}, joined)
	message := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{22, 3, 1, byte(len(message) >> 8), byte(len(message))}, message...)
}

func extension(number uint16, data []byte) []byte {
	return append([]byte{byte(number >> 8), byte(number), byte(len(data) >> 8), byte(len(data))}, data...)
}

func names(list ...string) []byte {
	var b []byte
	for _, name := range list {
		b = append(b, 0, byte(len(name)>>8), byte(len(name)))
		b = append(b, name...)
	}
	return append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)
}

func TestAHelloThatHidesAnotherIsToldSo(t *testing.T) {
	h, err := feed(t, client(extension(0, names("outer.example")), extension(0xfe0d, []byte{0, 1})), 1<<20).ClientHello(time.Minute)
	if err != nil || !h.ECH || h.Host.String() != "outer.example" {
		t.Fatalf("%+v, %v", h, err)
	}
}

func TestADoubtfulHelloIsRefused(t *testing.T) {
	good := client(extension(0, names("a.example")))
	long := split(slices.Concat([]byte{22, 3, 1, 0, 0}, []byte{1, 1, 0, 1}, make([]byte, 70<<10)), 1<<14)
	for name, b := range map[string][]byte{
		"two names":             client(extension(0, names("a.example", "b.example"))),
		"the extension twice":   client(extension(0, names("a.example")), extension(0, names("b.example"))),
		"an address":            client(extension(0, names("10.0.0.1"))),
		"a NUL in the name":     client(extension(0, names("a.example\x00.b.example"))),
		"an empty name":         client(extension(0, names(""))),
		"no names":              client(extension(0, names())),
		"cut off":               good[:len(good)-1],
		"bytes behind it":       append(append([]byte{22, 3, 1, good[3], good[4] + 1, 1, 0, good[7], good[8] + 1}, good[9:]...), 0),
		"an alert in between":   append(split(good, 10)[:15], 21, 3, 3, 0, 2, 1, 0),
		"an empty record":       append([]byte{22, 3, 1, 0, 0}, good...),
		"another message first": {22, 3, 1, 0, 4, 2, 0, 0, 0},
		"longer than 64 KiB":    long,
	} {
		if h, err := feed(t, b, 1<<20).ClientHello(time.Minute); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

func TestTheBeginTellsWhatAConnectionIs(t *testing.T) {
	for text, want := range map[string]Protocol{
		"":                         OtherProtocol,
		"\x16\x03\x01\x00\x05":     TLS,
		"\x16\x02\x01":             OtherProtocol,
		"\x16\x05":                 OtherProtocol,
		"\x15\x03\x01\x00\x02":     TLS, // an alert, which some servers skip
		"\x14\x03\x03":             TLS,
		"\x13\x03\x03":             OtherProtocol,
		"\x16\x03\xff\x00\x05":     TLS, // most servers check only the first byte of the version
		"\x16\x01\x00\x00\x05\x01": TLS, // and some check neither
		"\x15\x02\x00\x00\x02\x01": TLS,
		"\x16\x00\x00\x00\x00\x00": OtherProtocol, // a length, for example of a database protocol
		strings.Repeat("\r\n", 40) + "GET / HTTP/1.1\r\n": HTTP,
		strings.Repeat("GET", 99) + " / HTTP/1.1\r\n":     HTTP,
		strings.Repeat("a", 100) + "\x00":                 OtherProtocol,
		"\x19\x03\x03":                                    OtherProtocol,
		"SSH-2.0-OpenSSH_9.6\r\n":                         OtherProtocol,
		"EHLO a.example\r\n":                              OtherProtocol,
		"GET / HTTP/1.1\r\n":                              HTTP,
		"\r\n\r\nGET / HTTP/1.1\r\n":                      HTTP,
		"GET / HTTP/1.1\n":                                HTTP,
		"GET\t/\thttp/1.1\r\n":                            HTTP,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                HTTP,
		"odd / HTTP/1.0\r\n":                              HTTP,
		"\x00\x01\x02":                                    OtherProtocol,
		strings.Repeat("a", 100):                          OtherProtocol,
		"GET /" + strings.Repeat("a", peekMax):            HTTP,
	} {
		for _, piece := range []int{1, 1 << 20} {
			if piece == 1 && len(text) > 1000 {
				continue
			}
			if kind, err := feed(t, []byte(text), piece).Protocol(time.Minute); err != nil || kind != want {
				t.Errorf("%.40q in pieces of %d: %v, %v", text, piece, kind, err)
			}
		}
	}
}

func TestARequestTellsItsHost(t *testing.T) {
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: A.example:8080\r\n\r\nrest":                         "a.example 8080",
		"GET http://a.example/x HTTP/1.1\r\nAccept: x\r\nhost: a.example:80\r\n\r\n": "a.example 0",
	} {
		c := feed(t, []byte(text), 3)
		host, port, err := c.RequestHost(time.Minute)
		if got := host.String() + " " + strings.TrimSpace(portText(port)); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
		if again, err := io.ReadAll(c); err != nil || string(again) != text {
			t.Errorf("reading gives %q, %v", again, err)
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET / HTTP/1.1\nHost: a.example\n\n", "\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n",
		"GET / HTTP/1.1\r\nX: " + strings.Repeat("a", peekMax) + "\r\n\r\n",
	} {
		if host, _, err := feed(t, []byte(text), 1<<20).RequestHost(time.Minute); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%.60q: %s, %v", text, host, err)
		}
	}
}

func portText(port uint16) string {
	digits := "0"
	if port == 8080 {
		digits = "8080"
	} else if port != 0 {
		digits = "?"
	}
	return digits
}

func TestWhoSaysNothingIsWaitedForOnlySoLong(t *testing.T) {
	guest, ours := net.Pipe()
	defer guest.Close()
	c := NewPeekConn(ours)
	if _, err := c.Protocol(time.Millisecond); !errors.Is(err, paddock.Timeout) || c.Begun() {
		t.Fatalf("a silent guest: %v", err)
	}
	go func() { _, _ = guest.Write([]byte("GET / HT")) }()
	if _, err := c.Protocol(20 * time.Millisecond); !errors.Is(err, paddock.Timeout) || !c.Begun() {
		t.Fatalf("half a line: %v", err)
	}
	go func() { _, _ = guest.Write([]byte("TP/1.1\r\n")) }()
	if kind, err := c.Protocol(time.Minute); err != nil || kind != HTTP {
		t.Fatalf("a line in two pieces: %v, %v", kind, err)
	}
	if _, _, err := c.RequestHost(time.Millisecond); !errors.Is(err, paddock.Timeout) {
		t.Fatalf("a head that stays half: %v", err)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(client(extension(0, names("a.example")), extension(16, []byte{0, 3, 2, 'h', '2'})))
	f.Add(split(client(extension(0, names("a.example"))), 3))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, wholeErr := look(b, len(b)+1)
		cut, cutErr := look(b, 1)
		if whole != cut || (wholeErr == nil) != (cutErr == nil) {
			t.Fatalf("%q, %v; in pieces %q, %v", whole, wholeErr, cut, cutErr)
		}
	})
}

// look returns what a Conn detects in b, read in pieces.
func look(b []byte, piece int) (string, error) {
	c := NewPeekConn(&pieces{rest: b, size: piece})
	switch kind, err := c.Protocol(0); kind {
	case TLS:
		h, err := c.ClientHello(0)
		return h.Host.String(), err
	case HTTP:
		h, _, err := c.RequestHost(0)
		return h.String(), err
	default:
		return "other", err
	}
}

// pieces is a connection whose Read returns a limited number of bytes.
type pieces struct {
	net.Conn
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
