package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"time"
)

// A page of another site can have a browser connect to this machine: by localhost, or by a name of its own that it lets mean
// 127.0.0.1. It and the sandbox could then carry data to each other. So for a port that nobody named, the first request of a
// connection must be for localhost, and by a person or by a page that is of localhost itself. A browser never uses a
// connection for two names or for two sites. What is not HTTP/1 comes from no page, and passes. Before that is known,
// nothing goes either way, so the caller has to speak first.

// siteMost bounds the head of a request.
const siteMost = 64 << 10

// siteRefusal answers a request for another site.
const siteRefusal = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n" +
	"This port of a sandbox was published by itself, for http://localhost and its own pages alone.\nFor everybody: --publish PORT\n"

// A siteConn is a connection of which the beginning was read already.
type siteConn struct {
	net.Conn
	head []byte
}

// ofSite returns the connection if its first request may come in, and else answers it and closes it.
func ofSite(ctx context.Context, conn net.Conn) (net.Conn, bool) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var head []byte
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		head = append(head, buf[:n]...)
		verdict := judgeSite(head)
		switch {
		case verdict == sitePasses:
			return &siteConn{conn, head}, true
		case verdict == siteRefused || len(head) >= siteMost:
			_ = conn.SetWriteDeadline(time.Now().Add(Patience))
			_, _ = io.WriteString(conn, siteRefusal) // who went away does not need it
			conn.Close()
			return nil, false
		case err != nil:
			conn.Close()
			return nil, false
		}
	}
}

// Read implements net.Conn.
func (c *siteConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	c.head = c.head[n:]
	return n, nil
}

// CloseWrite ends the direction to the caller.
func (c *siteConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// A siteVerdict is what is known of the first bytes of a connection.
type siteVerdict int

const (
	siteMore siteVerdict = iota // not enough of them
	sitePasses
	siteRefused
)

// judgeSite judges the first bytes of a connection.
func judgeSite(head []byte) siteVerdict {
	method, _, spaced := bytes.Cut(head, []byte(" "))
	if spaced && len(method) == 0 || bytes.ContainsFunc(method, notOfMethod) {
		return sitePasses // no page can say such a word
	}
	line, rest, whole := bytes.Cut(head, []byte("\n"))
	if !spaced || !whole {
		return siteMore
	}
	words := strings.Fields(string(line))
	last := words[len(words)-1]
	switch {
	case !strings.HasPrefix(last, "HTTP/1."):
		return sitePasses
	case len(words) != 3 || !strings.HasPrefix(words[1], "/") && words[1] != "*":
		return siteRefused // for a proxy
	}
	h := siteHeader{}
	for {
		line, rest, whole = bytes.Cut(rest, []byte("\n"))
		text := strings.TrimSuffix(string(line), "\r")
		switch {
		case !whole:
			return siteMore
		case text == "":
			return h.verdict(last == "HTTP/1.0")
		case !h.add(text):
			return siteRefused
		}
	}
}

// notOfMethod reports whether no method has a character. A page chooses the method of its requests, of any length.
func notOfMethod(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// A siteHeader is what a request says of where it comes from and goes to.
type siteHeader struct {
	hosts                 int
	foreign, cross        bool
	navigates, isDocument bool
}

// add reads a line of the header, and reports false if it is none.
func (h *siteHeader) add(text string) bool {
	name, value, ok := strings.Cut(text, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t") { // also a line that goes on with the one before
		return false
	}
	value = strings.Trim(value, " \t")
	switch strings.ToLower(name) {
	case "host":
		h.hosts++
		h.foreign = h.foreign || !isLocalSite(value)
	case "origin":
		_, host, ok := strings.Cut(value, "://")
		h.foreign = h.foreign || !ok || !isLocalSite(host)
	case "sec-fetch-site":
		h.cross = h.cross || strings.EqualFold(value, "cross-site")
	case "sec-fetch-mode":
		h.navigates = strings.EqualFold(value, "navigate")
	case "sec-fetch-dest":
		h.isDocument = strings.EqualFold(value, "document")
	}
	return true
}

// verdict judges a whole header. A person may follow a link of another site, as back from a login; nothing else of it comes in.
func (h *siteHeader) verdict(old bool) siteVerdict {
	if h.foreign || h.hosts > 1 || h.hosts == 0 && !old || h.cross && (!h.navigates || !h.isDocument) {
		return siteRefused
	}
	return sitePasses
}

// isLocalSite reports whether a host with or without a port is localhost.
func isLocalSite(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	name = strings.ToLower(name)
	switch name {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}
