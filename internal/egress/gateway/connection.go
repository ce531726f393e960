package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// Why connections are cut.
var (
	errRules   = errors.New("cut off: the rules do not allow it any more")
	errTooFast = errors.New("more than the rate of its rule; it was dropped")
)

// A connection is a connection of the guest, from its decision to its end.
type connection struct {
	g      *Gateway
	flow   decide.Flow
	began  time.Time
	ctx    context.Context // ends with the connection, or cuts it
	cancel context.CancelCauseFunc
	remove func() // from the gateway's list
	up     net.Conn
	sent   atomic.Int64
	came   atomic.Int64

	mu      sync.Mutex          // held during the decision
	verdict decide.Verdict      // guarded by mu until admit returns
	asking  bool                // guarded by mu; a person is being asked
	granted bool                // guarded by mu; a person allowed it this time
	spliced bool                // guarded by mu; it is not inspected
	rule    paddock.NetworkRule // guarded by mu until admit returns
	meter   *meter              // guarded by mu until admit returns
	dialled netip.Addr          // guarded by mu; address of a splice; invalid before the dial, and for a proxy
}

// Connect judges a connection to a host by the rules, as if it had come over the link, and dials it. The caller must
// call carry with the guest's side of the connection; carry closes it at the end. A connection that is not allowed is
// Denied.
func (g *Gateway) Connect(ctx context.Context, host string, port uint16) (carry func(net.Conn) error, err error) {
	h, err := decide.ParseHost(host)
	if err != nil {
		g.teller.tell(gatewayclient.Event{Kind: gatewayclient.KindTCP, Host: quoted(host), Port: port, Rule: -1, Verdict: gatewayclient.VerdictDeny, Reason: err.Error()})
		return nil, err
	}
	c, err := g.connect(ctx, decide.Flow{Host: h, Port: port})
	if err != nil {
		return nil, err
	}
	return c.carry, nil
}

// connect admits a connection, and dials if it is not inspected, so that the destination's
// refusal reaches the guest. Then call carry or drop.
func (g *Gateway) connect(ctx context.Context, f decide.Flow) (*connection, error) {
	c := &connection{g: g, began: time.Now()}
	var err error
	if c.flow, err = g.named(f); err == nil {
		c.ctx, c.cancel = context.WithCancelCause(g.ctx)
		c.remove, err = g.live.add(&entry{holds: c.holds, cut: func() { c.cancel(errRules) }})
	}
	if err != nil {
		g.teller.tell(gatewayclient.Event{Kind: kindOf(f), Host: f.Host.String(), Port: f.Port, Rule: -1, Verdict: gatewayclient.VerdictDeny, Reason: err.Error()})
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	err = c.admit()
	if err == nil && c.spliced {
		c.up, err = g.dial(c.ctx, c.flow, c.rule.Proxy)
		if err == nil && !c.arrived() {
			err = fmt.Errorf("connect to %s: %w: %w", f.Host, errRules, paddock.Denied)
			_ = c.up.Close()
		}
	}
	if err == nil && (!stop() || c.ctx.Err() != nil) {
		err = fmt.Errorf("connect to %s: %w: %w", f.Host, context.Cause(c.ctx), paddock.Canceled)
	}
	if err != nil {
		stop()
		c.failed(err)
		return nil, err
	}
	return c, nil
}

func kindOf(f decide.Flow) string {
	if f.UDP {
		return gatewayclient.KindUDP
	}
	return gatewayclient.KindTCP
}

// named replaces a synthetic address by the name that it stands for.
func (g *Gateway) named(f decide.Flow) (decide.Flow, error) {
	addr, ok := f.Host.Addr()
	if !ok || !netstack.Synthetic(addr) {
		return f, nil
	}
	h, ok := g.table.Lookup(addr)
	if !ok {
		return f, fmt.Errorf("%s stands for no name: %w", addr, paddock.Denied)
	}
	f.Host = h
	return f, nil
}

// admit decides, and asks a person if no rule does.
func (c *connection) admit() error {
	v := c.decide(false)
	if c.asking {
		granted, reason := c.g.asker.ask(c.ctx, c.flow)
		if v = c.decide(granted); reason != "" && !v.Allow && v.Rule < 0 {
			v.Reason = reason
		}
	}
	if !v.Allow {
		return &refusal{c.flow, v}
	}
	if reason := c.g.judge.flow(c.ctx, c.flow, v.Rule >= 0); reason != "" {
		return &refusal{c.flow, decide.Verdict{Rule: v.Rule, Reason: reason}}
	}
	if c.spliced && c.meter != nil {
		if err := c.meter.request(); err != nil {
			return &refusal{c.flow, decide.Verdict{Rule: v.Rule, Reason: err.Error()}}
		}
	}
	return nil
}

// decide judges by the present rules. A later change of the rules judges the result again.
func (c *connection) decide(granted bool) decide.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.g.now.Load()
	v := s.rules.Flow(c.flow)
	c.asking = false
	if !v.Allow && v.Rule < 0 {
		switch {
		case granted:
			c.granted = true
			v = decide.Verdict{Allow: true, Rule: -1, Reason: "a person allowed it"}
		case c.askable(s):
			c.asking = true
		}
	}
	c.verdict, c.spliced, c.rule, c.meter = v, v.Allow && !v.Look, s.rules.At(v.Rule), s.meter(v.Rule)
	return v
}

