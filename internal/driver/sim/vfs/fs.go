package vfs

import (
	"sync"
	"syscall"
	"time"

	"github.com/tidwall/btree"
)

// Options bound an FS. Zero fields are the defaults of package budget.
type Options struct {
	Disk     int64            // bytes of contents
	Inodes   int64            // files
	FileSize int64            // bytes of one file, holes too
	Path     int64            // bytes of a path
	Now      func() time.Time // nil is the host's clock
}

// An FS is one live tree of files. It is safe for many goroutines.
type FS struct {
	opts Options

	mu      sync.RWMutex
	owner   *token                 // guarded by mu
	nodes   *btree.Map[Ino, *node] // guarded by mu
	next    Ino                    // guarded by mu
	used    int64                  // guarded by mu
	open    map[Ino]int            // guarded by mu: handles, of files that have any
	orphans map[Ino]bool           // guarded by mu: open files without a name
	watches []*watch               // guarded by mu
}

// New makes an FS that holds an empty root directory of user 0, mode 0755.
func New(o Options) *FS {
	f := &FS{
		opts: o.filled(), owner: &token{}, nodes: new(btree.Map[Ino, *node]), next: Root + 1,
		open: map[Ino]int{}, orphans: map[Ino]bool{},
	}
	now := f.opts.Now()
	f.nodes.Set(Root, &node{
		owner: f.owner, ino: Root, mode: syscall.S_IFDIR | 0o755, nlink: 2, parent: Root,
		atime: now, mtime: now, ctime: now, entries: new(btree.Map[string, Ino]),
	})
	return f
}

