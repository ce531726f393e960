package box

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Info implements paddock.Driver.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Auto && tier != d.tier.Name {
		return paddock.Info{}, fmt.Errorf("tier %.64q is not %q: %w", string(tier), string(d.tier.Name), paddock.Unsupported)
	}
	info := paddock.Info{Tier: d.tier.Name, Version: d.tier.Probe.Version(), Defaults: Defaults()}
	failed, err := d.trial(ctx)
	if err != nil {
		return paddock.Info{}, fmt.Errorf("a sandbox for trial was not ready in time: %w", err)
	}
	info.Controls = d.controls(failed)
	info.Available = !slices.ContainsFunc(info.Controls, func(f paddock.Finding) bool {
		return f.Strength == paddock.Absent && !optional(f.Control)
	})
	if !info.Available {
		return info, nil
	}
	f, _ := info.Finding(paddock.ControlMemory)
	grouped := f.Strength == paddock.Full
	info.Capabilities = []paddock.Capability{paddock.CanTerminal, paddock.CanAttach, paddock.CanWatch, paddock.CanDial, paddock.CanOutlive,
		paddock.CanRootHost, paddock.CanRootDir, paddock.CanPrograms, paddock.CanMount, paddock.CanMountWrite, paddock.CanForwardAgent}
	info.Capabilities = append(info.Capabilities, d.tier.Probe.Capabilities(grouped)...)
	if d.site.o.Steps != "" {
		info.Capabilities = append(info.Capabilities, paddock.CanUndo, paddock.CanMonitorFiles) // what is not recorded is not watched
		if info.Can(paddock.CanPause) && d.site.o.Watch == nil && d.site.o.Judge == nil {
			info.Capabilities = append(info.Capabilities, paddock.CanMonitor)
		}
	}
	if info.Can(paddock.CanNetworkList) {
		info.Capabilities = append(info.Capabilities, paddock.CanMonitorNetwork)
	}
	if d.tier.Freezes && info.Can(paddock.CanPause) {
		info.Capabilities = append(info.Capabilities, paddock.CanMonitorFreeze)
	}
	if unlayered() == nil {
		info.Capabilities = append(info.Capabilities, paddock.CanReview)
	}
	if d.site.o.Images != nil {
		info.Capabilities = append(info.Capabilities, paddock.CanRootImage)
	}
	return info, nil
}

// HostMemory implements paddock.MemoryPlanner. Private files of a box are in its memory, and count as its
// memory limit.
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	if tier != paddock.Auto && tier != d.tier.Name {
		return 0, false
	}
	memory := cmp.Or(max(l.Memory, 0), Defaults().Memory)
	if d.tier.Overhead != nil {
		memory += min(max(d.tier.Overhead(memory), 0), math.MaxInt64-memory)
	}
	return memory, true
}

// controls returns all findings of the tier, given the failure of a trial box; nil means
// that the trial succeeded.
func (d *Driver) controls(trial *Failure) []paddock.Finding {
	return append(d.tier.Probe.Controls(nil, trial), d.tier.Probe.Limits()...)
}

// optional reports whether the absence of a control only matters to a spec that requests a
// limit by it.
func optional(c paddock.Control) bool {
	return c == paddock.ControlIO || c == paddock.ControlCPU
}

// identityHow describes the user of commands on the host.
func identityHow() string {
	if os.Geteuid() == 0 {
		return "a number of the host's kernel that belongs to nobody, another one for each sandbox"
	}
	return fmt.Sprintf("the calling user, number %d; its supplementary groups cannot be given up", os.Geteuid())
}

// LimitFindings returns the findings of the control groups. Without groups, a watchdog
// bounds memory, and the tier's own means bound processes.
func (s *Site) LimitFindings(pids paddock.Finding) []paddock.Finding {
	findings := s.host().Findings()
	if grouped(findings) {
		return findings
	}
	for i, f := range findings {
		switch f.Control {
		case paddock.ControlMemory:
			for _, w := range cgroup.WatchFindings() {
				if w.Control == f.Control {
					w.Cause, w.Remedy = f.Cause, f.Remedy
					findings[i] = w
				}
			}
		case paddock.ControlPIDs:
			findings[i] = pids
		}
	}
	return findings
}

// grouped reports whether sandboxes get a control group here, which depends on the memory
// controller.
func grouped(findings []paddock.Finding) bool {
	return slices.ContainsFunc(findings, func(f paddock.Finding) bool {
		return f.Control == paddock.ControlMemory && f.Strength == paddock.Full
	})
}

