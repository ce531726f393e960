package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// A backend implements inspect.Backend.
type backend struct{ g *Gateway }

type connectionKey struct{}

func withConnection(ctx context.Context, c *connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// carrying returns the inspected connection, or nil for a connection to the HTTP proxy.
func carrying(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// A judged is one request, from its decision to its end.
type judged struct {
	g    *Gateway
	flow decide.Flow
	q    decide.Request
	cut  chan struct{}
	once sync.Once

	mu      sync.Mutex          // held during the decision
	granted bool                // guarded by mu
	asking  bool                // guarded by mu
	rule    paddock.NetworkRule // guarded by mu; the rule that allows it
	meter   *meter              // guarded by mu
	allowed bool                // guarded by mu
}

// Request decides about one request.
func (b backend) Request(ctx context.Context, f decide.Flow, q decide.Request) inspect.Decision {
	g := b.g
	j := &judged{g: g, q: q, cut: make(chan struct{})}
	var remove func()
	var err error
	if j.flow, err = g.named(f); err == nil {
		remove, err = g.live.add(&entry{holds: j.holds, cut: func() { j.once.Do(func() { close(j.cut) }) }})
	}
	if err != nil {
		v := decide.Verdict{Rule: -1, Reason: err.Error()}
		return inspect.Decision{Verdict: v, Done: g.told(f, q, v, func() {})}
	}
	f = j.flow
	c := carrying(ctx)
	v, s := j.decide(c != nil && c.wasGranted())
	if j.asking {
		granted, reason := g.asker.ask(ctx, f)
		if v, s = j.decide(granted); !v.Allow && v.Rule < 0 && reason != "" {
			v.Reason = reason
		}
	}
	if v.Allow && s.rules.At(v.Rule).Answer == nil {
		if reason := g.judge.flow(ctx, f, v.Rule >= 0); reason != "" {
			v = decide.Verdict{Rule: v.Rule, Reason: reason}
		}
	}
	d := inspect.Decision{Verdict: v, Cut: j.cut}
	if v.Allow {
		d.Rule = s.rules.At(v.Rule)
		if m := s.meter(v.Rule); m != nil {
			d.Meter = m
			if err := m.request(); err != nil {
				d.Verdict = decide.Verdict{Rule: v.Rule, Reason: err.Error()}
			}
		}
	}
	d.Done = g.told(f, q, d.Verdict, remove)
	return d
}

// told returns a function that reports the outcome of a request.
func (g *Gateway) told(f decide.Flow, q decide.Request, v decide.Verdict, remove func()) func(inspect.Outcome) {
	return func(o inspect.Outcome) {
		remove()
		e := gatewayclient.Event{
			Kind: gatewayclient.KindHTTP, Host: f.Host.String(), Port: f.Port, Method: q.Method, Path: q.Path, Status: o.Status, Rule: v.Rule,
			Verdict: gatewayclient.VerdictDeny, Reason: v.Reason, Hint: v.Hint, Sent: o.Sent, Received: o.Received, Secrets: o.Secrets,
		}
		if v.Allow {
			e.Verdict = gatewayclient.VerdictAllow
			var failure *inspect.Failure
			switch {
			case errors.As(o.Err, &failure):
				e.Verdict, e.Rule, e.Reason, e.Hint = gatewayclient.VerdictDeny, failure.Rule, failure.Reason, failure.Hint
			case o.Err != nil:
				e.Reason = o.Err.Error()
			}
		}
		g.teller.tell(e)
	}
}

// decide judges by the present rules. A later change of the rules judges the result again.
func (j *judged) decide(granted bool) (decide.Verdict, *state) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.g.now.Load()
	v := s.rules.Request(j.flow, j.q)
	j.asking = false
	j.allowed, j.rule, j.meter = v.Allow, s.rules.At(v.Rule), s.meter(v.Rule)
	if v.Allow || v.Rule >= 0 || !unknown(s, j.flow) || j.flow.Host.Loopback() {
		return v, s
	}
	if granted {
		j.granted = true
		return decide.Verdict{Allow: true, Rule: -1, Reason: "a person allowed it"}, s
	}
	j.asking = j.g.asker.can()
	return v, s
}

// unknown reports whether no rule applies to a flow, whatever its requests.
func unknown(s *state, f decide.Flow) bool {
	v := s.rules.Flow(f)
	return !v.Allow && v.Rule < 0
}

func (j *judged) holds(s *state) bool {
	v := s.rules.Request(j.flow, j.q)
	j.mu.Lock()
	defer j.mu.Unlock()
	if v.Allow {
		return !j.allowed || s.carries(v.Rule, j.rule, j.meter)
	}
	return v.Rule < 0 && unknown(s, j.flow) && (j.granted || j.asking)
}

func (c *connection) wasGranted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.granted
}

// Dial connects to the destination of a request. It first uses the connection that was
// dialled before inspection.
func (b backend) Dial(ctx context.Context, f decide.Flow, via string) (net.Conn, error) {
	f, err := b.g.named(f)
	if err != nil {
		return nil, err
	}
	if c := carrying(ctx); c != nil && c.flow == f && c.rule.Proxy == via {
		if up := c.take(); up != nil {
			if via != "" {
				return up, nil
			}
			return b.g.watch(f, up)
		}
	}
	conn, err := b.g.dial(ctx, f, via)
	var denied *refusal
	if errors.As(err, &denied) {
		err = &inspect.Refusal{Verdict: denied.Verdict}
	}
	if err != nil || via != "" {
		return conn, err
	}
	return b.g.watch(f, conn)
}

// A watched connection is cut when the rules no longer allow its address.
type watched struct {
	net.Conn

	remove func()
}

// watch registers a connection for changes of the rules. The requests that it carries are
// judged only by name.
func (g *Gateway) watch(f decide.Flow, conn net.Conn) (net.Conn, error) {
	a := addressOf(conn)
	holds := func(s *state) bool { return s.reaches(f, a) }
	remove, err := g.reached.add(&entry{holds: holds, cut: func() { reset(conn) }})
	if err == nil && !holds(g.now.Load()) {
		remove()
		err = fmt.Errorf("connect to %s: %w: %w", f.Host, errRules, paddock.Denied)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &watched{conn, remove}, nil
}

// Close closes and unregisters the connection.
func (w *watched) Close() error {
	w.remove()
	return w.Conn.Close()
}

// CloseWrite closes the direction to the destination.
func (w *watched) CloseWrite() error { return closeWrite(w.Conn) }

// Secrets returns the secrets bound to a destination.
func (b backend) Secrets(f decide.Flow) *secret.Set {
	s := b.g.now.Load()
	bound := s.rules.SecretsFor(f.Host, f.Port)
	if len(bound) == 0 {
		return nil
	}
	return s.secrets.Bound(bound)
}

// Use judges the use of secrets.
func (b backend) Use(ctx context.Context, f decide.Flow, names []string) error {
	if b.g.judge == nil {
		return nil
	}
	f, err := b.g.named(f)
	if err != nil {
		return err
	}
	for _, name := range names {
		if reason := b.g.judge.secret(ctx, f, name); reason != "" {
			return &inspect.Refusal{Verdict: decide.Verdict{Rule: -1, Reason: reason}}
		}
	}
	return nil
}

// Failed reports a connection without a valid request.
func (b backend) Failed(f decide.Flow, reason string) {
	v := b.g.now.Load().rules.Flow(f)
	b.g.teller.tell(gatewayclient.Event{Kind: gatewayclient.KindTCP, Host: f.Host.String(), Port: f.Port, Rule: v.Rule, Verdict: gatewayclient.VerdictDeny, Reason: reason})
}
