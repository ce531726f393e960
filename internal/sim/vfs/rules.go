package vfs

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// SetRules puts rules for the whole tree in place of those that were set
// before: they tell whether an absolute path may be read and written, as
// [MountOptions.Allow] does for a mount's own paths. Nil allows all. Rules are
// not part of a snapshot.
func (f *FS) SetRules(rules func(path string) (read, write bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
}

// Relimit changes the bounds; what is above a new one stays.
func (f *FS) Relimit(o Options) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relimit(o)
}

// Fit is Relimit, unless there are more bytes of contents than o.Disk. It returns
// their number, and whether the bounds changed.
func (f *FS) Fit(o Options) (used int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used > o.filled().Disk {
		return f.used, false
	}
	f.relimit(o)
	return f.used, true
}

func (f *FS) relimit(o Options) {
	now := f.opts.Now
	f.opts = o.filled()
	if o.Now == nil {
		f.opts.Now = now
	}
}

// closed tells what rules refuse.
type closed struct{ read, write bool }

// ruled reports whether there are rules for where a node is.
func (f *FS) ruled(n *node) bool { return f.rules != nil || f.mounts[n.mnt].Allow != nil }

// closed tells what the rules refuse at a file.
func (f *FS) closed(n *node) closed {
	if !f.ruled(n) {
		return closed{}
	}
	parts, own, err := f.parts(n)
	if err != nil {
		return closed{true, true} // it has no path anymore
	}
	var c closed
	for i := range parts {
		c = f.judge(c, f.mounts[n.mnt], parts[:i+1], own)
	}
	return c
}

// closedAt tells what the rules refuse at a name of a directory, for which
// they refuse c.
func (f *FS) closedAt(d *node, name string, c closed) closed {
	if !f.ruled(d) {
		return closed{}
	}
	parts, own, err := f.parts(d)
	if err != nil {
		return closed{true, true}
	}
	return f.judge(c, f.mounts[d.mnt], append(parts, name), own)
}

// judge adds what the rules say of one path.
func (f *FS) judge(c closed, m *mount, parts []string, own int) closed {
	if m.Allow != nil && len(parts) > own {
		read, write := m.Allow(strings.Join(parts[own:], "/"))
		c.read, c.write = c.read || !read, c.write || !write
	}
	if f.rules != nil {
		read, write := f.rules("/" + strings.Join(parts, "/"))
		c.read, c.write = c.read || !read, c.write || !write
	}
	return c
}

// parts gives the names from the root to a file, and how many of them lead to
// its mount.
func (f *FS) parts(n *node) (parts []string, own int, err error) {
	root := f.mounts[n.mnt].root
	inside, size := 0, 0
	for d := n; d.ino != Root; {
		if d.ino == root {
			inside = len(parts)
		}
		parts = append(parts, d.name)
		if size += len(d.name) + 1; size > maxPath {
			return nil, 0, linux.ENAMETOOLONG
		}
		if d, err = f.up(d); err != nil {
			return nil, 0, err
		}
	}
	if root == 0 {
		inside = len(parts)
	}
	slices.Reverse(parts)
	return parts, len(parts) - inside, nil
}

// maxMoved is how many files below a directory are looked at before it moves.
const maxMoved = 20_000

// movable reports whether a directory, of which there are rules, may get another
// place: nothing in it may be closed here or there.
func (f *FS) movable(n, dir *node, name string) error {
	old, own, err := f.parts(n)
	if err != nil {
		return err
	}
	to, _, err := f.parts(dir)
	if err != nil {
		return err
	}
	m, none := f.mounts[n.mnt], closed{}
	type item struct {
		n  *node
		at []string // from n on
	}
	todo := []item{{n: n}}
	for looked := 0; len(todo) > 0; looked++ {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		here, there := slices.Concat(old, x.at), slices.Concat(to, []string{name}, x.at)
		switch {
		case looked > maxMoved, x.n.lower != nil && x.n.isDir():
			return linux.EXDEV
		case f.judge(closed{}, m, here, own) != none, f.judge(closed{}, m, there, own) != none:
			return linux.EACCES
		}
		x.n.entries.after("", func(name string, ino Ino) bool {
			if kid := f.nodes.get(uint64(ino)); kid != nil {
				todo = append(todo, item{kid, append(slices.Clone(x.at), name)})
			}
			return true
		})
	}
	return nil
}
