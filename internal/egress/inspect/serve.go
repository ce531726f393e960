package inspect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// Time limits for the guest.
const (
	firstTime     = time.Minute      // until the first byte
	handshakeTime = 20 * time.Second // for the TLS handshake
	headTime      = time.Minute      // for the head of a request, and between two requests
)

// Serve carries conn, on which the guest speaks to f, until either side ends it or ctx ends, and closes it. The first
// bytes tell TLS from plain HTTP; Serve refuses all else. The error says why the connection ended early; the Backend
// was told.
func (p *Proxy) Serve(ctx context.Context, conn net.Conn, f decide.Flow) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := NewPeekConn(conn)
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()

	kind, err := c.Protocol(firstTime)
	switch {
	case err != nil:
		return p.fail(f, "the program says nothing, and its requests are to be looked into")
	case kind == TLS:
		return p.serveTLS(ctx, c, f)
	case kind == HTTP:
		s := newSession(p, f)
		s.front = &front{Conn: c}
		return s.run(ctx, s.front)
	}
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return nil // it sent nothing
	}
	return p.fail(f, "what the program sends is neither TLS nor HTTP, and the rules want a look into it")
}

// ServeProxy carries conn, on which the guest speaks to an HTTP proxy, and closes it at the end. It passes CONNECT to
// connect. It passes a request in absolute form, whose scheme must be http, to Backend.Request with the flow of its
// target's host and port, and carries it like one on a plain connection there. It refuses all else.
func (p *Proxy) ServeProxy(ctx context.Context, conn net.Conn, connect Connector) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s := newSession(p, decide.Flow{})
	s.connect = connect
	s.front = &front{Conn: conn, proxy: true}
	return s.run(ctx, s.front)
}

// fail reports why no request could be judged.
func (p *Proxy) fail(f decide.Flow, reason string) error {
	p.o.Backend.Failed(f, reason)
	return fmt.Errorf("%s: %w", reason, paddock.Denied)
}

// Alerts of TLS.
const (
	alertDecode  = 50
	alertNoName  = 112
	alertInside  = 80
	recordAlerts = 21
)

// alert sends a TLS alert. It ignores errors.
func alert(c net.Conn, number byte) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte{recordAlerts, 3, 3, 0, 2, 2, number})
}

func (p *Proxy) serveTLS(ctx context.Context, c *PeekConn, f decide.Flow) error {
	h, err := c.ClientHello(handshakeTime)
	if err != nil {
		alert(c, alertDecode)
		return p.fail(f, "its ClientHello cannot be read: "+err.Error())
	}
	// For an address there is no name to ask for. A program that sends no name means the
	// host that it connected to.
	if _, isAddress := f.Host.Addr(); h.Named && (isAddress || h.Host != f.Host) {
		alert(c, alertNoName)
		return p.fail(f, fmt.Sprintf("TLS on the connection to %s asks for %s", f.Host, h.Host))
	}
	if p.o.Authority == nil {
		alert(c, alertInside)
		return p.fail(f, "this sandbox has no certificate authority for the look that the rules want")
	}
	leaf, err := p.o.Authority.Leaf(f.Host)
	if err != nil {
		alert(c, alertInside)
		return p.fail(f, err.Error())
	}
	corked := &cork{Conn: c}
	conn := tls.Server(corked, &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true})
	limit, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := conn.HandshakeContext(limit); err != nil {
		return p.fail(f, handshakeReason(f, err))
	}
	s := newSession(p, f)
	s.tls = true
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		s.h2 = true
		return s.run(ctx, conn)
	}
	s.front, s.cork = &front{Conn: conn}, corked
	return s.run(ctx, s.front)
}

// handshakeReason describes why a handshake failed.
func handshakeReason(f decide.Flow, err error) string {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		said := remote.Err.Error()
		for _, distrust := range []string{"unknown certificate authority", "bad certificate", "unknown certificate", "unsupported certificate", "certificate expired", "access denied"} {
			if strings.Contains(said, distrust) {
				return fmt.Sprintf("the program does not accept this sandbox's certificate authority for %s (%s): it may pin certificates, or have a trust store of its own; remove what needs inspection from the rules of this host, or give the program the authority's certificate", f.Host, said)
			}
		}
		return fmt.Sprintf("the program ended the TLS handshake: %s", said)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return fmt.Sprintf("the program ended the TLS handshake without a word: it may not accept this sandbox's certificate authority for %s", f.Host)
	}
	return fmt.Sprintf("the TLS handshake failed: %v", err)
}
