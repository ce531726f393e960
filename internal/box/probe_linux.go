package box

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// landlockNeeded is the version of Landlock that the tier stands on: the first
// that also knows cutting files short (Linux 6.2).
const landlockNeeded = 3

// Info implements paddock.Driver.
func (d *Driver) Info(ctx context.Context) (paddock.Info, error) {
	info := paddock.Info{Tier: d.tier, Version: "Linux " + kernel.Release(), Defaults: defaults()}
	if d.kernel != nil {
		info.Version = d.kernelName() + " on " + info.Version
	}
	info.Controls = d.controls(d.trial(ctx))
	info.Available = !slices.ContainsFunc(info.Controls, func(f paddock.Finding) bool {
		return f.Strength == paddock.Absent && !optional(f.Control)
	})
	if !info.Available {
		return info, nil
	}
	info.Capabilities = []paddock.Capability{paddock.CanTerminal, paddock.CanAttach, paddock.CanWatch, paddock.CanDial, paddock.CanOutlive,
		paddock.CanRootHost, paddock.CanRootDir, paddock.CanPrograms, paddock.CanMount, paddock.CanMountWrite}
	if d.kernel == nil {
		info.Capabilities = append(info.Capabilities, paddock.CanNetworkHost)
	} else if d.kernel.Receive != nil {
		info.Capabilities = append(info.Capabilities, paddock.CanAudit)
	}
	if d.listFinding().Strength == paddock.Full {
		info.Capabilities = append(info.Capabilities, paddock.CanNetworkList, paddock.CanUpdatePolicy)
	}
	f, _ := info.Finding(paddock.ControlMemory)
	grouped := f.Strength == paddock.Full
	if grouped {
		info.Capabilities = append(info.Capabilities, paddock.CanUpdateLimits)
	}
	if grouped || d.kernel != nil {
		info.Capabilities = append(info.Capabilities, paddock.CanPause)
	}
	if d.kernel != nil {
		info.Capabilities = append(info.Capabilities, paddock.CanSnapshotFiles, paddock.CanSnapshotMemory, paddock.CanRootSnapshot, paddock.CanUsers, paddock.CanSudo)
	}
	return info, nil
}

// optional are the controls whose absence only matters to a spec that asks for
// a limit by them.
func optional(c paddock.Control) bool {
	return c == paddock.ControlIO || c == paddock.ControlCPU
}

// controlNames lists the controls of this tier.
func (d *Driver) controlNames() []paddock.Control {
	own := paddock.ControlLandlock
	if d.kernel != nil {
		own = paddock.ControlKernel
	}
	return []paddock.Control{paddock.ControlUserNS, paddock.ControlMountNS, paddock.ControlPIDNS, paddock.ControlNetNS, paddock.ControlIPCNS,
		paddock.ControlUTSNS, paddock.ControlCgroupNS, paddock.ControlTimeNS, paddock.ControlReadOnly, own, paddock.ControlSeccomp,
		paddock.ControlNoNewPrivs, paddock.ControlCapabilities, paddock.ControlKeyring, paddock.ControlEnvironment, paddock.ControlDescriptors,
		paddock.ControlIdentity, paddock.ControlProtected, paddock.ControlNetwork, paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs,
		paddock.ControlIO, paddock.ControlDisk, paddock.ControlFiles}
}

