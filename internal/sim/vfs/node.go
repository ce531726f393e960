package vfs

import (
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An Ino is the number of a file in its FS. Numbers are never used twice.
// Those from 1<<63 on are of dynamic files; they are not in the FS.
type Ino uint64

// Root is the number of the root directory.
const Root Ino = 1

// A token stands for the right to change a node or page in place: that of the
// FS which holds the same token. A snapshot takes the right away from all.
type token struct{ _ byte }

// A node is a file of any type.
type node struct {
	owner    *token
	ino      Ino
	mode     uint32 // S_IFMT and permission bits, as in stat
	uid, gid uint32
	nlink    int32 // names; of a directory 1 while it is in the tree
	rdev     uint32
	mnt      uint32 // index of its mount
	mine     bool   // of a node with a lower one: mode, owner and times are its own
	size     int64
	held     int64 // bytes charged for its pages

	atime, mtime, ctime stamp

	// The name that it got last. Of a directory it is the only one; another
	// file may have more, and may have lost this one.
	parent Ino
	name   string

	entries names // of a directory; 0 is a name of below that is gone
	subdirs int32 // of a directory

	pages  trie[page] // of a regular file; what is missing is a hole
	target string     // of a symbolic link

	lower   Lower   // what lies below, as long as it is not copied up
	dynamic Dynamic // of a file that is made up when it is looked at
	above   *node   // of such a file that is not a mount's root: its directory
	shown   *Info   // of what a Handle leads to outside of the FS: how it is described
}

// A stamp is a moment.
type stamp struct {
	sec  int64
	nsec int32
}

func stampOf(t time.Time) stamp { return stamp{t.Unix(), int32(t.Nanosecond())} }

func (s stamp) time() time.Time { return time.Unix(s.sec, int64(s.nsec)) }

// Info describes a file, as stat does.
type Info struct {
	Dev                 uint64 // which mount
	Ino                 Ino
	Mode                uint32 // S_IFMT and permission bits
	Nlink               int
	UID, GID            int
	Rdev                uint32
	Size                int64
	Blocks              int64 // of 512 bytes
	Atime, Mtime, Ctime time.Time
}

// IsDir tells directories.
func (i Info) IsDir() bool { return i.Mode&linux.S_IFMT == linux.S_IFDIR }

// IsRegular tells regular files.
func (i Info) IsRegular() bool { return i.Mode&linux.S_IFMT == linux.S_IFREG }

// IsLink tells symbolic links.
func (i Info) IsLink() bool { return i.Mode&linux.S_IFMT == linux.S_IFLNK }

func (n *node) typ() uint32     { return n.mode & linux.S_IFMT }
func (n *node) isDir() bool     { return n.typ() == linux.S_IFDIR }
func (n *node) isLink() bool    { return n.typ() == linux.S_IFLNK }
func (n *node) isRegular() bool { return n.typ() == linux.S_IFREG }

// firstDev is the number of the root mount's device; the others follow.
const firstDev = 64

func (n *node) info() Info {
	if n.shown != nil {
		return *n.shown
	}
	i := Info{
		Dev: uint64(n.mnt) + firstDev, Ino: n.ino, Mode: n.mode, Nlink: int(n.nlink),
		UID: int(n.uid), GID: int(n.gid), Rdev: n.rdev, Size: n.size, Blocks: n.held / 512,
		Atime: n.atime.time(), Mtime: n.mtime.time(), Ctime: n.ctime.time(),
	}
	switch n.typ() {
	case linux.S_IFDIR:
		i.Size, i.Blocks = 4096, 8
		switch {
		case n.lower != nil, n.dynamic != nil:
			i.Nlink = 1 // nobody counted what lies below
		case n.nlink > 0:
			i.Nlink = 2 + int(n.subdirs)
		}
	case linux.S_IFLNK:
		i.Size = int64(len(n.target))
	case linux.S_IFREG:
		if n.lower != nil {
			i.Blocks = charge(n.size) / 512
		}
	}
	if n.dynamic != nil {
		i.Size = n.size
	}
	return i
}

// owned gives a node that may be changed in place: the present one of the same
// number, or a copy that took its place. The FS is locked for writing.
func (f *FS) owned(n *node) *node {
	if n.dynamic != nil {
		return n
	}
	if cur := f.nodes.get(uint64(n.ino)); cur != nil {
		n = cur
	}
	if n.owner == f.owner {
		return n
	}
	c := *n
	c.owner = f.owner
	f.nodes.set(f.owner, uint64(c.ino), &c)
	return &c
}

// A Dynamic is a file that is made up when it is looked at, such as those of
// /proc. Its methods are called with the FS locked: they must not use it.
type Dynamic interface {
	// Mode gives type and permission bits.
	Mode() uint32
	// Lookup finds an entry of a directory. The view is the asking task's.
	Lookup(v *View, name string) (Dynamic, bool)
	// Names lists a directory.
	Names(v *View) []string
	// Content gives what a regular file holds, or what a link says.
	Content(v *View) ([]byte, error)
}

// A Handle is a dynamic link that leads to an open file itself, whatever name
// that has or had, as those of /proc/self/fd do.
type Handle interface {
	Dynamic
	// File gives the file's number, if it is one of this FS.
	File() (Ino, bool)
	// Info describes a file that is not.
	Info() (Info, error)
}

// behind gives the file that a handle leads to. The user has all rights on one
// that is not of this FS, as on what is open already.
func (f *FS) behind(t *trip, v *View, link *node, x Handle) (*node, error) {
	if ino, ok := x.File(); ok {
		n, err := f.get(ino)
		if err == nil && n.lower != nil && !t.fresh(n) {
			err = &want{dir: n.parent, name: n.name, ino: ino, lower: n.lower}
		}
		return n, err
	}
	i, err := x.Info()
	if err != nil {
		return nil, err
	}
	return &node{
		ino: i.Ino, dynamic: x, mode: i.Mode | 0o700, uid: uint32(v.UID), gid: uint32(v.GID),
		nlink: 1, mnt: link.mnt, above: link.above, shown: &i,
	}, nil
}

// dynamicNode makes the passing node of something dynamic.
func (f *FS) dynamicNode(v *View, x Dynamic, dir *node, name string) *node {
	now := stampOf(f.opts.Now())
	n := &node{
		ino: dynamicIno(dir.ino, name), dynamic: x, mode: x.Mode(), uid: uint32(v.UID), gid: uint32(v.GID),
		nlink: 1, mnt: dir.mnt, parent: dir.ino, name: name, above: dir, atime: now, mtime: now, ctime: now,
	}
	if n.isLink() {
		if b, err := x.Content(v); err == nil {
			n.target = string(b)
		}
	}
	return n
}

// dynamicIno gives a file that is in no table a number that stays the same.
func dynamicIno(dir Ino, name string) Ino {
	h := uint64(14695981039346656037) ^ uint64(dir)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return Ino(h | 1<<63)
}
