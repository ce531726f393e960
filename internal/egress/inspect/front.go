package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A stage is the next part of the guest's input.
type stage int

const (
	atHead stage = iota
	inBody
	atChunk
	inChunk
	atTrailer
	isRaw // not HTTP any more: an upgrade or a tunnel
	isOver
)

const (
	longestChunkLine = 256
	longestTrailer   = 16 << 10
	readSize         = 32 << 10
)

// stand replaces a refused head, so that the server answers it in order, after the requests
// before it.
const stand = "GET / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n"

// A front reads HTTP/1 requests from a connection and forwards only what is unambiguous,
// byte for byte. It forwards a head once it is complete, and a body of the length in the
// head. It holds at most one head.
type front struct {
	net.Conn

	proxy bool // from a client of a proxy

	in    []byte // read, not examined
	out   []byte // examined, not forwarded
	stage stage
	left  int64 // of the body or chunk, including the line end after a chunk
	from  int   // where to continue the search for the end of a head

	mu      sync.Mutex
	err     error // guarded by mu; error within a body
	tunnel  int   // guarded by mu; number of the head that asked for a protocol other than HTTP
	heads   int   // guarded by mu; number of forwarded heads, including a replaced one
	refused error // guarded by mu; why the last head was replaced
	status  int   // guarded by mu
}

// refusal returns why the head of a number was refused, and the status to answer with. The
// error is nil if it was not refused.
func (f *front) refusal(number int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.tunnel != 0 && number > f.tunnel:
		return http.StatusBadRequest, errors.New("a request after one that asked for a tunnel")
	case f.refused == nil || number < f.heads:
		return 0, nil
	}
	return f.status, f.refused
}

// Read returns forwarded bytes.
func (f *front) Read(b []byte) (int, error) {
	for {
		if len(f.out) > 0 {
			n := copy(b, f.out)
			f.out = f.out[n:]
			return n, nil
		}
		f.out = nil
		if n, ok, err := f.straight(b); ok {
			return n, err
		}
		if len(f.in) > 0 && f.advance() {
			continue
		}
		if f.stage == isOver {
			continue
		}
		buffer := make([]byte, readSize)
		n, err := f.Conn.Read(buffer)
		f.in = append(f.in, buffer[:n]...)
		if n == 0 && err != nil {
			return 0, err
		}
	}
}

// straight reads bytes that need no examination.
func (f *front) straight(b []byte) (n int, ok bool, err error) {
	switch {
	case f.stage == isOver:
		if err := f.broken(); err != nil {
			return 0, true, err
		}
		return 0, true, io.EOF
	case f.stage != isRaw && f.stage != inBody:
		return 0, false, nil
	}
	if f.stage == inBody && int64(len(b)) > f.left {
		b = b[:f.left]
	}
	if len(f.in) > 0 {
		n = copy(b, f.in)
		f.in = f.in[n:]
	} else {
		f.in = nil
		n, err = f.Conn.Read(b)
	}
	if f.stage == inBody {
		if f.left -= int64(n); f.left == 0 {
			f.stage = atHead
		}
	}
	return n, true, err
}

// broken returns the error within a body.
func (f *front) broken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// raw reports whether the head of a number asked for a protocol other than HTTP.
func (f *front) raw(number int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tunnel == number
}

// advance examines the input, and reports whether it made progress.
func (f *front) advance() bool {
	switch f.stage {
	case atHead:
		return f.advanceHead()
	case atChunk:
		return f.advanceChunk()
	case inChunk:
		return f.advanceData()
	case atTrailer:
		return f.advanceTrailer()
	default:
		return false
	}
}

// give forwards n bytes.
func (f *front) give(n int) {
	f.out = append(f.out, f.in[:n]...)
	f.in = f.in[n:]
}

func (f *front) advanceHead() bool {
	end := bytes.Index(f.in[f.from:], []byte("\r\n\r\n"))
	switch {
	case bytes.HasPrefix(f.in, []byte("PRI * HTTP/2")):
		return f.refuse(http.StatusBadRequest, errors.New("HTTP/2 without TLS is not spoken here"))
	case end < 0 && len(f.in) > headMax:
		return f.refuse(http.StatusRequestHeaderFieldsTooLarge, fmt.Errorf("the head of the request is longer than %d bytes", headMax))
	case end < 0 && bytes.Contains(f.in[f.from:], []byte("\n\n")):
		return f.refuse(http.StatusBadRequest, errors.New("lines of the request end with LF alone"))
	case end < 0:
		f.from = max(0, len(f.in)-3)
		return false
	}
	end += f.from + 4
	f.from = 0
	if err := f.judge(f.in[:end]); err != nil {
		return f.refuse(http.StatusBadRequest, err)
	}
	f.mu.Lock()
	f.heads++
	if f.stage == isRaw {
		f.tunnel = f.heads
	}
	f.mu.Unlock()
	f.give(end)
	return true
}

