package guestkernel

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Probe is a box.Probe of a tier with a guest kernel.
type Probe struct {
	Root    bool // root of an image is root: see box.Tier
	Site    *box.Site
	Name    func() string              // name and version of the commands' kernel
	Program program.Program            // of the box's init
	Init    func() (*os.File, error)   // opens it
	Words   map[paddock.Control]string // how controls are enforced, if it differs from other guest kernels
	Audits  bool                       // the guest kernel reports events of its processes
	Watches bool                       // commands that watch a mount learn what the host changes in it
}

// Version implements box.Probe.
func (p *Probe) Version() string { return p.Name() + " on Linux " + sys.Release() }

// Capabilities implements box.Probe.
func (p *Probe) Capabilities(grouped bool) []paddock.Capability {
	var list []paddock.Capability
	if p.Audits {
		list = append(list, paddock.CanAudit)
	}
	if p.Watches {
		list = append(list, paddock.CanWatchHost)
	}
	list = append(list, paddock.CanNetworkList, paddock.CanUpdatePolicy)
	if grouped {
		list = append(list, paddock.CanUpdateLimits)
	}
	return append(list, paddock.CanPause, paddock.CanSnapshotFiles, paddock.CanSnapshotMemory, paddock.CanRootSnapshot, paddock.CanUsers, paddock.CanSudo)
}

// Controls implements box.Probe. A link is a pair of sockets, so every host has one.
func (p *Probe) Controls(spec *paddock.Spec, trial *box.Failure) []paddock.Finding {
	words := map[paddock.Control]string{
		paddock.ControlNetNS:    "a loopback of its own, and one link, which leads to the kernel's supervisor and no further",
		paddock.ControlReadOnly: "recursive, by mount_setattr; the system is below a private layer in memory",
		paddock.ControlSeccomp:  "the kernel's own allow list of the host's calls; a deny list around it",
		paddock.ControlKeyring:  "the kernel has none, and its own processes are refused every call about the host's",
		paddock.ControlDisk:     "a layer in the kernel's memory of that size holds everything private; a writable mount is bounded by its own file system only",
		paddock.ControlFiles:    "RLIMIT_NOFILE, in the kernel",
	}
	if p.Root && spec != nil && spec.Root.Kind == paddock.RootImage {
		words[paddock.ControlCapabilities] = "none over the host; in the sandbox's own kernel, root of the image has those that Docker gives"
		words[paddock.ControlNoNewPrivs] = "nothing gains a privilege over the host; in the sandbox's own kernel, set-id programs of the image work"
	}
	maps.Copy(words, p.Words)
	list := append(box.Findings(words, paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: box.ListHow}),
		paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Full, How: p.Name() + ": system calls of commands are answered by it, never by the host's" + p.unkept()},
		paddock.Finding{Control: paddock.ControlProtected, Strength: paddock.Full,
			How: "a broker does every change below a writable mount, by name; the kernel's process may do none itself; a hard link that was there before is the file itself"})
	if trial != nil {
		list = trial.Absent(list...)
	}
	return list
}

// Limits implements box.Probe.
func (p *Probe) Limits() []paddock.Finding {
	pids := paddock.Finding{Control: paddock.ControlPIDs, Strength: paddock.Full, How: "a control group in the kernel, which commands cannot reach"}
	list := p.Site.LimitFindings(pids)
	for i := range list {
		if list[i].Control == paddock.ControlPIDs {
			list[i] = pids
		}
	}
	return list
}

// unkept reports if the program of the box's init is not kept as a file, which only costs
// time.
func (p *Probe) unkept() string {
	if p.Program.Self() {
		return ""
	}
	f, err := p.Init()
	if err != nil {
		return ""
	}
	defer f.Close()
	if filepath.IsAbs(f.Name()) {
		return ""
	}
	return fmt.Sprintf("; its program is unpacked at each start, because %s cannot be written, is not the caller's alone, or may not be executed from", p.Site.Cache)
}

// Refuse returns an error for what no tier with a guest kernel can do. audits means that
// the tier's kernel reports events.
func Refuse(spec *paddock.Spec, audits bool) error {
	if spec.Policy.Network.Mode == paddock.NetworkHost {
		return fmt.Errorf("network mode %.64q: this tier never shares the host's network: %w", string(spec.Policy.Network.Mode), paddock.Unsupported)
	}
	if box.AsksKernel(spec) && !audits {
		return fmt.Errorf("audit: this tier has no kernel that could tell what processes do: %w", paddock.Unsupported)
	}
	if spec.Sudo {
		if err := refuseSudo(spec); err != nil {
			return err
		}
	}
	if spec.Root.Kind == paddock.RootOpen {
		return fmt.Errorf("root %.64q: this tier shows no whole tree of the host's; name what is to be seen: %w", string(spec.Root.Kind), paddock.Unsupported)
	}
	return nil
}

// refuseSudo returns an error if a sandbox cannot have sudo.
func refuseSudo(spec *paddock.Spec) error {
	for _, m := range spec.Mounts {
		if target := filepath.Clean(cmp.Or(m.Target, m.Source)); hostroot.Within(sudo.Path, target) {
			return fmt.Errorf("sudo: it stands at %s, which the mount at %s would cover; mount that elsewhere, or what is below it: %w", sudo.Path, target, paddock.Invalid)
		}
	}
	for _, p := range slices.Concat(spec.Policy.Files.DenyRead, spec.Policy.Files.DenyWrite) {
		if hostroot.Within(sudo.Path, filepath.Clean(p)) {
			return fmt.Errorf("sudo: it stands at %s, which %s would be denied with: %w", sudo.Path, p, paddock.Invalid)
		}
	}
	return nil
}
