package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// A Tier is a row of the registry: a strength of isolation, and how to make
// its driver. Without open it is not in this version.
type Tier struct {
	Name  paddock.Tier
	About string
	Open  func(Gear) (paddock.Driver, error)

	// weak says why auto passes it over on this machine; nil never does.
	Weak func() string

	Limited bool // it has the limits of --limit
	Audited bool // it can record what commands do
}

// Gear is what a driver is made with for one plan. The zero gear is for looking
// at a driver.
type Gear struct {
	Limits budget.Limits
	Audit  audit.Sink // nil records nothing
	Ask    func(context.Context, owner.Question) owner.Answer
	State  string // the directory of a server's sandboxes; empty is the tier's own
	Live   string // that of those that live, where state is empty; empty is the tier's own, and of all that this user keeps
	Spares int    // keepers that a server has ready; see box.Options
}

// Kept gives the tier's directories below the state: of those that live, and of
// what is saved.
func (g Gear) Kept(tier paddock.Tier) (state, data string) {
	switch {
	case g.State == "" && g.Live == "":
		return "", ""
	case g.State == "":
		return filepath.Join(g.Live, string(tier)), ""
	}
	return filepath.Join(g.State, "live", string(tier)), filepath.Join(g.State, "saved", string(tier))
}

// A passedOver tier was stronger than the chosen one and could not be used.
type passedOver struct {
	Tier  paddock.Tier `json:"tier"`
	Cause string       `json:"cause"`
}

const notInThisVersion = "not in this version"

// parseTier reads the value of --tier.
func parseTier(text string) (paddock.Tier, error) {
	switch t := paddock.Tier(text); t {
	case "auto", "":
		return paddock.Auto, nil
	case paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM:
		return t, nil
	}
	return "", WithHint(fmt.Errorf("there is no tier %q: %w", text, paddock.Invalid),
		"tiers are auto, sim, jail, gvisor, microvm; `paddock doctor` tells which this machine can run")
}

// A oneShot is a sandbox with the driver that made it for one command.
type oneShot struct {
	paddock.Sandbox
	driver paddock.Driver
	tier   paddock.Tier
	passed []passedOver
}

// create makes the sandbox on the asked tier; with [paddock.Auto] on the
// strongest one that can make it. A tier is passed over only where it says
// [paddock.Unsupported]; any other failure is the answer, so that a passing
// trouble never leads to a weaker tier.
func (a *App) create(ctx context.Context, p *plan) (*oneShot, error) {
	want := p.spec.Tier
	var passed []passedOver
	var last error
	for _, t := range a.Tiers {
		if want != paddock.Auto && t.Name != want {
			continue
		}
		if want == paddock.Auto && t.Name == paddock.Sim {
			continue // it runs no programs of this machine: a different thing, not a weaker one
		}
		if t.Open == nil {
			if want != paddock.Auto {
				return nil, WithHint(fmt.Errorf("tier %s is %s: %w", t.Name, notInThisVersion, paddock.Unsupported),
					"`paddock doctor` tells which tiers there are")
			}
			passed = append(passed, passedOver{t.Name, notInThisVersion})
			continue
		}
		if want == paddock.Auto && t.passedOver() {
			passed = append(passed, passedOver{t.Name, t.Weak()})
			continue
		}
		b, err := t.create(ctx, p)
		if err == nil {
			b.passed = passed
			return b, nil
		}
		if want != paddock.Auto || !errors.Is(err, paddock.Unsupported) {
			return nil, err
		}
		if last == nil || p.audit == nil || t.Audited { // what a tier lacks here says more than what it never has
			last = err
		}
		passed = append(passed, passedOver{t.Name, err.Error()})
	}
	if last == nil {
		last = fmt.Errorf("there is no tier that can run here: %w", paddock.Unsupported)
	}
	return nil, last
}

// passedOver tells whether auto does not take it on this machine.
func (t Tier) passedOver() bool { return t.Weak != nil && t.Weak() != "" }

func (t Tier) create(ctx context.Context, p *plan) (*oneShot, error) {
	d, err := t.opened(p)
	if err != nil {
		return nil, fmt.Errorf("tier %s: %w", t.Name, err)
	}
	sb, err := t.createIn(ctx, d, p)
	if err != nil {
		// What Close says about nothing made would only hide the cause.
		_ = d.Close()
		return nil, err
	}
	return &oneShot{Sandbox: sb, driver: d, tier: t.Name}, nil
}

