package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Group is the control groups of one sandbox: one directory in each
// hierarchy. Its methods are safe for many goroutines.
type Group struct {
	name  string
	host  *Host
	tree  tree
	parts []part // in order of creation, removed in the reverse one
	mu    sync.RWMutex
	// mu is held for reading while a child is started, and for writing while
	// the group is being frozen: a thread that is half way would be frozen too.
}

// A part is a group in one hierarchy.
type part struct {
	*hierarchy
	path string
}

// Create makes a group for a sandbox, with limits. A limit of zero is none:
// the driver fills in defaults beforehand. Limits.IO needs the paths whose
// devices it is for. A limit that cannot be enforced here is a
// [paddock.MissingError]; after any error nothing is left.
//
// On version 2 the first Create may move this process, and no other, to a group
// beside the sandboxes.
func (h *Host) Create(name string, l paddock.Limits, paths ...string) (*Group, error) {
	if !paddock.ID(name).Valid() {
		return nil, fmt.Errorf("create control group: name %q: %w", name, paddock.Invalid)
	}
	if err := check(l); err != nil {
		return nil, fmt.Errorf("create control group: %w", err)
	}
	o, err := h.self()
	if err != nil {
		return nil, fmt.Errorf("create control group: %w", err)
	}
	wanted, err := h.wanted(l)
	if err != nil {
		return nil, fmt.Errorf("create control group: %w", err)
	}
	g := &Group{name: name, host: h, tree: h.tree}
	if err := g.make(label(name, o), wanted, l, paths); err != nil {
		return nil, fmt.Errorf("create control group: %w", errors.Join(err, g.rmdir()))
	}
	return g, nil
}

func (g *Group) make(dir string, wanted []*hierarchy, l paddock.Limits, paths []string) error {
	for _, y := range wanted {
		if err := g.host.prepare(y); err != nil {
			return err
		}
		p := part{hierarchy: y, path: path.Join(y.dir, dir)}
		if err := g.tree.mkdir(p.path); err != nil {
			return classify(err)
		}
		g.parts = append(g.parts, p)
	}
	changes, err := g.changes(l, paths)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := c.apply(); err != nil {
			return err
		}
	}
	return nil
}

// wanted gives the hierarchies that a group with such limits needs: those that
// enforce them, those that measure, and one that can kill and freeze.
func (h *Host) wanted(l paddock.Limits) ([]*hierarchy, error) {
	var list []*hierarchy
	for _, n := range [...]struct {
		controller string
		control    paddock.Control
		asked      bool
		always     bool
	}{
		{memory, paddock.ControlMemory, l.Memory > 0, true},
		{pids, paddock.ControlPIDs, l.PIDs > 0, true},
		{cpu, paddock.ControlCPU, l.CPUs > 0, false},
		// Version 2 measures time without a controller.
		{cpuacct, paddock.ControlCPU, false, h.whole() == nil},
		{blkio, paddock.ControlIO, l.IO > 0, false},
	} {
		y, err := h.find(n.controller)
		if err != nil && n.asked {
			return nil, h.missing(n.control, err)
		}
		if err == nil && (n.asked || n.always) && !slices.Contains(list, y) {
			list = append(list, y)
		}
	}
	if y := h.whole(); y != nil {
		if !slices.Contains(list, y) {
			list = append(list, y)
		}
	} else if y, err := h.find(freezer); err == nil && !slices.Contains(list, y) {
		list = append(list, y)
	}
	if len(list) == 0 {
		_, err := h.find(memory)
		return nil, h.missing(paddock.ControlMemory, err)
	}
	return list, nil
}

