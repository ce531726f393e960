package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	cgroups "github.com/containerd/cgroups/v3"

	"github.com/paddock-sandbox/paddock"
)

// Controllers, by the names of version 1. Version 2 says io for blkio, and
// needs none for cpuacct and freezer.
const (
	memory  = "memory"
	cpu     = "cpu"
	cpuacct = "cpuacct"
	pids    = "pids"
	blkio   = "blkio"
	freezer = "freezer"
)

// A Mode names the mounted versions of control groups.
type Mode string

const (
	None   Mode = "none"   // no control group at all
	V1     Mode = "v1"     // version 1 only
	Hybrid Mode = "hybrid" // controllers on version 1, and a version 2 hierarchy beside them
	V2     Mode = "v2"     // version 2 only
)

// A Host holds the rights of this process on the control groups here. Its methods are safe for many
// goroutines.
type Host struct {
	Mode Mode

	// Groups names our own group for each controller, as a directory, where
	// there is one: "memory" -> "/sys/fs/cgroup/memory/user.slice".
	Groups map[string]string

	env         environment
	tree        tree
	hierarchies []*hierarchy
	unit        unit  // of the service manager, that this process is in
	scoped      error // why no scope could be had, where one was asked for

	mu       sync.Mutex
	prepared bool // guarded by mu: the version 2 hierarchy has children with controllers
}

// An environment is what of the machine a host depends on; a test has its own.
type environment struct {
	proc  string // "/proc"
	sys   string // "/sys"
	run   string // "/run"
	root  string // ""
	euid  int
	pid   int
	xattr func(path, name string) string
}

// A hierarchy is one tree of groups: one of version 1 for some controllers, or
// the one of version 2.
type hierarchy struct {
	v2          bool
	controllers []string // that groups made here can have
	dir         string   // groups are made below it: our own group, the one above a supervisor's, or the sandboxes'
	own         string   // our own group
	err         error    // why none can be

	// Of version 2 only.
	enable []string // controllers to be switched on for our children, once
	move   bool     // and before that we have to leave dir for a group below it
	absent map[string]error
}

// Probe finds the rights of this process. It reads a few small files and changes nothing.
func Probe() *Host {
	return probe(environment{
		proc: "/proc", sys: "/sys", run: "/run", euid: os.Geteuid(), pid: os.Getpid(),
		xattr: func(path, name string) string {
			b := make([]byte, 8)
			n, err := syscall.Getxattr(path, name, b)
			if err != nil {
				return ""
			}
			return string(b[:n])
		},
	}, kernelTree())
}

func probe(env environment, t tree) *Host {
	h := &Host{Mode: None, Groups: map[string]string{}, env: env, tree: t}
	own, err := readFile(env.proc+"/self/cgroup", small)
	if err != nil {
		return h // a kernel without control groups
	}
	legacy, unified, err := cgroups.ParseCgroupFromReaderUnified(strings.NewReader(string(own)))
	if err != nil {
		return h
	}
	h.unit = unitOf(unified)
	table, err := readFile(env.proc+"/self/mountinfo", large)
	if err != nil {
		return h
	}
	var v1 bool
	var second *hierarchy
	for _, m := range parseMounts(string(table)) {
		m.point = env.root + m.point
		if m.v2 {
			if second == nil || second.err != nil {
				second = h.unified(m, unified)
			}
			continue
		}
		var have []string
		for _, c := range [...]string{memory, cpu, cpuacct, pids, blkio, freezer} {
			if slices.Contains(m.options, c) {
				have = append(have, c)
			}
		}
		if len(have) == 0 {
			continue
		}
		v1 = true
		h.add(h.legacy(m, have, legacy[have[0]]))
	}
	if second != nil {
		h.add(second)
	}
	switch {
	case v1 && second != nil:
		h.Mode = Hybrid
	case v1:
		h.Mode = V1
	case second != nil:
		h.Mode = V2
	}
	for _, y := range h.hierarchies {
		for _, c := range y.controllers {
			if _, ok := h.Groups[c]; !ok && y.dir != "" {
				h.Groups[c] = y.dir
			}
		}
	}
	return h
}

// add takes a hierarchy in; of two mounts of the same one that which works.
func (h *Host) add(y *hierarchy) {
	for i, have := range h.hierarchies {
		if !y.v2 && !have.v2 && have.controllers[0] == y.controllers[0] {
			if have.err != nil {
				h.hierarchies[i] = y
			}
			return
		}
	}
	h.hierarchies = append(h.hierarchies, y)
}

// legacy looks at a version 1 hierarchy.
func (h *Host) legacy(m mount, controllers []string, own string) *hierarchy {
	y := &hierarchy{controllers: controllers}
	y.dir, y.err = m.dir(own)
	if y.err != nil {
		return y
	}
	y.err = h.writable(m, y.dir, "tasks")
	return y
}

func (h *Host) writable(m mount, dir, list string) error {
	if m.locked {
		return syscall.EROFS
	}
	// Both are needed: to make groups, and to come back from one.
	if err := permitted(dir, true); err != nil {
		return err
	}
	return permitted(path.Join(dir, list), false)
}

// Why groups cannot be made, or not with a controller.
var (
	errNone      = errors.New("no control group file system is mounted")
	errShared    = errors.New("our own group holds other processes, and cgroup v2 allows limits only below a group without any")
	errForeign   = errors.New("our own group belongs to somebody else, who did not delegate it")
	errNotGiven  = errors.New("the controller is not delegated to our own group")
	errNoSupport = errors.New("the kernel has no such controller, or it is mounted in no hierarchy")
)