// bounds sets the limits of a spec, and reports how each is enforced. A requested limit
// that cannot be fully enforced is refused, unless its weakness was accepted by name. The
// default memory limit is enforced as well as this host can.
func (d *Driver) bounds(spec *paddock.Spec) (limits paddock.Limits, groups bool, findings []paddock.Finding, err error) {
	limits = Defaults()
	asked := map[paddock.Control]bool{}
	l := spec.Limits
	if l.Memory > 0 {
		limits.Memory, asked[paddock.ControlMemory] = l.Memory, true
	}
	if l.CPUs > 0 { // to have all processors limits nothing
		limits.CPUs, asked[paddock.ControlCPU] = l.CPUs, l.CPUs < limits.CPUs
	}
	if l.PIDs > 0 {
		limits.PIDs, asked[paddock.ControlPIDs] = l.PIDs, true
	}
	if l.Disk > 0 {
		limits.Disk = l.Disk
	}
	if l.Files > 0 {
		limits.Files = l.Files
	}
	if l.IO > 0 {
		limits.IO, asked[paddock.ControlIO] = l.IO, true
	}
	limits.Lifetime = l.Lifetime
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err == nil && uint64(limits.Files) > now.Max {
		if l.Files > 0 {
			return limits, false, nil, &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlFiles, Strength: paddock.Absent,
				Cause: fmt.Sprintf("this process may have %d open files at most, %d are asked for", now.Max, l.Files), Remedy: "raise it with ulimit -Hn, or ask for less"}}
		}
		limits.Files = int(now.Max)
	}
	findings = d.tier.Probe.Limits()
	groups = grouped(findings)
	for i, f := range findings {
		switch {
		case f.Strength == paddock.Full:
		case asked[f.Control] && !slices.Contains(spec.AllowMissing, f.Control):
			return limits, groups, nil, &paddock.MissingError{Finding: f}
		case asked[f.Control]:
			// Accepted by name; Status reports it.
		case f.Control == paddock.ControlCPU:
			findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "all processors of this machine, by default; a smaller number needs a control group"}
		case f.Control == paddock.ControlIO:
			findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "none was asked for; one needs a control group"}
		}
		switch {
		case f.Strength != paddock.Absent:
		case f.Control == paddock.ControlCPU:
			limits.CPUs = Defaults().CPUs // the actual value
		case f.Control == paddock.ControlIO:
			limits.IO = 0
		}
	}
	return limits, groups, append(d.standing(spec), findings...), nil
}

// standing returns the findings of an existing box. A missing required control would have
// prevented making it.
func (d *Driver) standing(spec *paddock.Spec) []paddock.Finding {
	// No trial is needed, because the box itself is the trial.
	list := d.tier.Probe.Controls(spec, nil)
	for i := range list {
		f := &list[i]
		switch {
		case (f.Control == paddock.ControlNetNS || f.Control == paddock.ControlNetwork) && spec.Policy.Network.Mode == paddock.NetworkHost:
			*f = paddock.Finding{Control: f.Control, Strength: paddock.Absent, Cause: "the spec asks for the host's network"}
		case f.Control == paddock.ControlNetwork && spec.Policy.Network.Mode == paddock.NetworkList:
			*f = gatewayclient.State{}.Finding(ListHow)
		case f.Control == paddock.ControlNetwork:
			*f = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "none"}
		case f.Control == paddock.ControlMountNS && spec.Root.Kind == paddock.RootOpen:
			f.How = "a tree of its own that shows the host's whole tree, as the spec asks"
		}
	}
	return list
}

// draft begins a sandbox, or refuses what this host or tier cannot do, before anything is
// made.
func (d *Driver) draft(spec *paddock.Spec) (Draft, error) {
	switch mode := spec.Policy.Network.Mode; mode {
	case paddock.NetworkNone, paddock.NetworkList, paddock.NetworkHost:
	default:
		return Draft{}, fmt.Errorf("network mode %.64q: there is none, list and host only: %w", string(mode), paddock.Invalid)
	}
	draft, err := d.tier.Drafter.Draft(spec)
	if err == nil && len(spec.Policy.Audit) > 0 && spec.Ephemeral && d.site.o.Audit == nil {
		err = fmt.Errorf("audit: this driver has nowhere to record what an ephemeral sandbox does: %w", paddock.Unsupported)
	}
	return draft, err
}

