// Package description describes what a simulated computer can do. It does not import the engine, so
// that a program which only asks starts fast.
package description

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Version is what the simulated computer calls itself.
const Version = "1"

// Facts are what a description depends on.
type Facts struct {
	Limits    budget.Limits
	Networked bool              // there is a way to a network, for those that ask for one
	Walls     []paddock.Finding // controls around the process
}

// Info describes the computers that these facts are of. Another tier than
// [paddock.Sim] is unsupported.
func Info(tier paddock.Tier, f Facts) (paddock.Info, error) {
	if tier != paddock.Auto && tier != paddock.Sim {
		return paddock.Info{}, fmt.Errorf("tier %.64q is not %q: %w", string(tier), string(paddock.Sim), paddock.Unsupported)
	}
	l := f.Limits.Filled()
	info := paddock.Info{
		Tier: paddock.Sim, Available: true, Version: "sim " + Version, Controls: Controls(f.Walls),
		Defaults: paddock.Limits{Memory: l.Heap, CPUs: 1, PIDs: int(l.Tasks), Disk: l.Disk, Files: int(l.Descriptors)},
		Capabilities: []paddock.Capability{
			paddock.CanTerminal, paddock.CanAttach, paddock.CanWatch, paddock.CanPause, paddock.CanSnapshotFiles, paddock.CanUpdateLimits,
			paddock.CanUpdatePolicy, paddock.CanUsers, paddock.CanRootHost, paddock.CanRootSnapshot, paddock.CanMount, paddock.CanMountOverlay,
		},
	}
	if f.Networked {
		info.Capabilities = append(info.Capabilities, paddock.CanNetworkList)
	}
	return info, nil
}

// Controls lists what stands between a script and the host.
func Controls(walls []paddock.Finding) []paddock.Finding {
	const none = "there is no process: what runs is a Go function that is handed a task and nothing else"
	full := func(c paddock.Control, how string) paddock.Finding {
		return paddock.Finding{Control: c, Strength: paddock.Full, How: how}
	}
	processors := "tasks are made to wait at their checkpoints, also for what a library did since the one before"
	if len(walls) > 0 { // there is a process of its own
		processors += "; the host stops the process for as long as it has had more, by the kernel's count"
	}
	return append([]paddock.Finding{
		full(paddock.ControlUserNS, none),
		full(paddock.ControlMountNS, "a file system in memory; a mount is read through a directory that was opened beforehand, and no link of it is followed on the host"),
		full(paddock.ControlPIDNS, none),
		full(paddock.ControlNetNS, "no tool can make a socket"),
		full(paddock.ControlIPCNS, none),
		full(paddock.ControlUTSNS, none),
		full(paddock.ControlReadOnly, "nothing is ever written to a mount's source"),
		full(paddock.ControlNoNewPrivs, none),
		full(paddock.ControlCapabilities, none),
		full(paddock.ControlEnvironment, "made anew from a list"),
		full(paddock.ControlDescriptors, none),
		full(paddock.ControlIdentity, none),
		full(paddock.ControlNetwork, "no tool has a way to the network"),
		{
			Control: paddock.ControlMemory, Strength: paddock.Full,
			How: "counted by the interpreter and the tools; libraries that hold memory of their own have a bound each",
		},
		full(paddock.ControlCPU, processors),
		full(paddock.ControlPIDs, "counted"),
		full(paddock.ControlDisk, "counted"),
		full(paddock.ControlFiles, "counted"),
	}, walls...)
}

// Overhead is how many bytes of memory the process of a computer may hold beside what its limits of
// memory and disk count: the runtime's own, garbage, the output that is kept of ended commands, and
// what libraries do not count. Above that, what runs is ended.
const Overhead = 256 << 20

// HostMemory returns the bytes of the host's memory that a computer with these limits can take, on a
// driver with these bounds. Its files are in memory and do not count as the memory limit.
func HostMemory(b budget.Limits, l paddock.Limits) int64 {
	l, _ = Limits(b, l)
	sum := int64(Overhead)
	for _, n := range []int64{l.Memory, l.Disk} {
		sum += min(max(n, 0), math.MaxInt64-sum)
	}
	return sum
}

