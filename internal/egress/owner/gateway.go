package owner

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

// Options make a way out.
type Options struct {
	Sandbox string
	Policy  paddock.NetworkPolicy

	// User is the number that the gateway becomes where the owner is root, and
	// its group; zero is one by chance.
	User int

	// Was is the way out of the sandbox whose memory this one begins with: what
	// that relies on stays as it was. Nil is none.
	Previous *Config

	// Ask is asked where no rule decides; nil denies.
	Ask func(context.Context, Question) Answer
	// Audit is told what is decided; nil has nothing told.
	Audit audit.Sink

	// Hosts are addresses of names, which are then not looked up, and Roots are
	// certificates in PEM that are trusted besides the system's.
	Hosts map[string][]netip.Addr
	Roots []byte
}

// A Gateway is one sandbox's way out. Its gateway may be started several times, one
// after the other: what names and placeholders mean stays the same.
type Gateway struct {
	ask func(context.Context, Question) Answer

	mu      sync.Mutex
	audit   audit.Sink // guarded by mu
	config  Config     // guarded by mu: of the next gateway, and of the present one but for names
	process *Process   // guarded by mu; nil while there is none
	ended   string     // guarded by mu: why there is no way out though there should be
	weak    string     // guarded by mu: what the gateway lacks of its own walls
	refused refusals   // guarded by mu

	carried paddock.Traffic // guarded by mu: by gateways before the present one
}

// seedSize is how much chance is in the placeholders of one sandbox, in bytes.
const seedSize = 32

// New checks the rules, whose errors name the rule, and starts nothing.
func New(o Options) (*Gateway, error) {
	rules, err := decide.Compile(o.Policy)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	w := &Gateway{ask: o.Ask, audit: o.Audit, config: Config{
		Sandbox: o.Sandbox, Policy: o.Policy, Seed: make([]byte, seedSize), Hosts: o.Hosts, Roots: o.Roots, UID: o.User, GID: o.User,
	}}
	_, _ = rand.Read(w.config.Seed) // never fails
	if o.Previous != nil {
		w.config.Seed, w.config.Names = o.Previous.Seed, o.Previous.Names
	}
	w.config.Authority, err = authorityFor(rules, o.Previous)
	return w, err
}

// Restore gives the way out that another process had, which Saved gave, and what it
// had carried. Nobody is asked.
func Restore(c *Config, carried paddock.Traffic) *Gateway {
	return &Gateway{config: *c, carried: carried}
}

// authorityFor gives the certificate and the key for what the rules have looked
// into: those of before, if they are for all of it; nothing where that is nothing.
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

// splitAuthority tells the certificate of an authority from its key.
func splitAuthority(both []byte) (cert, key []byte) {
	block, rest := pem.Decode(both)
	if block == nil {
		return nil, nil
	}
	return pem.EncodeToMemory(block), rest
}

// Certificate is what the sandbox is to trust, in PEM; empty is nothing.
func (w *Gateway) Certificate() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	cert, _ := splitAuthority(w.config.Authority)
	return cert
}

// Environment are the variables that stand for secrets in the sandbox.
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

// Record has what is decided told to a sink, from the next start on.
func (w *Gateway) Record(sink audit.Sink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit = sink
}

// Start starts the gateway, and does not wait for it. The program stays the
// caller's.
func (w *Gateway) Start(ctx context.Context, program *os.File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, err := StartProcess(ctx, program, w.config, Callbacks{Event: w.event, Ask: w.ask, Ended: w.lost})
	if err != nil {
		return err
	}
	if w.process != nil {
		w.carried = w.carried.Plus(w.process.Traffic())
	}
	w.process, w.ended = g, ""
	return nil
}

// running gives the gateway, if there is one.
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

// Link hands the gateway the host's end of the sandbox's link.
func (w *Gateway) Link(f *os.File) error {
	g, err := w.running()
	if err != nil {
		return err
	}
	return g.Link(f)
}

// Channel gives a file by which another process may dial.
func (w *Gateway) Channel() (*os.File, error) {
	g, err := w.running()
	if err != nil {
		return nil, err
	}
	return g.Channel()
}

// Stop ends the gateway, and all that it carries. Twice is fine.
func (w *Gateway) Stop() {
	if g, err := w.running(); err == nil {
		_ = g.Close() // a process that is killed: there is nothing to do about it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		w.carried = w.carried.Plus(w.process.Traffic())
	}
	w.process = nil
}

// Traffic is what all gateways together have carried.
func (w *Gateway) Traffic() paddock.Traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return w.carried
	}
	return w.carried.Plus(w.process.Traffic())
}

// Settle gives the gateway the time to tell what it has decided so far.
func (w *Gateway) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if g, err := w.running(); err == nil {
		_, _ = g.Names(ctx) // whose answer comes after what was told
	}
}

// settleTime bounds how long that may take.
const settleTime = time.Second

// Remember keeps which names have addresses, for the next gateway.
func (w *Gateway) Remember(ctx context.Context) error {
	g, err := w.running()
	if err != nil {
		return nil // there is none, so nothing is new
	}
	names, err := g.Names(ctx)
	if errors.Is(err, paddock.Unavailable) { // it ended; what it had said before is all there is
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

// Saved is what is kept of it with a sandbox: all of it, with secrets, where that
// is to go on, and no rules or secrets where others may begin with it.
func (w *Gateway) Saved(all bool) *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.config
	if !all {
		c.Policy = paddock.NetworkPolicy{}
	}
	return &c
}

// Update puts other rules in place of the present ones, and gives what undoes
// that. The sandbox has its variables for good, so there are no other secrets.
func (w *Gateway) Update(ctx context.Context, p paddock.NetworkPolicy) (undo func(), err error) {
	w.mu.Lock()
	before := w.config.Policy
	w.mu.Unlock()
	for _, s := range p.Secrets {
		if !slices.ContainsFunc(before.Secrets, func(have paddock.Secret) bool { return have.Name == s.Name && have.Value == s.Value }) {
			return nil, fmt.Errorf("secret %s: its placeholder is not in the sandbox, whose variables stay as they are; make another sandbox: %w", s.Name, paddock.Unsupported)
		}
	}
	if err := w.put(ctx, p); err != nil {
		return nil, fmt.Errorf("change the network: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		_ = w.put(ctx, before) // one that ended allows nothing
	}, nil
}

// undoTime bounds how long it takes to put rules back.
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

// event takes what the gateway decided.
func (w *Gateway) event(e Event) {
	w.mu.Lock()
	if e.Verdict == VerdictDeny {
		w.refused.add(e.Refusal())
	}
	sink := w.audit
	w.mu.Unlock()
	if sink != nil {
		sink.Record(AuditEvent(e))
	}
}

// lost is told that the gateway ended by itself. The sandbox goes on without a
// way out.
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

// A State is what there is of a way out at a moment.
type State struct {
	Refused []paddock.Refusal `json:"refused,omitempty"` // the newest, newest last
	Ended   string            `json:"ended,omitempty"`   // why there is none though there should be
	Weak    string            `json:"weak,omitempty"`    // what the gateway lacks of its own walls
}

// State tells it.
func (w *Gateway) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{Refused: w.refused.list(), Ended: w.ended, Weak: w.weak}
}

// Finding says what there is of the network now; how is how rules are enforced.
func (s State) Finding(how string) paddock.Finding {
	f := paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: how + s.Weak}
	if s.Ended != "" {
		f.How = "none any more: " + s.Ended
	}
	return f
}

// AuditEvent is an event as it is recorded.
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