// AsksKernel reports whether a spec requests events that only the kernel of its commands
// can report.
func AsksKernel(spec *paddock.Spec) bool {
	if len(spec.Policy.Audit) == 0 {
		return false
	}
	outside := spec.Policy.Network.Mode == paddock.NetworkList || len(spec.Policy.KeyAgents) > 0
	return !outside || slices.ContainsFunc(spec.Policy.Audit, paddock.AuditKind.OfProcess)
}

// trial makes an unused box, and returns what went wrong. An error means that the trial did
// not end in time, so that nothing is known.
func (d *Driver) trial(ctx context.Context) (*Failure, error) {
	draft, limits, failed := d.tier.Drafter.Trial()
	if failed != nil {
		return failed, nil
	}
	p, err := d.site.Bare(ctx, &d.tier, draft, limits)
	if err != nil {
		return d.failure(ctx, err)
	}
	defer p.Close()
	b, conn, err := Make(ctx, *p)
	if err != nil {
		return d.failure(ctx, err)
	}
	conn.Close()
	if err := b.Remove(ctx); err != nil {
		return d.failure(ctx, err)
	}
	return nil, nil
}

// failure judges the error of a trial.
func (d *Driver) failure(ctx context.Context, err error) (*Failure, error) {
	var missing *paddock.MissingError
	switch {
	case errors.As(err, &missing):
		return &Failure{Cause: missing.Finding.Cause, Remedy: missing.Finding.Remedy}, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", err.Error(), EndKind(ctx.Err())) // in place of the kind of err, which follows from it
	case late(err):
		return nil, fmt.Errorf("%s: %w", err.Error(), paddock.Timeout)
	}
	return Around().Diagnose(err, d.tier.Runtime), nil
}

// late reports whether an error only says that something took too long, as on a slow or busy
// machine. Errors of the box arrive as text.
func late(err error) bool {
	return paddock.KindOf(err) == paddock.Timeout || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) || strings.Contains(err.Error(), context.DeadlineExceeded.Error())
}

// Absent returns findings as absent because of a failure.
func (f *Failure) Absent(list ...paddock.Finding) []paddock.Finding {
	for i := range list {
		list[i] = paddock.Finding{Control: list[i].Control, Strength: paddock.Absent, Cause: f.Cause, Remedy: f.Remedy}
	}
	return list
}

// Findings returns the controls of every box. words describe how a control is enforced if
// tiers differ, and rules is the finding for a network with rules.
func Findings(words map[paddock.Control]string, rules paddock.Finding) []paddock.Finding {
	var list []paddock.Finding
	for _, c := range []struct {
		control paddock.Control
		how     string // empty means the tier's
	}{
		{paddock.ControlUserNS, "one user of the host is mapped, and no other"},
		{paddock.ControlMountNS, "a tree of its own; the host's is not reachable"},
		{paddock.ControlPIDNS, "sees its own processes only"},
		{paddock.ControlNetNS, ""},
		{paddock.ControlIPCNS, "System V and POSIX IPC of its own"},
		{paddock.ControlUTSNS, "a hostname of its own"},
		{paddock.ControlCgroupNS, "the host's groups have no names"},
		{paddock.ControlTimeNS, "clocks of its own"},
		{paddock.ControlReadOnly, ""},
		{paddock.ControlSeccomp, ""},
		{paddock.ControlNoNewPrivs, "set-id programs and file capabilities have no effect"},
		{paddock.ControlCapabilities, "every set of a command is empty, the bounding set too"},
		{paddock.ControlKeyring, ""},
		{paddock.ControlEnvironment, "an allow list"},
		{paddock.ControlDescriptors, "none but the command's own"},
		{paddock.ControlIdentity, identityHow()},
		{paddock.ControlNetwork, "none; or by a list of rules: " + ListHow},
		{paddock.ControlDisk, ""},
		{paddock.ControlFiles, ""},
	} {
		f := paddock.Finding{Control: c.control, Strength: paddock.Full, How: cmp.Or(c.how, words[c.control])}
		if c.control == paddock.ControlNetwork && rules.Strength != paddock.Full {
			f.How, f.Cause, f.Remedy = "none, and nothing else can be had here", rules.Cause, rules.Remedy
		}
		list = append(list, f)
	}
	return list
}
