package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// secured adds TLS to a dialer if the address is https. It does not offer HTTP/2, because
// an HTTP/2 connection cannot be upgraded.
func (d *Driver) secured(connect dialer) dialer {
	if d.base.Scheme != "https" {
		return connect
	}
	return func(ctx context.Context) (net.Conn, error) {
		raw, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		config := d.o.TLS.Clone()
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		config.NextProtos = []string{"http/1.1"}
		if config.ServerName == "" {
			config.ServerName = d.base.Hostname()
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		return conn, nil
	}
}

// Dial implements paddock.Sandbox. Like a TCP connection, the result also has a method
// CloseWrite.
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("dial port %d: a port is a number from 1 to 65535: %w", port, paddock.Invalid)
	}
	conn, err := s.dial(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("dial port %d: %w", port, err)
	}
	return conn, nil
}

func (s *sandbox) dial(ctx context.Context, port int) (net.Conn, error) {
	if err := s.d.open(); err != nil {
		return nil, err
	}
	conn, err := s.d.dial(ctx)
	if err != nil {
		return nil, s.d.lost(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	r, err := s.upgrade(ctx, conn, port)
	if !stop() && err == nil { // ctx ended meanwhile
		err = s.d.lost(ctx, ctx.Err())
	}
	if err != nil {
		_ = conn.Close() // no data was written yet
		return nil, err
	}
	c := &portConn{Conn: conn, r: r}
	c.stop = context.AfterFunc(s.d.ctx, func() { _ = conn.Close() })
	return c, nil
}

// upgrade turns the connection into one to the port.
func (s *sandbox) upgrade(ctx context.Context, conn net.Conn, port int) (*bufio.Reader, error) {
	req, err := s.d.request(ctx, "GET", s.path("/ports/"+strconv.Itoa(port)), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", api.PortProtocol)
	if err := req.Write(conn); err != nil {
		return nil, s.d.lost(ctx, err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, s.d.lost(ctx, err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		defer res.Body.Close()
		return nil, refusal(res)
	}
	return r, nil
}

// A portConn is a connection to a port inside a sandbox.
type portConn struct {
	net.Conn
	r    *bufio.Reader // has the bytes that were read ahead
	stop func() bool
}

func (c *portConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite closes the writing direction.
func (c *portConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("%T cannot be closed in one direction: %w", c.Conn, paddock.Unsupported)
	}
	return half.CloseWrite()
}

func (c *portConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