// self identifies this process as an owner.
func (h *Host) self() (owner, error) {
	b, err := readFile(h.env.proc+"/self/stat", small)
	if err != nil {
		return owner{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return owner{}, fmt.Errorf("read /proc/self/stat: %w", err)
	}
	space, err := h.space()
	return owner{pid: s.pid, start: s.start, space: space}, err
}

func (h *Host) space() (uint64, error) {
	var st syscall.Stat_t
	name := h.env.proc + "/self/ns/pid"
	if err := again(func() error { return syscall.Stat(name, &st) }); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st.Ino, nil
}

// alive tells whether the owner of a group still runs; when in doubt it does.
func (h *Host) alive(o owner) bool {
	s, there, err := h.statOf(o)
	return err != nil || there && s.start == o.start
}

// runs is alive without what waits to be reaped.
func (h *Host) runs(o owner) bool {
	s, there, err := h.statOf(o)
	return err != nil || there && s.start == o.start && !s.dead()
}

// statOf reads the state of the process that has the number of an owner, if there is one.
func (h *Host) statOf(o owner) (s stat, there bool, err error) {
	b, err := readFile(fmt.Sprintf("%s/%d/stat", h.env.proc, o.pid), small)
	if err != nil {
		if gone(err) || errors.Is(err, syscall.ESRCH) {
			return s, false, nil
		}
		return s, false, err
	}
	s, err = parseStat(b)
	return s, true, err
}

// Open finds a group that this or an earlier process made. dirs is what
// [Group.Dirs] gave then; without it the group is looked for below our own
// group, which is where it is unless it was made from another one. A group
// that is not there is [paddock.NotFound].
func (h *Host) Open(name string, dirs ...string) (*Group, error) {
	if !paddock.ID(name).Valid() {
		return nil, fmt.Errorf("open control group: name %q: %w", name, paddock.Invalid)
	}
	g := &Group{name: name, host: h, tree: h.tree}
	if len(dirs) == 0 {
		dirs = h.look(name)
	}
	for _, d := range dirs {
		if n, _, ok := parseLabel(path.Base(d)); !ok || n != name || path.Clean(d) != d {
			return nil, fmt.Errorf("open control group %s: %q is not one of its directories: %w", name, d, paddock.Invalid)
		}
		for _, y := range h.hierarchies {
			if y.covers(path.Dir(d)) && exists(d) {
				g.parts = append(g.parts, part{hierarchy: y, path: d})
				break
			}
		}
	}
	if len(g.parts) == 0 {
		return nil, fmt.Errorf("open control group %s: %w", name, paddock.NotFound)
	}
	return g, nil
}

// covers tells whether dir is a group of this hierarchy: our own one, or
// another one of the same mount.
func (y *hierarchy) covers(dir string) bool {
	if y.err != nil {
		return false
	}
	var here, there syscall.Stat_t
	if syscall.Lstat(y.dir, &here) != nil || syscall.Lstat(dir, &there) != nil {
		return false
	}
	return here.Dev == there.Dev
}

// look gives the directories of the newest group of a name.
func (h *Host) look(name string) []string {
	var dirs []string
	var newest owner
	for _, y := range h.hierarchies {
		if y.err != nil {
			continue
		}
		below, err := children(y.dir)
		if err != nil {
			continue
		}
		for _, d := range below {
			n, o, ok := parseLabel(d)
			if !ok || n != name || o.start < newest.start {
				continue
			}
			if o != newest {
				dirs, newest = nil, o
			}
			dirs = append(dirs, filepath.Join(y.dir, d))
		}
	}
	return dirs
}

// Dirs returns the group's directories, for a later Open.
func (g *Group) Dirs() []string {
	var dirs []string
	for _, p := range g.parts {
		dirs = append(dirs, p.path)
	}
	return dirs
}

// Name returns the name that Create received.
func (g *Group) Name() string { return g.name }

// file names a control file: v1 or v2, whichever the controller is on here.
func (g *Group) file(controller, v1, v2 string) (string, bool) {
	for _, p := range g.parts {
		if !slices.Contains(p.controllers, controller) {
			continue
		}
		if p.v2 {
			return path.Join(p.path, v2), v2 != ""
		}
		return path.Join(p.path, v1), v1 != ""
	}
	return "", false
}

// whole gives the group's directory of version 2, if it has one.
func (g *Group) whole() (string, bool) {
	for _, p := range g.parts {
		if p.v2 {
			return p.path, true
		}
	}
	return "", false
}

// Remove ends every process in the group and removes it. It answers when all
// is gone; removing twice is fine. When ctx ends before, the error is
// [paddock.Timeout] or [paddock.Canceled], and Remove can be called again.
func (g *Group) Remove(ctx context.Context) error {
	for wait := newBackoff(); ; {
		err := g.rmdir()
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove control group %s: %w", g.name, classify(err))
		}
		if err := g.Kill(ctx); err != nil {
			return fmt.Errorf("remove control group %s: %w", g.name, err)
		}
		// The kernel says busy for a moment after the last process has gone.
		if err := wait.pause(ctx); err != nil {
			return fmt.Errorf("remove control group %s: %w", g.name, err)
		}
	}
}