// judge parses a head and sets the next stage.
func (f *front) judge(b []byte) error {
	h, err := parseHead(b)
	if err != nil {
		return err
	}
	body, err := h.Body()
	if err != nil {
		return err
	}
	scheme, _, port, err := h.Destination()
	if err != nil {
		return err
	}
	connect := h.Method == http.MethodConnect
	if connect && (!f.proxy || port == 0) || f.proxy && !connect && scheme != "http" {
		return fmt.Errorf("the target is not one that is asked for here: %w", paddock.Invalid)
	}
	switch {
	case connect || isWebSocket(h):
		if body.Chunked || body.Length > 0 {
			return fmt.Errorf("a request for a tunnel has a body: %w", paddock.Invalid)
		}
		f.stage = isRaw
	case body.Chunked:
		f.stage = atChunk
	case body.Length > 0:
		f.stage, f.left = inBody, body.Length
	}
	return nil
}

func isWebSocket(h requestHead) bool {
	return h.Method == http.MethodGet && h.Minor == 1 && h.Has("Connection", "upgrade") && h.Has("Upgrade", "websocket")
}

// refuse forwards a replacement for a refused head. Nothing after it is read.
func (f *front) refuse(status int, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heads++
	f.refused, f.status = err, status
	f.out, f.in, f.stage = append(f.out, stand...), nil, isOver
	return true
}

// fail ends a malformed body.
func (f *front) fail(reason string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = fmt.Errorf("the body of the request: %s: %w", reason, paddock.Invalid)
	f.in, f.stage = nil, isOver
	return true
}

func (f *front) advanceChunk() bool {
	line, _, ok := bytes.Cut(f.in, []byte("\r\n"))
	if !ok {
		if len(f.in) > longestChunkLine {
			return f.fail("the size of a chunk is too long")
		}
		return false
	}
	size, err := chunkSize(string(line))
	if err != nil || len(line) > longestChunkLine {
		return f.fail("the size of a chunk is not a number")
	}
	f.give(len(line) + 2)
	if size == 0 {
		f.stage = atTrailer
	} else {
		f.stage, f.left = inChunk, size+2
	}
	return true
}

// chunkSize parses the line before a chunk. It ignores extensions, as every server does.
func chunkSize(line string) (int64, error) {
	digits, extension, _ := strings.Cut(line, ";")
	if digits == "" || len(digits) > 15 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return 0, errors.New("not a number")
	}
	for i := range len(extension) {
		if c := extension[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return 0, errors.New("a control character")
		}
	}
	return strconv.ParseInt(digits, 16, 64)
}

func (f *front) advanceData() bool {
	if data := f.left - 2; data > 0 {
		n := int(min(data, int64(len(f.in))))
		f.give(n)
		f.left -= int64(n)
		return true
	}
	if len(f.in) < 2 {
		return false
	}
	if f.in[0] != '\r' || f.in[1] != '\n' {
		return f.fail("a chunk is longer than its size")
	}
	f.give(2)
	f.stage, f.left = atChunk, 0
	return true
}

func (f *front) advanceTrailer() bool {
	if bytes.HasPrefix(f.in, []byte("\r\n")) {
		f.give(2)
		f.stage = atHead
		return true
	}
	end := bytes.Index(f.in, []byte("\r\n\r\n"))
	if end < 0 {
		if len(f.in) > longestTrailer {
			return f.fail("its trailer is too long")
		}
		return false
	}
	fields, err := parseTrailer(strings.Split(string(f.in[:end]), "\r\n"))
	if err != nil {
		return f.fail("its trailer is malformed")
	}
	for _, field := range fields {
		switch http.CanonicalHeaderKey(field.Name) {
		case "Content-Length", "Transfer-Encoding", "Host", "Trailer", "Connection", "Authorization":
			return f.fail("its trailer holds " + field.Name)
		}
	}
	f.give(end + 4)
	f.stage = atHead
	return true
}

// CloseWrite closes the direction to the guest.
func (f *front) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return f.Close()
}