// opened makes the tier's driver as the plan wants it.
func (t Tier) opened(p *plan) (paddock.Driver, error) {
	ofCommands := slices.ContainsFunc(p.spec.Policy.Audit, func(k paddock.AuditKind) bool { return k != paddock.AuditNetwork })
	switch {
	case p.audit != nil && ofCommands && !t.Audited && p.file != nil && len(p.file.Audit) > 0:
		return t.Open(Gear{}) // which is then refused with the line that asks for it
	case p.audit != nil && ofCommands && !t.Audited:
		return nil, WithHint(fmt.Errorf("it cannot record what commands do: %w", paddock.Unsupported),
			"leave --audit out, or use --tier gvisor where this machine can run it")
	case p.limits != (budget.Limits{}) && !t.Limited:
		return nil, WithHint(fmt.Errorf("it has none of the limits of --limit: %w", paddock.Unsupported),
			"--limit is of --tier sim; every tier has --memory, --cpus, --pids, --disk, --files and --timeout")
	}
	return t.Open(Gear{Limits: p.limits, Audit: p.audit, Ask: p.ask})
}

// createIn asks the file's lines before the driver does, so that what cannot
// be enforced is refused with the line that asks for it.
func (t Tier) createIn(ctx context.Context, d paddock.Driver, p *plan) (paddock.Sandbox, error) {
	if p.file != nil {
		info, err := d.Info(ctx, paddock.Auto)
		if err != nil {
			return nil, fmt.Errorf("tier %s: %w", t.Name, err)
		}
		f := *p.file
		f.AllowMissing = p.spec.AllowMissing
		if err := policy.Refuse(f.Name, policy.Check(&f, info)); err != nil {
			return nil, err
		}
	}
	spec := p.spec
	spec.Tier = t.Name
	sb, err := d.Create(ctx, spec)
	if err != nil {
		if t.Name == paddock.Sim && errors.Is(err, paddock.Unsupported) {
			if hint := hintForSim(spec); hint != "" {
				return nil, WithHint(err, "%s", hint)
			}
		}
		return nil, NotMade{Err: err}
	}
	return sb, nil
}

// hintForSim says what to do instead of what the simulated tier does not have,
// in the order in which its driver refuses it.
func hintForSim(spec paddock.Spec) string {
	files := spec.Policy.Files
	switch {
	case spec.Limits.IO != 0:
		return "leave the limit out, or use --tier jail"
	case spec.Root.Kind == paddock.RootDir, spec.Root.Kind == paddock.RootOpen:
		return "leave --root or --mode out and show files with --workspace or --read, or use --tier jail"
	case slices.ContainsFunc(spec.Mounts, func(m paddock.Mount) bool { return m.Write }):
		return "--workspace DIR shows it with an overlay, --read PATH read-only; with --tier jail changes reach this machine"
	case len(files.Protect) > 0, len(files.Unprotect) > 0:
		return "leave the names out: no file of this machine is ever changed; or use --tier jail"
	case len(spec.Policy.Audit) > 0:
		return "leave --audit out, or use --tier gvisor"
	case spec.Policy.Network.Mode != paddock.NetworkNone:
		return "leave the network out, or use --tier jail"
	}
	return ""
}

// A NotMade error is a driver's reason for making no sandbox. It names what is
// wrong in words.
type NotMade struct{ Err error }

func (e NotMade) Error() string { return e.Err.Error() }

func (e NotMade) Unwrap() error { return e.Err }

// close removes the sandbox and releases its driver.
func (b *oneShot) close(ctx context.Context) error {
	return errors.Join(b.Remove(ctx), b.driver.Close())
}

// choice says in words which tier was chosen, and why not a stronger one.
func (b *oneShot) choice() string {
	var s strings.Builder
	fmt.Fprintf(&s, "tier %s", b.tier)
	for i, p := range b.passed {
		sep := "; "
		if i == 0 {
			sep = " ("
		}
		fmt.Fprintf(&s, "%s%s: %s", sep, p.Tier, p.Cause)
	}
	if len(b.passed) > 0 {
		s.WriteString(")")
	}
	return s.String()
}

// EngineVariable names QEMU's program, for who has it in a place of their own.
const EngineVariable = "PADDOCK_QEMU"