// rmdir removes the directories, if nobody is inside. The first one made is
// the last to go, so that whatever remains of a broken removal is found again.
func (g *Group) rmdir() error {
	for i := len(g.parts) - 1; i >= 0; i-- {
		if err := removeAll(g.tree, g.parts[i].path); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes a group and the groups below it, deepest first.
func removeAll(t tree, dir string) error {
	err := t.rmdir(dir)
	if err == nil || gone(err) {
		return nil
	}
	if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	below, listing := children(dir)
	if listing != nil {
		if gone(listing) {
			return nil
		}
		return listing
	}
	if len(below) == 0 {
		return err
	}
	for _, name := range below {
		if err := removeAll(t, path.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := t.rmdir(dir); err != nil && !gone(err) {
		return err
	}
	return nil
}

// Sweep removes groups below our own one whose owner has died and that hold no
// process. keep is asked about each such group by the sandbox's name: true
// leaves it (its sandbox outlives its maker); nil keeps none. Groups of owners
// in another pid namespace are left alone. It reads one directory for each
// hierarchy, and gives the names that it removed.
func (h *Host) Sweep(keep func(name string) bool) (removed []string, err error) {
	return h.sweep(keep, removeAll)
}

// Abandoned gives the names of the groups that Sweep would remove, and removes none.
func (h *Host) Abandoned(keep func(name string) bool) (names []string, err error) {
	return h.sweep(keep, func(_ tree, dir string) error {
		data, err := os.ReadFile(path.Join(dir, "cgroup.procs"))
		switch {
		case err != nil && !gone(err):
			return err
		case err != nil, len(bytes.TrimSpace(data)) > 0: // somebody else removes it, or it is in use
			return syscall.EBUSY
		}
		return nil
	})
}

// SweepOf removes the groups of a process that was killed, and may not be reaped yet. It waits for the
// end of the processes inside.
func (h *Host) SweepOf(ctx context.Context, pid int) error {
	space, err := h.space()
	if err != nil {
		return fmt.Errorf("sweep control groups: %w", err)
	}
	for wait := newBackoff(); ; {
		busy := false
		for _, y := range h.hierarchies {
			if y.err != nil {
				continue
			}
			below, err := children(y.dir)
			if err != nil {
				return fmt.Errorf("sweep control groups: %w", classify(err))
			}
			for _, dir := range below {
				_, o, ok := parseLabel(dir)
				if !ok || o.pid != pid || o.space != space {
					continue
				}
				if h.runs(o) { // its threads are still ending
					busy = true
					continue
				}
				switch e := removeAll(h.tree, path.Join(y.dir, dir)); {
				case e == nil:
				case errors.Is(e, syscall.EBUSY), errors.Is(e, syscall.ENOTEMPTY):
					busy = true
				default:
					return fmt.Errorf("sweep control groups: %w", classify(e))
				}
			}
		}
		if !busy {
			return nil
		}
		if err := wait.pause(ctx); err != nil {
			return fmt.Errorf("control groups of process %d: their processes do not end: %w", pid, err)
		}
	}
}

func (h *Host) sweep(keep func(name string) bool, remove func(t tree, dir string) error) (removed []string, err error) {
	space, err := h.space()
	if err != nil {
		return nil, fmt.Errorf("sweep control groups: %w", err)
	}
	decided := map[string]bool{}
	for _, y := range h.hierarchies {
		if y.err != nil {
			continue
		}
		below, listing := children(y.dir)
		if listing != nil {
			err = errors.Join(err, listing)
			continue
		}
		for _, dir := range below {
			name, o, ok := parseLabel(dir)
			if !ok || o.space != space {
				continue
			}
			drop, known := decided[dir]
			if !known {
				drop = !h.alive(o) && (keep == nil || !keep(name))
				decided[dir] = drop
			}
			if !drop {
				continue
			}
			// The kernel refuses where a process is inside: no need to look first.
			switch e := remove(h.tree, path.Join(y.dir, dir)); {
			case e == nil:
				if !slices.Contains(removed, name) {
					removed = append(removed, name)
				}
			case errors.Is(e, syscall.EBUSY), errors.Is(e, syscall.ENOTEMPTY):
				decided[dir] = false
			default:
				err = errors.Join(err, e)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("sweep control groups: %w", classify(err))
	}
	return removed, err
}

// A backoff waits a little longer each time.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{next: 50 * time.Microsecond} }

// pause waits, or answers the kind of the end of ctx.
func (b *backoff) pause(ctx context.Context) error {
	t := time.NewTimer(b.next)
	defer t.Stop()
	b.next = min(2*b.next, 10*time.Millisecond)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: %w", paddock.Timeout, ctx.Err())
		}
		return fmt.Errorf("%w: %w", paddock.Canceled, ctx.Err())
	}
}