func (o Options) filled() Options {
	if o.Disk <= 0 {
		o.Disk = 1 << 30
	}
	if o.Inodes <= 0 {
		o.Inodes = 500_000
	}
	if o.FileSize <= 0 {
		o.FileSize = 4 << 30
	}
	if o.Path <= 0 {
		o.Path = 4096
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Snapshot is a tree as it was at one moment. It never changes.
type Snapshot struct {
	nodes   *btree.Map[Ino, *node]
	next    Ino
	used    int64
	orphans []Ino
}

// Snapshot keeps the tree as it is now. It takes constant time.
func (f *FS) Snapshot() *Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Snapshot{nodes: f.nodes, next: f.next, used: f.used}
	for ino := range f.orphans {
		s.orphans = append(s.orphans, ino)
	}
	f.nodes = f.nodes.Copy()
	f.owner = &token{}
	return s
}

// FS makes a live tree that begins as the snapshot. It takes constant time.
func (s *Snapshot) FS(o Options) *FS {
	f := &FS{
		opts: o.filled(), owner: &token{}, nodes: s.nodes.Copy(), next: s.next, used: s.used,
		open: map[Ino]int{}, orphans: map[Ino]bool{},
	}
	for _, ino := range s.orphans {
		if n, ok := f.nodes.Get(ino); ok {
			f.free(n)
		}
	}
	return f
}

// Usage tells the bytes of contents and the number of files, and the bounds.
func (f *FS) Usage() (bytes, files, maxBytes, maxFiles int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.used, int64(f.nodes.Len()), f.opts.Disk, f.opts.Inodes
}

func (f *FS) get(ino Ino) (*node, error) {
	n, ok := f.nodes.Get(ino)
	if !ok {
		return nil, syscall.ENOENT
	}
	return n, nil
}

// make adds a node that has no name yet.
func (f *FS) make(mode uint32, uid, gid int) (*node, error) {
	if int64(f.nodes.Len()) >= f.opts.Inodes {
		return nil, syscall.ENOSPC
	}
	now := f.opts.Now()
	n := &node{owner: f.owner, ino: f.next, mode: mode, uid: uid, gid: gid, atime: now, mtime: now, ctime: now}
	if n.isDir() {
		n.entries = new(btree.Map[string, Ino])
	}
	f.next++
	f.nodes.Set(n.ino, n)
	return n, nil
}

// free forgets a node that has neither name nor handle.
func (f *FS) free(n *node) {
	for _, p := range n.pages {
		if p != nil {
			f.used -= int64(len(p.b))
		}
	}
	f.nodes.Delete(n.ino)
	delete(f.orphans, n.ino)
}

// release is called when a name or a handle of n went.
func (f *FS) release(n *node) {
	switch {
	case n.nlink > 0:
	case f.open[n.ino] > 0:
		f.orphans[n.ino] = true
	default:
		f.free(n)
	}
}

// child finds an entry of a directory. It may bring up a node from below, so
// the FS is locked for writing where d has something below.
func (f *FS) child(v *View, d *node, name string) (*node, error) {
	if !d.isDir() {
		return nil, syscall.ENOTDIR
	}
	if d.dynamic != nil {
		x, ok := d.dynamic.Lookup(v, name)
		if !ok {
			return nil, syscall.ENOENT
		}
		return f.dynamicNode(v, x, d.ino), nil
	}
	if ino, ok := d.entries.Get(name); ok {
		return f.get(ino)
	}
	if d.lower != nil {
		return f.raise(d, name)
	}
	return nil, syscall.ENOENT
}

// dynamicNode makes the passing node of something dynamic.
func (f *FS) dynamicNode(v *View, x Dynamic, parent Ino) *node {
	now := f.opts.Now()
	n := &node{dynamic: x, mode: x.Mode(), uid: v.UID, gid: v.GID, nlink: 1, parent: parent, atime: now, mtime: now, ctime: now}
	if n.isLink() {
		if b, err := x.Content(v); err == nil {
			n.target = string(b)
		}
	}
	return n
}

// raise brings up a node for an entry below d.
func (f *FS) raise(d *node, name string) (*node, error) {
	if d.removed != nil && d.removed.Contains(name) {
		return nil, syscall.ENOENT
	}
	i, err := d.lower.Lookup(name)
	if err != nil {
		return nil, err
	}
	d = f.own(d)
	n, err := f.make(i.Mode, d.uid, d.gid)
	if err != nil {
		return nil, err
	}
	n.nlink, n.size, n.lower, n.target = 1, i.Size, i.Lower, i.Target
	n.atime, n.mtime, n.ctime = i.Mtime, i.Mtime, i.Mtime
	d.entries.Set(name, n.ino)
	if n.isDir() {
		n.parent, n.name = d.ino, name
		d.subdirs++
	}
	return n, nil
}

// names lists a directory in order of bytes.
func (f *FS) names(v *View, d *node) ([]string, error) {
	if d.dynamic != nil {
		return d.dynamic.Names(v), nil
	}
	if d.lower == nil {
		return d.entries.Keys(), nil
	}
	below, err := d.lower.List()
	if err != nil {
		return nil, err
	}
	all := d.entries.Copy()
	for _, name := range below {
		if d.removed == nil || !d.removed.Contains(name) {
			if _, ok := all.Get(name); !ok {
				all.Set(name, 0)
			}
		}
	}
	return all.Keys(), nil
}

// link gives n a name in d.
func (f *FS) link(d *node, name string, n *node) (dir, file *node) {
	d, n = f.own(d), f.own(n)
	d.entries.Set(name, n.ino)
	n.nlink++
	if n.isDir() {
		n.parent, n.name = d.ino, name
		d.subdirs++
	}
	f.touch(d)
	n.ctime = d.ctime
	return d, n
}

// unlink takes a name away from n; the caller releases n.
func (f *FS) unlink(d *node, name string, n *node) *node {
	d, n = f.own(d), f.own(n)
	d.entries.Delete(name)
	if d.lower != nil {
		if d.removed == nil {
			d.removed = new(btree.Set[string])
		}
		d.removed.Insert(name)
	}
	n.nlink--
	if n.isDir() {
		d.subdirs--
	}
	f.touch(d)
	n.ctime = d.ctime
	return n
}

func (f *FS) touch(n *node) {
	n.mtime = f.opts.Now()
	n.ctime = n.mtime
}
