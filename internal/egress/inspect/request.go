package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// ServeHTTP judges one request and forwards it.
func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.wg.Done()
	if s.front != nil {
		s.served++
		if status, err := s.front.refusal(s.served); err != nil {
			s.reject(w, r, status, err)
			return
		}
		// An answer may begin before the request is complete.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	if s.connect != nil && r.Method == http.MethodConnect {
		s.tunnel(w, r)
		return
	}
	f, status, err := s.check(r)
	if err != nil {
		s.reject(w, r, status, err)
		return
	}
	upgrade := ""
	if r.ProtoMajor == 1 {
		upgrade = strings.ToLower(r.Header.Get("Upgrade"))
	}
	switch {
	case upgrade == "websocket" && s.front.raw(s.served):
		w.Header().Set("Connection", "close") // unless it becomes a tunnel
	case upgrade == "" || upgrade == "h2c" || !tokens(r.Header["Connection"], "upgrade"):
		// Some clients offer HTTP/2 with every request, and accept an answer in HTTP/1.1.
		upgrade = ""
	default:
		s.reject(w, r, http.StatusBadRequest, fmt.Errorf("an upgrade to %.40q cannot be inspected", upgrade))
		return
	}
	e := &exchange{s: s, w: w, r: r, flow: f, webSocket: upgrade == "websocket"}
	e.run()
	if e.aborted {
		// The guest must not take a partial answer for a complete one.
		panic(http.ErrAbortHandler)
	}
}

// check returns the destination of a request, or the status to refuse it with.
func (s *session) check(r *http.Request) (decide.Flow, int, error) {
	if r.Method == http.MethodConnect {
		return decide.Flow{}, http.StatusMethodNotAllowed, errors.New("CONNECT is for proxies")
	}
	if err := checkRequestTarget(r.RequestURI); err != nil {
		return decide.Flow{}, http.StatusBadRequest, err
	}
	if s.h2 && !strings.HasPrefix(r.RequestURI, "/") && (r.Method != http.MethodOptions || r.RequestURI != "*") {
		return decide.Flow{}, http.StatusBadRequest, errors.New("the path is none")
	}
	if s.connect == nil && r.URL.Scheme != "" && !strings.EqualFold(r.URL.Scheme, s.scheme()) {
		return decide.Flow{}, http.StatusBadRequest, fmt.Errorf("the target is a URL of another scheme on a connection of %s", s.scheme())
	}
	host, port, err := parseHostPort(r.Host)
	if err != nil {
		return decide.Flow{}, http.StatusBadRequest, err
	}
	if s.connect != nil {
		if port == 0 {
			port = 80
		}
		return decide.Flow{Host: host, Port: port}, 0, nil
	}
	for _, other := range append(r.Header["Host"], r.URL.Host) {
		if other != "" && other != r.Host {
			return decide.Flow{}, http.StatusMisdirectedRequest, errors.New("it names two hosts")
		}
	}
	if host != s.flow.Host || port != 0 && port != s.flow.Port {
		return decide.Flow{}, http.StatusMisdirectedRequest, fmt.Errorf("it is for %s on a connection to %s", clip(r.Host), join(s.flow))
	}
	return s.flow, 0, nil
}

func (s *session) scheme() string {
	if s.tls {
		return "https"
	}
	return "http"
}

func join(f decide.Flow) string {
	return net.JoinHostPort(f.Host.String(), strconv.Itoa(int(f.Port)))
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// reject answers an invalid request and ends the connection.
func (s *session) reject(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.p.o.Backend.Failed(s.flow, "a request was refused: "+err.Error())
	w.Header().Set("Connection", "close")
	answer{w: w, r: r, status: status, what: "refused by the sandbox's gateway", host: join(s.flow), reason: err.Error(), rule: -1}.give()
}

// tunnel answers CONNECT.
func (s *session) tunnel(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	host, port, err := parseHostPort(r.Host)
	if err != nil || port == 0 {
		s.reject(w, r, http.StatusBadRequest, fmt.Errorf("CONNECT is for HOST:PORT: %w", paddock.Invalid))
		return
	}
	f := decide.Flow{Host: host, Port: port}
	carry, err := s.connect(r.Context(), f)
	if err != nil {
		failure(w, r, f, err).give()
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		conn.Close()
	}
	// carry reports the outcome itself, and ends when the connection is closed.
	_ = carry(&hijacked{Conn: conn, r: buffered.Reader})
}

// hijacked is a connection with bytes read ahead.
type hijacked struct {
	net.Conn

	r *bufio.Reader
}

// Read returns the bytes that were read ahead, and then those of the connection.
func (h *hijacked) Read(b []byte) (int, error) {
	if h.r.Buffered() > 0 {
		return h.r.Read(b)
	}
	return h.Conn.Read(b)
}

// CloseWrite closes the direction to the guest.
func (h *hijacked) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return h.Close()
}

// tokens reports whether comma-separated values contain word, in any case.
func tokens(values []string, word string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}

// removeHops removes headers for the next hop only.
func removeHops(h http.Header) {
	trailers := tokens(h["Te"], "trailers")
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Alt-Svc"} {
		delete(h, name)
	}
	if trailers {
		h.Set("TE", "trailers")
	}
}

// path returns the path as received.
func path(r *http.Request) string {
	target, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return target
}

// outgoing makes the outgoing request without its body.
func (e *exchange) outgoing(ctx context.Context, header http.Header) *http.Request {
	scheme := e.s.scheme()
	u := &url.URL{Scheme: scheme, Host: join(e.flow), Path: e.r.URL.Path, RawPath: e.r.URL.RawPath, RawQuery: e.r.URL.RawQuery, ForceQuery: e.r.URL.ForceQuery}
	if u.Path == "" {
		u.Path = "/"
	}
	host := join(e.flow)
	if scheme == "http" && e.flow.Port == 80 || scheme == "https" && e.flow.Port == 443 {
		host = e.flow.Host.String()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	}
	out := &http.Request{Method: e.r.Method, URL: u, Host: host, Header: header, ContentLength: e.r.ContentLength, Trailer: announced(e.r), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	for _, name := range e.d.Rule.RemoveHeaders {
		removeHeader(out.Header, name)
		removeHeader(out.Trailer, name)
	}
	for name := range e.d.Rule.SetHeaders {
		removeHeader(out.Header, name)
		removeHeader(out.Trailer, name)
	}
	for name, value := range e.d.Rule.SetHeaders {
		out.Header.Set(name, value)
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // otherwise the transport would add one
	}
	return out.WithContext(ctx)
}

// announced returns the trailer that the request announces, still without values. Others that come
// were not judged, and are dropped.
func announced(r *http.Request) http.Header {
	trailer := http.Header{}
	for name := range r.Trailer {
		trailer[name] = nil
	}
	return trailer
}

// A trailerBody is a body that fills a trailer at its end, with the values of its request's.
type trailerBody struct {
	io.ReadCloser

	from *http.Request
	to   http.Header
}

func (b trailerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name := range b.to {
			b.to[name] = b.from.Trailer[name]
		}
	}
	return n, err
}

// removeHeader removes a header, and others that a server may take for it.
func removeHeader(h http.Header, name string) {
	for have := range h {
		if decide.SameHeader(have, name) {
			delete(h, have)
		}
	}
}

// headSize estimates the size of a head in bytes.
func headSize(line string, h http.Header) int {
	n := len(line) + 16
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(value) + 4
		}
	}
	return n
}

// sortedNames returns the names sorted and without duplicates.
func sortedNames(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
