package gatewayclient

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret/placeholder"
)

// Options configure a Gateway.
type Options struct {
	Sandbox string
	Policy  paddock.NetworkPolicy

	// User is the user and group ID of the gateway process where the owner is root. Zero picks one at random.
	User int

	// Previous is the configuration of the sandbox whose memory this sandbox starts from. The gateway keeps the names,
	// placeholders and, if it covers the rules, the certificate authority that this memory relies on. It may be nil.
	Previous *Config

	// Ask decides about a connection that no rule covers. Nil denies it.
	Ask func(context.Context, Question) Answer
	// Judge decides about what the rules, or a person, allow: the first connection to each host and port, and the first use
	// of each secret there. It may deny. Nil asks nobody.
	Judge Judge
	// Login keeps tokens outside. It may be nil.
	Login Login
	// Audit records decisions. It may be nil.
	Audit audit.Sink

	// Hosts gives addresses of names that are not to be resolved, and Roots holds certificates in PEM that the gateway
	// trusts besides the system's.
	Hosts map[string][]netip.Addr
	Roots []byte
}

// A Gateway is the network of one sandbox as its owner sees it. It may start several gateway processes, one after the
// other; names and placeholders keep their meaning.
type Gateway struct {
	ask   func(context.Context, Question) Answer
	judge Judge
	login Login

	mu      sync.Mutex
	audit   audit.Sink // guarded by mu
	config  Config     // guarded by mu; for the next gateway, and except for names for the present one
	process *Process   // guarded by mu; nil if none runs
	ended   string     // guarded by mu; why no gateway runs although one should
	weak    string     // guarded by mu; what the gateway's own confinement lacks
	refused refusals   // guarded by mu

	follower audit.Sink // guarded by mu; also gets decisions

	carried paddock.Traffic // guarded by mu; by earlier gateways
}

// seedSize is the number of random bytes for the placeholders of one sandbox.
const seedSize = 32

// New checks the policy and makes a Gateway. It starts no process. An error names the rule.
func New(o Options) (*Gateway, error) {
	rules, err := decide.Compile(o.Policy)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	w := &Gateway{ask: o.Ask, judge: o.Judge, login: o.Login, audit: o.Audit, config: Config{
		Sandbox: o.Sandbox, Policy: o.Policy, Seed: make([]byte, seedSize), Hosts: o.Hosts, Roots: o.Roots, UID: o.User, GID: o.User,
	}}
	_, _ = rand.Read(w.config.Seed) // never fails
	if o.Previous != nil {
		w.config.Seed, w.config.Names = o.Previous.Seed, o.Previous.Names
	}
	w.config.Authority, err = authorityFor(rules, o.Previous)
	return w, err
}

// Restore makes a Gateway from the configuration that Saved returned in another process, and the traffic counted there.
// It asks no person, and records decisions only after Record.
func Restore(c *Config, carried paddock.Traffic) *Gateway {
	return &Gateway{config: *c, carried: carried}
}

// authorityFor returns the certificate and key for the hosts that the rules inspect, or nil
// if there are none. It reuses the former ones if they cover all hosts.
func authorityFor(rules *decide.Rules, was *Config) ([]byte, error) {
	patterns := rules.Inspected()
	if len(patterns) == 0 {
		return nil, nil
	}
	if was != nil && len(was.Authority) > 0 {
		cert, key := splitAuthority(was.Authority)
		ca, err := authority.Parse(cert, key)
		if err == nil && !slices.ContainsFunc(patterns, func(p decide.Pattern) bool { return !ca.Covers(p) }) {
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

// splitAuthority separates the certificate of an authority from its key.
func splitAuthority(both []byte) (cert, key []byte) {
	block, rest := pem.Decode(both)
	if block == nil {
		return nil, nil
	}
	return pem.EncodeToMemory(block), rest
}

// Certificate returns the certificate in PEM that the sandbox must trust, or nothing.
func (w *Gateway) Certificate() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	cert, _ := splitAuthority(w.config.Authority)
	return cert
}

// Environment returns the variables of the sandbox that hold the placeholders of secrets.
func (w *Gateway) Environment() (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.config.Policy.Secrets) == 0 {
		return nil, nil
	}
	secrets := w.config.Policy.Secrets
	list, err := placeholder.New(w.config.Seed, secrets)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	env := make(map[string]string, len(secrets))
	for i, s := range secrets {
		env[s.Name] = list[i]
	}
	return env, nil
}

// Record sets the sink for decisions. It applies at once.
func (w *Gateway) Record(sink audit.Sink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit = sink
}

// JudgeBy sets who decides about what the rules allow. It applies to the next process, so it must be called before Start.
func (w *Gateway) JudgeBy(j Judge) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = j
}

