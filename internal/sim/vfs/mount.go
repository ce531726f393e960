package vfs

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// MountOptions say how a mount behaves.
type MountOptions struct {
	ReadOnly bool
	Name     string // what is mounted, for those who list mounts
	Type     string // its kind, the same
	UID, GID int    // who owns what lies below

	// Allow tells whether a path of the mount (without a slash in front) may
	// be read and written; nil allows all. What is refused to a directory is
	// refused to all below it. A path that cannot be read can be seen in a
	// list and described, and nothing else. A directory that holds such a path,
	// or would, cannot be renamed; where that would take long to find out, it
	// is EXDEV, so that mv copies. It is called with the FS locked and must not
	// use it.
	Allow func(path string) (read, write bool)
}

// A mount is a part of the tree with its own rules.
type mount struct {
	MountOptions
	root    Ino // its own root directory
	dir     Ino // where it stands
	name    string
	covered Ino // what stood there, or 0
}

// frozen reports whether a node lies in a read-only mount.
func (f *FS) frozen(n *node) bool { return f.mounts[n.mnt].ReadOnly }

// mounted reports whether a mount stands at a node.
func (f *FS) mounted(n *node) bool { return n.mnt != 0 && f.mounts[n.mnt].root == n.ino }

// Mount puts something from outside in the tree: at a directory, which is made
// with its parents if it is missing, or, if what lies below is not a
// directory, at a file. What is done there never changes what lies below. What
// stood at the path is back after Unmount.
func (f *FS) Mount(path string, below Lower, o MountOptions) error {
	i, err := below.Stat()
	if err != nil {
		return errno(err)
	}
	return f.mount(path, o, i.Mode&linux.S_IFMT == linux.S_IFDIR, func(n *node) {
		n.lower = below
		f.clean++
		f.named += int64(len(i.Target))
		n.mode = i.Mode
		n.take(i)
	})
}

// MountDynamic puts files that are made up when they are looked at in the
// tree.
func (f *FS) MountDynamic(path string, d Dynamic, o MountOptions) error {
	mode := d.Mode()
	return f.mount(path, o, mode&linux.S_IFMT == linux.S_IFDIR, func(n *node) {
		n.mode, n.dynamic = mode, d
	})
}

// MountEmpty mounts an empty directory in the tree that counts as another
// device.
func (f *FS) MountEmpty(path string, mode uint32, o MountOptions) error {
	return f.mount(path, o, true, func(n *node) { n.mode = linux.S_IFDIR | mode&0o7777 })
}

func (f *FS) mount(path string, o MountOptions, dir bool, fill func(*node)) error {
	v := View{FS: f, Dir: Root}
	if dir {
		if err := v.MkdirAll(path, 0o755); err != nil {
			return err
		}
	} else if err := v.holder(path); err != nil {
		return err
	}
	return f.write(func(t *trip) error {
		p, err := v.find(t, path, following)
		switch {
		case err != nil:
			return err
		case p.dir == nil || p.dir.dynamic != nil:
			return linux.EBUSY
		case p.node.isDir() != dir:
			return linux.ENOTDIR
		case f.mounted(p.node):
			return linux.EBUSY
		}
		n, err := f.make(linux.S_IFDIR, o.UID, o.GID)
		if err != nil {
			return err
		}
		m := &mount{
			MountOptions: o, root: n.ino, dir: p.dir.ino, name: strings.Clone(p.name), covered: p.node.ino,
		}
		f.mounts = append(slices.Clip(f.mounts), m)
		n.mnt, n.nlink, n.parent, n.name = uint32(len(f.mounts)-1), 1, p.dir.ino, m.name
		fill(n)
		f.enter(f.owned(p.dir), m.name, n.ino)
		return nil
	})
}

// holder makes a file to mount over, with parents.
func (v *View) holder(path string) error {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if err := v.MkdirAll(path[:i], 0o755); err != nil {
			return err
		}
	}
	h, err := v.Open(path, linux.O_CREAT, 0o644)
	if err != nil {
		return err
	}
	return h.Close()
}

// Unmount takes a mount away, with all that was written there. Files that are
// open stay.
func (f *FS) Unmount(path string) error {
	v := View{FS: f, Dir: Root}
	return f.write(func(t *trip) error {
		p, err := v.find(t, path, following)
		if err != nil {
			return err
		}
		n := p.node
		if !f.mounted(n) {
			return linux.EINVAL
		}
		for i, m := range f.mounts {
			if i > 0 && m != nil && uint32(i) != n.mnt && f.inside(m, n.mnt) {
				return linux.EBUSY
			}
		}
		m := f.mounts[n.mnt]
		d, err := f.get(m.dir)
		if err != nil {
			return err
		}
		f.enter(f.owned(d), m.name, m.covered)
		f.forget(n)
		f.mounts = slices.Clone(f.mounts)
		f.mounts[n.mnt] = &mount{MountOptions: MountOptions{ReadOnly: true}}
		return nil
	})
}

// inside reports whether a mount stands in another.
func (f *FS) inside(m *mount, mnt uint32) bool {
	d := f.nodes.get(uint64(m.dir))
	return m.root != 0 && d != nil && d.mnt == mnt
}

// forget releases a whole tree.
func (f *FS) forget(root *node) {
	todo := []*node{root}
	for len(todo) > 0 {
		n := f.owned(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		n.entries.after("", func(_ string, ino Ino) bool {
			if kid := f.nodes.get(uint64(ino)); kid != nil && kid.nlink > 0 {
				todo = append(todo, kid)
			}
			return true
		})
		if n.nlink--; n.isDir() {
			n.nlink = 0
		}
		f.release(n)
	}
}

// A MountInfo describes a mount.
type MountInfo struct {
	Path     string
	Name     string
	Type     string
	ReadOnly bool
	Dev      uint64 // as in Info
}

// Mounts lists what is mounted, in the order of mounting, but for the root.
func (f *FS) Mounts() []MountInfo {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var all []MountInfo
	for i, m := range f.mounts {
		n := f.nodes.get(uint64(m.root))
		if n == nil {
			continue
		}
		path, err := f.path(n)
		if err != nil {
			continue
		}
		all = append(all, MountInfo{path, m.Name, m.Type, m.ReadOnly, uint64(i) + firstDev})
	}
	return all
}
