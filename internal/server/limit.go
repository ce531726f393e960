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

// Connections bound how many clients a listener has at once.
type Connections struct {
	// Most is of all; zero is no bound.
	Most int

	// Each is of one address: an IPv4 address, a network of 64 bits of IPv6, which
	// is what one customer of a provider has. Addresses of this machine, and sockets
	// of it, have no bound of their own: there a proxy brings everybody's. Zero is no
	// bound.
	Each int
}

// A Limit is a listener with a bound on its connections. Where all places are taken,
// the connection that has been idle longest, of the address that has most, makes room
// for a new one: so whoever only holds connections open keeps nobody out. Where none
// is idle the new one is answered 503, and one of an address that has its share 429,
// without its request being read; below TLS it is closed.
//
// It is to know which connections are idle: [Limit.State] is for http.Server.ConnState.
type Limit struct {
	net.Listener
	plain bool // there is no TLS on it

	mu      sync.Mutex
	o       Connections           // guarded by mu
	open    map[*limited]struct{} // guarded by mu
	crowd   map[netip.Addr]int    // guarded by mu; connections of an address
	full    uint64                // guarded by mu; refused
	crowded uint64                // guarded by mu; refused
	evicted uint64                // guarded by mu
}

// NewLimit puts a bound on a listener; plain says that there will be no TLS on it.
func NewLimit(l net.Listener, plain bool, o Connections) *Limit {
	return &Limit{Listener: l, plain: plain, o: o, open: map[*limited]struct{}{}, crowd: map[netip.Addr]int{}}
}

// Set changes the bounds, for connections to come.
func (l *Limit) Set(o Connections) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o = o
}

// A Crowd is what a Limit has seen.
type Crowd struct {
	Open, Most    int
	Full, Crowded uint64 // refused because of all, or of one address
	Evicted       uint64 // idle ones that made room
}

// Crowd tells how many connections there are and were refused.
func (l *Limit) Crowd() Crowd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Crowd{len(l.open), l.o.Most, l.full, l.crowded, l.evicted}
}

// A limited connection has a place, which its Close gives back.
type limited struct {
	net.Conn
	l    *Limit
	from netip.Addr // zero is of this machine

	idle time.Time // guarded by l.mu; since when; zero is in use
	gone bool      // guarded by l.mu; it has no place any more
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
			evicted.Conn.Close() // outside of the lock; whoever reads from it sees its end
		}
		if refused == 0 {
			return it, nil
		}
		l.refuse(c, refused)
	}
}

// origin is whom a connection counts for.
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

// enter gives a connection a place, for which another may have to go, or says with
// what code it is refused.
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
	it.idle = time.Now() // until it says something
	l.open[it] = struct{}{}
	l.crowd[it.from]++
	return evicted, 0
}

// enough is how many connections are looked at for the one that can best be done
// without: whoever has most is among so many, and a flood costs no more than that.
const enough = 512

// idlest is the connection that can best be done without, with mu held.
func (l *Limit) idlest() *limited {
	var best *limited
	looked := 0
	for c := range l.open { // in no order
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

// drop takes a connection's place back, with mu held.
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

// refuse answers in words, as far as that costs no waiting.
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
	_ = head.Write(c) // who is refused may not listen
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // so that the answer is not lost to a reset
	}
}

// Close gives the place back.
func (c *limited) Close() error {
	c.l.mu.Lock()
	c.l.drop(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends one direction, where the connection can.
func (c *limited) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// State is told what an http.Server does with a connection. One that has not yet
// said anything counts as idle.
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