// Follow sets another sink for decisions, which may drop them.
func (w *Gateway) Follow(sink audit.Sink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follower = sink
}

// Start starts a gateway process and does not wait for it. The caller keeps program.
func (w *Gateway) Start(ctx context.Context, program *os.File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := Callbacks{Event: w.event, Ask: w.ask, Login: w.login, Ended: w.lost}
	if w.judge != nil {
		calls.Judge = w.judge.Judge
	}
	g, err := StartProcess(ctx, program, w.config, calls)
	if err != nil {
		return err
	}
	if w.process != nil {
		w.carried = w.carried.Plus(w.process.Traffic())
	}
	w.process, w.ended = g, ""
	return nil
}

// running returns the gateway, if it runs.
func (w *Gateway) running() (*Process, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return nil, fmt.Errorf("the gateway does not run: %w", paddock.Conflict)
	}
	return w.process, nil
}

// Ready waits until the gateway serves.
func (w *Gateway) Ready(ctx context.Context) error {
	g, err := w.running()
	if err != nil {
		return err
	}
	r, err := g.Ready(ctx)
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	weak := ""
	for _, f := range r.Findings {
		if f.Strength != paddock.Full {
			weak += fmt.Sprintf("; of the walls around that process %s is %s: %s", f.Control, f.Strength, f.Cause)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.weak = weak
	return nil
}

// Link passes the host's end of the sandbox's network link to the gateway.
func (w *Gateway) Link(f *os.File) error {
	g, err := w.running()
	if err != nil {
		return err
	}
	return g.Link(f)
}

// Channel returns a file through which another process may dial.
func (w *Gateway) Channel() (*os.File, error) {
	g, err := w.running()
	if err != nil {
		return nil, err
	}
	return g.Channel()
}

// Stop ends the gateway and its connections. A second call does nothing.
func (w *Gateway) Stop() {
	if g, err := w.running(); err == nil {
		_ = g.Close() // the process is killed anyway
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		w.carried = w.carried.Plus(w.process.Traffic())
	}
	w.process = nil
}

// Traffic returns the bytes that all gateway processes of the sandbox carried.
func (w *Gateway) Traffic() paddock.Traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return w.carried
	}
	return w.carried.Plus(w.process.Traffic())
}

// Settle waits, for at most a second, until the gateway has reported the decisions so far.
func (w *Gateway) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if g, err := w.running(); err == nil {
		_, _ = g.Names(ctx) // the answer follows all earlier events
	}
}

// settleTime bounds the time of Settle.
const settleTime = time.Second

