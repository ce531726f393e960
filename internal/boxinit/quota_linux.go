package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// Bounds of what a box may take of the kernel's quotas. Without them one box could use up what the
// kernel gives to its user, or to the whole machine. The table in docs/security/threat-model.md lists
// every quota.
const (
	MaxSignals   = 1024    // queued signals, and POSIX timers
	MaxQueues    = 400_000 // bytes of POSIX message queues; one of the usual size takes 83,000
	MaxLocked    = 4 << 20 // bytes of memory that cannot be swapped
	MaxTerminals = 64

	// InotifyShare is the part of a user's inotify instances and watches that a box may have.
	InotifyShare = 4

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
		what kernel.Resource
		n    uint64
	}{{kernel.ResourceSignals, MaxSignals}, {kernel.ResourceQueues, MaxQueues}, {kernel.ResourceLocked, MaxLocked}} {
		if _, err := kernel.SetResource(l.what, l.n); err != nil {
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
		n, err := kernel.Quota("fs/inotify/max_user_" + what)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without inotify
		}
		if err != nil {
			return err
		}
		quotas["max_inotify_"+what] = n / InotifyShare
	}
	for name, n := range quotas {
		if err := kernel.SetUserQuota(name, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if p.guestKernel == nil {
		return nil // all capabilities are dropped before a command starts
	}
	return kernel.DropResource()
}
