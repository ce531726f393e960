//go:build linux

package internet

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// rawKept is how many bytes of one stream are kept.
const rawKept = 256 << 10

// A stream is an accepted connection, with what was read of it.
type stream struct {
	net.Conn // the connection, or TLS on it

	base net.Conn
	mu   sync.Mutex
	seen protocol.Stream
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Total += int64(n)
	s.seen.Raw = append(s.seen.Raw, p[:min(n, rawKept-min(rawKept, len(s.seen.Raw)))]...)
	return n, err
}

// askedf notes a parsed request.
func (s *stream) askedf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Requests = append(s.seen.Requests, fmt.Sprintf(format, args...))
}

// end closes the stream and returns what was seen.
func (s *stream) end() protocol.Stream {
	s.base.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	if len(seen.Requests) == 0 || seen.Proto != "h2" {
		seen.Requests = append(seen.Requests, requests(seen.Raw)...)
	}
	return seen
}

// listen serves connections on a port.
func (n *internet) listen(port int, host bool) error {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	go n.accept(l, n.serve, host)
	return nil
}

func (n *internet) accept(l net.Listener, serve func(*stream), host bool) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s := &stream{Conn: c, base: c}
		s.seen.Host = host
		s.seen.To, _ = netip.ParseAddrPort(c.LocalAddr().String())
		n.open(s)
		go func() {
			defer c.Close()
			serve(s)
		}()
	}
}

// packets listens for datagrams on an address, which several may share.
func packets(at string) (net.PacketConn, error) {
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }), err)
	}}
	return shared.ListenPacket(context.Background(), "udp", at)
}

// receive receives datagrams on an address, and echoes them.
func (n *internet) receive(at string, host bool) error {
	p, err := packets(at)
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			k, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			if host {
				s := &stream{base: nowhere{}}
				s.seen.To, _ = netip.ParseAddrPort(p.LocalAddr().String())
				s.seen = protocol.Stream{To: s.seen.To, Host: true, Raw: bytes.Clone(buf[:k])}
				n.open(s)
			}
			_, _ = p.WriteTo(append([]byte(banner(host)+"\n"), buf[:k]...), from)
		}
	}()
	return nil
}

// nowhere stands in for the connection of a datagram.
type nowhere struct{ net.Conn }

func (nowhere) Close() error { return nil }

func banner(host bool) string {
	if host {
		return protocol.HostBanner
	}
	return protocol.ServerBanner
}

// serve speaks the protocol of the other side.
func (n *internet) serve(s *stream) {
	if s.seen.To.Port() == 22 || s.seen.To.Port() == 25 {
		_, _ = io.WriteString(s, banner(s.seen.Host)+"\n")
	}
	in := bufio.NewReader(s.Conn)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	if first[0] != 0x16 {
		s.Conn = &peeked{s.Conn, in}
		n.plain(s)
		return
	}
	t := tls.Server(&peeked{s.Conn, in}, &tls.Config{
		GetCertificate: n.lax(s).GetCertificate,
		MinVersion:     tls.VersionTLS10, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if len(h.SupportedProtos) == 0 || slices.Contains(h.SupportedProtos, "h2") || slices.Contains(h.SupportedProtos, "http/1.1") {
				return nil, nil
			}
			return n.lax(s), nil
		},
	})
	if t.Handshake() != nil {
		return
	}
	s.mu.Lock()
	s.seen.Proto = t.ConnectionState().NegotiatedProtocol
	s.mu.Unlock()
	s.Conn = t
	if s.seen.Proto == "h2" {
		n.second(s)
		return
	}
	n.plain(s)
}

// lax returns a TLS configuration that accepts any offered protocol.
func (n *internet) lax(s *stream) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS10, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		s.mu.Lock()
		s.seen.TLS, s.seen.SNI = true, h.ServerName
		s.mu.Unlock()
		return n.signer.leaf(h.ServerName)
	}}
}

// peeked is a connection with bytes read ahead.
type peeked struct {
	net.Conn

	in *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.in.Read(b) }

// second speaks HTTP/2.
func (n *internet) second(s *stream) {
	one := &once{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	one.conn <- s.Conn
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.askedf("%s %s %s", r.Method, r.Host, r.URL.RequestURI())
		body, _ := io.ReadAll(io.LimitReader(r.Body, rawKept))
		var head strings.Builder
		_ = r.Header.Write(&head)
		s.mu.Lock()
		s.seen.Raw = append(s.seen.Raw, fmt.Sprintf("%s %s HTTP/2\r\nHost: %s\r\n%s\r\n", r.Method, r.URL.RequestURI(), r.Host, &head)...)
		s.seen.Raw = append(s.seen.Raw, body...)
		s.seen.Total += int64(len(body))
		s.mu.Unlock()
		a := answerTo(r.Method, r.URL.RequestURI(), r.Host, head.String(), body, s.seen.Host)
		for k, v := range a.headers {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}), ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			_ = one.Close()
		}
	}}
	_ = srv.Serve(one)
}

// once is a listener with one connection.
type once struct {
	conn chan net.Conn
	done chan struct{}
	over sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.done:
		return nil, io.EOF
	}
}
func (o *once) Close() error   { o.over.Do(func() { close(o.done) }); return nil }
func (o *once) Addr() net.Addr { return &net.TCPAddr{} }
