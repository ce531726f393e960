package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// A mechanism is how a control is enforced, on version 1 and 2.
type mechanism struct{ controller, v1, v2 string }

func mechanismOf(c paddock.Control) mechanism {
	switch c {
	case paddock.ControlMemory:
		return mechanism{
			memory,
			"memory.limit_in_bytes and memory.memsw.limit_in_bytes of cgroup v1" + socketHow,
			"memory.max and memory.swap.max of cgroup v2",
		}
	case paddock.ControlCPU:
		return mechanism{cpu, "cpu.cfs_quota_us of cgroup v1", "cpu.max of cgroup v2"}
	case paddock.ControlPIDs:
		return mechanism{pids, "pids.max of cgroup v1", "pids.max of cgroup v2"}
	default:
		return mechanism{blkio, "blkio.throttle of cgroup v1", "io.max of cgroup v2"}
	}
}

// socketHow describes how version 1 limits the memory of sockets.
const socketHow = ", and memory.kmem.tcp.limit_in_bytes for the buffers of TCP and UDP sockets, a quarter of the limit in addition"

// Findings reports, for the limits of memory, CPU time, processes and disk bandwidth, whether groups
// made here can enforce them. If not, it gives the reason and the remedy.
func (h *Host) Findings() []paddock.Finding {
	var all []paddock.Finding
	for _, c := range [...]paddock.Control{
		paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlIO,
	} {
		all = append(all, h.finding(c))
	}
	return all
}

func (h *Host) finding(c paddock.Control) paddock.Finding {
	m := mechanismOf(c)
	y, err := h.find(m.controller)
	if err != nil {
		return h.absent(c, err)
	}
	f := paddock.Finding{Control: c, Strength: paddock.Full, How: m.v1}
	if y.v2 {
		f.How = m.v2
	}
	switch {
	case c == paddock.ControlIO && !y.v2:
		f.Strength = paddock.Weak
		f.How += "; it counts reads and direct writes, not what the kernel writes back later from the page cache"
		f.Cause = "cgroup v1 does not know who made a page dirty"
		f.Remedy = "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"
	case c == paddock.ControlMemory && !y.v2 && !exists(path.Join(y.dir, socketFile)):
		f.Strength, f.How = paddock.Weak, "memory.limit_in_bytes of cgroup v1; the buffers of sockets do not count"
		f.Cause = "the kernel does not limit the buffers of sockets per group"
		f.Remedy = "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"
	case c == paddock.ControlMemory && !y.v2 && !exists(y.dir+"/memory.memsw.limit_in_bytes"):
		f.How = "memory.limit_in_bytes of cgroup v1" + socketHow
		if h.swaps() {
			f.Strength = paddock.Weak
			f.How += "; what is swapped out does not count"
			f.Cause = "the kernel does not account for swap per group"
			f.Remedy = "boot with swapaccount=1, or turn swap off (swapoff -a)"
		}
	}
	if c == paddock.ControlMemory && h.promises() {
		f.How += "; what a sandbox reserves and does not use has no bound, and is lost to the host's programs (vm.overcommit_memory=2)"
	}
	return f
}

// promises reports whether the kernel has a bound on what all programs together reserve.
func (h *Host) promises() bool {
	b, err := os.ReadFile(h.env.proc + "/sys/vm/overcommit_memory")
	return err == nil && strings.TrimSpace(string(b)) == "2"
}

