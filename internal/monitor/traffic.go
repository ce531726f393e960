package monitor

import (
	"context"
	"math"
	"slices"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// use notes that a step tries to reach a host. The caller holds m.mu.
func (m *Monitor) use(p *present, host string, port uint16, refused bool) {
	g := &p.step.Guest
	for i := range g.Hosts {
		if h := &g.Hosts[i]; h.Host == host && h.Port == port {
			h.Refused = h.Refused && refused
			return
		}
	}
	n := HostUsed{Host: audit.Text(host, maxText), Port: port, New: !m.reached[host], Refused: refused}
	if len(g.Hosts) < maxHosts {
		g.Hosts = append(g.Hosts, n)
		return
	}
	g.Cut = true
	if i := slices.IndexFunc(g.Hosts, func(h HostUsed) bool { return h.Refused }); i >= 0 && !refused {
		g.Hosts[i] = n // which the sandbox could fill the list with
	}
}

// carry adds bytes that went to a host, whatever is listed. It returns the use of the host if so much was sent that it is to
// be judged. Hosts beyond a bound are counted together, and judged again and again. The caller holds m.mu.
func (m *Monitor) carry(p *present, w Flow) *HostUsed {
	if w.Refused && w.Sent <= 0 {
		return nil
	}
	h := p.sent[w.Host]
	if h == nil && len(p.sent) < maxSent {
		h = &HostUsed{Host: audit.Text(w.Host, maxText), Port: w.Port, New: !m.reached[w.Host], Refused: w.Refused}
		p.sent[w.Host] = h
	}
	if h != nil {
		before := h.Sent
		h.Sent, h.Refused = plus(h.Sent, w.Sent), h.Refused && w.Refused
		if !h.New || before >= muchSent || h.Sent < muchSent {
			return nil
		}
		used := *h
		return &used
	}
	if m.reached[w.Host] {
		return nil
	}
	p.others = HostUsed{Host: audit.Text(w.Host, maxText), Port: w.Port, New: true, Sent: plus(p.others.Sent, w.Sent)}
	if p.others.Sent-p.passed < muchSent {
		return nil
	}
	p.passed = p.others.Sent
	used := p.others
	return &used
}

// A Flow is what the gateway tells of a connection or request that it carried or refused.
type Flow struct {
	Host           string
	Port           uint16
	Refused        bool
	Sent, Received int64
	Secrets        []string
}

// Flow notes traffic. If much was sent to a new host, it returns what judges that.
func (m *Monitor) Flow(w Flow) (judge func(context.Context) Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.current()
	m.use(p, w.Host, w.Port, w.Refused)
	used := m.carry(p, w)
	if n := p.step.Network; n != nil {
		n.Sent, n.Received = plus(n.Sent, w.Sent), plus(n.Received, w.Received)
		if w.Refused {
			n.Refused++
		}
	}
	for _, s := range w.Secrets[:min(len(w.Secrets), maxNames)] {
		if !slices.Contains(p.step.Secrets, s) && len(p.step.Secrets) < maxNames {
			p.step.Secrets = append(p.step.Secrets, s)
		}
	}
	g := p.step.Guest.Hosts
	if i := slices.IndexFunc(g, func(h HostUsed) bool { return h.Host == w.Host && h.Port == w.Port }); i >= 0 {
		g[i].Sent = plus(g[i].Sent, w.Sent)
	}
	if used == nil {
		return nil
	}
	f := m.facts(m.input(Effect), p.text)
	p.effects++
	f.flow, f.beyond = used, p.effects > maxEffects
	return func(ctx context.Context) Decision { return m.decide(ctx, f, "") }
}

func plus(a, b int64) int64 {
	if s := max(a, 0) + max(b, 0); s >= 0 {
		return s
	}
	return math.MaxInt64
}
