package gateway

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// A state is the rules in force at one time. It is immutable. A change replaces it.
type state struct {
	rules   *decide.Rules
	secrets *secret.Store
	meters  []*meter // by the index of the rule; nil without limits
	keys    []string // identifies each rule
}

// compile makes a state from a policy and the permanent permissions of a person. Rules that
// existed before keep their used amounts.
func (g *Gateway) compile(p paddock.NetworkPolicy, always []paddock.NetworkRule) (*state, error) {
	if len(always) > 0 {
		p.Rules = append(append([]paddock.NetworkRule(nil), p.Rules...), always...)
	}
	rules, err := decide.Compile(p)
	if err != nil {
		return nil, err
	}
	for _, pattern := range rules.Inspected() {
		if g.o.Authority == nil || !g.o.Authority.Covers(pattern) {
			return nil, fmt.Errorf("%s: inspecting its TLS needs a certificate authority, and the sandbox was made without one for it: %w", pattern, paddock.Unsupported)
		}
	}
	s := &state{rules: rules, meters: make([]*meter, len(p.Rules)), keys: make([]string, len(p.Rules))}
	if s.secrets, err = secret.New(g.seed, p.Secrets); err != nil {
		return nil, err
	}
	kept := map[string][]*meter{}
	if was := g.now.Load(); was != nil {
		for i, m := range was.meters {
			if m != nil {
				kept[was.keys[i]] = append(kept[was.keys[i]], m)
			}
		}
	}
	for i, r := range p.Rules {
		if r.Limits == nil {
			continue
		}
		limits := *r.Limits
		r.Limits = nil
		key, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("rules[%d]: %w", i, err)
		}
		s.keys[i] = string(key)
		if same := kept[s.keys[i]]; len(same) > 0 {
			s.meters[i], kept[s.keys[i]] = same[0], same[1:]
			same[0].set(i, limits)
			continue
		}
		s.meters[i] = newMeter(i, limits)
	}
	return s, nil
}

// meter returns the meter of a rule, or nil.
func (s *state) meter(i int) *meter {
	if i < 0 || i >= len(s.meters) {
		return nil
	}
	return s.meters[i]
}

// carries reports whether a connection with rule r and meter m may continue under rule i: with the
// same proxy, and with a meter if rule i has limits.
func (s *state) carries(i int, r paddock.NetworkRule, m *meter) bool {
	return (m != nil || s.meter(i) == nil) && s.rules.At(i).Proxy == r.Proxy
}

// lists returns a function that reports whether a rule lists an address for a flow.
func (s *state) lists(f decide.Flow) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return s.rules.Lists(f, a) }
}

// reaches reports whether an address may be dialled for a flow.
func (s *state) reaches(f decide.Flow, a netip.Addr) bool {
	if f.Host.Loopback() {
		return slices.Contains(decide.LoopbackAddresses(), a) && s.rules.Dials(f, a).Allow
	}
	return decide.CheckAddress(a, s.lists(f)) == nil && s.rules.Dials(f, a).Allow
}
