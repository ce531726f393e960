package fileserver

import (
	"container/list"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	dirLimit   = 1024 // directories kept open
	depthLimit = 2048 // nesting of directories
	attempts   = 4    // attempts to find a moved file
)

// A descriptor is closed after its last use.
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
		sys.Close(d.fd)
	}
}

// A node is what the machine knows by a number: a name in the directory of another node. A
// renamed file keeps its node, and a removed one has a node without a name. A file of a
// bind with several names is one node, so that a change through one name is visible through
// all.
type node struct {
	id     uint64
	kind   uint32 // type bits of the mode
	region *region

	// gate is read-locked while a name in this directory is looked up and entered, and
	// locked while one is removed, so that the table matches the directory.
	gate sync.RWMutex

	// Server.mu guards these.
	parent  *node // nil for the root, and without a name
	name    string
	more    []place   // further names
	lookups uint64    // times that the machine was told of it, minus those it forgot
	refs    int       // number of children and handles
	handles []*handle // open handles
	known   bool      // dev and change were set by this process
	dev     uint64
	ino     uint64
	seen    stamp // of the content that the machine may cache
	opened  bool  // seen is from an open
	still   bool  // it had been unchanged for stillTime
	dir     *descriptor
	recent  *list.Element // in Server.dirs, if dir is set
}

// A stamp distinguishes contents of a file.
type stamp struct {
	size        uint64
	mod, change sys.Time
}

func stampOf(a *sys.Attr) stamp { return stamp{a.Size, a.Mod, a.Change} }

// is compares stamps. A stamp from another process has no change time.
func (s stamp) is(other stamp) bool {
	return s.size == other.size && s.mod == other.mod && (s.change == other.change || s.change == sys.Time{})
}

// A place is a name in the directory of a node.
type place struct {
	parent *node
	name   string
}

// A file identifies a file on the host.
type file struct{ dev, ino uint64 }

type entry struct {
	parent uint64
	name   string
}

// A region is the system or a bind, and knows the regions inside it.
type region struct {
	bind  int // counted from 1; 0 for the system
	live  bool
	write bool
	below map[string]*region // names that are binds, or parents of binds
	rest  *region            // for all other names
}

// regionsOf returns the region of the root.
func regionsOf(binds []boxinit.Bind) *region {
	root := &region{}
	marked := map[*region]bool{root: true}
	for i, b := range binds {
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
		at.bind, at.live, at.write = i+1, true, b.Write
		marked[at] = true
	}
	var inherit func(r *region)
	inherit = func(r *region) {
		r.rest = &region{bind: r.bind, live: r.live, write: r.write}
		r.rest.rest = r.rest
		for _, next := range r.below {
			if !marked[next] {
				next.bind, next.live, next.write = r.bind, r.live, r.write
			}
			inherit(next)
		}
	}
	inherit(root)
	return root
}

// in returns the region of an entry.
func (r *region) in(name string) *region {
	if next := r.below[name]; next != nil {
		return next
	}
	return r.rest
}

// node returns a node by its number.
func (s *Server) node(id uint64) (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// directory is node for a directory.
func (s *Server) directory(id uint64) (*node, error) {
	n, err := s.node(id)
	if err == nil && n.kind != syscall.S_IFDIR {
		err = syscall.ENOTDIR
	}
	return n, err
}

// changing is directory for a change of the entry name.
func (s *Server) changing(id uint64, name string) (*node, error) {
	n, err := s.directory(id)
	if err == nil && (!n.region.write || !n.region.in(name).write) {
		err = syscall.EROFS
	}
	return n, err
}

// enter returns the node of an entry that was just looked up, and counts that the machine
// is told of it. The caller holds the gate of parent.
func (s *Server) enter(parent *node, name string, a *sys.Attr) (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[parent.id] != parent {
		return nil, syscall.ESTALE // forgotten meanwhile
	}
	n := s.names[entry{parent.id, name}]
	if n != nil && s.admit(n, a) != nil && !s.stays(n, a) {
		parent.refs++ // keep it during the changes below
		s.detach(n, parent, name)
		parent.refs--
		n = nil
	}
	if n == nil {
		if n = s.sameFile(parent.region.in(name), a); n != nil && len(s.names) < s.nodeMax && s.nameBytes+len(name) <= s.nameMax {
			s.attach(n, parent, name)
		} else {
			n = nil
		}
	}
	if n == nil {
		if len(s.nodes) >= s.nodeMax || s.nameBytes+len(name) > s.nameMax {
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
	if a.Links > 1 {
		s.know(n)
	}
	n.lookups++
	return n, nil
}

// know makes a node findable by other names of its file. mu is held.
func (s *Server) know(n *node) {
	if n.known && n.kind == syscall.S_IFREG && n.region.live {
		s.files[file{n.dev, n.ino}] = n
	}
}

// sameFile returns the node of a file with another name in the same bind. mu is held.
func (s *Server) sameFile(r *region, a *sys.Attr) *node {
	if a.Links < 2 || a.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil
	}
	n := s.files[file{a.Dev, a.Ino}]
	if n == nil || n.region.bind != r.bind || s.admit(n, a) != nil {
		return nil
	}
	return n
}

// admit checks that the file at a node's name is the one that the machine knows. In a bind
// it must be the same file. In the system it may be a replacement if the machine has none
// open, because an overlay above it cannot handle another node number. mu is held.
func (s *Server) admit(n *node, a *sys.Attr) error {
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
			s.forgetDirs() // its subdirectories may be of the old one
		}
	}
	n.known, n.dev, n.ino = true, a.Dev, a.Ino
	return nil
}