// unified looks at the version 2 hierarchy.
func (h *Host) unified(m mount, own string) *hierarchy {
	y := &hierarchy{v2: true, absent: map[string]error{}}
	y.dir, y.err = m.dir(own)
	if y.err != nil {
		return y
	}
	y.own = y.dir
	// We, or whoever started us, have moved aside before.
	if path.Base(y.dir) == supervisor {
		y.dir = path.Dir(y.dir)
	}
	if beside := h.beside(m, y.dir); beside != "" {
		y.dir = beside
	}
	if y.err = h.writable(m, y.dir, "cgroup.procs"); y.err != nil {
		return y
	}
	names := func(file string) []string {
		b, err := readFile(path.Join(y.dir, file), small)
		if err != nil {
			return nil
		}
		return strings.Fields(string(b))
	}
	given, on := names("cgroup.controllers"), names("cgroup.subtree_control")
	for _, c := range [...]string{memory, cpu, pids, blkio} {
		switch n := modern(c); {
		case slices.Contains(on, n):
			y.controllers = append(y.controllers, c)
		case slices.Contains(given, n):
			y.controllers = append(y.controllers, c)
			y.enable = append(y.enable, n)
		default:
			y.absent[c] = errNotGiven
		}
	}
	if len(y.enable) == 0 {
		return y
	}
	var err error
	if y.move, err = h.leave(y.dir, own); err != nil {
		y.withdraw(err)
	}
	return y
}

// withdraw takes back the controllers that were to be switched on. Those that are switched on already can
// be used nevertheless.
func (y *hierarchy) withdraw(err error) {
	y.controllers = slices.DeleteFunc(y.controllers, func(c string) bool {
		off := slices.Contains(y.enable, modern(c))
		if off {
			y.absent[c] = err
		}
		return off
	})
	y.enable = nil
}

// beside gives the group of the unit that holds the sandboxes of a service, where there is one beside ours.
// Before version 254 systemd cannot start a service again in a group that was divided, so that the service
// leaves its own group whole. For a child to be born there, the group above both has to be ours as well.
func (h *Host) beside(m mount, dir string) string {
	group := path.Join(path.Dir(dir), sandboxes)
	if !h.unit.service || !exists(group) || h.writable(m, group, "cgroup.procs") != nil || permitted(path.Join(path.Dir(dir), "cgroup.procs"), false) != nil {
		return ""
	}
	return group
}

// modern gives the name that a controller has in version 2.
func modern(controller string) string {
	if controller == blkio {
		return "io"
	}
	return controller
}

// leave tells whether we must leave the group at dir so that its children can
// have limits, and whether we may: only where nobody but us is in it, and it
// was given to us to divide. Others' processes are never moved, and a service
// manager's group is never divided behind its back.
func (h *Host) leave(dir, own string) (must bool, err error) {
	if !exists(path.Join(dir, "cgroup.type")) {
		return false, nil // the real root: the rule does not hold there
	}
	b, err := readFile(path.Join(dir, "cgroup.procs"), large)
	if err != nil {
		return false, err
	}
	inside, err := parsePIDs(b)
	if err != nil {
		return false, err
	}
	for _, p := range inside {
		if p != h.env.pid {
			return false, errShared
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return false, err
	}
	given := h.env.euid != 0 && int(st.Uid) == h.env.euid
	// The root of a container's own cgroup namespace was made for it.
	given = given || own == "/" || own == "/"+supervisor
	for _, name := range [...]string{"user.delegate", "trusted.delegate"} {
		given = given || h.env.xattr(dir, name) == "1"
	}
	if !given {
		return false, errForeign
	}
	return len(inside) > 0, nil
}

// find gives the hierarchy in which groups get a controller.
func (h *Host) find(controller string) (*hierarchy, error) {
	err := errNoSupport
	if len(h.hierarchies) == 0 {
		err = errNone
	}
	for _, y := range h.hierarchies {
		if slices.Contains(y.controllers, controller) {
			return y, y.err
		}
		// Beside version 1 it is normal that version 2 was given nothing.
		if why := y.absent[controller]; why != nil && (h.Mode == V2 || !errors.Is(why, errNotGiven)) {
			err = why
		}
		if y.v2 && y.err != nil {
			err = y.err
		}
	}
	return nil, err
}

// whole gives the version 2 hierarchy if groups can be made in it, with
// controllers or without: it can kill and freeze a group as a whole, and a
// child can be born in it.
func (h *Host) whole() *hierarchy {
	for _, y := range h.hierarchies {
		if y.v2 && y.err == nil {
			return y
		}
	}
	return nil
}

// prepare makes the version 2 hierarchy fit for groups with controllers: once,
// and undone if it fails half way.
func (h *Host) prepare(y *hierarchy) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.prepared || !y.v2 || len(y.enable) == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("divide our own group %s: %w", y.dir, err)
		}
	}()
	if y.move {
		aside := filepath.Join(y.dir, supervisor)
		if err := h.tree.mkdir(aside); err != nil && !errors.Is(err, os.ErrExist) {
			return classify(err)
		}
		if err := writeFile(aside+"/cgroup.procs", "0"); err != nil {
			return errors.Join(classify(err), h.tree.rmdir(aside))
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, writeFile(y.dir+"/cgroup.procs", "0"), h.tree.rmdir(aside))
			}
		}()
	}
	// All or nothing: a limit that was found possible must not be lost now.
	var on []string
	for _, c := range y.enable {
		on = append(on, "+"+c)
	}
	if err := writeFile(y.dir+"/cgroup.subtree_control", strings.Join(on, " ")); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%w: %w", errShared, err)
		}
		return fmt.Errorf("%w: %w", paddock.Unsupported, err)
	}
	h.prepared = true
	return nil
}
