package policy

import (
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// Check returns the settings of the file that the tier described by info cannot enforce on this host, each as a Problem
// with its line. None means that it can enforce all. AllowMissing is taken into account. Refuse turns the problems into
// an error.
func Check(f *File, info paddock.Info) []Problem {
	var problems []Problem
	if f.Tier != paddock.Auto && f.Tier != info.Tier {
		problems = append(problems, f.problem("tier", fmt.Sprintf("the file asks for the tier %s, and this is %s", f.Tier, info.Tier), ""))
	}
	for _, need := range f.needs() {
		if p, missing := f.missing(need, info); missing {
			problems = append(problems, p)
		}
	}
	return problems
}

// Refuse returns an [*Error] of kind Unsupported with the problems, or nil for none.
func Refuse(name string, problems []Problem) error {
	return newError(name, paddock.Unsupported, problems)
}

// A need is what a tier must have for one key of a file.
type need struct {
	key        string
	what       string
	capability paddock.Capability // one of the two
	control    paddock.Control
}

func (f *File) needs() []need {
	var needs []need
	add := func(asked bool, n need) {
		if asked {
			needs = append(needs, n)
		}
	}
	add(f.Root.Kind == paddock.RootHost && f.says("root"), need{key: "root", what: "the host's system as root", capability: paddock.CanRootHost})
	add(f.Root.Kind == paddock.RootDir, need{key: "root", what: "a directory as root", capability: paddock.CanRootDir})
	add(f.Root.Kind == paddock.RootImage, need{key: "root", what: "an image as root", capability: paddock.CanRootImage})
	add(f.Root.Kind == paddock.RootOpen, need{key: "root", what: "the open host as root", capability: paddock.CanRootHost})
	add(f.Workspace != "", need{key: "workspace", what: "a workspace", capability: paddock.CanMount})
	add(len(f.Mounts) > 0, need{key: "mounts", what: "mounts", capability: paddock.CanMount})
	add(f.Network.Mode == paddock.NetworkList, need{key: "network.mode", what: "the network mode list", capability: paddock.CanNetworkList})
	add(f.Network.Mode == paddock.NetworkHost, need{key: "network.mode", what: "the network mode host", capability: paddock.CanNetworkHost})
	add(len(f.KeyAgents) > 0, need{key: "forward_agent", what: "the forwarding of an agent", capability: paddock.CanForwardAgent})
	add(slices.ContainsFunc(f.Audit, paddock.AuditKind.OfProcess), need{key: "audit", what: "the recording of events", capability: paddock.CanAudit})
	add(f.Limits.Memory > 0, need{key: "limits.memory", what: "a limit of memory", control: paddock.ControlMemory})
	add(f.Limits.CPUs > 0, need{key: "limits.cpus", what: "a limit of processors", control: paddock.ControlCPU})
	add(f.Limits.PIDs > 0, need{key: "limits.pids", what: "a limit of processes", control: paddock.ControlPIDs})
	add(f.Limits.Disk > 0, need{key: "limits.disk", what: "a limit of the disk", control: paddock.ControlDisk})
	add(f.Limits.Files > 0, need{key: "limits.files", what: "a limit of open files", control: paddock.ControlFiles})
	add(f.Limits.IO > 0, need{key: "limits.io", what: "a limit of input and output", control: paddock.ControlIO})
	add(len(f.Files.Protect) > 0, need{key: "files.protect", what: "protected names", control: paddock.ControlProtected})
	return needs
}

func (f *File) missing(n need, info paddock.Info) (Problem, bool) {
	if n.capability != "" {
		if info.Can(n.capability) {
			return Problem{}, false
		}
		return f.problem(n.key, fmt.Sprintf("the tier %s cannot do %s on this host (%s)", info.Tier, n.what, n.capability), "see paddock doctor"), true
	}
	finding, listed := info.Finding(n.control)
	if (listed && finding.Strength != paddock.Absent) || slices.Contains(f.AllowMissing, n.control) {
		return Problem{}, false
	}
	text := fmt.Sprintf("the tier %s cannot enforce %s on this host (%s)", info.Tier, n.what, n.control)
	if finding.Cause != "" {
		text += ": " + finding.Cause
	}
	hint := finding.Remedy
	if hint == "" {
		hint = "see paddock doctor"
	}
	return f.problem(n.key, text, hint), true
}