// controls tells what this host enforces, given what a trial box failed by; nil
// is one that stood.
func (d *Driver) controls(trial *failure) []paddock.Finding {
	var list []paddock.Finding
	kernelHow := ""
	if d.kernel != nil {
		kernelHow = d.kernelName() + ": system calls of commands are answered by it, never by the host's"
	}
	for _, c := range []struct {
		control paddock.Control
		how     string
		nested  string // the same where there is a kernel of the box's own; empty is how
	}{
		{paddock.ControlUserNS, "one user of the host is mapped, and no other", ""},
		{paddock.ControlMountNS, "a tree of its own; the host's is not reachable", ""},
		{paddock.ControlPIDNS, "sees its own processes only", ""},
		{paddock.ControlNetNS, "no interface but its own loopback", "a loopback of its own, and one link, which leads to the kernel's starter and no further"},
		{paddock.ControlIPCNS, "System V and POSIX IPC of its own", ""},
		{paddock.ControlUTSNS, "a hostname of its own", ""},
		{paddock.ControlCgroupNS, "the host's groups have no names", ""},
		{paddock.ControlTimeNS, "clocks of its own", ""},
		{paddock.ControlReadOnly, "recursive, by mount_setattr", "recursive, by mount_setattr; the system is below a private layer in memory"},
		{paddock.ControlSeccomp, "a deny list for the agent and all commands; a second filter for commands", "the kernel's own allow list of the host's calls; a deny list around it"},
		{paddock.ControlNoNewPrivs, "set-id programs and file capabilities have no effect", ""},
		{paddock.ControlCapabilities, "every set is empty, the bounding set too", ""},
		{paddock.ControlKeyring, "a new session keyring; keyctl is refused", "the kernel has none, and its own processes are refused every call about the host's"},
		{paddock.ControlEnvironment, "an allow list", ""},
		{paddock.ControlDescriptors, "none but the command's own", ""},
		{paddock.ControlIdentity, identityHow(), ""},
		{paddock.ControlNetwork, "none; or by a list of rules: " + listHow, ""},
		{paddock.ControlDisk, "a tmpfs of that size holds everything private; a writable mount is bounded by its own file system only", "a layer in the kernel's memory of that size holds everything private; a writable mount is bounded by its own file system only"},
		{paddock.ControlFiles, "RLIMIT_NOFILE", "RLIMIT_NOFILE, in the kernel"},
	} {
		f := paddock.Finding{Control: c.control, Strength: paddock.Full, How: c.how}
		if d.kernel != nil && c.nested != "" {
			f.How = c.nested
		}
		if how := inMachine(c.control); how != "" && d.machine() != nil {
			f.How = how
		}
		if lack := d.listFinding(); c.control == paddock.ControlNetwork && lack.Strength != paddock.Full {
			f = paddock.Finding{Control: c.control, Strength: paddock.Full, How: "none, and nothing else can be had here", Cause: lack.Cause, Remedy: lack.Remedy}
		}
		if trial != nil {
			f = paddock.Finding{Control: c.control, Strength: paddock.Absent, Cause: trial.cause, Remedy: trial.remedy}
		}
		list = append(list, f)
	}
	if d.kernel != nil {
		own := paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Full, How: kernelHow + d.unkept()}
		guard := paddock.Finding{Control: paddock.ControlProtected, Strength: paddock.Full,
			How: "a broker does every change below a writable mount, by name; the kernel's process may do none itself; a hard link that was there before is the file itself"}
		if trial != nil {
			own = paddock.Finding{Control: own.Control, Strength: paddock.Absent, Cause: trial.cause, Remedy: trial.remedy}
			guard = paddock.Finding{Control: guard.Control, Strength: paddock.Absent, Cause: trial.cause, Remedy: trial.remedy}
		}
		return append(append(list, own, guard), d.limits()...)
	}
	list = append(list, landlockFinding())
	p := landlockFinding()
	p.Control = paddock.ControlProtected
	if p.Strength == paddock.Full {
		p.How = "a broker does every change below a writable mount, by name; Landlock refuses all others; a hard link that was there before is the file itself"
	}
	list = append(list, p)
	return append(list, d.limits()...)
}

// machine is what the kernel of the box's own runs in; nil is a process.
func (d *Driver) machine() Machine {
	if d.kernel == nil {
		return nil
	}
	return d.kernel.Machine
}

// kernelName is what commands run on, with its version.
func (d *Driver) kernelName() string {
	if m := d.machine(); m != nil {
		if about := m.About(); about != "" {
			return about
		}
	}
	return d.kernel.Name
}

// listFinding tells whether this host can give a box a link.
func (d *Driver) listFinding() paddock.Finding {
	f := paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: listHow}
	if d.kernel != nil {
		return f // a pair of sockets
	}
	tun, err := kernel.OpenTUN()
	if err == nil {
		tun.Close()
		return f
	}
	f = paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Absent, Cause: fmt.Sprintf("a network with rules needs an interface for packets, and there is none to be had: %s", err),
		Remedy: "load its module: sudo modprobe tun; in a container: --device " + kernel.TUNPath}
	if errors.Is(err, fs.ErrPermission) {
		f.Remedy = "let every user open it: sudo chmod 0666 " + kernel.TUNPath
	}
	return f
}

// unkept tells where the kernel's program is not kept as a file, which only takes
// time.
func (d *Driver) unkept() string {
	if d.kernel.Program.Self() {
		return ""
	}
	if f, err := d.exe(); err != nil || filepath.IsAbs(f.Name()) {
		return ""
	}
	return fmt.Sprintf("; its program is unpacked at each start, because %s cannot be written, is not the caller's alone, or may not be executed from", d.cache)
}

func identityHow() string {
	if os.Geteuid() == 0 {
		return "a number of the host's kernel that belongs to nobody, another one for each sandbox"
	}
	return fmt.Sprintf("the calling user, number %d; its supplementary groups cannot be given up", os.Geteuid())
}