// Planned is HostMemory for [paddock.MemoryPlanner].
func Planned(b budget.Limits, tier paddock.Tier, l paddock.Limits) (int64, bool) {
	if tier != paddock.Auto && tier != paddock.Sim {
		return 0, false
	}
	return HostMemory(b, l), true
}

// BaseName names the system that a snapshot is relative to.
const BaseName = "sim:" + Version

// NewMeta describes a new snapshot of a computer that began with another one,
// or with none.
func NewMeta(name string, parent paddock.SnapshotID) snapshot.Meta {
	return snapshot.Meta{
		ID: snapshot.NewID(), Tier: paddock.Sim, Base: BaseName, Parent: parent, Name: name, Created: time.Now(),
		Owner: &snapshot.Owner{UID: userID, GID: userID, Home: UserHome},
	}
}

// The user that commands run as unless a spec names another one. [UserHome] is the home.
const (
	userID   = 1000
	UserHome = "/home/user"
)

// hostBase is what other tiers call the system of the host, which a snapshot of theirs may be relative to.
const hostBase = "host"

// CheckBase tells whether this tier can open a snapshot. One of another tier is put over this computer's system.
func CheckBase(m snapshot.Meta) error {
	if m.Base != BaseName && m.Base != hostBase {
		return fmt.Errorf("snapshot %q is relative to %q, and this computer's system is %q: choose another tier: %w", string(m.ID), m.Base, BaseName, paddock.Unsupported)
	}
	return nil
}

// FitOf is what a computer can have of a snapshot of files. From another tier nothing of the system comes along.
func FitOf(m snapshot.Meta) *snapshot.Fit {
	f := &snapshot.Fit{From: m.Owner, To: snapshot.Owner{UID: userID, GID: userID, Home: UserHome}, Devices: true, Sockets: true}
	if m.Base != BaseName {
		f.Own = func(path string) bool { return path == "dev" || path == "proc" || path == "sys" }
		f.Places = []string{strings.TrimPrefix(UserHome, "/"), "tmp", "var/tmp", "run"}
	}
	return f
}

// CheckLimits returns an error if a limit is negative or too small, or if this tier does not have it.
func CheckLimits(l paddock.Limits) error {
	if l.Memory < 0 || l.CPUs < 0 || l.CPUs != l.CPUs || l.PIDs < 0 || l.Disk < 0 || l.Files < 0 || l.IO < 0 || l.Lifetime < 0 {
		return fmt.Errorf("a limit is negative: %w", paddock.Invalid)
	}
	for _, small := range []struct {
		what      string
		have, min int64
	}{{"memory", l.Memory, 1 << 20}, {"pids", int64(l.PIDs), 4}, {"disk", l.Disk, 1 << 20}, {"files", int64(l.Files), 16}} {
		if small.have != 0 && small.have < small.min {
			return fmt.Errorf("limit %s is too small: a box needs at least %d: %w", small.what, small.min, paddock.Invalid)
		}
	}
	if l.IO != 0 {
		return fmt.Errorf("a limit on input and output: files are in memory: %w", paddock.Unsupported)
	}
	return nil
}

// CheckPolicy returns an error if this tier does not obey a policy, apart from the rules of the network.
func CheckPolicy(p paddock.Policy) error {
	f := p.Files
	for _, name := range slices.Concat(f.DenyRead, f.DenyWrite) {
		if err := CheckPath(name); err != nil {
			return fmt.Errorf("deny: %w", err)
		}
		if strings.ContainsAny(name, "*?[") {
			return fmt.Errorf("deny %s: patterns are not understood, so the rule would hold for nothing: name the directory: %w", name, paddock.Invalid)
		}
		if path.Clean(name) == "/" {
			return fmt.Errorf("deny /: then nothing can run: %w", paddock.Invalid)
		}
	}
	if len(f.Protect) > 0 || len(f.Unprotect) > 0 {
		return fmt.Errorf("protected names guard what reaches the host, and nothing does from this tier: %w", paddock.Unsupported)
	}
	for _, k := range p.Audit {
		if !slices.Contains(paddock.AuditKinds(), k) {
			return fmt.Errorf("audit %.64q: there is no such kind of event: %w", string(k), paddock.Invalid)
		}
	}
	if len(p.KeyAgents) > 0 {
		return fmt.Errorf("key agents: no program of this tier uses one: %w", paddock.Unsupported)
	}
	if slices.ContainsFunc(p.Audit, paddock.AuditKind.OfProcess) {
		return fmt.Errorf("audit: this tier records nothing of what its programs do: %w", paddock.Unsupported)
	}
	return nil
}

