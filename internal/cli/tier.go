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
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

// A Tier is a row of the registry: a tier and how to make its driver. If Open is nil, this version
// does not have the tier.
type Tier struct {
	Name  paddock.Tier
	About string
	Open  func(Gear) (paddock.Driver, error)

	// Weak gives the reason why auto passes the tier over on this machine; see [auto.Candidate].
	Weak func() string

	Limited bool // it has the limits of --limit
	Audited bool // it can record what commands do
}

// Gear has the options of a driver for one plan. The zero Gear is for a driver that only answers
// Info.
type Gear struct {
	Limits   budget.Limits
	Audit    audit.Sink // nil records nothing
	Ask      func(context.Context, gatewayclient.Question) gatewayclient.Answer
	Judge    gatewayclient.Judge       // see [gatewayclient.Options]
	Login    gatewayclient.Login       // see [gatewayclient.Options]
	Steps    string                    // directory of the journal of steps; see box.Options
	Layers   map[string]string         // see box.Options
	Images   image.Source              // see box.Options
	Changing func(source, path string) // see box.Options
	Watch    step.Watcher              // of steps; see box.Options
	State    string                    // the directory of a server's sandboxes; empty is the tier's own
	Live     string                    // that of those that live, where state is empty; empty is the tier's own, and of all that this user keeps
	Private  private.Files             // a server's own, which no sandbox may see
	Spares   int                       // keepers that a server has ready; see box.Options
}

// Kept returns the tier's directories below the state directory: state for living sandboxes, and
// data for saved ones. An empty directory is the tier's own default.
func (g Gear) Kept(tier paddock.Tier) (state, data string) {
	switch {
	case g.State == "" && g.Live == "":
		return "", ""
	case g.State == "":
		return filepath.Join(g.Live, string(tier)), ""
	}
	return filepath.Join(g.State, "live", string(tier)), filepath.Join(g.State, "saved", string(tier))
}

// Snapshots returns the directory of snapshots of files, which all tiers share. It is empty for the tiers' own default.
func (g Gear) Snapshots() string {
	if g.State == "" {
		return ""
	}
	return filepath.Join(g.State, "saved", "files")
}

// Reasons why a tier cannot make a sandbox.
const (
	notInThisVersion = "not in this version"
	cannotAudit      = "it cannot record what commands do"
)

// parseTier reads the value of --tier.
func parseTier(text string) (paddock.Tier, error) {
	switch t := paddock.Tier(text); t {
	case "auto", "":
		return paddock.Auto, nil
	case paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM:
		return t, nil
	}
	return "", WithHint(fmt.Errorf("there is no tier %q: %w", text, paddock.Invalid),
		"%stiers are %s; `paddock doctor` tells which this machine can run", meant(policy.Nearest(text, tierWords())), Join(tierWords()))
}

// A oneShot is a sandbox with the driver that made it for one command.
type oneShot struct {
	paddock.Sandbox
	driver paddock.Driver
	tier   paddock.Tier
	image  bool // its root is one
	passed []auto.PassedOver
}

// createOneShot makes the sandbox on the tier that the plan asks for, or on the tier that auto chooses.
func (a *App) createOneShot(ctx context.Context, p *plan) (*oneShot, error) {
	if p.spec.Tier != paddock.Auto {
		t, err := a.tier(p.spec.Tier)
		if err != nil {
			return nil, err
		}
		return t.create(ctx, p)
	}
	list := candidates(a.Tiers)
	audited := func(t Tier) bool { return t.Open != nil && t.Audited }
	if p.asksForCommands() && slices.ContainsFunc(a.Tiers, audited) {
		// The error is then about what an audited tier lacks on this machine.
		for i, t := range a.Tiers {
			if t.Open != nil && !t.Audited {
				list[i].Pass = func() string { return cannotAudit }
			}
		}
	}
	b, passed, err := auto.Choose(list, func(name paddock.Tier) (*oneShot, error) {
		t, err := a.tier(name)
		if err != nil {
			return nil, err
		}
		return t.create(ctx, p)
	})
	if err != nil {
		return nil, err
	}
	b.passed = passed
	return b, nil
}

