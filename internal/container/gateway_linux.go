package container

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/gate"
	"github.com/paddock-sandbox/paddock/internal/egress/report"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// A gateway is the way out of a sandbox, as the owner of its boxes has it. Each
// box has a process of its own for it; what names and placeholders mean is the
// same from one to the next.
type gateway struct {
	exe  *os.File // its program
	sink audit.Sink
	ask  func(context.Context, report.Question) report.Answer

	mu      sync.Mutex
	config  gate.Config // guarded by mu: of the next process, and of the present one but for names
	process *gate.Gate  // guarded by mu; nil while no box runs
	ended   string      // guarded by mu: why there is no way out though a box runs
	weak    string      // guarded by mu: what the process lacks of its own walls
	refused refusals    // guarded by mu
}

// seedSize is how much chance is in the placeholders of one sandbox, in bytes.
const seedSize = 32

// newGateway makes the way out for a spec. What memory of a saved box relies on
// stays as it was.
func (d *Driver) newGateway(spec *paddock.Spec, id identity, from *checkpoint) (*gateway, error) {
	rules, err := rule.New(spec.Policy.Network)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	exe, err := d.gateway()
	if err != nil {
		return nil, fmt.Errorf("the gateway's program: %w", err)
	}
	g := &gateway{exe: exe, sink: d.audit, config: gate.Config{
		Sandbox: string(spec.ID), Policy: spec.Policy.Network, Seed: make([]byte, seedSize), Roots: d.roots, Hosts: d.hosts,
	}}
	if spec.Ephemeral {
		g.ask = d.ask
	}
	if id.root { // nobody else's number, and not that of the box
		g.config.UID = id.kuid + gatewayIDs
		g.config.GID = g.config.UID
	}
	_, _ = rand.Read(g.config.Seed) // never fails
	var was *gate.Config
	if from != nil {
		was = from.about.Order.Gateway
	}
	if was != nil {
		g.config.Seed, g.config.Names = was.Seed, was.Names
	}
	g.config.Authority, err = authorityFor(rules, was)
	return g, err
}

// gatewayIDs is how far the number of a gateway is from that of its box's user.
const gatewayIDs = 1 << 24

// authorityFor gives the certificate and the key for what the rules have looked
// into: those of before, if they are for all of it; nothing where that is nothing.
func authorityFor(rules *rule.Rules, was *gate.Config) ([]byte, error) {
	patterns := rules.Inspected()
	if len(patterns) == 0 {
		return nil, nil
	}
	if was != nil && len(was.Authority) > 0 {
		cert, key := parts(was.Authority)
		ca, err := authority.Parse(cert, key)
		if err == nil && !slices.ContainsFunc(patterns, func(p rule.Pattern) bool { return !ca.Covers(p) }) {
			return was.Authority, nil
		}
	}
	ca, err := authority.New(patterns, time.Now())
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	key, err := ca.Key()
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return append(slices.Clone(ca.PEM()), key...), nil
}

// parts tells the certificate of an authority from its key.
func parts(both []byte) (cert, key []byte) {
	block, rest := pem.Decode(both)
	if block == nil {
		return nil, nil
	}
	return pem.EncodeToMemory(block), rest
}

// trusted is the certificate that the box is to trust; nil is none.
func (g *gateway) trusted() []byte {
	cert, _ := parts(g.config.Authority)
	return cert
}

// placeholders are the variables that stand for secrets.
func (g *gateway) placeholders() (map[string]string, error) {
	if len(g.config.Policy.Secrets) == 0 {
		return nil, nil
	}
	store, err := secret.New(g.config.Seed, g.config.Policy.Secrets)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return store.Environment(), nil
}

// start starts a process, and does not wait for it.
func (g *gateway) start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := gate.Start(ctx, g.exe, g.config, gate.Owner{Event: g.event, Ask: g.ask, Ended: g.lost})
	if err != nil {
		return err
	}
	g.process, g.ended = p, ""
	return nil
}

// ready waits until the process serves.
func (g *gateway) ready(ctx context.Context) error {
	r, err := g.now().Ready(ctx)
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	weak := ""
	for _, f := range r.Findings {
		if f.Strength != paddock.Full {
			weak += fmt.Sprintf("; of the walls around that process %s is %s: %s", f.Control, f.Strength, f.Cause)
		}
	}
	g.mu.Lock()
	g.weak = weak
	g.mu.Unlock()
	return nil
}

// link hands the process the host's end of the box's link.
func (g *gateway) link(f *os.File) error {
	p := g.now()
	if p == nil {
		return fmt.Errorf("give the gateway its link: %w", paddock.Unavailable)
	}
	return p.Link(f)
}

// now gives the process; nil while there is none.
func (g *gateway) now() *gate.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.process
}

// stop ends the process. Twice is fine.
func (g *gateway) stop() {
	if p := g.now(); p != nil {
		_ = p.Close()
	}
	g.mu.Lock()
	g.process = nil
	g.mu.Unlock()
}

