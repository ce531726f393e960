package way

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
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

// Options make a way out.
type Options struct {
	Sandbox string
	Policy  paddock.NetworkPolicy

	// Ask is asked where no rule decides; nil denies.
	Ask func(context.Context, report.Question) report.Answer
	// Audit is told what is decided; nil has nothing told.
	Audit audit.Sink

	// Hosts are addresses of names, which are then not looked up, and Roots are
	// certificates in PEM that are trusted besides the system's.
	Hosts map[string][]netip.Addr
	Roots []byte
}

// A Way is one sandbox's way out.
type Way struct {
	o    Options
	cert []byte

	config gate.Config // as the gateway begins
	gate   *gate.Gate  // set by Start

	mu      sync.Mutex
	policy  paddock.NetworkPolicy // guarded by mu
	ended   string                // guarded by mu: why there is no way out any more
	refused refusals              // guarded by mu
}

// seedSize is how much chance is in the placeholders of one sandbox, in bytes.
const seedSize = 32

// New checks the rules, whose errors name the rule, and starts nothing.
func New(o Options) (*Way, error) {
	rules, err := rule.New(o.Policy)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	w := &Way{o: o, policy: o.Policy, config: gate.Config{
		Sandbox: o.Sandbox, Policy: o.Policy, Seed: make([]byte, seedSize), Hosts: o.Hosts, Roots: o.Roots,
	}}
	_, _ = rand.Read(w.config.Seed) // never fails
	patterns := rules.Inspected()
	if len(patterns) == 0 {
		return w, nil
	}
	ca, err := authority.New(patterns, time.Now())
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	key, err := ca.Key()
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	w.cert = ca.PEM()
	w.config.Authority = append(slices.Clone(w.cert), key...)
	return w, nil
}

// Certificate is what the sandbox is to trust, in PEM; empty is nothing.
func (w *Way) Certificate() []byte { return w.cert }

// Environment are the variables that stand for secrets in the sandbox.
func (w *Way) Environment() (map[string]string, error) {
	if len(w.o.Policy.Secrets) == 0 {
		return nil, nil
	}
	store, err := secret.New(w.config.Seed, w.o.Policy.Secrets)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return store.Environment(), nil
}

// Start starts the gateway, and does not wait for it. The program stays the
// caller's.
func (w *Way) Start(ctx context.Context, program *os.File) error {
	g, err := gate.Start(ctx, program, w.config, gate.Owner{Event: w.event, Ask: w.o.Ask, Ended: w.lost})
	if err != nil {
		return err
	}
	w.gate = g
	return nil
}

// Ready waits until the gateway serves.
func (w *Way) Ready(ctx context.Context) error {
	if _, err := w.gate.Ready(ctx); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	return nil
}

// Channel gives a file by which another process may dial.
func (w *Way) Channel() (*os.File, error) { return w.gate.Channel() }

// Update puts other rules in place of the present ones, and gives what undoes
// that. The sandbox has its variables for good, so there are no other secrets.
func (w *Way) Update(ctx context.Context, p paddock.NetworkPolicy) (undo func(), err error) {
	w.mu.Lock()
	before := w.policy
	w.mu.Unlock()
	for _, s := range p.Secrets {
		if !slices.ContainsFunc(w.o.Policy.Secrets, func(have paddock.Secret) bool { return have.Name == s.Name && have.Value == s.Value }) {
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

func (w *Way) put(ctx context.Context, p paddock.NetworkPolicy) error {
	if err := w.gate.Update(ctx, p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = p
	return nil
}

// Close ends the gateway, if it was started, and all that it carries. It gives no
// error, so that it may be deferred; closing twice is fine.
func (w *Way) Close() {
	if w.gate != nil {
		_ = w.gate.Close() // a process that is killed: there is nothing to do about it
	}
}

// Settle gives the gateway the time to tell what it has decided so far.
func (w *Way) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_, _ = w.gate.Names(ctx) // whose answer comes after what was told
}

// settleTime bounds how long that may take.
const settleTime = time.Second

// Refused lists what was refused, newest last.
func (w *Way) Refused() []paddock.Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused.list()
}

// Finding says what there is of the network now.
func (w *Way) Finding(how string) paddock.Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != "" {
		how = "none any more: " + w.ended
	}
	return paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: how}
}

// event takes what the gateway decided.
func (w *Way) event(e report.Event) {
	if e.Verdict == report.Deny {
		w.mu.Lock()
		w.refused.add(e.Refusal())
		w.mu.Unlock()
	}
	if w.o.Audit != nil {
		w.o.Audit.Record(Audited(e))
	}
}

// lost is told that the gateway ended by itself. The sandbox goes on without a
// way out.
func (w *Way) lost(err error) {
	now := time.Now()
	w.mu.Lock()
	w.ended = err.Error()
	w.refused.add(paddock.Refusal{Time: now, What: "network", Target: "*", Rule: "there is no way out any more: " + w.ended, Remedy: "make the sandbox anew", Count: 1})
	w.mu.Unlock()
	if w.o.Audit != nil {
		w.o.Audit.Record(audit.Event{
			Time: now, Sandbox: w.o.Sandbox, Kind: audit.Network,
			Network: &audit.Flow{Protocol: report.Rules, Host: "*", Verdict: report.Deny, Rule: -1, Reason: err.Error()},
		})
	}
}

// Audited is an event as it is recorded.
func Audited(e report.Event) audit.Event {
	flow := &audit.Flow{
		Protocol: e.Kind, Host: e.Host, Port: e.Port, Address: e.Address, Method: e.Method, Path: e.Path, Verdict: e.Verdict, Rule: e.Rule,
		Reason: e.Reason, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Secrets: e.Secrets,
	}
	if e.Count > 1 {
		flow.Count = int64(e.Count)
	}
	return audit.Event{Time: e.Time, Sandbox: e.Sandbox, Kind: audit.Network, Network: flow}
}
