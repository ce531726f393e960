package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Bounds of what a box may take of the kernel's quotas. Without them one box could use up what the
// kernel gives to its user, or to the whole machine. The table in docs/security/threat-model.md lists
// every quota.
const (
	maxSignals   = 1024    // queued signals, and POSIX timers
	maxQueues    = 400_000 // bytes of POSIX message queues; one of the usual size takes 83,000
	maxLocked    = 4 << 20 // bytes of memory that cannot be swapped
	maxTerminals = 64

	// maxDatagrams is the number of sockets of all kinds from which on a box gets no further socket
	// for datagrams. Such a socket can hold 64 KiB that it has not sent yet, and the kernel charges
	// nobody for them.
	maxDatagrams = 4096

	// maxMemberships is the number of memberships of IPv6 groups from which on no socket of the box joins
	// a further one. A membership takes about 300 bytes, 8 KiB with a list of sources, and the kernel charges nobody for it.
	maxMemberships = 4096

	// maxFilters is the number of system-call filters that commands may have, where one that several
	// threads have counts for each. A filter takes up to 56 KB of the kernel's memory for compiled code,
	// of which there are a few hundred MB for the whole machine.
	maxFilters = 1024

	// inotifyShare is the divisor: a box may have a quarter of a user's inotify instances and watches.
	inotifyShare = 4

	// engineNamespaces is how many namespaces of each kind a guest kernel may make, which builds its
	// own walls of them.
	engineNamespaces = 8
)

// boundQuotas bounds what the box may take of the kernel's quotas, when its file tree is complete:
// each mount that is not attached yet counts as a mount namespace. It needs CAP_SYS_RESOURCE. The
// bounds of /proc/sys/user hold in the box's user namespace, in addition to those of the host.
func (p *initProcess) boundQuotas() error {
	p.step = "bound the kernel's quotas"
	for _, l := range []struct {
		what sys.Resource
		n    uint64
	}{
		{sys.ResourceSignals, maxSignals}, {sys.ResourceQueues, maxQueues}, {sys.ResourceLocked, maxLocked},
		// Some systems give users a real-time priority for sound. A command could stop the host with it.
		{sys.ResourceUrgent, 0}, {sys.ResourceNice, 0},
	} {
		if _, err := sys.SetResource(l.what, l.n); err != nil {
			return err
		}
	}
	namespaces := int64(0) // the box has its own, and nothing in it may make more
	if p.guestKernel != nil {
		namespaces = engineNamespaces
	}
	quotas := map[string]int64{"max_fanotify_groups": 0, "max_fanotify_marks": 0}
	for kind := range strings.FieldsSeq("cgroup ipc mnt net pid time user uts") {
		quotas["max_"+kind+"_namespaces"] = namespaces
	}
	for what := range strings.FieldsSeq("instances watches") {
		n, err := sys.Quota("fs/inotify/max_user_" + what)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without inotify
		}
		if err != nil {
			return err
		}
		quotas["max_inotify_"+what] = n / inotifyShare
	}
	for name, n := range quotas {
		if err := sys.SetUserQuota(name, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if p.guestKernel == nil {
		return nil // all capabilities are dropped before a command starts
	}
	return sys.DropResource()
}

// socket makes a socket of a kind that counts for the whole machine, unless the box has too many sockets.
// The kernel charges nobody for the memory of netlink sockets and of datagrams. Connections of TCP outlive
// their program, and the machine has a number of those that nobody has open. A connection takes a socket
// that is made here, and at most one more that is accepted.
//
// Sockets of one kind cannot be counted, because the kernel does not list a socket without an address. It is
// made here, so that two calls cannot both be the last one.
func (c *call) socket() reply {
	if c.hostNet { // then the host's sockets would count
		return goOn // its arguments are no addresses, so they are those that the filter saw
	}
	family, kind, protocol := c.fd(0), c.fd(1), c.fd(2)
	what, most := "datagrams", maxDatagrams
	switch {
	case family == sys.FamilyNetlink:
		what, most = "netlink", c.netlinks
	case sys.OfStreams(kind):
		what, most = "streams", c.streams
	}
	if n, err := sys.SocketsUsed(); err != nil {
		return fails(err)
	} else if n >= most {
		c.refuse("socket", what, fmt.Sprintf("with %d sockets there is no further one of this kind", most))
		return reply{err: syscall.ENOBUFS}
	}
	fd, err := sys.Socket(family, kind, protocol)
	if err != nil {
		return fails(err)
	}
	return reply{open: true, fd: fd, keep: kind&sys.SocketClosed == 0}
}

// join lets a socket join a group of IPv6, unless the sockets of the box have too many memberships.
func (c *call) join() reply {
	if c.hostNet { // then the host's memberships would count
		return goOn // of its arguments, the filter saw those that matter
	}
	if n, err := sys.Memberships(); err != nil {
		return fails(err)
	} else if n >= maxMemberships {
		c.refuse("socket", "groups", fmt.Sprintf("with %d memberships of IPv6 groups there is no further one", maxMemberships))
		return reply{err: syscall.ENOBUFS}
	}
	return goOn
}

// filter lets a command put itself behind a system-call filter, unless the box has too many.
func (c *call) filter() reply {
	n, err := sys.FiltersBeyond(c.filters)
	if err != nil {
		return fails(err)
	}
	if n >= maxFilters {
		return reply{err: syscall.ENOMEM}
	}
	return goOn // nothing that was judged is in memory
}
