package guestclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// streamWindow is what the guest may send ahead on one call. A sandbox has thousands of calls, and a
	// hostile guest fills the windows of all. With half of it, output of a jail takes a quarter longer.
	streamWindow = 128 << 10
	maxFrame     = 128 << 10
	maxHeader    = 64 << 10
)

// A wire is HTTP/2 over the one connection. It never dials.
type wire struct {
	http   *http.ClientConn
	conn   *watchedConn
	done   <-chan struct{}
	paused func() bool   // may be nil
	waits  time.Duration // answerTime, shorter in tests
}

// dial starts HTTP/2 on conn. paused reports whether the guest is paused, and may be nil.
func dial(conn net.Conn, paused func() bool) (*wire, error) {
	w := &watchedConn{Conn: conn, done: make(chan struct{})}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	given := false
	t := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if given {
				return nil, errors.New("the connection to a guest is never made again")
			}
			given = true
			return w, nil
		},
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize:          maxFrame,
			MaxReceiveBufferPerStream: streamWindow,
		},
	}
	// A guest that reads nothing must not hold up the caller: the preface
	// fits into any connection's buffer.
	_ = conn.SetWriteDeadline(time.Now().Add(answerTime))
	cc, err := t.NewClientConn(context.Background(), "http", "guest:80")
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", paddock.Unavailable, err)
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return &wire{http: cc, conn: w, done: w.done, paused: paused, waits: answerTime}, nil
}

// Do makes a call: no redirects, no cookies, no proxies.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	res, err := w.http.RoundTrip(req)
	if err != nil {
		// It said goodbye, or broke the protocol: no call will be taken any
		// more, also where HTTP/2 keeps the connection for those under way.
		if w.http.Err() != nil || (req.Context().Err() == nil && w.http.Available() == 0) {
			_ = w.Close()
		}
		return nil, err
	}
	res.Body = guard(res, room(req.Context(), req.URL.Path))
	return res, nil
}

// A holder makes calls by a guest's wire, and holds the guest meanwhile: to the end
// of the answer.
type holder struct{ g *Guest }

func (h holder) Do(req *http.Request) (*http.Response, error) {
	defer runtime.KeepAlive(h.g)
	if h.g.o.Refuse != nil {
		if err := h.g.o.Refuse(); err != nil {
			return nil, err
		}
	}
	res, err := h.g.wire.Do(req)
	if err != nil {
		return nil, err
	}
	res.Body = heldBody{res.Body, h.g}
	return res, nil
}

type heldBody struct {
	io.ReadCloser
	g *Guest
}

func (b heldBody) Read(p []byte) (int, error) {
	defer runtime.KeepAlive(b.g)
	return b.ReadCloser.Read(p)
}

func (w *wire) Close() error {
	w.conn.end() // first: calls that HTTP/2 ends now are to find the reason
	return w.http.Close()
}

// giveUp is called when an answer is overdue. Where even our own bytes have
// not been taken for that long, the guest has stopped reading, and every
// further call would leave a goroutine behind that waits to write. A paused
// guest keeps its connection, and then has all the time again.
func (w *wire) giveUp() {
	since := w.conn.writing.Load()
	if since == 0 || time.Since(time.Unix(0, since)) < w.waits {
		return
	}
	if w.paused != nil && w.paused() {
		w.conn.writing.CompareAndSwap(since, time.Now().UnixNano())
		return
	}
	_ = w.conn.Close()
}

// watchedConn knows when the connection has ended, before HTTP/2 tells anyone.
type watchedConn struct {
	net.Conn
	once    sync.Once
	done    chan struct{}
	writing atomic.Int64 // since when a Write is blocked, in nanoseconds; 0 is not
}

func (c *watchedConn) end() { c.once.Do(func() { close(c.done) }) }

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	n, err := c.Conn.Write(p)
	c.writing.Store(0)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// guard stops reading an answer as soon as one message of it is longer than the call can have.
// Without it Connect reads a too long message to its end before it complains.
func guard(res *http.Response, most int) io.ReadCloser {
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/connect+") {
		return &guardedStream{body: res.Body, most: uint32(most)}
	}
	if res.StatusCode != http.StatusOK {
		most = smallMessage // an error
	}
	return &guardedBody{body: res.Body, left: most}
}

var errTooLong = fmt.Errorf("the guest's answer is too long: %w", paddock.Internal)

// guardedBody bounds the body of a single answer.
type guardedBody struct {
	body io.ReadCloser
	left int
}

func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

func (b *guardedBody) Close() error { return b.body.Close() }

// guardedStream bounds each message of a stream: a byte of flags, four bytes
// of length, and that many bytes.
type guardedStream struct {
	body   io.ReadCloser
	most   uint32 // of a message
	prefix [5]byte
	have   int    // bytes of prefix that were read
	left   uint32 // of the message
	last   bool   // nothing may follow the message
	err    error
}

const flagEnd = 2

func (b *guardedStream) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.body.Read(p)
	if bad := b.check(p[:n]); bad != nil {
		b.err = bad
		return 0, bad
	}
	return n, err
}

func (b *guardedStream) check(p []byte) error {
	for len(p) > 0 {
		if b.left > 0 {
			n := min(uint64(b.left), uint64(len(p)))
			b.left -= uint32(n)
			p = p[n:]
			continue
		}
		if b.last {
			return fmt.Errorf("the guest sends on after its end: %w", paddock.Internal)
		}
		n := copy(b.prefix[b.have:], p)
		b.have += n
		p = p[n:]
		if b.have < len(b.prefix) {
			return nil
		}
		b.have = 0
		b.left = binary.BigEndian.Uint32(b.prefix[1:])
		switch flags := b.prefix[0]; {
		case flags != 0 && flags != flagEnd:
			return fmt.Errorf("the guest sends a message of unknown form %d: %w", flags, paddock.Internal)
		case b.left > b.most, flags == flagEnd && b.left > smallMessage:
			return errTooLong
		default:
			b.last = flags == flagEnd
		}
	}
	return nil
}

func (b *guardedStream) Close() error { return b.body.Close() }
