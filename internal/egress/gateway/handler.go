package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// Idle times of the gateway's own services.
const (
	resolverIdle = 2 * time.Second  // DNS by datagrams
	streamIdle   = 30 * time.Second // DNS by a connection
)

// A handler implements netstack.Handler.
type handler struct{ g *Gateway }

// TCP decides on a connection and carries it.
func (h handler) TCP(a *netstack.Attempt) {
	g := h.g
	if a.To.Addr() == netstack.Gateway4() || a.To.Addr() == netstack.Gateway6() {
		h.own(a)
		return
	}
	c, err := g.connect(g.ctx, decide.Flow{Host: decide.HostOf(a.To.Addr()), Port: a.To.Port()})
	if err != nil {
		return // this refuses it; the decision was reported
	}
	conn, err := a.Accept(c.ctx)
	if err != nil {
		c.drop()
		return
	}
	_ = c.carry(conn) // the outcome was reported
}

// own serves the gateway's own services.
func (h handler) own(a *netstack.Attempt) {
	g := h.g
	serve := map[uint16]func(context.Context, netstack.Conn){
		netstack.DNSPort: g.serveDNS, netstack.ProxyPort: g.serveProxy, netstack.SOCKSPort: g.serveSOCKS,
	}[a.To.Port()]
	if serve == nil {
		g.teller.tell(nowhere(gatewayclient.KindTCP, a.To))
		return
	}
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	remove, err := g.live.add(&entry{holds: func(*state) bool { return true }, cut: cancel})
	if err != nil {
		return // a malformed request is not reported
	}
	defer remove()
	conn, err := a.Accept(ctx)
	if err != nil {
		return // the guest has gone
	}
	defer context.AfterFunc(ctx, conn.Reset)()
	defer conn.Close()
	serve(ctx, conn)
}

// nowhere returns the event for a connection to a missing service.
func nowhere(kind string, to netip.AddrPort) gatewayclient.Event {
	return gatewayclient.Event{
		Kind: kind, Host: to.Addr().String(), Port: to.Port(), Rule: -1, Verdict: gatewayclient.VerdictDeny,
		Reason: fmt.Sprintf("the gateway has nothing at port %d", to.Port()),
	}
}

func (g *Gateway) serveDNS(_ context.Context, c netstack.Conn) {
	_ = g.dns.ServeStream(idleConn{c, streamIdle}, g.record) // an invalid query ends the stream
}

// An idleConn ends when nothing arrives for some time.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c idleConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (g *Gateway) serveProxy(ctx context.Context, c netstack.Conn) {
	_ = g.proxy.ServeProxy(ctx, c, g.tunnel) // refusals were reported
}

// tunnel decides on CONNECT.
func (g *Gateway) tunnel(ctx context.Context, f decide.Flow) (func(net.Conn) error, error) {
	c, err := g.connect(ctx, f)
	var r *refusal
	if errors.As(err, &r) {
		return nil, &inspect.Refusal{Verdict: r.Verdict}
	}
	var address *decide.AddressError
	if errors.As(err, &address) {
		return nil, &inspect.Refusal{Verdict: decide.Verdict{Rule: -1, Reason: address.Reason(), Hint: address.Hint(f)}}
	}
	if err != nil && paddock.KindOf(err) == paddock.Denied {
		return nil, &inspect.Refusal{Verdict: decide.Verdict{Rule: -1, Reason: err.Error()}}
	}
	if err != nil {
		return nil, err
	}
	return c.carry, nil
}

// mayLookUp judges a lookup of a name. It also allows names that a person may allow,
// because a lookup discloses nothing.
func (g *Gateway) mayLookUp(h decide.Host) decide.Verdict {
	v := g.now.Load().rules.Lookup(h)
	if !v.Allow && v.Rule < 0 && g.asker.can() && !h.Loopback() {
		return decide.Verdict{Allow: true, Rule: -1, Reason: "a person is asked when it is connected to"}
	}
	return v
}

// record reports a query.
func (g *Gateway) record(a netstack.DNSExchange) {
	e := gatewayclient.Event{Kind: gatewayclient.KindDNS, Host: a.Host.String(), Rule: a.Verdict.Rule, Verdict: gatewayclient.VerdictAllow, Reason: a.Verdict.Reason, Hint: a.Verdict.Hint}
	if !a.Host.IsValid() {
		e.Host = quoted(a.Name)
	}
	if !a.Verdict.Allow {
		e.Verdict = gatewayclient.VerdictDeny
		if e.Reason == "" {
			e.Reason = a.Code
		}
	}
	g.teller.tell(e)
}

// quoted returns the guest's text shortened and quoted.
func quoted(s string) string {
	if len(s) > 255 {
		s = s[:255]
	}
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return strconv.Quote(s)
		}
	}
	return s
}

// UDP decides on datagrams and carries them.
func (h handler) UDP(d *netstack.Datagrams) {
	g := h.g
	if d.To.Addr() == netstack.Gateway4() || d.To.Addr() == netstack.Gateway6() {
		if d.To.Port() != netstack.DNSPort {
			g.teller.tell(nowhere(gatewayclient.KindUDP, d.To))
			return
		}
		if conn, err := d.Accept(); err == nil {
			defer conn.Close()
			defer context.AfterFunc(g.ctx, func() { _ = conn.Close() })()
			g.resolve(conn)
		}
		return
	}
	c, err := g.connect(g.ctx, decide.Flow{Host: decide.HostOf(d.To.Addr()), Port: d.To.Port(), UDP: true})
	if err != nil {
		return // this refuses it; the decision was reported
	}
	conn, err := d.Accept()
	if err != nil {
		c.drop()
		return
	}
	c.datagrams(conn)
}

// resolve answers the DNS queries of one flow.
func (g *Gateway) resolve(c netstack.Conn) {
	query := make([]byte, 4096)
	for {
		_ = c.SetReadDeadline(time.Now().Add(resolverIdle))
		n, err := c.Read(query)
		if err != nil {
			return
		}
		if !g.lookup.take(time.Now()) {
			g.teller.tell(gatewayclient.Event{Kind: gatewayclient.KindDNS, Rule: -1, Verdict: gatewayclient.VerdictDeny, Reason: fmt.Sprintf("more than %d questions in a second are not answered", lookupRate)})
			continue
		}
		answer, asked := g.dns.Answer(query[:n], true)
		if answer == nil {
			continue
		}
		g.record(asked)
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
