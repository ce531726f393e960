package netstack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/paddock-sandbox/paddock"
)

// An Attempt is a TCP connection that the sandbox opens and that is neither accepted nor refused yet.
type Attempt struct {
	From, To netip.AddrPort

	link    *Link
	request *tcp.ForwarderRequest
	settled atomic.Bool
}

// attempt runs the handler for a SYN. The stack calls it in a goroutine.
func (l *Link) attempt(r *tcp.ForwarderRequest) {
	if !l.begin() {
		r.Complete(false)
		return
	}
	defer l.wg.Done()
	l.conns.Add(1)
	id := r.ID()
	a := &Attempt{From: place(id.RemoteAddress, id.RemotePort), To: place(id.LocalAddress, id.LocalPort), link: l, request: r}
	defer a.Refuse()
	l.handler.TCP(a)
}

// Refuse answers with a RST: connection refused. It does nothing after Accept or Refuse.
func (a *Attempt) Refuse() {
	if a.settled.CompareAndSwap(false, true) {
		a.request.Complete(true)
		a.link.conns.Add(-1)
	}
}

// Accept completes the handshake and returns the connection once the sandbox has acknowledged it. Call it once, and not
// after Refuse. If ctx ends first, the attempt is abandoned.
func (a *Attempt) Accept(ctx context.Context) (Conn, error) {
	if !a.settled.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("accept: the connection is accepted or refused already: %w", paddock.Conflict)
	}
	shaken := make(chan *conn, 1)
	var failure error // set before shaken is closed
	a.link.wg.Go(func() {
		defer close(shaken)
		c, err := a.shake()
		if err != nil {
			failure = err
			return
		}
		shaken <- c
	})
	why := errors.New("the link is closed")
	select {
	case c, ok := <-shaken:
		if !ok {
			return nil, fmt.Errorf("accept: %w: %w", failure, paddock.Unavailable)
		}
		return c, nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-a.link.closing:
	}
	a.link.wg.Go(func() {
		if c, ok := <-shaken; ok {
			c.Reset()
		}
	})
	return nil, fmt.Errorf("accept: %w: %w", why, paddock.Canceled)
}

// shake waits for the sandbox's part of the handshake, at most as long as answers to its
// SYN are repeated.
func (a *Attempt) shake() (*conn, error) {
	var queue waiter.Queue
	ep, err := a.request.CreateEndpoint(&queue)
	a.request.Complete(err != nil)
	if err != nil {
		a.link.conns.Add(-1)
		return nil, errors.New(err.String())
	}
	room := room(a.link.conns.Load())
	ep.SocketOptions().SetReceiveBufferSize(room, true)
	ep.SocketOptions().SetSendBufferSize(room, true)
	return &conn{TCPConn: gonet.NewTCPConn(&queue, ep), link: a.link, endpoint: ep}, nil
}

// Buffer sizes of a connection. A few connections have large buffers. The sum for many is
// bounded.
const (
	window  = 1 << 22
	narrow  = 32 << 10
	allConn = 32 << 20
)

// room returns the buffer size for each direction of the n-th connection.
func room(n int64) int64 { return min(max(allConn/max(n, 1), narrow), window) }

// A conn is a connection that counts until both sides have ended it, not only until Close.
type conn struct {
	*gonet.TCPConn

	link     *Link
	endpoint tcpip.Endpoint
	once     sync.Once
}

func (c *conn) Close() error {
	c.once.Do(func() {
		_ = c.TCPConn.Close() // never fails
		c.link.bury(c.endpoint)
	})
	return nil
}

func (c *conn) Reset() {
	c.endpoint.Abort()
	_ = c.Close() // never fails
}

// A grave is an endpoint that is closed on our side.
type grave struct {
	endpoint tcpip.Endpoint
	until    time.Time
}

// bury releases the endpoint's place after the sandbox's last packet, or after the linger
// time.
func (l *Link) bury(e tcpip.Endpoint) {
	if over(e) {
		l.conns.Add(-1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // Close aborts it
	}
	l.buried = append(l.buried, grave{e, time.Now().Add(linger)})
	if len(l.buried) == 1 {
		l.wg.Go(l.sweep)
	}
}

func over(e tcpip.Endpoint) bool {
	switch tcp.EndpointState(e.State()) {
	case tcp.StateClose, tcp.StateError, tcp.StateTimeWait:
		return true
	}
	return false
}

// sweep runs as long as there are graves.
func (l *Link) sweep() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.closing:
			return
		case now := <-tick.C:
			if !l.sweepOnce(now) {
				return
			}
		}
	}
}

func (l *Link) sweepOnce(now time.Time) (more bool) {
	l.mu.Lock()
	var late []tcpip.Endpoint
	l.buried = slices.DeleteFunc(l.buried, func(g grave) bool {
		gone := over(g.endpoint)
		if !gone && now.After(g.until) {
			gone = true
			late = append(late, g.endpoint)
		}
		if gone {
			l.conns.Add(-1)
		}
		return gone
	})
	more = len(l.buried) > 0
	l.mu.Unlock()
	for _, e := range late {
		e.Abort()
	}
	return more
}

func place(a tcpip.Address, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return netip.AddrPortFrom(addr, port)
}
