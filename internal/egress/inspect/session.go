package inspect

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// Bounds of one connection of the guest.
const (
	streams        = 128 // at once, in HTTP/2
	streamBuffer   = 1 << 20
	serverBuffer   = 1 << 20
	upstreamBuffer = 32 << 20
	answerHead     = 256 << 10
	upstreams      = 64 // connections to one destination at once
	ways           = 16 // destinations with open connections, for a proxy's client
)

// A session is one connection of the guest, with the connections for its requests.
type session struct {
	p       *Proxy
	flow    decide.Flow
	connect Connector // for a proxy's client
	front   *front    // for HTTP/1
	cork    *cork     // for HTTP/1 over TLS, or nil
	tls, h2 bool

	served int // number of requests in HTTP/1, which come one after the other

	mu    sync.Mutex
	ended bool                      // guarded by mu
	ways  map[route]*http.Transport // guarded by mu
	conns map[*upstream]bool        // guarded by mu
	wg    sync.WaitGroup            // counts requests
}

// A route identifies a destination and the way to it.
type route struct {
	flow decide.Flow
	via  string
}

func newSession(p *Proxy, f decide.Flow) *session {
	return &session{p: p, flow: f, ways: map[route]*http.Transport{}, conns: map[*upstream]bool{}}
}

// run serves conn until it ends, and waits for everything that it started.
func (s *session) run(ctx context.Context, conn net.Conn) error {
	l := &single{conn: conn, over: make(chan struct{})}
	server := &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            headTime,
		IdleTimeout:                  headTime,
		MaxHeaderBytes:               headMax,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the guest could fill a log
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: serverBuffer, MaxReceiveBufferPerStream: serverBuffer},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				_ = l.Close() // it never fails
			}
		},
	}
	_ = server.Serve(l) // it ends with the listener
	s.end()
	return nil
}

// end waits for the requests and closes their connections.
func (s *session) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wg.Wait()
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, t := range s.ways {
		t.CloseIdleConnections()
	}
	for c := range conns {
		c.Conn.Close()
	}
}

// enter counts a request. It reports false if the session has ended.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.wg.Add(1)
	return true
}

// single is a listener with one connection.
type single struct {
	conn net.Conn
	over chan struct{}
	once sync.Once
}

// Accept returns the connection, and then waits until it has ended.
func (l *single) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.over
	return nil, net.ErrClosed
}

// Close ends the waiting.
func (l *single) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

// Addr returns an empty address, because nothing can connect to it.
func (l *single) Addr() net.Addr { return &net.UnixAddr{} }

// An upstream is a connection to a destination.
type upstream struct {
	net.Conn

	s *session
}

// Close closes and unregisters the connection.
func (u *upstream) Close() error {
	u.s.mu.Lock()
	delete(u.s.conns, u)
	u.s.mu.Unlock()
	return u.Conn.Close()
}

// CloseWrite closes the direction to the destination.
func (u *upstream) CloseWrite() error {
	if half, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return u.Close()
}

// transport returns the transport for a route.
func (s *session) transport(w route) *http.Transport {
	var old *http.Transport
	// Closing connections takes the lock itself.
	defer func() {
		if old != nil {
			old.CloseIdleConnections()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ways[w]; t != nil {
		return t
	}
	if len(s.ways) >= ways {
		for key, t := range s.ways {
			old = t
			delete(s.ways, key)
			break
		}
	}
	t := &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, w) },
		TLSClientConfig:        &tls.Config{RootCAs: s.p.o.Roots, MinVersion: tls.VersionTLS12, ClientSessionCache: s.p.sessions},
		TLSHandshakeTimeout:    handshakeTime,
		DisableCompression:     true,
		MaxConnsPerHost:        upstreams,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		ExpectContinueTimeout:  2 * time.Second,
		MaxResponseHeaderBytes: answerHead,
		ReadBufferSize:         readSize,
		WriteBufferSize:        readSize,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerConnection: upstreamBuffer, MaxReceiveBufferPerStream: streamBuffer},
		Protocols:              &http.Protocols{},
	}
	t.Protocols.SetHTTP1(true)
	// A guest that uses HTTP/1 may ask for an upgrade, which HTTP/2 does not support.
	t.Protocols.SetHTTP2(s.h2)
	s.ways[w] = t
	return t
}

// dial connects, and registers the connection so that it ends with the session.
func (s *session) dial(ctx context.Context, w route) (net.Conn, error) {
	conn, err := s.p.o.Backend.Dial(ctx, w.flow, w.via)
	if err != nil {
		return nil, err
	}
	u := &upstream{Conn: conn, s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	s.conns[u] = true
	return u, nil
}
