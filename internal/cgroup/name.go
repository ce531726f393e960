package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

const (
	prefix = "paddock-"
	// supervisor is the group that this process moves itself to on cgroup v2,
	// where a group with processes cannot have children with limits. It does
	// not parse as a label, so no sandbox can have its name.
	supervisor = prefix + "supervisor"
	// sandboxes is the group of a unit that holds sandboxes of a service beside it; see deploy.
	sandboxes = prefix + "sandboxes.service"
)

// An owner is the process that made a group. A process number alone is used
// again; together with the start time, within one pid namespace, it is not.
type owner struct {
	pid   int
	start uint64 // in clock ticks since boot, from /proc/PID/stat
	space uint64 // inode of the pid namespace that pid counts in
}

// label is a group's directory name: the sandbox's name and its owner, so that
// whoever comes later can tell whether somebody is still there to remove it.
func label(name string, o owner) string {
	return fmt.Sprintf("%s%s-%d-%d-%d", prefix, name, o.pid, o.start, o.space)
}

// parseLabel is the inverse of label. Names may hold dashes and digits, so it
// reads from the end.
func parseLabel(s string) (name string, o owner, ok bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", owner{}, false
	}
	var n [3]uint64 // space, start, pid
	for i := range n {
		at := strings.LastIndexByte(rest, '-')
		if at < 0 {
			return "", owner{}, false
		}
		digits := rest[at+1:]
		v, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || strconv.FormatUint(v, 10) != digits {
			return "", owner{}, false
		}
		n[i], rest = v, rest[:at]
	}
	if n[2] == 0 || n[2] > 1<<30 || !paddock.ID(rest).Valid() {
		return "", owner{}, false
	}
	return rest, owner{pid: int(n[2]), start: n[1], space: n[0]}, true
}