// absent words why a control cannot be had, and the remedy that fits here.
func (h *Host) absent(c paddock.Control, err error) paddock.Finding {
	name := mechanismOf(c).controller
	f := paddock.Finding{Control: c, Strength: paddock.Absent, Cause: err.Error()}
	container := exists(h.env.root+"/.dockerenv") || exists(h.env.run+"/.containerenv")
	systemd := exists(h.env.run + "/systemd/system")
	const inContainer = "start the container with a control group of its own that it may write to: " +
		"docker run --privileged --cgroupns=private …, or podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup …; " +
		"in Kubernetes use a runtime class with writable cgroups (containerd: cgroup_writable = true)"
	switch {
	case errors.Is(err, errNone):
		f.Remedy = "as root: mount -t cgroup2 none /sys/fs/cgroup"
		if container {
			f.Remedy = inContainer
		}
	case errors.Is(err, errNoSupport):
		f.Cause = "the " + name + " controller is in no mounted hierarchy"
		f.Remedy = "see /proc/cgroups; boot with cgroup_enable=" + name + ", or mount the controller"
	case errors.Is(err, errOutside):
		f.Remedy = "give the container a cgroup namespace of its own (--cgroupns=private), or mount the whole hierarchy"
	case errors.Is(err, syscall.EROFS):
		f.Cause = "the control group file system is mounted read-only"
		f.Remedy = "as root: mount -o remount,rw " + h.point()
		if container {
			f.Remedy = inContainer
		}
	case errors.Is(err, errNotGiven):
		f.Cause = "its controller is not delegated to our own group"
		f.Remedy = "enable it in the groups above: echo +" + modern(name) + " > …/cgroup.subtree_control"
		if systemd {
			f.Cause, f.Remedy = h.ungiven(f.Cause)
		}
	case errors.Is(err, errShared), errors.Is(err, errForeign):
		f.Remedy = "start paddock in a group of its own, as a delegated child: " +
			"mkdir /sys/fs/cgroup/NAME && echo $$ > /sys/fs/cgroup/NAME/cgroup.procs && exec paddock …, with nobody else in it"
		if systemd {
			f.Cause, f.Remedy = h.undivided(f.Cause)
		} else if container {
			f.Remedy = "make paddock the first process of the container, or start it with: " + alone + "exec paddock …'"
		}
	case errors.Is(err, fs.ErrPermission):
		f.Cause = "no right to make control groups"
		f.Remedy = "run as root, or have root give you a group: chown -R " + strconv.Itoa(h.env.euid) + " GROUP"
		switch {
		case container && h.env.euid != 0:
			f.Remedy = "run paddock as root; where that is not enough, " + inContainer
		case container:
			f.Remedy = inContainer
		case systemd && h.Mode == V2:
			f.Cause, f.Remedy = h.undivided(f.Cause)
		case h.Mode != V2:
			f.Remedy += " in each hierarchy of cgroup v1; or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"
		}
	default:
		f.Remedy = "run as root where control groups are mounted writable"
	}
	return f
}

// alone is the beginning of a shell command that moves all other processes out of a container's
// group. The list also has the process that prints it, which has ended then, and a zero for each
// process that the container cannot see; to move process zero is to move oneself.
const alone = "sh -c 'mkdir -p /sys/fs/cgroup/rest && for p in $(cat /sys/fs/cgroup/cgroup.procs); " +
	"do case $p in 0|$$) ;; *) echo $p > /sys/fs/cgroup/rest/cgroup.procs;; esac; done 2> /dev/null; "

// undivided words why systemd's group, which we are in, cannot be divided.
func (h *Host) undivided(cause string) (why, remedy string) {
	switch {
	case h.unit.service:
		return "the service " + h.unit.name + " may not divide its control group", h.edit(h.unit.name, "Delegate=cpu memory pids io")
	case h.scoped != nil && errors.Is(h.scoped, fs.ErrNotExist):
		return "no service manager runs for this user: it would give Paddock a control group", "log in as this user (ssh, machinectl shell); or as root: loginctl enable-linger " + strconv.Itoa(h.env.euid)
	case h.scoped != nil:
		cause += "; systemd was asked for another one: " + h.scoped.Error()
	}
	if h.env.euid == 0 {
		return cause, "systemd-run --scope -p Delegate=yes -- paddock …"
	}
	return cause, "systemd-run --user --scope -p Delegate=yes -- paddock …"
}

// ungiven words why a group of systemd's has not got a controller.
func (h *Host) ungiven(cause string) (why, remedy string) {
	const all = "Delegate=cpu memory pids io"
	switch {
	case h.unit.user:
		return "its controller is not delegated to the services of users",
			"as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\n" + all + "\\n' > /etc/systemd/system/user@.service.d/delegate.conf, and restart the machine"
	case h.unit.service:
		return "its controller is not delegated to the service " + h.unit.name, h.edit(h.unit.name, all)
	}
	return h.undivided(cause)
}

// edit words a change of the unit that we are in.
func (h *Host) edit(name, line string) string {
	systemctl := "systemctl"
	if h.unit.user {
		systemctl += " --user"
	}
	return "let it: " + systemctl + " edit " + name + ", write [Service] and below it " + line + ", and restart it"
}

// missing is the error of a control that was asked for and cannot be had.
func (h *Host) missing(c paddock.Control, err error) error {
	return &paddock.MissingError{Finding: h.absent(c, err)}
}

// point is where the first control group file system is mounted, for a remedy.
func (h *Host) point() string {
	for _, y := range h.hierarchies {
		if y.dir != "" {
			return y.dir
		}
	}
	return "/sys/fs/cgroup"
}

// swaps tells whether the machine has swap space in use.
func (h *Host) swaps() bool {
	b, err := os.ReadFile(h.env.proc + "/swaps")
	// Below the heading there is a line for each; what cannot be read may be there.
	return (err != nil && !errors.Is(err, fs.ErrNotExist)) || strings.Count(string(b), "\n") > 1
}