// askable reports whether to ask a person. It is no use for an address that needs a rule
// that lists it, nor for this machine's loopback, which a rule has to name.
func (c *connection) askable(s *state) bool {
	addr, ok := c.flow.Host.Addr()
	return c.g.asker.can() && !c.flow.Host.Loopback() && (!ok || decide.CheckAddress(addr, s.lists(c.flow)) == nil)
}

// arrived notes the dialled address, and reports whether the present rules allow it. They
// may have changed since the dial.
func (c *connection) arrived() bool {
	if c.rule.Proxy == "" {
		c.mu.Lock()
		c.dialled = addressOf(c.up)
		c.mu.Unlock()
	}
	return c.holds(c.g.now.Load())
}

// addressOf returns the remote address.
func addressOf(c net.Conn) netip.Addr {
	to, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return to.Addr().Unmap()
}

// holds reports whether other rules still allow the connection in its present form.
func (c *connection) holds(s *state) bool {
	v := s.rules.Flow(c.flow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialled.IsValid() && !s.reaches(c.flow, c.dialled) {
		return false
	}
	if !v.Allow {
		return v.Rule < 0 && (c.granted || c.asking)
	}
	return !c.spliced || !v.Look && s.carries(v.Rule, c.rule, c.meter)
}

// dial dials an allowed destination, when it is its turn.
func (g *Gateway) dial(ctx context.Context, f decide.Flow, proxy string) (net.Conn, error) {
	if err := g.pace.Wait(ctx); err != nil {
		return nil, fmt.Errorf("connect to %s: the sandbox makes more than %d connections a second: %w: %w", f.Host, dialRate, err, paddock.Exhausted)
	}
	select {
	case g.dials <- struct{}{}:
		defer func() { <-g.dials }()
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w: %w", f.Host, context.Cause(ctx), paddock.Canceled)
	}
	now := g.now.Load()
	t := netstack.Target{
		Host: f.Host, Port: f.Port, UDP: f.UDP,
		Lists: now.lists(f),
		Denies: func(a netip.Addr) error {
			if v := now.rules.Dials(f, a); !v.Allow {
				return &refusal{flow: f, Verdict: v}
			}
			return nil
		},
	}
	if proxy != "" {
		via, err := url.Parse(proxy)
		if err != nil {
			return nil, fmt.Errorf("the upstream proxy is no URL: %w", paddock.Invalid)
		}
		t.Via = via
	}
	return g.count(g.o.Dialer.Dial(ctx, t))
}

// A refusal is a verdict as an error.
type refusal struct {
	flow decide.Flow
	decide.Verdict
}

func (r *refusal) Error() string {
	s := fmt.Sprintf("connect to %s: %s: %v", gatewayclient.Event{Host: r.flow.Host.String(), Port: r.flow.Port}.Target(), r.Reason, paddock.Denied)
	if r.Hint != "" {
		s += " (to allow it: " + r.Hint + ")"
	}
	return s
}

func (r *refusal) Unwrap() error { return paddock.Denied }

// failed ends a connection that could not be made, and reports it.
func (c *connection) failed(err error) {
	e := c.event()
	e.Reason = err.Error()
	var r *refusal
	var address *decide.AddressError
	switch {
	case errors.As(err, &r):
		e.Verdict, e.Reason, e.Hint, e.Rule = gatewayclient.VerdictDeny, r.Reason, r.Hint, r.Rule
	case errors.As(err, &address):
		e.Verdict, e.Reason, e.Hint = gatewayclient.VerdictDeny, address.Reason(), address.Hint(c.flow)
	case errors.Is(context.Cause(c.ctx), errRules):
		e.Verdict, e.Reason = gatewayclient.VerdictDeny, errRules.Error()
	case paddock.KindOf(err) == paddock.Denied:
		e.Verdict = gatewayclient.VerdictDeny
	}
	c.end()
	c.g.teller.tell(e)
}

// drop ends a connection whose guest has gone before carry.
func (c *connection) drop() {
	if c.up != nil {
		_ = c.up.Close()
	}
	c.end()
}

func (c *connection) end() {
	c.remove()
	c.cancel(nil)
}

func (c *connection) event() gatewayclient.Event {
	e := gatewayclient.Event{
		Kind: kindOf(c.flow), Host: c.flow.Host.String(), Port: c.flow.Port, Rule: c.verdict.Rule, Verdict: gatewayclient.VerdictAllow, Reason: c.verdict.Reason,
		Sent: c.sent.Load(), Received: c.came.Load(), Duration: time.Since(c.began),
	}
	if c.up != nil {
		e.Address = c.up.RemoteAddr().String()
	}
	return e
}
