package share

import (
	"container/list"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

const (
	dirLimit   = 1024 // directories that are kept open
	depthLimit = 2048 // of directories in each other
	attempts   = 4    // at finding what is being moved
)

// A descriptor is closed when its last user is done with it.
type descriptor struct {
	fd   int
	uses atomic.Int32
}

func newDescriptor(fd int) *descriptor {
	d := &descriptor{fd: fd}
	d.uses.Store(1)
	return d
}

func (d *descriptor) use() *descriptor { d.uses.Add(1); return d }

func (d *descriptor) done() {
	if d.uses.Add(-1) == 0 {
		kernel.Close(d.fd)
	}
}

// A node is what the machine knows by a number: a name in the directory of
// another node. What is renamed keeps its node, what is removed has one without
// a name.
type node struct {
	id     uint64
	kind   uint32 // type bits of the mode
	region *region

	// gate is held while a name in this directory is looked at and entered, and
	// alone while one is taken away, so that table and directory agree.
	gate sync.RWMutex

	// Guarded by Server.mu.
	parent  *node // nil for the root, and for what has no name any more
	name    string
	lookups uint64    // times that the machine was told of it, less what it forgot
	refs    int       // children and handles
	handles []*handle // those that are open
	known   bool      // dev and change are of this process
	dev     uint64
	ino     uint64
	seen    stamp // of the content that the machine may keep
	opened  bool  // seen is of an open
	dir     *descriptor
	recent  *list.Element // in Server.dirs, with dir
}

// A stamp tells contents of a file apart.
type stamp struct {
	size        uint64
	mod, change kernel.Time
}

func stampOf(a *kernel.Attr) stamp { return stamp{a.Size, a.Mod, a.Change} }

// is compares them. One that was kept by another process knows no change.
func (s stamp) is(other stamp) bool {
	return s.size == other.size && s.mod == other.mod && (s.change == other.change || s.change == kernel.Time{})
}

type entry struct {
	parent uint64
	name   string
}

// A region is the system, or a bind, and knows where in it others begin.
type region struct {
	live  bool // a bind
	write bool
	below map[string]*region // names that are, or lead to, places of binds
}

// regionsOf gives the region of the root.
func regionsOf(binds []inner.Bind) *region {
	root := &region{}
	marked := map[*region]bool{root: true}
	for _, b := range binds {
		at := root
		for name := range strings.SplitSeq(strings.Trim(b.Target, "/"), "/") {
			if name == "" || name == "." {
				continue
			}
			if at.below == nil {
				at.below = map[string]*region{}
			}
			next := at.below[name]
			if next == nil {
				next = &region{}
				at.below[name] = next
			}
			at = next
		}
		at.live, at.write = true, b.Write
		marked[at] = true
	}
	var inherit func(r *region)
	inherit = func(r *region) {
		for _, next := range r.below {
			if !marked[next] {
				next.live, next.write = r.live, r.write
			}
			inherit(next)
		}
	}
	inherit(root)
	return root
}

// in gives the region of an entry.
func (r *region) in(name string) *region {
	if next := r.below[name]; next != nil {
		return next
	}
	if r.below == nil {
		return r
	}
	return r.rest()
}

// rest is the region without what is known of places below.
func (r *region) rest() *region {
	switch {
	case r.write:
		return writable
	case r.live:
		return readable
	}
	return system
}

var (
	writable = &region{live: true, write: true}
	readable = &region{live: true}
	system   = &region{}
)

// node gives a node by its number.
func (s *Server) node(id uint64) (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// directory is node for what must be a directory.
func (s *Server) directory(id uint64) (*node, error) {
	n, err := s.node(id)
	if err == nil && n.kind != syscall.S_IFDIR {
		err = syscall.ENOTDIR
	}
	return n, err
}

// changing is directory for one whose entry name is to change.
func (s *Server) changing(id uint64, name string) (*node, error) {
	n, err := s.directory(id)
	if err == nil && !(n.region.write && n.region.in(name).write) {
		err = syscall.EROFS
	}
	return n, err
}

// enter gives the node of an entry that was just looked at, and counts that the
// machine is told of it. The caller holds the gate of parent.
func (s *Server) enter(parent *node, name string, a *kernel.Attr) (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[parent.id] != parent {
		return nil, syscall.ESTALE // forgotten meanwhile
	}
	n := s.names[entry{parent.id, name}]
	if n != nil && s.admit(n, a) != nil {
		parent.refs++ // it stays, whatever leaves it
		s.detach(n)
		parent.refs--
		n = nil
	}
	if n == nil {
		if len(s.nodes) >= s.nodeMax || s.nameBytes+len(name) > nameLimit {
			return nil, syscall.ENFILE
		}
		s.last++
		n = &node{
			id: s.last, kind: a.Mode & syscall.S_IFMT, region: parent.region.in(name), parent: parent, name: name,
			known: true, dev: a.Dev, ino: a.Ino, seen: stampOf(a),
		}
		s.nodes[n.id] = n
		s.names[entry{parent.id, name}] = n
		s.nameBytes += len(name)
		parent.refs++
	}
	n.lookups++
	return n, nil
}

// admit says whether what is at a node's name is what the machine knows as it.
// In a bind that is the same file. Of the system it may be one that took its
// place, as long as the machine has none open: a layer over it would not bear
// another number. mu is held.
func (s *Server) admit(n *node, a *kernel.Attr) error {
	if a.Mode&syscall.S_IFMT != n.kind {
		return syscall.ESTALE
	}
	same := n.known && n.dev == a.Dev && n.ino == a.Ino
	if !n.known {
		same = n.region.live || n.kind != syscall.S_IFREG || n.ino == a.Ino || n.seen.size == a.Size && n.seen.mod == a.Mod
	}
	if !same {
		if n.region.live || len(n.handles) > 0 && n.kind == syscall.S_IFREG {
			return syscall.ESTALE
		}
		if n.kind == syscall.S_IFDIR {
			s.forgetDirs() // those below may be of the old one
		}
	}
	n.known, n.dev, n.ino = true, a.Dev, a.Ino
	return nil
}

// detach takes a node's name away. mu is held.
func (s *Server) detach(n *node) {
	parent := n.parent
	if parent == nil {
		return
	}
	delete(s.names, entry{parent.id, n.name})
	s.nameBytes -= len(n.name)
	n.parent, n.name = nil, ""
	parent.refs--
	s.drop(n)
	s.drop(parent)
}

// attach gives a node without a name one, in a directory that the machine
// knows and that is not below it. mu is held.
func (s *Server) attach(n, parent *node, name string) {
	if s.nodes[parent.id] != parent || s.nodes[n.id] != n || isAbove(n, parent) {
		return
	}
	n.parent, n.name = parent, name
	s.names[entry{parent.id, name}] = n
	s.nameBytes += len(name)
	parent.refs++
}

// drop removes a node that nobody knows any more, and those that it alone kept.
// mu is held.
func (s *Server) drop(n *node) {
	for n != nil && n.id != rootID && n.lookups == 0 && n.refs == 0 {
		delete(s.nodes, n.id)
		s.closeDir(n)
		parent := n.parent
		if parent != nil {
			delete(s.names, entry{parent.id, n.name})
			s.nameBytes -= len(n.name)
			parent.refs--
			n.parent = nil
		}
		n = parent
	}
}

// forget counts what the machine forgot.
func (s *Server) forget(id, times uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil && id != rootID {
		n.lookups -= min(times, n.lookups)
		s.drop(n)
	}
}

// moved does in the table what a rename did. mu is held.
func (s *Server) moved(from *node, name string, to *node, newName string, exchange bool) {
	a, b := s.names[entry{from.id, name}], s.names[entry{to.id, newName}]
	if a == b && a != nil {
		return
	}
	// Nobody goes away between losing a name and having the next.
	from.refs++
	to.refs++
	for _, n := range []*node{a, b} {
		if n != nil {
			n.refs++
			s.detach(n)
		}
	}
	if a != nil {
		s.attach(a, to, newName)
	}
	if b != nil && exchange {
		s.attach(b, from, name)
	}
	for _, n := range []*node{a, b, from, to} {
		if n != nil {
			n.refs--
			s.drop(n)
		}
	}
}

// isAbove says whether n is a directory that dir is in. The host may have moved
// what the table does not know of.
func isAbove(n, dir *node) bool {
	for range depthLimit {
		if dir == nil {
			return false
		}
		if dir == n {
			return true
		}
		dir = dir.parent
	}
	return true
}

// move does a rename and has those who fail to find what it moves try again.
func (s *Server) move(rename func() error, moved func()) error {
	s.mu.Lock()
	s.moving++
	s.mu.Unlock()
	err := rename()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		moved()
	}
	s.moving--
	s.moves++
	s.settled.Broadcast()
	return err
}

// again does what finds something by its name, again where that name was being
// changed.
func (s *Server) again(find func() error) error {
	for n := 1; ; n++ {
		s.mu.Lock()
		before := s.moves
		s.mu.Unlock()
		err := find()
		e := errnoOf(err)
		if n == attempts || e != syscall.ESTALE && e != syscall.ENOENT {
			return err
		}
		s.mu.Lock()
		for s.moving > 0 && s.moves == before {
			s.settled.Wait()
		}
		still := s.moves == before
		s.mu.Unlock()
		if still {
			return err
		}
	}
}

// openDir opens the directory of a node as a location, name by name from the
// next one above that is open. The caller ends its use.
func (s *Server) openDir(n *node) (*descriptor, error) {
	var d *descriptor
	err := s.again(func() (err error) { d, err = s.walk(n); return err })
	return d, err
}

type step struct {
	node *node
	name string
}

func (s *Server) walk(n *node) (*descriptor, error) {
	at, steps, err := s.way(n)
	if err != nil {
		return nil, err
	}
	for i := len(steps) - 1; i >= 0; i-- {
		next, err := s.enterDir(at, steps[i])
		at.done()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// way gives an open directory and the names from there to a node, the last
// first.
func (s *Server) way(n *node) (*descriptor, []step, error) {
	var steps []step
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := n; ; at = at.parent {
		switch {
		case at.dir != nil:
			if at.recent != nil {
				s.dirs.MoveToFront(at.recent)
			}
			return at.dir.use(), steps, nil
		case at.parent == nil:
			return nil, nil, syscall.ESTALE
		case len(steps) == depthLimit:
			return nil, nil, syscall.ENAMETOOLONG
		}
		steps = append(steps, step{at, at.name})
	}
}

// enterDir opens one directory, and keeps it open for the next who comes.
func (s *Server) enterDir(at *descriptor, to step) (*descriptor, error) {
	fd, err := kernel.OpenDirAt(at.fd, to.name)
	switch e := errnoOf(err); e {
	case 0:
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
		return nil, syscall.ESTALE
	default:
		return nil, e
	}
	d := newDescriptor(fd)
	a, err := kernel.AttrAt(fd, "")
	if err != nil {
		d.done()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(to.node, &a); err != nil {
		d.done()
		return nil, err
	}
	if to.node.dir == nil && s.nodes[to.node.id] == to.node {
		to.node.dir = d.use()
		to.node.recent = s.dirs.PushFront(to.node)
		for s.dirs.Len() > s.dirMax {
			s.closeOldest()
		}
	}
	return d, nil
}

// closeDir closes what is kept open of a node. mu is held.
func (s *Server) closeDir(n *node) {
	if n.recent == nil { // none, or the root's
		return
	}
	s.dirs.Remove(n.recent)
	n.dir.done()
	n.dir, n.recent = nil, nil
}

func (s *Server) closeOldest() {
	if n, ok := s.dirs.Back().Value.(*node); ok {
		s.closeDir(n)
	}
}

func (s *Server) forgetDirs() {
	for s.dirs.Len() > 0 {
		s.closeOldest()
	}
}

// at finds the place of a node: a directory, of which the caller ends the use,
// and a name in it. That of the root is empty.
func (s *Server) at(n *node, do func(dir int, name string) error) error {
	return s.again(func() error {
		s.mu.Lock()
		parent, name := n.parent, n.name
		s.mu.Unlock()
		if parent == nil {
			if n.id != rootID {
				return syscall.ESTALE
			}
			parent = n
		}
		d, err := s.walk(parent)
		if err != nil {
			return err
		}
		defer d.done()
		return do(d.fd, name)
	})
}

// attr describes a node, by what is open of it where something is.
func (s *Server) attr(n *node) (kernel.Attr, error) {
	var a kernel.Attr
	if d := s.anyOpen(n); d != nil {
		defer d.done()
		return kernel.AttrAt(d.fd, "")
	}
	err := s.at(n, func(dir int, name string) error {
		var err error
		if a, err = kernel.AttrAt(dir, name); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.admit(n, &a)
	})
	if err == syscall.ENOENT {
		err = syscall.ESTALE
	}
	return a, err
}

// anyOpen gives an open descriptor of a node, or none. The caller ends its use.
func (s *Server) anyOpen(n *node) *descriptor {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range n.handles {
		if h.open != nil {
			return h.open.use()
		}
	}
	return nil
}

// mixed makes one number of a file's two, which files of one file system never
// share, and those of two hardly ever.
func mixed(dev, ino uint64) uint64 {
	dev += 0x9e3779b97f4a7c15
	dev = (dev ^ dev>>30) * 0xbf58476d1ce4e5b9
	dev = (dev ^ dev>>27) * 0x94d049bb133111eb
	if n := ino ^ (dev ^ dev>>31); n != 0 {
		return n
	}
	return 1 // 0 is no file
}
