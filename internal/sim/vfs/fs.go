package vfs

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Options bound an FS. Zero fields are the defaults of package budget.
type Options struct {
	Disk     int64            // bytes of contents, in blocks of 4096
	Inodes   int64            // files
	FileSize int64            // bytes of one file, holes too
	Path     int64            // bytes of a path in a call
	Deepest  int64            // no absolute path that is made has so many bytes; zero is four times Path
	Now      func() time.Time // nil is the host's clock
}

// An FS is one live tree of files. It is safe for many goroutines.
type FS struct {
	opts Options

	mu       sync.RWMutex
	owner    *token                               // guarded by mu
	nodes    trie[node]                           // guarded by mu
	count    int64                                // guarded by mu: of nodes
	clean    int64                                // guarded by mu: of nodes that came up from below, at most
	next     Ino                                  // guarded by mu
	used     int64                                // guarded by mu: bytes charged for contents
	named    int64                                // guarded by mu: bytes charged for names and links
	longest  int64                                // guarded by mu: no path that was made here has more bytes
	measured int64                                // guarded by mu: entries visited by measure, since all were
	mounts   []*mount                             // guarded by mu; what it points to never changes
	orphans  map[Ino]bool                         // guarded by mu: open files without a name
	watches  []*Watch                             // guarded by mu
	rules    func(path string) (read, write bool) // guarded by mu

	hmu  sync.Mutex  // taken with mu held for reading at least
	open map[Ino]int // guarded by hmu, or by mu held for writing: handles
}

// nameCost is what a name takes beside its bytes, and nameRoom how much there
// is for names and the texts of links, for each file that an FS may have.
const (
	nameCost = 64
	nameRoom = 256
)

// maxNames is how many names one file may have, as in ext4.
const maxNames = 65000

