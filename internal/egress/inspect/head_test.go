package inspect

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAPlainHeadIsRead(t *testing.T) {
	h, err := parseHead([]byte("POST /a%2fb?c HTTP/1.1\r\nHost: A.example\r\nX: \t y z \r\nConnection: keep-alive, Upgrade\r\nContent-Length: 12\r\nEmpty:\r\n\r\n"))
	if err != nil || h.Method != "POST" || h.Target != "/a%2fb?c" || h.Minor != 1 || len(h.Fields) != 5 || h.Values("x")[0] != "y z" || !h.Has("connection", "upgrade") || h.Has("connection", "close") {
		t.Fatalf("%+v, %v", h, err)
	}
	if b, err := h.Body(); err != nil || b != (bodyLength{Length: 12}) {
		t.Fatalf("%+v, %v", b, err)
	}
}

func TestWhatALenientReaderRepairsIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "\r\n\r\n", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\n\n", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / http/1.1\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n", "GET /\x00 HTTP/1.1\r\n\r\n", "GET /ä HTTP/1.1\r\n\r\n", "GET /a#b HTTP/1.1\r\n\r\n", `GET /a\b HTTP/1.1` + "\r\n\r\n", "GET\t/ HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\r\n A: b\r\n\r\n", "GET / HTTP/1.1\r\nA : b\r\n\r\n", "GET / HTTP/1.1\r\n: b\r\n\r\n", "GET / HTTP/1.1\r\nA\r\n\r\n", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\nB: c\r\n\r\n", "GET / HTTP/1.1\r\nA: \x00\r\n\r\n", "GET / HTTP/1.1\r\nA: \x7f\r\n\r\n", "GET / HTTP/1.1\r\n\r\nA: b\r\n\r\n",
		"GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", fieldsMax+1) + "\r\n", "GET / HTTP/1.1\r\nA: " + strings.Repeat("b", headMax) + "\r\n\r\n",
	} {
		if h, err := parseHead([]byte(text)); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%.60q: %+v, %v", text, h, err)
		}
	}
}

func TestABodyHasOneLength(t *testing.T) {
	for fields, want := range map[string]bodyLength{
		"": {}, "Content-Length: 0\r\n": {}, "Content-Length: 007\r\n": {Length: 7}, "Transfer-Encoding: Chunked\r\n": {Chunked: true}, "content-length: 9223372036854775807\r\n": {Length: 1<<63 - 1},
	} {
		h, err := parseHead([]byte("POST / HTTP/1.1\r\n" + fields + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := h.Body(); err != nil || b != want {
			t.Errorf("%q: %+v, %v", fields, b, err)
		}
	}
	for _, text := range []string{
		"1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", "1.1\r\nContent-Length: 5\r\nContent-Length: 5", "1.1\r\nContent-Length: 5, 5", "1.1\r\nContent-Length: +5", "1.1\r\nContent-Length: -5", "1.1\r\nContent-Length: 0x5", "1.1\r\nContent-Length:",
		"1.1\r\nContent-Length: 9223372036854775808", "1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "1.1\r\nTransfer-Encoding: gzip, chunked", "1.1\r\nTransfer-Encoding: identity", "1.1\r\nTransfer-Encoding: \x0bchunked", "1.1\r\nTransfer-Encoding:", "1.0\r\nTransfer-Encoding: chunked",
	} {
		h, err := parseHead([]byte("POST / HTTP/" + text + "\r\n\r\n"))
		if err == nil {
			_, err = h.Body()
		}
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestADestinationIsOneHost(t *testing.T) {
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: A.example.":                            " a.example 0",
		"GET / HTTP/1.0\r\nHost: a.example:81":                          " a.example 81",
		"OPTIONS * HTTP/1.1\r\nHost: [::1]:81":                          " ::1 81",
		"GET http://a.example HTTP/1.1\r\nHost: a.example:80":           "http a.example 0",
		"GET http://a.example:80?x HTTP/1.1\r\nHost: a.example":         "http a.example 80",
		"GET HTTPS://a.example:81/b HTTP/1.1\r\nHost: a.example:81":     "https a.example 81",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443":         " a.example 443",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example":             " a.example 443",
		"CONNECT a.example:443 HTTP/1.0\r\nX: y":                        " a.example 443",
		"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443": " 2001:db8::1 443",
	} {
		scheme, host, port, err := destination(text)
		if got := scheme + " " + host + " " + port; err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nX: y", "GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example", "GET / HTTP/1.1\r\nHost: a.example, b.example", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: user@a.example", "GET / HTTP/1.1\r\nHost: ::1",
		"GET / HTTP/1.1\r\nHost: a.example:0", "GET / HTTP/1.1\r\nHost: a.example:", "GET a HTTP/1.1\r\nHost: a.example", "GET * HTTP/1.1\r\nHost: a.example", "GET http://b.example/ HTTP/1.1\r\nHost: a.example",
		"GET http://a.example:81/ HTTP/1.1\r\nHost: a.example", "GET http://a.example/ HTTP/1.1\r\nHost: a.example:81", "GET http://u@a.example/ HTTP/1.1\r\nHost: a.example", "GET http:///x HTTP/1.1\r\nHost: a.example", "GET http:a.example HTTP/1.1\r\nHost: a.example",
		"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example:443", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:444", "CONNECT a.example:443/x HTTP/1.1\r\nHost: a.example", "CONNECT u@a.example:443 HTTP/1.1\r\nHost: a.example",
		"CONNECT a.example:443 HTTP/1.1\r\nX: y", "CONNECT u@a.example:443 HTTP/1.0\r\nX: y", "CONNECT b.example:443 HTTP/1.0\r\nHost: a.example",
		"CONNECT http://a.example HTTP/1.1\r\nHost: a.example", "CONNECT / HTTP/1.1\r\nHost: a.example", "CONNECT a.example%00:443 HTTP/1.1\r\nHost: a.example",
	} {
		if scheme, host, port, err := destination(text); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %s %s %s, %v", text, scheme, host, port, err)
		}
	}
}

func destination(text string) (scheme, host, port string, err error) {
	h, err := parseHead([]byte(text + "\r\n\r\n"))
	if err != nil {
		return "", "", "", err
	}
	scheme, name, number, err := h.Destination()
	return scheme, name.String(), itoa(number), err
}

func itoa(n uint16) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\n"))
	f.Add([]byte("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err != nil {
			return
		}
		for _, field := range h.Fields {
			if strings.ContainsAny(field.Name+field.Value, "\r\n\x00") {
				t.Fatalf("%q is a field", field)
			}
		}
		if _, err := h.Body(); err == nil && len(h.Values("Content-Length"))+len(h.Values("Transfer-Encoding")) > 1 {
			t.Fatalf("%q has a body of one length", b)
		}
		if _, host, _, err := h.Destination(); err == nil && !host.IsValid() {
			t.Fatalf("%q has a destination that is none", b)
		}
	})
}