func landlockFinding() paddock.Finding {
	abi := kernel.LandlockABI()
	f := paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Full, How: fmt.Sprintf("version %d", abi)}
	switch {
	case abi == 0:
		f = paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Absent, Cause: "this kernel has no Landlock, or it is not in use",
			Remedy: "boot with lsm=landlock,… (see /sys/kernel/security/lsm), on Linux 6.2 or later"}
	case abi < landlockNeeded:
		f = paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Absent, Cause: fmt.Sprintf("this kernel has Landlock version %d, which does not know cutting files short", abi),
			Remedy: "use Linux 6.2 or later"}
	}
	return f
}

// limits are the findings of the control groups, or of what serves in their
// place.
func (d *Driver) limits() []paddock.Finding {
	findings := d.host().Findings()
	if d.kernel != nil {
		defer func() {
			for i, f := range findings {
				if f.Control == paddock.ControlPIDs {
					findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "a control group in the kernel, which commands cannot reach"}
				}
			}
		}()
	}
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
			findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "RLIMIT_NPROC, counted in the sandbox's own user namespace"}
		}
	}
	return findings
}

// grouped tells whether sandboxes get a control group here: memory decides.
func grouped(findings []paddock.Finding) bool {
	return slices.ContainsFunc(findings, func(f paddock.Finding) bool {
		return f.Control == paddock.ControlMemory && f.Strength == paddock.Full
	})
}

// bounds fills in the limits of a spec and says how each is enforced. A limit
// that was asked for and cannot be enforced in full is refused, unless its
// weakness was accepted by name. Memory's default is bounded as well as this
// host can.
func (d *Driver) bounds(spec *paddock.Spec) (limits paddock.Limits, groups bool, findings []paddock.Finding, err error) {
	limits = defaults()
	asked := map[paddock.Control]bool{}
	l := spec.Limits
	if l.Memory > 0 {
		limits.Memory, asked[paddock.ControlMemory] = l.Memory, true
	}
	if l.CPUs > 0 {
		limits.CPUs, asked[paddock.ControlCPU] = l.CPUs, true
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
	findings = d.limits()
	groups = grouped(findings)
	for i, f := range findings {
		switch {
		case f.Strength == paddock.Full:
		case asked[f.Control] && !slices.Contains(spec.AllowMissing, f.Control):
			return limits, groups, nil, &paddock.MissingError{Finding: f}
		case asked[f.Control]:
			// Accepted by name; told in Status.
		case f.Control == paddock.ControlCPU:
			findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "all processors of this machine, by default; a smaller number needs a control group"}
		case f.Control == paddock.ControlIO:
			findings[i] = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "none was asked for; one needs a control group"}
		}
		switch {
		case f.Strength != paddock.Absent:
		case f.Control == paddock.ControlCPU:
			limits.CPUs = defaults().CPUs // which is what stands
		case f.Control == paddock.ControlIO:
			limits.IO = 0
		}
	}
	return limits, groups, append(d.standing(spec), findings...), nil
}

// standing are the findings of a box that stands: everything that cannot be
// had would have kept it from being made.
func (d *Driver) standing(spec *paddock.Spec) []paddock.Finding {
	open := spec.Root.Kind == paddock.RootOpen
	var list []paddock.Finding
	// The trial is not made again: the box is the trial.
	list = append(list, d.controls(nil)...)
	list = slices.DeleteFunc(list, func(f paddock.Finding) bool {
		switch f.Control {
		case paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlIO:
			return true
		}
		return false
	})
	for i := range list {
		f := &list[i]
		switch {
		case (f.Control == paddock.ControlNetNS || f.Control == paddock.ControlNetwork) && spec.Policy.Network.Mode == paddock.NetworkHost:
			*f = paddock.Finding{Control: f.Control, Strength: paddock.Absent, Cause: "the spec asks for the host's network"}
		case f.Control == paddock.ControlNetwork && spec.Policy.Network.Mode == paddock.NetworkList:
			*f = owner.State{}.Finding(listHow)
		case f.Control == paddock.ControlNetwork:
			*f = paddock.Finding{Control: f.Control, Strength: paddock.Full, How: "none"}
		case f.Control == paddock.ControlNetNS && spec.Policy.Network.Mode == paddock.NetworkList && d.kernel == nil:
			f.How = "its own loopback, and one link, which leads to its gateway and no further"
		case f.Control == paddock.ControlMountNS && open:
			f.How = "a tree of its own that shows the host's whole tree, as the spec asks"
		}
	}
	return list
}

