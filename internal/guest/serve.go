package guest

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// serve answers calls on one connection until it ends, and waits for the calls; or it
// is one for the content of a file, or for a socket.
func (s *Server) serve(ctx context.Context, conn net.Conn) error {
	first := make([]byte, 1)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err := io.ReadFull(conn, first)
	if !stop() || err != nil {
		_ = conn.Close()
		return context.Cause(ctx)
	}
	switch first[0] {
	case guestpb.Aside:
		return s.asides.serve(ctx, conn)
	case guestpb.Listen:
		return s.listenFor(ctx, conn)
	}
	return s.answerer.serve(ctx, &begun{Conn: conn, first: first})
}

// begun is a connection of which the first byte was read.
type begun struct {
	net.Conn

	first []byte // until it is read again
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// ServeHandler answers the host's calls on conn until conn or ctx ends, and waits for calls under way.
// It is for guests that are no Linux system. It answers a call only if pass allows it; pass may wait.
func ServeHandler(ctx context.Context, conn net.Conn, h guestpb.GuestHandler, pass func(done <-chan struct{}) bool) error {
	return newAnswerer(h, pass).serve(ctx, conn)
}

// An answerer answers calls on any number of connections.
type answerer struct{ http *http.Server }

// underWay is where the context of a connection has its calls.
type underWay struct{}

func newAnswerer(h guestpb.GuestHandler, pass func(done <-chan struct{}) bool) *answerer {
	rpc := guestpb.NewHandler(h,
		connect.WithInterceptors(replies{}),
		connect.WithReadMaxBytes(maxMessage),
		connect.WithCompression("gzip", nil, nil),
	)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	// No timeouts: the host may connect long before it calls, and it is trusted.
	a := &answerer{&http.Server{ //nolint:gosec // G112: see above
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := r.Context().Value(underWay{}).(*calls); ok {
				c.serve(rpc, pass, w, r)
			}
		}),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if c, ok := conn.(*servedConn); ok {
				ctx = context.WithValue(ctx, underWay{}, c.calls)
			}
			return ctx
		},
		Protocols:      &protocols,
		MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream:     streamWindow,
		},
	}}
	// What is done once is done now, and not by the first connection.
	ended := make(chan struct{})
	close(ended)
	_ = a.http.Serve(&oneConn{given: true, ended: ended})
	return a
}

// serve answers calls on one connection.
func (a *answerer) serve(ctx context.Context, conn net.Conn) error {
	calls := &calls{}
	one := &oneConn{addr: conn.LocalAddr(), ended: make(chan struct{})}
	one.conn = &servedConn{Conn: conn, calls: calls, end: sync.OnceFunc(func() { close(one.ended) })}
	stop := context.AfterFunc(ctx, func() { _ = one.conn.Close() })
	_ = a.http.Serve(one) // ends when the connection has: see Accept
	stop()
	_ = one.conn.Close()
	calls.wait()
	return context.Cause(ctx)
}

// calls counts the calls under way, so that serve can wait for them.
type calls struct {
	mu     sync.Mutex
	wg     sync.WaitGroup
	closed bool // guarded by mu
}

func (c *calls) serve(next http.Handler, pass func(done <-chan struct{}) bool, w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.wg.Add(1)
	c.mu.Unlock()
	defer c.wg.Done()
	if pass(r.Context().Done()) {
		room(w == nil)
		w.Header()["Date"] = nil // which nobody reads, and is written anew for each
		next.ServeHTTP(w, r)
	}
}

// room has this goroutine's stack grow at once, as far as a call needs, while there
// is little on it. Else it is copied, each time twice as large, with all that is on
// it then: emulated, half of what a short call takes.
//
//go:noinline
func room(never bool) byte {
	if !never {
		return 0
	}
	var most [12 << 10]byte
	for i := range most {
		most[i] = byte(i)
	}
	return most[len(os.Args)]
}

func (c *calls) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// oneConn is a listener that gives one connection, and ends with it.
type oneConn struct {
	conn  *servedConn // nil after it was given
	given bool
	addr  net.Addr
	ended chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.addr }

// servedConn tells when the server has closed it.
type servedConn struct {
	net.Conn

	calls *calls
	end   func()
}

func (c *servedConn) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}