// remember keeps which names have addresses, for the next process.
func (g *gateway) remember(ctx context.Context) error {
	p := g.now()
	if p == nil {
		return nil
	}
	names, err := p.Names(ctx)
	if errors.Is(err, paddock.Unavailable) { // it ended; what it had said before is all there is
		return nil
	}
	if err != nil {
		return fmt.Errorf("the gateway's names: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Names = names
	return nil
}

// saved is what is kept of it with a box: all of it where that is to go on, and
// no rules or secrets where others may begin with it.
func (g *gateway) saved(all bool) *gate.Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.config
	if !all {
		c.Policy = paddock.NetworkPolicy{}
	}
	return &c
}

// update changes the rules, and gives what undoes that. The box has its
// variables for good.
func (g *gateway) update(ctx context.Context, p paddock.NetworkPolicy) (undo func(), err error) {
	g.mu.Lock()
	process, before := g.process, g.config.Policy
	g.mu.Unlock()
	for _, s := range p.Secrets {
		if !slices.ContainsFunc(before.Secrets, func(have paddock.Secret) bool { return have.Name == s.Name && have.Value == s.Value }) {
			return nil, fmt.Errorf("secret %s: its placeholder is not in the sandbox, whose variables stay as they are; make another sandbox: %w", s.Name, paddock.Unsupported)
		}
	}
	put := func(ctx context.Context, p paddock.NetworkPolicy) error {
		if process == nil {
			return fmt.Errorf("the sandbox is paused: %w", paddock.Conflict)
		}
		if err := process.Update(ctx, p); err != nil {
			return err
		}
		g.mu.Lock()
		g.config.Policy = p
		g.mu.Unlock()
		return nil
	}
	if err := put(ctx, p); err != nil {
		return nil, fmt.Errorf("change the network: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		_ = put(ctx, before) // one that ended allows nothing
	}, nil
}

// undoTime bounds how long it takes to put rules back.
const undoTime = 10 * time.Second

// event takes what the process decided.
func (g *gateway) event(e gate.Event) {
	if e.Verdict == report.Deny {
		g.mu.Lock()
		g.refused.add(e.Refusal())
		g.mu.Unlock()
	}
	if g.sink != nil {
		g.sink.Record(audited(e))
	}
}

// audited is an event as it is recorded.
func audited(e gate.Event) audit.Event {
	flow := &audit.Flow{
		Protocol: e.Kind, Host: e.Host, Port: e.Port, Address: e.Address, Method: e.Method, Path: e.Path, Verdict: e.Verdict, Rule: e.Rule,
		Reason: e.Reason, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Secrets: e.Secrets,
	}
	if e.Count > 1 {
		flow.Count = int64(e.Count)
	}
	return audit.Event{Time: e.Time, Sandbox: e.Sandbox, Kind: audit.Network, Network: flow}
}

// lost is told that the process ended by itself. The box goes on without a way
// out.
func (g *gateway) lost(err error) {
	now := time.Now()
	g.mu.Lock()
	g.ended = err.Error()
	g.refused.add(paddock.Refusal{Time: now, What: "network", Target: "*", Rule: "there is no way out any more: " + g.ended, Remedy: "make the sandbox anew", Count: 1})
	g.mu.Unlock()
	if g.sink != nil {
		g.sink.Record(audit.Event{Time: now, Sandbox: g.config.Sandbox, Kind: audit.Network,
			Network: &audit.Flow{Protocol: report.Rules, Host: "*", Verdict: report.Deny, Rule: -1, Reason: err.Error()}})
	}
}

// An egress is what the owner of a sandbox knows of its way out.
type egress struct {
	Refused []paddock.Refusal `json:"refused,omitempty"`
	Ended   string            `json:"ended,omitempty"` // why there is none though a box runs
	Weak    string            `json:"weak,omitempty"`  // what the process lacks of its own walls
}

func (g *gateway) egress() egress {
	g.mu.Lock()
	defer g.mu.Unlock()
	return egress{Refused: g.refused.list(), Ended: g.ended, Weak: g.weak}
}

// finding says what there is of the network now.
func (e egress) finding() paddock.Finding {
	f := paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: listHow + e.Weak}
	if e.Ended != "" {
		f.How = "none any more: " + e.Ended
	}
	return f
}

// listHow is how rules about the network are enforced.
const listHow = "a network stack in a process of its own outside holds the other end of the only link, and decides about every packet by the rules"

// refusals are what a gateway refused, the newest of it.
type refusals struct {
	known map[string]*paddock.Refusal
	order []string
}

func (r *refusals) add(n paddock.Refusal) {
	key := n.What + "\x00" + n.Target + "\x00" + n.Rule
	if have := r.known[key]; have != nil {
		have.Count += n.Count
		have.Time = n.Time
		return
	}
	if len(r.order) >= maxRefusals {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	if r.known == nil {
		r.known = map[string]*paddock.Refusal{}
	}
	r.known[key] = &n
	r.order = append(r.order, key)
}

// listMax bounds the texts of a list, in bytes, so that it fits into a packet.
const listMax = 96 << 10

// list gives the newest, in the order of time.
func (r *refusals) list() []paddock.Refusal {
	var all []paddock.Refusal
	for _, key := range r.order {
		all = append(all, *r.known[key])
	}
	byTime(all)
	room := listMax
	for i := len(all) - 1; i >= 0; i-- {
		const numbers = 100 // and names of the fields
		room -= len(all[i].What) + len(all[i].Target) + len(all[i].Rule) + len(all[i].Remedy) + numbers
		if room < 0 {
			return all[i+1:]
		}
	}
	return all
}

func byTime(list []paddock.Refusal) {
	slices.SortStableFunc(list, func(a, b paddock.Refusal) int { return a.Time.Compare(b.Time) })
}