// tier gives the row of a tier that this version has.
func (a *App) tier(name paddock.Tier) (Tier, error) {
	i := slices.IndexFunc(a.Tiers, func(t Tier) bool { return t.Name == name && t.Open != nil })
	if i < 0 {
		return Tier{}, WithHint(fmt.Errorf("tier %s is %s: %w", name, notInThisVersion, paddock.Unsupported),
			"`paddock doctor` tells which tiers there are")
	}
	return a.Tiers[i], nil
}

// candidates are these tiers, as auto chooses among them.
func candidates(tiers []Tier) []auto.Candidate {
	list := make([]auto.Candidate, len(tiers))
	for i, t := range tiers {
		list[i] = t.Candidate()
	}
	return list
}

// Candidate is the tier as auto chooses it.
func (t Tier) Candidate() auto.Candidate {
	if t.Open == nil {
		return auto.Candidate{Name: t.Name, Pass: func() string { return notInThisVersion }}
	}
	return auto.Candidate{Name: t.Name, Pass: t.Weak}
}

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
	return &oneShot{Sandbox: sb, driver: d, image: p.spec.Root.Kind == paddock.RootImage, tier: t.Name}, nil
}

// opened makes the tier's driver as the plan wants it.
func (t Tier) opened(p *plan) (paddock.Driver, error) {
	switch {
	case p.asksForCommands() && !t.Audited && p.file != nil && len(p.file.Audit) > 0:
		return t.Open(Gear{}) // which is then refused with the line that asks for it
	case p.asksForCommands() && !t.Audited:
		return nil, WithHint(fmt.Errorf("%s: %w", cannotAudit, paddock.Unsupported),
			"leave --audit out, record steps only (--undo on --audit-kinds step), or use --tier gvisor where this machine can run it")
	case p.limits != (budget.Limits{}) && !t.Limited:
		return nil, WithHint(fmt.Errorf("it has none of the limits of --limit: %w", paddock.Unsupported),
			"--limit is of --tier sim; every tier has --memory, --cpus, --pids, --disk, --files and --timeout")
	}
	return t.Open(Gear{Limits: p.limits, Audit: p.audit, Ask: p.ask, Judge: p.judge, Login: p.login, Watch: p.watch, Steps: p.journal, Layers: p.layers, Images: p.images, Changing: p.changing, Private: private.Files{Paths: p.hidden}})
}

// asksForCommands reports whether the audit log is to record what commands do.
func (p *plan) asksForCommands() bool {
	return p.audit != nil && slices.ContainsFunc(p.spec.Policy.Audit, paddock.AuditKind.OfProcess)
}

// createIn asks the file's lines before the driver does, so that what cannot
// be enforced is refused with the line that asks for it.
func (t Tier) createIn(ctx context.Context, d paddock.Driver, p *plan) (paddock.Sandbox, error) {
	var info paddock.Info
	if p.file != nil || p.ports {
		var err error
		if info, err = d.Info(ctx, paddock.Auto); err != nil {
			return nil, fmt.Errorf("tier %s: %w", t.Name, err)
		}
	}
	if p.ports && !info.Can(paddock.CanDial) {
		return nil, WithHint(fmt.Errorf("tier %s: nothing in it can listen at a port, so none can be published: %w", t.Name, paddock.Unsupported),
			"leave --publish out, or use --tier jail")
	}
	if p.file != nil {
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

// NotMade is a driver's error from Create. Its text says what is wrong, so no usual hint is added
// to it.
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

// noteWeaker says which stronger tiers could not make a sandbox, where any were tried.
func (a *App) noteWeaker(tier paddock.Tier, passed []paddock.PassedOver) {
	for _, p := range passed {
		fmt.Fprintf(a.Stderr, "paddock: note: the sandbox is on tier %s, because tier %s could not make it: %s\n", tier, p.Tier, OneLine(p.Cause))
	}
}

// EngineVariable is the environment variable that names QEMU's program, if it is in an unusual
// place.
const EngineVariable = "PADDOCK_QEMU"
