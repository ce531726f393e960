package server

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Connections bounds how many connections a listener has at once.
type Connections struct {
	// Most is the maximum of all. Zero sets no bound.
	Most int

	// Each is the maximum for one address: an IPv4 address, or an IPv6 network of 64 bits,
	// because a provider gives one to each customer. Addresses of this machine and Unix
	// sockets have no such bound, because a proxy may use them for all clients. Zero sets
	// no bound.
	Each int
}

// A Limit is a listener that bounds its connections. When all places are taken, a new
// connection replaces an idle one: the longest idle connection of the address that has the
// most. So a client cannot keep others out by holding connections open. If no connection is
// idle, the new one is answered 503. A connection beyond the maximum of its address is
// answered 429. In both cases the request is not read. Below TLS the connection is closed
// without an answer.
//
// http.Server.ConnState must be [Limit.State], because the limit must know which
// connections are idle.
type Limit struct {
	net.Listener
	plain bool // no TLS on this listener

	mu      sync.Mutex
	o       Connections           // guarded by mu
	open    map[*limited]struct{} // guarded by mu
	crowd   map[netip.Addr]int    // guarded by mu; connections by address
	full    uint64                // guarded by mu; refused
	crowded uint64                // guarded by mu; refused
	evicted uint64                // guarded by mu
}

// NewLimit bounds the connections of a listener. plain means that there is no TLS on it.
func NewLimit(l net.Listener, plain bool, o Connections) *Limit {
	return &Limit{Listener: l, plain: plain, o: o, open: map[*limited]struct{}{}, crowd: map[netip.Addr]int{}}
}

// Set changes the bounds for new connections.
func (l *Limit) Set(o Connections) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o = o
}

// A Crowd has the counters of a Limit.
type Crowd struct {
	Open, Most    int
	Full, Crowded uint64 // refused by Most, and by Each
	Evicted       uint64 // idle connections that made room
}

// Crowd returns the number of connections and of refusals.
func (l *Limit) Crowd() Crowd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Crowd{len(l.open), l.o.Most, l.full, l.crowded, l.evicted}
}

// A limited connection holds a place, which Close returns.
type limited struct {
	net.Conn
	l    *Limit
	from netip.Addr // zero for this machine

	idle time.Time // guarded by l.mu; idle since; zero means in use
	gone bool      // guarded by l.mu; the place was returned
}

// Accept implements net.Listener.
func (l *Limit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		it := &limited{Conn: c, l: l, from: origin(c.RemoteAddr())}
		evicted, refused := l.enter(it)
		if evicted != nil {
			evicted.Conn.Close() // outside the lock; its reader sees the end
		}
		if refused == 0 {
			return it, nil
		}
		l.refuse(c, refused)
	}
}

// origin returns the address that a connection counts for.
func origin(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.IsLoopback() {
		return netip.Addr{}
	}
	if addr.Is6() {
		p, err := addr.WithZone("").Prefix(64)
		if err != nil {
			return netip.Addr{}
		}
		return p.Addr()
	}
	return addr
}

// enter gives a connection a place, and may return an idle connection to close for it. If
// there is no place, it returns the status to refuse with.
func (l *Limit) enter(it *limited) (evicted *limited, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if it.from.IsValid() && l.o.Each > 0 && l.crowd[it.from] >= l.o.Each {
		l.crowded++
		return nil, http.StatusTooManyRequests
	}
	if l.o.Most > 0 && len(l.open) >= l.o.Most {
		if evicted = l.idlest(); evicted == nil {
			l.full++
			return nil, http.StatusServiceUnavailable
		}
		l.evicted++
		l.drop(evicted)
	}
	it.idle = time.Now() // until it sends a request
	l.open[it] = struct{}{}
	l.crowd[it.from]++
	return evicted, 0
}

// enough is the number of connections to examine for the best one to replace. An address
// with many connections is very likely among them, and the cost under a flood is bounded.
const enough = 512

// idlest returns the best connection to replace. mu is held.
func (l *Limit) idlest() *limited {
	var best *limited
	looked := 0
	for c := range l.open { // in random order
		if looked++; best != nil && looked > enough {
			break
		}
		if c.idle.IsZero() {
			continue
		}
		if best == nil || l.crowd[c.from] > l.crowd[best.from] || l.crowd[c.from] == l.crowd[best.from] && c.idle.Before(best.idle) {
			best = c
		}
	}
	return best
}

// drop returns the place of a connection. mu is held.
func (l *Limit) drop(c *limited) {
	if c.gone {
		return
	}
	c.gone = true
	delete(l.open, c)
	if l.crowd[c.from]--; l.crowd[c.from] <= 0 {
		delete(l.crowd, c.from)
	}
}

// refuse answers with an error, as far as that needs no waiting.
func (l *Limit) refuse(c net.Conn, code int) {
	defer c.Close()
	if !l.plain {
		return
	}
	kind, text := "unavailable", "the server has as many connections as it may; try again later"
	if code == http.StatusTooManyRequests {
		kind, text = "resource_exhausted", "your address has as many connections as it may; close some"
	}
	body := `{"error":{"kind":"` + kind + `","message":"` + text + `"}}` + "\n"
	if err := c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return
	}
	head := &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Close: true, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}, "Cache-Control": {"no-store"}},
	}
	_ = head.Write(c) // the client may not read it
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // so that no reset discards the answer
	}
}

// Close closes the connection and returns its place.
func (c *limited) Close() error {
	c.l.mu.Lock()
	c.l.drop(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the writing direction if the connection supports it.
func (c *limited) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// State notes state changes of a connection; see http.Server.ConnState. A connection
// without a request so far counts as idle.
func (l *Limit) State(c net.Conn, state http.ConnState) {
	if outer, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = outer.NetConn()
	}
	it, ok := c.(*limited)
	if !ok || it.l != l {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	it.idle = time.Time{}
	if state == http.StateNew || state == http.StateIdle {
		it.idle = time.Now()
	}
}