// Remember saves the names that have addresses for the next gateway process.
func (w *Gateway) Remember(ctx context.Context) error {
	g, err := w.running()
	if err != nil {
		return nil // no gateway runs, so there is nothing new
	}
	names, err := g.Names(ctx)
	if errors.Is(err, paddock.Unavailable) { // it has ended; the earlier names are all that is known
		return nil
	}
	if err != nil {
		return fmt.Errorf("the gateway's names: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config.Names = names
	return nil
}

// Saved returns the configuration to keep with a sandbox. With all it is complete, including secrets, so that the same
// sandbox can go on. Without all it has no rules and no secrets, because other sandboxes may start from it.
func (w *Gateway) Saved(all bool) *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.config
	if !all {
		c.Policy = paddock.NetworkPolicy{}
	}
	return &c
}

// Update replaces the rules and returns a function that restores the old ones. No network is a list without rules. A
// secret that the sandbox does not have yet is Unsupported, because its variables are fixed.
func (w *Gateway) Update(ctx context.Context, p paddock.NetworkPolicy) (undo func(), err error) {
	if p.Mode == paddock.NetworkNone && len(p.Rules)+len(p.Secrets) == 0 {
		p.Mode = paddock.NetworkList
	}
	w.mu.Lock()
	before := w.config.Policy
	w.mu.Unlock()
	for _, s := range p.Secrets {
		if !slices.ContainsFunc(before.Secrets, func(have paddock.Secret) bool { return have.Name == s.Name && have.Value == s.Value }) {
			return nil, fmt.Errorf("secret %s: its placeholder is not in the sandbox, whose variables stay as they are; make another sandbox: %w", s.Name, paddock.Unsupported)
		}
	}
	undo = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		_ = w.put(ctx, before) // a gateway that has ended allows nothing
	}
	if err := w.put(ctx, p); err != nil {
		if ctx.Err() != nil { // the gateway may have the message, and follow it later
			undo()
		}
		return nil, fmt.Errorf("change the network: %w", err)
	}
	return undo, nil
}

// undoTime bounds the time to restore the rules.
const undoTime = 10 * time.Second

func (w *Gateway) put(ctx context.Context, p paddock.NetworkPolicy) error {
	g, err := w.running()
	if err != nil {
		return err
	}
	if err := g.Update(ctx, p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config.Policy = p
	return nil
}

// event handles a decision of the gateway.
func (w *Gateway) event(e Event) {
	w.mu.Lock()
	if e.Verdict == VerdictDeny {
		w.refused.add(e.Refusal())
	}
	sink, follower := w.audit, w.follower
	w.mu.Unlock()
	for _, s := range []audit.Sink{sink, follower} {
		if s != nil {
			s.Record(AuditEvent(e))
		}
	}
	if w.judge != nil {
		w.judge.Told(e)
	}
}

// lost handles a gateway that ended by itself. The sandbox continues without network.
func (w *Gateway) lost(err error) {
	now := time.Now()
	w.mu.Lock()
	w.ended = err.Error()
	w.refused.add(paddock.Refusal{Time: now, What: "network", Target: "*", Rule: "there is no way out any more: " + w.ended, Remedy: "make the sandbox anew", Count: 1})
	sink := w.audit
	w.mu.Unlock()
	if sink != nil {
		sink.Record(audit.Event{
			Time: now, Sandbox: w.config.Sandbox, Kind: audit.Network,
			Network: &audit.Flow{Protocol: KindRules, Host: "*", Verdict: VerdictDeny, Rule: -1, Reason: err.Error()},
		})
	}
}

// A State is a snapshot of a gateway's state.
type State struct {
	Refused []paddock.Refusal `json:"refused,omitempty"` // the newest, newest last
	Ended   string            `json:"ended,omitempty"`   // why the gateway ended, if it should run
	Weak    string            `json:"weak,omitempty"`    // what the gateway's own confinement lacks
}

// State returns the present state.
func (w *Gateway) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{Refused: w.refused.list(), Ended: w.ended, Weak: w.weak}
}

// Finding returns the state as a finding about the network. how says how rules are enforced.
func (s State) Finding(how string) paddock.Finding {
	f := paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: how + s.Weak}
	if s.Ended != "" {
		f.How = "none any more: " + s.Ended
	}
	return f
}

// AuditEvent converts an event for the audit log.
func AuditEvent(e Event) audit.Event {
	flow := &audit.Flow{
		Protocol: e.Kind, Host: e.Host, Port: e.Port, Address: e.Address, Method: e.Method, Path: e.Path, Verdict: e.Verdict, Rule: e.Rule,
		Reason: e.Reason, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Secrets: e.Secrets,
	}
	if e.Count > 1 {
		flow.Count = int64(e.Count)
	}
	return audit.Event{Time: e.Time, Sandbox: e.Sandbox, Kind: audit.Network, Network: flow}
}
