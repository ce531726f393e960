//go:build linux

package internet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// plain speaks lax HTTP/1.1 to a client of HTTP, and echoes all other bytes.
func (n *internet) plain(s *stream) {
	in := bufio.NewReader(s)
	for {
		first, err := in.Peek(4)
		if err != nil && len(first) == 0 {
			return
		}
		if !isMethod(first) {
			_, _ = fmt.Fprintf(s, "%s\n", banner(s.seen.Host))
			_, _ = io.Copy(s, in)
			return
		}
		m, err := readMessage(in, false)
		if err != nil {
			return
		}
		if u := strings.ToLower(m.header("Upgrade")); u != "" && !strings.Contains(m.path, "noupgrade") {
			_, _ = fmt.Fprintf(s, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n", u, accept(m.header("Sec-WebSocket-Key")))
			_, _ = io.Copy(s, in)
			return
		}
		a := answerTo(m.method, m.path, m.header("Host"), m.head, m.body, s.seen.Host)
		var out bytes.Buffer
		fmt.Fprintf(&out, "HTTP/1.1 %d Canary\r\n", a.status)
		for k, v := range a.headers {
			fmt.Fprintf(&out, "%s: %s\r\n", k, v)
		}
		if a.chunk > 0 {
			out.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for i := 0; i < len(a.body); i += a.chunk {
				part := a.body[i:min(len(a.body), i+a.chunk)]
				fmt.Fprintf(&out, "%x\r\n%s\r\n", len(part), part)
			}
			out.WriteString("0\r\n\r\n")
		} else {
			fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n", len(a.body))
			if m.method != "HEAD" {
				out.Write(a.body)
			}
		}
		if _, err := s.Write(out.Bytes()); err != nil {
			return
		}
	}
}

func isMethod(first []byte) bool {
	return len(bytes.TrimLeft(first, "ABCDEFGHIJKLMNOPQRSTUVWXYZ \r\n")) == 0
}

// A message is a request as a lax server reads it.
type message struct {
	method, path, head string
	body               []byte
}

func (m message) header(name string) string {
	for line := range strings.SplitSeq(m.head, "\n") {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(strings.TrimSpace(k), name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// readMessage reads a request. Its length is by Transfer-Encoding, or by Content-Length
// with byLength.
func readMessage(in *bufio.Reader, byLength bool) (message, error) {
	var m message
	var head strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, err
		}
		if text := strings.TrimRight(line, "\r\n"); text != "" {
			head.WriteString(text + "\n")
			if head.Len() > rawKept {
				return m, bufio.ErrBufferFull
			}
			continue
		}
		if head.Len() > 0 {
			break
		}
	}
	first, rest, _ := strings.Cut(head.String(), "\n")
	f := append(strings.Fields(first), "", "")
	m.method, m.path, m.head = f[0], f[1], rest
	chunked := strings.Contains(strings.ToLower(m.header("Transfer-Encoding")), "chunked")
	length, _ := strconv.Atoi(m.header("Content-Length"))
	if chunked && (!byLength || length <= 0) {
		return m, m.chunks(in)
	}
	m.body = make([]byte, min(max(length, 0), 4<<20))
	k, err := io.ReadFull(in, m.body)
	m.body = m.body[:k]
	return m, err
}

func (m *message) chunks(in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseUint(size, 16, 24)
		if err != nil || n == 0 {
			_, err := in.ReadString('\n')
			return err
		}
		part := make([]byte, n)
		if _, err := io.ReadFull(in, part); err != nil {
			return err
		}
		m.body = append(m.body, part...)
		if _, err := in.ReadString('\n'); err != nil {
			return err
		}
	}
}

// requests parses bytes as requests in both ways, and names all requests found by either.
func requests(raw []byte) []string {
	var list []string
	for _, byLength := range []bool{false, true} {
		in := bufio.NewReader(bytes.NewReader(raw))
		for {
			first, _ := in.Peek(4)
			if len(first) < 4 || !isMethod(first) {
				break
			}
			m, err := readMessage(in, byLength)
			if m.method != "" {
				list = append(list, strings.Join([]string{m.method, m.header("Host"), m.path}, " "))
			}
			if err != nil {
				break
			}
			if m.header("Upgrade") != "" && strings.EqualFold(m.header("Upgrade"), "websocket") {
				break // the rest is not a request
			}
		}
	}
	return list
}

// encoded returns what was received as JSON.
func encoded(heard string) []byte {
	b, err := json.Marshal(map[string]string{"heard": heard})
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// A reply is the answer of a server.
type reply struct {
	status  int
	headers map[string]string
	body    []byte
	chunk   int // bytes of a chunk; 0 is not chunked
}

// answerTo returns the answer of a server. At /ok/echo it returns what it received, in the
// encoding that the query names.
func answerTo(method, path, host, head string, body []byte, ofHost bool) reply {
	a := reply{status: 200, headers: map[string]string{"Content-Type": "text/plain"}}
	a.body = fmt.Appendf(nil, "%s: %s %s%s\n", banner(ofHost), method, host, path)
	_, query, _ := strings.Cut(path, "?")
	if !strings.HasPrefix(path, "/ok/echo") {
		return a
	}
	heard := head + query + "\n" + string(body)
	var secret string
	for line := range strings.SplitSeq(heard, "\n") {
		if _, v, ok := strings.Cut(line, "Authorization: "); ok {
			secret = strings.TrimSpace(v)
		}
	}
	as, _, _ := strings.Cut(strings.TrimPrefix(query, "as="), "&")
	a.body = []byte(heard)
	switch as {
	case "base64":
		a.body = []byte(base64.StdEncoding.EncodeToString([]byte(heard)))
	case "base64url":
		a.body = []byte(base64.RawURLEncoding.EncodeToString([]byte(heard)))
	case "percent":
		a.body = []byte(url.QueryEscape(heard))
	case "json":
		a.body = encoded(heard)
		a.headers["Content-Type"] = "application/json"
	case "unicode":
		var b strings.Builder
		for _, r := range heard {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		a.body = []byte(`{"heard":"` + b.String() + `"}`)
		a.headers["Content-Type"] = "application/json"
	case "entities":
		var b strings.Builder
		for _, r := range heard {
			fmt.Fprintf(&b, `&#%d;`, r)
		}
		a.body = []byte(b.String())
		a.headers["Content-Type"] = "text/html"
	case "header":
		a.headers["X-Heard"] = secret
	case "cookie":
		a.headers["Set-Cookie"] = "heard=" + url.QueryEscape(secret)
	case "location":
		a.status, a.headers["Location"] = 302, "http://"+protocol.Stranger+"/?"+url.QueryEscape(secret)
	case "challenge":
		a.status, a.headers["WWW-Authenticate"] = 401, `Basic realm="`+secret+`"`
	case "error":
		a.status = 500
	case "chunks":
		a.chunk = 1
	case "gzip":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(heard))
		_ = z.Close()
		a.body, a.headers["Content-Encoding"] = b.Bytes(), "gzip"
	case "type":
		a.headers["Content-Type"] = "application/octet-stream"
	}
	return a
}
