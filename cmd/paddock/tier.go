package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall/spawn"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// A tier is a row of the registry: a strength of isolation, and how to make
// its driver. Without open it is not in this version.
type tier struct {
	name  paddock.Tier
	about string
	open  func(gear) (paddock.Driver, error)

	// weak says why auto passes it over on this machine; nil never does.
	weak func() string

	limited bool // it has the limits of --limit
	audited bool // it can record what commands do
}

// Gear is what a driver is made with for one plan. The zero gear is for looking
// at a driver.
type gear struct {
	limits budget.Limits
	audit  audit.Sink // nil records nothing
	ask    func(context.Context, owner.Question) owner.Answer
	state  string // the directory of a server's sandboxes; empty is the tier's own
	live   string // that of those that live, where state is empty; empty is the tier's own, and of all that this user keeps
	spares int    // keepers that a server has ready; see box.Options
}

// kept gives the tier's directories below the state: of those that live, and of
// what is saved.
func (g gear) kept(tier paddock.Tier) (state, data string) {
	switch {
	case g.state == "" && g.live == "":
		return "", ""
	case g.state == "":
		return filepath.Join(g.live, string(tier)), ""
	}
	return filepath.Join(g.state, "live", string(tier)), filepath.Join(g.state, "saved", string(tier))
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
	return "", withHint(fmt.Errorf("there is no tier %q: %w", text, paddock.Invalid),
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
func (a *app) create(ctx context.Context, p *plan) (*oneShot, error) {
	want := p.spec.Tier
	var passed []passedOver
	var last error
	for _, t := range a.tiers {
		if want != paddock.Auto && t.name != want {
			continue
		}
		if want == paddock.Auto && t.name == paddock.Sim {
			continue // it runs no programs of this machine: a different thing, not a weaker one
		}
		if t.open == nil {
			if want != paddock.Auto {
				return nil, withHint(fmt.Errorf("tier %s is %s: %w", t.name, notInThisVersion, paddock.Unsupported),
					"`paddock doctor` tells which tiers there are")
			}
			passed = append(passed, passedOver{t.name, notInThisVersion})
			continue
		}
		if want == paddock.Auto && t.passedOver() {
			passed = append(passed, passedOver{t.name, t.weak()})
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
		if last == nil || p.audit == nil || t.audited { // what a tier lacks here says more than what it never has
			last = err
		}
		passed = append(passed, passedOver{t.name, err.Error()})
	}
	if last == nil {
		last = fmt.Errorf("there is no tier that can run here: %w", paddock.Unsupported)
	}
	return nil, last
}

// passedOver tells whether auto does not take it on this machine.
func (t tier) passedOver() bool { return t.weak != nil && t.weak() != "" }

func (t tier) create(ctx context.Context, p *plan) (*oneShot, error) {
	d, err := t.opened(p)
	if err != nil {
		return nil, fmt.Errorf("tier %s: %w", t.name, err)
	}
	sb, err := t.createIn(ctx, d, p)
	if err != nil {
		// What Close says about nothing made would only hide the cause.
		_ = d.Close()
		return nil, err
	}
	return &oneShot{Sandbox: sb, driver: d, tier: t.name}, nil
}

// opened makes the tier's driver as the plan wants it.
func (t tier) opened(p *plan) (paddock.Driver, error) {
	ofCommands := slices.ContainsFunc(p.spec.Policy.Audit, func(k paddock.AuditKind) bool { return k != paddock.AuditNetwork })
	switch {
	case p.audit != nil && ofCommands && !t.audited && p.file != nil && len(p.file.Audit) > 0:
		return t.open(gear{}) // which is then refused with the line that asks for it
	case p.audit != nil && ofCommands && !t.audited:
		return nil, withHint(fmt.Errorf("it cannot record what commands do: %w", paddock.Unsupported),
			"leave --audit out, or use --tier gvisor where this machine can run it")
	case p.limits != (budget.Limits{}) && !t.limited:
		return nil, withHint(fmt.Errorf("it has none of the limits of --limit: %w", paddock.Unsupported),
			"--limit is of --tier sim; every tier has --memory, --cpus, --pids, --disk, --files and --timeout")
	}
	return t.open(gear{limits: p.limits, audit: p.audit, ask: p.ask})
}

// createIn asks the file's lines before the driver does, so that what cannot
// be enforced is refused with the line that asks for it.
func (t tier) createIn(ctx context.Context, d paddock.Driver, p *plan) (paddock.Sandbox, error) {
	if p.file != nil {
		info, err := d.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("tier %s: %w", t.name, err)
		}
		f := *p.file
		f.AllowMissing = p.spec.AllowMissing
		if err := policy.Refuse(f.Name, policy.Check(&f, info)); err != nil {
			return nil, err
		}
	}
	spec := p.spec
	spec.Tier = t.name
	sb, err := d.Create(ctx, spec)
	if err != nil {
		if t.name == paddock.Sim && errors.Is(err, paddock.Unsupported) {
			if hint := hintForSim(spec); hint != "" {
				return nil, withHint(err, "%s", hint)
			}
		}
		return nil, notMade{err}
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

// A notMade error is a driver's reason for making no sandbox. It names what is
// wrong in words.
type notMade struct{ error }

func (e notMade) Unwrap() error { return e.error }

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

// registry lists the tiers, strongest first. A process that was begun
// is for the first computer of the tier sim; nil is none.
func registry(begun *spawn.Process) []tier {
	return []tier{
		{name: paddock.MicroVM, about: "a kernel of its own in a virtual machine: for the least trusted code", open: openMicroVM, weak: untried},
		{name: paddock.GVisor, about: "a second kernel in software: for untrusted code, without virtualization", open: openGVisor, audited: true},
		{name: paddock.Jail, about: "namespaces, Landlock, seccomp and control groups on this machine's kernel: native speed", open: openJail},
		{name: paddock.Sim, about: "a shell, its tools and a file system in Go: text and files, no programs of this machine", open: func(g gear) (paddock.Driver, error) { return openSim(g, begun) }, limited: true},
	}
}

func openSim(g gear, begun *spawn.Process) (paddock.Driver, error) {
	d, err := wall.New(wall.Options{
		Limits: g.limits, Python: pythonDir(os.LookupEnv), Begun: begun, Audit: g.audit, Ask: g.ask, Gateway: gatewayFile,
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// untried says why auto takes no machine: where machines are emulated they are
// slow, and with KVM nobody has tested them. One is made where it is asked for by
// name.
func untried() string {
	if why := microvm.Emulated(); why != "" {
		return "machines are emulated here, which is slow; --tier microvm makes one: " + why
	}
	return "machines with KVM were never tested in this version; --tier microvm makes one"
}

// engineVariable names QEMU's program, for who has it in a place of their own.
const engineVariable = "PADDOCK_QEMU"

func openMicroVM(g gear) (paddock.Driver, error) {
	state, data := g.kept(paddock.MicroVM)
	d, err := microvm.New(microvm.Options{Spares: g.spares, State: state, Data: data, Guest: program.Embedded("guest", guestBinary()), Init: program.Embedded("microvm", monitorBinary()), Gateway: program.Embedded("gateway", gatewayBinary()), Keeper: program.Embedded("keeper", keeperBinary()), Engine: os.Getenv(engineVariable), Environ: os.Environ(), Audit: g.audit, Ask: g.ask})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func openGVisor(g gear) (paddock.Driver, error) {
	state, data := g.kept(paddock.GVisor)
	d, err := gvisor.New(gvisor.Options{Spares: g.spares, State: state, Data: data, Guest: program.Embedded("guest", guestBinary()), Init: program.Embedded("gvisor", gvisorBinary()), Gateway: program.Embedded("gateway", gatewayBinary()), Keeper: program.Embedded("keeper", keeperBinary()), Environ: os.Environ(), Audit: g.audit, Ask: g.ask})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func openJail(g gear) (paddock.Driver, error) {
	state, _ := g.kept(paddock.Jail)
	d, err := jail.New(jail.Options{Spares: g.spares, State: state, Guest: program.Embedded("guest", guestBinary()), Gateway: program.Embedded("gateway", gatewayBinary()), Keeper: program.Embedded("keeper", keeperBinary()), Environ: os.Environ(), Audit: g.audit, Ask: g.ask})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// gatewayFile opens the program of the way out for a driver that takes a file.
func gatewayFile() (*os.File, error) {
	p := program.Embedded("gateway", gatewayBinary())
	if p.Self() {
		return os.Open("/proc/self/exe")
	}
	return p.Open(program.Cache(os.LookupEnv))
}
