package vfs

import (
	"syscall"
	"time"

	"github.com/tidwall/btree"
)

// An Ino is the number of a file in its FS. Numbers are never used twice.
type Ino uint64

// Root is the number of the root directory.
const Root Ino = 1

// A token stands for the right to change a node or page in place: that of the
// FS which holds the same token. A snapshot takes the right away from all.
type token struct{ _ byte }

// pageSize is the unit in which contents are shared and copied.
const pageSize = 64 << 10

type page struct {
	owner *token
	b     []byte // up to pageSize; what is missing at its end is zeros
}

// A node is a file of any type.
type node struct {
	owner               *token
	ino                 Ino
	mode                uint32 // S_IFMT and permission bits, as in stat
	uid, gid            int
	nlink               int
	rdev                uint32
	size                int64
	atime, mtime, ctime time.Time

	// Of a directory.
	entries *btree.Map[string, Ino]
	parent  Ino
	name    string // in parent; a directory has one name
	subdirs int

	pages  []*page // of a regular file; nil is a hole
	target string  // of a symbolic link

	lower   Lower              // what lies below, as long as it is not copied up
	removed *btree.Set[string] // of a directory with a lower one: names that are gone
	dynamic Dynamic            // of a file that is made up when it is looked at
}

// Info describes a file, as stat does.
type Info struct {
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
func (i Info) IsDir() bool { return i.Mode&syscall.S_IFMT == syscall.S_IFDIR }

// IsRegular tells regular files.
func (i Info) IsRegular() bool { return i.Mode&syscall.S_IFMT == syscall.S_IFREG }

// IsLink tells symbolic links.
func (i Info) IsLink() bool { return i.Mode&syscall.S_IFMT == syscall.S_IFLNK }

func (n *node) typ() uint32  { return n.mode & syscall.S_IFMT }
func (n *node) isDir() bool  { return n.typ() == syscall.S_IFDIR }
func (n *node) isLink() bool { return n.typ() == syscall.S_IFLNK }

func (n *node) info() Info {
	i := Info{
		Ino: n.ino, Mode: n.mode, Nlink: n.nlink, UID: n.uid, GID: n.gid, Rdev: n.rdev, Size: n.size,
		Atime: n.atime, Mtime: n.mtime, Ctime: n.ctime,
	}
	switch n.typ() {
	case syscall.S_IFDIR:
		i.Size, i.Blocks, i.Nlink = 4096, 8, 2+n.subdirs
	case syscall.S_IFLNK:
		i.Size = int64(len(n.target))
	case syscall.S_IFREG:
		for _, p := range n.pages {
			if p != nil {
				i.Blocks += int64(len(p.b)+4095) / 4096 * 8
			}
		}
		if n.lower != nil {
			i.Blocks = (n.size + 4095) / 4096 * 8
		}
	}
	return i
}

// own gives a node that may be changed in place: n itself, or a copy that
// took its place. The FS is locked for writing.
func (f *FS) own(n *node) *node {
	if n.owner == f.owner || n.dynamic != nil {
		return n
	}
	c := *n
	c.owner = f.owner
	if n.entries != nil {
		c.entries = n.entries.Copy()
	}
	if n.removed != nil {
		c.removed = n.removed.Copy()
	}
	c.pages = append([]*page(nil), n.pages...)
	f.nodes.Set(c.ino, &c)
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

// A Lower is what lies below a node until it is changed: a directory or file
// of the host, or a file that is made when it is first read.
type Lower interface {
	// Lookup describes an entry of a directory; the error is an Errno.
	Lookup(name string) (LowerInfo, error)
	// List names the entries of a directory.
	List() ([]string, error)
	// Open opens a file for reading.
	Open() (LowerFile, error)
}

// LowerInfo describes a file below.
type LowerInfo struct {
	Mode   uint32
	Size   int64
	Mtime  time.Time
	Target string // of a symbolic link
	Lower  Lower  // of a directory or regular file
}

// A LowerFile is an open file below.
type LowerFile interface {
	ReadAt(p []byte, off int64) (int, error)
	Size() (int64, error)
	Close() error
}
