package jail

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// landlockNeeded is the version of Landlock that the tier needs. It is the first one that
// also controls truncation (Linux 6.2).
const landlockNeeded = 3

// A probe detects the features of this host's kernel.
type probe struct{ site *box.Site }

// Version implements box.Probe.
func (probe) Version() string { return "Linux " + sys.Release() }

// Capabilities implements box.Probe.
func (probe) Capabilities(grouped bool) []paddock.Capability {
	list := []paddock.Capability{paddock.CanNetworkHost, paddock.CanWatchHost, paddock.CanRootSnapshot}
	if rules().Strength == paddock.Full {
		list = append(list, paddock.CanNetworkList, paddock.CanUpdatePolicy)
	}
	if grouped {
		list = append(list, paddock.CanUpdateLimits, paddock.CanPause, paddock.CanSnapshotFiles)
	}
	return list
}

// Controls implements box.Probe.
func (probe) Controls(spec *paddock.Spec, trial *box.Failure) []paddock.Finding {
	words := map[paddock.Control]string{
		paddock.ControlNetNS:    "no interface but its own loopback",
		paddock.ControlReadOnly: "recursive, by mount_setattr",
		paddock.ControlSeccomp:  "a deny list for the agent and all commands; a second filter for commands",
		paddock.ControlKeyring:  "a new session keyring; keyctl is refused",
		paddock.ControlDisk:     "a tmpfs of that size holds everything private; a writable mount is bounded by its own file system only",
		paddock.ControlFiles:    "RLIMIT_NOFILE",
	}
	if spec != nil && spec.Policy.Network.Mode == paddock.NetworkList {
		words[paddock.ControlNetNS] = "its own loopback, and one link, which leads to its gateway and no further"
	}
	list := box.Findings(words, rules())
	if trial != nil {
		list = trial.Absent(list...)
	}
	own, protected := landlock(), landlock()
	protected.Control = paddock.ControlProtected
	if protected.Strength == paddock.Full {
		protected.How = "a broker does every change below a writable mount, by name; Landlock refuses all others; a hard link that was there before is the file itself"
	}
	return append(list, own, protected)
}

// Limits implements box.Probe.
func (p probe) Limits() []paddock.Finding {
	list := p.site.LimitFindings(paddock.Finding{Control: paddock.ControlPIDs, Strength: paddock.Full, How: "RLIMIT_NPROC, counted in the sandbox's own user namespace"})
	for i := range list {
		if f := &list[i]; f.Control == paddock.ControlMemory && f.Strength == paddock.Full {
			f.How += "; the kernel charges file locks, netlink queues and unsent datagrams to nobody, and of these only the sockets have a bound"
		}
	}
	return list
}

// landlock reports whether this kernel can restrict the files of commands as the tier
// needs.
func landlock() paddock.Finding {
	abi := sys.LandlockABI()
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

// rules reports whether this host can make a link for a box, which a network with rules
// needs.
func rules() paddock.Finding {
	tun, err := sys.OpenTUN()
	if err == nil {
		tun.Close()
		return paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Full, How: box.ListHow}
	}
	f := paddock.Finding{Control: paddock.ControlNetwork, Strength: paddock.Absent, Cause: fmt.Sprintf("a network with rules needs an interface for packets, and there is none to be had: %s", err),
		Remedy: "load its module: sudo modprobe tun; in a container: --device " + sys.TUNPath}
	if errors.Is(err, fs.ErrPermission) {
		f.Remedy = "let every user open it: sudo chmod 0666 " + sys.TUNPath
	}
	return f
}