// CheckNetwork returns an error if the mode of a network is not one of this tier's, or if there are
// rules or secrets without a list.
func CheckNetwork(p paddock.NetworkPolicy) error {
	switch p.Mode {
	case paddock.NetworkNone:
		if len(p.Rules) > 0 {
			return fmt.Errorf("rules of a network that there is not: set the mode to %q: %w", string(paddock.NetworkList), paddock.Invalid)
		}
		if len(p.Secrets) > 0 {
			return fmt.Errorf("secrets of a network that there is not: set the mode to %q: %w", string(paddock.NetworkList), paddock.Invalid)
		}
	case paddock.NetworkList:
	case paddock.NetworkHost:
		return fmt.Errorf("network %.64q: this tier has no network of the host's: %w", string(p.Mode), paddock.Unsupported)
	default:
		return fmt.Errorf("network %.64q is none: %w", string(p.Mode), paddock.Invalid)
	}
	return nil
}

// LateNetwork is the error of a sandbox that was made without a network and is to get one.
func LateNetwork(p paddock.NetworkPolicy) error {
	return fmt.Errorf("network %.64q: a sandbox that was made without a network gets none while it lives; make another one, with a list, which may be empty: %w", string(p.Mode), paddock.Unsupported)
}

// CheckPath returns an error if a path of the computer is not absolute, or leads upwards.
func CheckPath(p string) error {
	switch {
	case strings.Contains(p, "\x00"):
		return fmt.Errorf("path %.200q holds a NUL byte: %w", p, paddock.Invalid)
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("path %.200q is not absolute: %w", p, paddock.Invalid)
	case len(p) > 4095:
		return fmt.Errorf("a path of %d bytes is too long: %w", len(p), paddock.Invalid)
	case slices.Contains(strings.Split(p, "/"), ".."):
		return fmt.Errorf("path %.200q has a .. in it: %w", p, paddock.Invalid)
	}
	return nil
}

// A sandbox with a limit of its disk may have one file for each bytesPerInode of
// it, as the defaults of both limits have, but at least fewestInodes.
const (
	bytesPerInode = 2 << 10
	fewestInodes  = 2000
)

// Changed returns the limits of a sandbox that has some and gets others: zero keeps one. Both are as they
// were asked for, so that a limit without a value keeps following the default.
func Changed(has, l paddock.Limits) paddock.Limits {
	return paddock.Limits{
		Memory: cmp.Or(l.Memory, has.Memory), CPUs: cmp.Or(l.CPUs, has.CPUs), PIDs: cmp.Or(l.PIDs, has.PIDs), Disk: cmp.Or(l.Disk, has.Disk),
		Files: cmp.Or(l.Files, has.Files), IO: cmp.Or(l.IO, has.IO), Lifetime: cmp.Or(l.Lifetime, has.Lifetime),
	}
}

// Limits returns a sandbox's limits with defaults filled in, and what they are for its engine, on a
// driver with these bounds.
func Limits(b budget.Limits, l paddock.Limits) (paddock.Limits, budget.Limits) {
	if l.Memory > 0 {
		// One value may be as large as all of them.
		b.Heap, b.String, b.Record, b.Input, b.Heredoc = l.Memory, l.Memory, l.Memory, l.Memory, l.Memory
	}
	b.Tasks = cmp.Or(int64(l.PIDs), b.Tasks)
	if l.Disk > 0 && b.Inodes == 0 {
		// Files are in memory, also empty ones.
		b.Inodes = min(max(l.Disk/bytesPerInode, fewestInodes), budget.Limits{}.Filled().Inodes)
	}
	b.Disk = cmp.Or(l.Disk, b.Disk)
	b.Descriptors = cmp.Or(int64(l.Files), b.Descriptors)
	b = b.Filled()
	l.Memory, l.PIDs, l.Disk, l.Files = b.Heap, int(b.Tasks), b.Disk, int(b.Descriptors)
	if l.CPUs == 0 {
		l.CPUs = 1
	}
	return l, b
}
