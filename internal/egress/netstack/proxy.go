package netstack

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// dialVia connects through an upstream proxy. The proxy resolves names. An address is
// checked as usual.
func (d *Dialer) dialVia(ctx context.Context, t Target) (net.Conn, error) {
	if addr, ok := t.Host.Addr(); ok {
		if err := decide.CheckAddress(addr, t.Lists); err != nil {
			return nil, err
		}
	}
	host, port, err := proxyPlace(t.Via)
	if err != nil {
		return nil, err
	}
	found, err := d.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", host, err)
	}
	c, err := d.race(ctx, false, port, found)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", host, err)
	}
	through, err := d.handshake(ctx, c, t)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("proxy %s: %w", host, err)
	}
	return through, nil
}

// proxyPlace returns the address of a proxy.
func proxyPlace(u *url.URL) (decide.Host, uint16, error) {
	ports := map[string]uint16{"http": 80, "https": 443, "socks5": 1080}
	port, ok := ports[u.Scheme]
	if !ok {
		return decide.Host{}, 0, fmt.Errorf("a proxy is http, https or socks5: %w", paddock.Invalid)
	}
	host, err := decide.ParseHost(u.Hostname())
	if err != nil {
		return decide.Host{}, 0, err
	}
	if u.Port() != "" {
		if port, err = decide.ParsePort(u.Port()); err != nil {
			return decide.Host{}, 0, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
	}
	return host, port, nil
}

// handshake asks the proxy for the target. It ends with ctx.
func (d *Dialer) handshake(ctx context.Context, c net.Conn, t Target) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	through, err := d.ask(ctx, c, t)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	return through, err
}

func (d *Dialer) ask(ctx context.Context, c net.Conn, t Target) (net.Conn, error) {
	switch t.Via.Scheme {
	case "socks5":
		return c, askSOCKS(ctx, c, t)
	case "https":
		secure := tls.Client(c, &tls.Config{ServerName: t.Via.Hostname(), RootCAs: d.Roots, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		c = secure
	}
	return askHTTP(c, t)
}

func askSOCKS(ctx context.Context, c net.Conn, t Target) error {
	var auth *proxy.Auth
	if u := t.Via.User; u != nil {
		password, _ := u.Password()
		auth = &proxy.Auth{User: u.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", "", auth, nil)
	if err != nil {
		return err
	}
	asker, ok := dialer.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return errors.New("this version of SOCKS cannot use a connection that is there")
	}
	_, err = asker.DialWithConn(ctx, c, "tcp", t.String())
	return err
}

const headMax = 64 << 10 // bytes of a proxy's answer to CONNECT

func askHTTP(c net.Conn, t Target) (net.Conn, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", t, t)
	if u := t.Via.User; u != nil {
		password, _ := u.Password()
		fmt.Fprintf(&b, "Proxy-Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	b.WriteString("\r\n")
	if _, err := c.Write([]byte(b.String())); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	status, err := readHead(r)
	if err != nil {
		return nil, fmt.Errorf("its answer: %w", err)
	}
	version, rest, _ := strings.Cut(status, " ")
	if !strings.HasPrefix(version, "HTTP/1.") || len(rest) < 3 || rest[0] != '2' {
		return nil, fmt.Errorf("it answers %q: %w", status[:min(len(status), 100)], paddock.Unavailable)
	}
	return &answered{Conn: c, first: r}, nil
}

// readHead reads up to the empty line and returns the first line.
func readHead(r *bufio.Reader) (status string, err error) {
	for n, lines := 0, 0; ; lines++ {
		line, err := r.ReadSlice('\n')
		if n += len(line); err != nil || n > headMax {
			return "", errors.Join(err, errors.New("not an answer of HTTP"))
		}
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case lines == 0:
			status = text
		case text == "":
			return status, nil
		}
	}
}

// An answered connection begins with bytes that followed the proxy's answer.
type answered struct {
	net.Conn

	first *bufio.Reader // nil when it is empty
}

func (a *answered) Read(b []byte) (int, error) {
	if a.first != nil {
		if n := a.first.Buffered(); n > 0 {
			return a.first.Read(b[:min(len(b), n)])
		}
		a.first = nil
	}
	return a.Conn.Read(b)
}

// CloseWrite closes the sending direction.
func (a *answered) CloseWrite() error {
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return fmt.Errorf("%T has no half: %w", a.Conn, paddock.Unsupported)
}