// refuse answers what this host or tier cannot do, before anything is made.
func (d *Driver) refuse(spec *paddock.Spec) error {
	switch {
	case spec.Policy.Network.Mode == paddock.NetworkNone:
	case spec.Policy.Network.Mode == paddock.NetworkHost && d.kernel == nil:
	case spec.Policy.Network.Mode == paddock.NetworkList:
		if f := d.listFinding(); f.Strength != paddock.Full {
			return &paddock.MissingError{Finding: f}
		}
	case spec.Policy.Network.Mode == paddock.NetworkHost:
		return fmt.Errorf("network mode %q: this tier never shares the host's network: %w", string(spec.Policy.Network.Mode), paddock.Unsupported)
	default:
		return fmt.Errorf("network mode %q: there is none, list and host only: %w", string(spec.Policy.Network.Mode), paddock.Invalid)
	}
	if len(spec.Policy.Audit) > 0 {
		network := spec.Policy.Network.Mode == paddock.NetworkList && !slices.ContainsFunc(spec.Policy.Audit, func(k paddock.AuditKind) bool { return k != paddock.AuditNetwork })
		switch {
		case (d.kernel == nil || d.kernel.Receive == nil) && !network:
			return fmt.Errorf("audit: this tier has no kernel that could tell what processes do: %w", paddock.Unsupported)
		case spec.Ephemeral && d.audit == nil:
			return fmt.Errorf("audit: this driver has nowhere to record what an ephemeral sandbox does: %w", paddock.Unsupported)
		}
	}
	if spec.Sudo {
		if err := d.refuseSudo(spec); err != nil {
			return err
		}
	}
	if d.kernel != nil {
		if spec.Root.Kind == paddock.RootOpen {
			return fmt.Errorf("root %q: this tier shows no whole tree of the host's; name what is to be seen: %w", string(spec.Root.Kind), paddock.Unsupported)
		}
		return nil
	}
	if f := landlockFinding(); f.Strength != paddock.Full && !slices.Contains(spec.AllowMissing, paddock.ControlLandlock) {
		return &paddock.MissingError{Finding: f}
	} else if f.Strength != paddock.Full && !slices.Contains(spec.AllowMissing, paddock.ControlProtected) &&
		slices.ContainsFunc(spec.Mounts, func(m paddock.Mount) bool { return m.Write }) {
		f.Control = paddock.ControlProtected
		return &paddock.MissingError{Finding: f}
	}
	return nil
}

// refuseSudo answers where a sandbox cannot have sudo.
func (d *Driver) refuseSudo(spec *paddock.Spec) error {
	if d.kernel == nil {
		return fmt.Errorf("sudo: this tier has one user, and nothing in it becomes another one; ask for a tier with a kernel of its own, gvisor or microvm, or leave it out: %w", paddock.Unsupported)
	}
	for _, m := range spec.Mounts {
		if target := filepath.Clean(cmp.Or(m.Target, m.Source)); within(sudo.Path, target) {
			return fmt.Errorf("sudo: it stands at %s, which the mount at %s would cover; mount that elsewhere, or what is below it: %w", sudo.Path, target, paddock.Invalid)
		}
	}
	for _, p := range slices.Concat(spec.Policy.Files.DenyRead, spec.Policy.Files.DenyWrite) {
		if within(sudo.Path, filepath.Clean(p)) {
			return fmt.Errorf("sudo: it stands at %s, which %s would be denied with: %w", sudo.Path, p, paddock.Invalid)
		}
	}
	return nil
}

// trialMemory is what a machine has that is only tried, in bytes.
const trialMemory = 128 << 20

// trial makes a process in new namespaces and tells what went wrong.
func (d *Driver) trial(ctx context.Context) *failure {
	need := Need{Limits: defaults(), Data: d.hidden}
	if m := d.machine(); m != nil {
		if f := m.Lack(); f != nil {
			return &failure{cause: f.Cause, remedy: f.Remedy}
		}
		need.Limits.Memory = trialMemory
		var err error
		if need.Agent, err = d.agent(); err != nil {
			return &failure{cause: err.Error()}
		}
	}
	s, err := d.plain(need)
	if err != nil {
		return &failure{cause: err.Error()}
	}
	defer closeAll(s.supplies)
	b, conn, err := newBox(ctx, s)
	if err != nil {
		var missing *paddock.MissingError
		if errors.As(err, &missing) {
			return &failure{cause: missing.Finding.Cause, remedy: missing.Finding.Remedy}
		}
		return around(d.kernel != nil).diagnose(err)
	}
	conn.Close()
	if err := b.remove(ctx); err != nil {
		return &failure{cause: err.Error()}
	}
	return nil
}