// New makes an FS that holds an empty root directory of user 0, mode 0755.
func New(o Options) *FS {
	f := &FS{opts: o.filled(), owner: &token{}, next: Root + 1, count: 1, mounts: []*mount{{}}}
	now := stampOf(f.opts.Now())
	f.nodes.set(f.owner, uint64(Root), &node{
		owner: f.owner, ino: Root, mode: linux.S_IFDIR | 0o755, nlink: 1, parent: Root,
		atime: now, mtime: now, ctime: now,
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
	if o.Deepest <= 0 {
		o.Deepest = 4 * min(o.Path, math.MaxInt64/4)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Snapshot is a tree as it was at one moment. It never changes.
type Snapshot struct {
	nodes   trie[node]
	count   int64
	clean   int64
	next    Ino
	used    int64
	named   int64
	longest int64
	mounts  []*mount
	orphans []Ino
}

// Snapshot keeps the tree as it is now. It takes constant time.
func (f *FS) Snapshot() *Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Snapshot{
		nodes: f.nodes, count: f.count, clean: f.clean, next: f.next,
		used: f.used, named: f.named, longest: f.longest, mounts: f.mounts,
	}
	for ino := range f.orphans {
		s.orphans = append(s.orphans, ino)
	}
	f.owner = &token{}
	return s
}

// FS makes a live tree that begins as the snapshot. It takes constant time.
func (s *Snapshot) FS(o Options) *FS {
	f := &FS{
		opts: o.filled(), owner: &token{}, nodes: s.nodes, count: s.count, clean: s.clean, next: s.next,
		used: s.used, named: s.named, longest: s.longest, mounts: s.mounts,
	}
	for _, ino := range s.orphans {
		if n := f.nodes.get(uint64(ino)); n != nil {
			f.free(n)
		}
	}
	return f
}

// Usage returns the bytes of contents and the number of files, and the bounds.
func (f *FS) Usage() (bytes, files, maxBytes, maxFiles int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.used, f.count, f.opts.Disk, f.opts.Inodes
}

func (f *FS) get(ino Ino) (*node, error) {
	if n := f.nodes.get(uint64(ino)); n != nil {
		return n, nil
	}
	return nil, linux.ENOENT
}

// make adds a node that has no name yet.
func (f *FS) make(mode uint32, uid, gid int) (*node, error) {
	if f.count >= f.opts.Inodes {
		f.sweep()
		if f.count >= f.opts.Inodes {
			return nil, linux.ENOSPC
		}
	}
	now := stampOf(f.opts.Now())
	n := &node{
		owner: f.owner, ino: f.next, mode: mode, uid: uint32(uid), gid: uint32(gid),
		atime: now, mtime: now, ctime: now,
	}
	f.next++
	f.count++
	f.nodes.set(f.owner, uint64(n.ino), n)
	return n, nil
}

// free forgets a node that has neither name nor handle.
func (f *FS) free(n *node) {
	f.used -= n.held
	f.named -= int64(len(n.target))
	n.entries.after("", func(name string, _ Ino) bool {
		f.named -= nameCost + int64(len(name)) // of names below that were gone
		return true
	})
	if n.lower != nil && !n.mine {
		f.clean--
	}
	f.count--
	f.nodes.remove(f.owner, uint64(n.ino))
	delete(f.orphans, n.ino)
}

// release is called when a name or a handle of n went.
func (f *FS) release(n *node) {
	switch {
	case n.nlink > 0:
	case f.open[n.ino] > 0:
		if f.orphans == nil {
			f.orphans = map[Ino]bool{}
		}
		f.orphans[n.ino] = true
	default:
		f.free(n)
	}
}

// spare reports whether there is room for one more name in d. It changes
// nothing.
func (f *FS) spare(d *node, name string) error {
	if _, ok := d.entries.get(name); ok {
		return nil // of something below that is gone, or about to be replaced
	}
	if f.named+nameCost+int64(len(name)) > f.opts.Inodes*nameRoom {
		return linux.ENOSPC
	}
	return nil
}

// deepest bounds a path from the root. As on Linux, relative paths make trees
// that are deeper than a path argument can say. Everything that looks at whole
// paths pays for them, and each entry of a snapshot is one, so there is a bound.
// What lies below a mount can be deeper.
func (f *FS) deepest() int64 { return f.opts.Deepest }

// room reports whether there is room for one more name in d, and whether its
// path stays within bounds. The FS is locked for writing.
func (f *FS) room(d *node, name string) error {
	n, err := f.length(d)
	if err != nil {
		return err
	}
	if n += int64(len(name)) + 1; n >= f.deepest() {
		return linux.ENAMETOOLONG
	}
	f.longest = max(f.longest, n)
	return f.spare(d, name)
}

// length returns the number of bytes of a directory's path. It goes no further
// up than it takes to exceed all bounds.
func (f *FS) length(d *node) (n int64, err error) {
	for d.ino != Root && n <= f.deepest() {
		n += int64(len(d.name)) + 1
		if d, err = f.up(d); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// deepen reports whether a directory may move to a name of another, for which
// there is room: the paths of all that is in it become longer by as much. What
// lies below a mount and was not looked at yet is not counted. It returns the
// number of entries that it visited, for which the caller pays.
func (f *FS) deepen(n, dir *node, name string) (visited int, err error) {
	if !n.isDir() {
		return 0, nil
	}
	was, err := f.length(n)
	if err != nil {
		return 0, err
	}
	is, err := f.length(dir)
	if err != nil {
		return 0, err
	}
	is += int64(len(name)) + 1
	switch {
	case is <= was:
		return 0, nil
	case f.longest+is-was < f.deepest(): // the usual case: nothing is near the bound
		f.longest += is - was
		return 0, nil
	}
	longest, visited := f.measure(n, is)
	if longest >= f.deepest() {
		return visited, linux.ENAMETOOLONG
	}
	// Moves back and forth make f.longest larger than all paths. So that this is not
	// the end of the usual case, all paths are measured after as many visits as
	// that takes.
	if f.measured += int64(visited); f.measured >= f.count {
		var all int
		f.longest, all = f.measure(f.nodes.get(uint64(Root)), 0)
		visited += all
		f.measured = 0
	}
	f.longest = max(f.longest, longest)
	return visited, nil
}

// measure returns the largest number of bytes of a path in a directory, whose own
// has size bytes, or one that reaches the bound. It also returns the number of
// entries that it visited.
func (f *FS) measure(n *node, size int64) (longest int64, visited int) {
	type item struct {
		n    *node
		size int64
	}
	todo, longest := []item{{n, size}}, size
	for len(todo) > 0 && longest < f.deepest() {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x.n.entries.after("", func(name string, ino Ino) bool {
			visited++
			if kid := f.nodes.get(uint64(ino)); kid != nil {
				size := x.size + int64(len(name)) + 1
				longest = max(longest, size)
				if kid.isDir() {
					todo = append(todo, item{kid, size})
				}
			}
			return true
		})
	}
	return longest, visited
}

// enter puts a name into an owned directory.
func (f *FS) enter(d *node, name string, ino Ino) {
	if d.entries.set(f.owner, name, ino) {
		f.named += nameCost + int64(len(name))
	}
}

// link gives n a name in d.
func (f *FS) link(d *node, name string, n *node) (dir, file *node) {
	d, n = f.owned(d), f.owned(n)
	name = strings.Clone(name) // it may be a part of a long path
	f.enter(d, name, n.ino)
	n.nlink++
	n.parent, n.name = d.ino, name
	if n.isDir() {
		d.subdirs++
	}
	f.touch(d)
	n.ctime = d.ctime
	return d, n
}

// unlink takes a name away from n; the caller releases n.
func (f *FS) unlink(d *node, name string, n *node) *node {
	d, n = f.owned(d), f.owned(n)
	if d.lower != nil {
		f.enter(d, name, 0)
	} else {
		d.entries.remove(f.owner, name)
		f.named -= nameCost + int64(len(name))
	}
	n.nlink--
	if n.isDir() {
		d.subdirs--
	}
	f.touch(d)
	n.ctime = d.ctime
	return n
}

// touch notes that an owned node was written to.
func (f *FS) touch(n *node) {
	n.mtime = stampOf(f.opts.Now())
	n.ctime = n.mtime
	f.claim(n)
}

// claim makes the attributes of an owned node its own: those below no longer
// count.
func (f *FS) claim(n *node) {
	if n.lower != nil && !n.mine {
		n.mine = true
		f.clean--
	}
}