// stays reports whether a replaced file of the system keeps its identity, because the
// machine has it open. Then a has the attributes of the open file. Otherwise its user would
// get ESTALE, and with an overlay the next user too. mu is held.
func (s *Server) stays(n *node, a *sys.Attr) bool {
	if n.region.live || n.kind != syscall.S_IFREG {
		return false
	}
	for _, h := range n.handles {
		if h.open == nil {
			continue
		}
		was, err := sys.AttrAt(h.open.fd, "")
		if err == nil {
			*a = was
		}
		return err == nil
	}
	return false
}

// detach removes a name of a node. mu is held.
func (s *Server) detach(n, parent *node, name string) {
	if s.names[entry{parent.id, name}] != n {
		return
	}
	s.unname(n, parent, name)
	s.drop(n)
	s.drop(parent)
}

// unname removes a name without dropping a node. mu is held.
func (s *Server) unname(n, parent *node, name string) {
	delete(s.names, entry{parent.id, name})
	s.nameBytes -= len(name)
	parent.refs--
	if n.parent != parent || n.name != name {
		n.more = slices.DeleteFunc(n.more, func(p place) bool { return p == place{parent, name} })
		return
	}
	n.parent, n.name = nil, ""
	if len(n.more) > 0 {
		n.parent, n.name = n.more[0].parent, n.more[0].name
		n.more = n.more[1:]
	}
}

// attach gives a node another name in a known directory that is not below it. mu is held.
func (s *Server) attach(n, parent *node, name string) {
	if s.nodes[parent.id] != parent || s.nodes[n.id] != n || n.refs > 0 && isAbove(n, parent) {
		return
	}
	if n.parent == nil {
		n.parent, n.name = parent, name
	} else {
		n.more = append(n.more, place{parent, name})
	}
	s.names[entry{parent.id, name}] = n
	s.nameBytes += len(name)
	parent.refs++
}

// drop removes an unused node, and the nodes that only it kept. mu is held.
func (s *Server) drop(n *node) {
	next := []*node{n}
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		if n.id == rootID || s.nodes[n.id] != n || n.lookups > 0 || n.refs > 0 {
			continue
		}
		delete(s.nodes, n.id)
		s.closeDir(n)
		if key := (file{n.dev, n.ino}); s.files[key] == n {
			delete(s.files, key)
		}
		for n.parent != nil {
			next = append(next, n.parent)
			s.unname(n, n.parent, n.name)
		}
	}
}

// forget reduces the lookup count.
func (s *Server) forget(id, times uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil && id != rootID {
		n.lookups -= min(times, n.lookups)
		s.drop(n)
	}
}

// moved applies a rename to the table. mu is held.
func (s *Server) moved(from *node, name string, to *node, newName string, exchange bool) {
	a, b := s.names[entry{from.id, name}], s.names[entry{to.id, newName}]
	if a == b && a != nil {
		return
	}
	// Keep the nodes between losing a name and getting the next.
	from.refs++
	to.refs++
	if a != nil {
		a.refs++
		s.detach(a, from, name)
	}
	if b != nil {
		b.refs++
		s.detach(b, to, newName)
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

// isAbove reports whether dir is below the directory n. The host may have moved directories
// without the table knowing.
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

// move runs a rename. Operations that fail meanwhile try again.
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

// again runs an operation on a name, and repeats it if names were changing.
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

// openDir opens the directory of a node, name by name from the nearest open ancestor. The
// caller calls done.
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

// way returns an open directory and the names from there to a node, the last first.
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

// enterDir opens one directory and keeps it open for later requests.
func (s *Server) enterDir(at *descriptor, to step) (*descriptor, error) {
	fd, err := sys.OpenDirAt(at.fd, to.name)
	switch e := errnoOf(err); e {
	case 0:
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
		return nil, syscall.ESTALE
	default:
		return nil, e
	}
	d := newDescriptor(fd)
	a, err := sys.AttrAt(fd, "")
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

// closeDir closes the kept directory of a node. mu is held.
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

// at runs an operation on a node by directory and name; the name is empty for the root. If
// the node is not found there, it tries the other names.
func (s *Server) at(n *node, do func(dir int, name string) error) error {
	for {
		s.mu.Lock()
		parent, name := n.parent, n.name
		s.mu.Unlock()
		err := s.atOne(n, do)
		if e := errnoOf(err); e != syscall.ESTALE && e != syscall.ENOENT {
			return err
		}
		s.mu.Lock()
		more := len(n.more) > 0
		if more && n.parent == parent && n.name == name {
			s.detach(n, parent, name)
		}
		s.mu.Unlock()
		if !more {
			return err
		}
	}
}

func (s *Server) atOne(n *node, do func(dir int, name string) error) error {
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

// attr returns the attributes of a node, from an open descriptor if there is one.
func (s *Server) attr(n *node) (sys.Attr, error) {
	var a sys.Attr
	if d := s.anyOpen(n); d != nil {
		defer d.done()
		return sys.AttrAt(d.fd, "")
	}
	err := s.at(n, func(dir int, name string) error {
		var err error
		if a, err = sys.AttrAt(dir, name); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.admit(n, &a)
	})
	if errors.Is(err, syscall.ENOENT) {
		err = syscall.ESTALE
	}
	return a, err
}

// anyOpen returns an open descriptor of a node, or nil. The caller calls done.
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

// mixed combines device and inode number into one. Files of one file system never collide,
// and files of two hardly ever.
func mixed(dev, ino uint64) uint64 {
	dev += 0x9e3779b97f4a7c15
	dev = (dev ^ dev>>30) * 0xbf58476d1ce4e5b9
	dev = (dev ^ dev>>27) * 0x94d049bb133111eb
	if n := ino ^ (dev ^ dev>>31); n != 0 {
		return n
	}
	return 1 // 0 means no file
}
