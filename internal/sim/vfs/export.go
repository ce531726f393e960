package vfs

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Export returns what differs from base, in the order that [Change]
// says; a nil base is an empty tree. It takes time by what changed: what both
// trees share is not looked at, except that files with several names that
// changed are looked for in the whole tree.
//
// Of a mount with something below, what was changed there is given, relative
// to what lies below. Read-only and dynamic mounts are left out. The base must
// be one that this tree came from.
func (s *Snapshot) Export(base *Snapshot) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if base == nil {
			base = &Snapshot{}
		}
		x := export{now: s, base: base, yield: yield, shared: map[Ino]int64{}}
		x.prepare()
		was, is := base.node(Root), s.node(Root)
		if is == nil {
			return
		}
		if was == nil || !alike(was, is) {
			if !x.give(x.entry(is)) {
				return
			}
		}
		x.walk(was, is)
	}
}

func (s *Snapshot) node(ino Ino) *node { return s.nodes.get(uint64(ino)) }

// An export is an Export that goes on.
type export struct {
	now, base *Snapshot
	yield     func(Change, error) bool
	dirty     map[Ino]map[string]bool // directories in which a file below changed, and its name
	shared    map[Ino]int64           // files with several names that were given: their numbers
	path      []byte                  // of what is looked at
	todo      []level                 // the directories on the way to it
}

// A level is a directory that an export is in.
type level struct {
	was, is *node
	names   []string // what is left of those that differ
	size    int      // of the path, with a slash after it
}

// prepare finds the way from the root to all that changed.
func (x *export) prepare() {
	x.dirty = map[Ino]map[string]bool{}
	several := map[Ino]bool{}
	differ(&x.base.nodes, &x.now.nodes, func(_ uint64, _, is *node) {
		switch {
		case is == nil || is.nlink == 0:
		case is.isDir():
			x.mark(is.parent, is.name, is.ino)
			if x.dirty[is.ino] == nil {
				x.dirty[is.ino] = map[string]bool{}
			}
		case is.nlink > 1, !x.stands(is):
			several[is.ino] = true
		default:
			x.mark(is.parent, is.name, is.ino)
		}
	})
	if len(several) == 0 {
		return
	}
	x.now.nodes.each(func(_ uint64, d *node) bool {
		d.entries.after("", func(name string, ino Ino) bool {
			if several[ino] {
				x.mark(d.ino, name, ino)
			}
			return true
		})
		return true
	})
}

// stands reports whether a file still has the name that it got last.
func (x *export) stands(n *node) bool {
	d := x.now.node(n.parent)
	if d == nil {
		return false
	}
	ino, ok := d.entries.get(n.name)
	return ok && ino == n.ino
}

// mark notes that an entry of a directory changed, up to the root.
func (x *export) mark(dir Ino, name string, ino Ino) {
	for ino != Root {
		set := x.dirty[dir]
		if set == nil {
			set = map[string]bool{}
			x.dirty[dir] = set
		}
		if set[name] {
			return // and all above it
		}
		set[name] = true
		d := x.now.node(dir)
		if d == nil {
			return
		}
		dir, name, ino = d.parent, d.name, d.ino
	}
}

// walk gives what differs in a directory and below it. It keeps one path, and
// needs no more stack for a tree that is deep.
func (x *export) walk(was, is *node) {
	x.dir(was, is)
	for len(x.todo) > 0 {
		l := &x.todo[len(x.todo)-1]
		if len(l.names) == 0 {
			x.todo = x.todo[:len(x.todo)-1]
			continue
		}
		name := l.names[0]
		l.names = l.names[1:]
		x.path = append(x.path[:l.size], name...)
		if !x.name(name, l.was, l.is) {
			return
		}
	}
}

// dir queues the entries that differ in the directory at x.path. was is the
// directory of the base at that path, or nil.
func (x *export) dir(was, is *node) bool {
	if len(x.path) > maxPath {
		return x.give(Change{}, linux.ENAMETOOLONG)
	}
	names := map[string]bool{}
	switch {
	case was == nil:
		is.entries.after("", func(name string, _ Ino) bool {
			names[name] = true
			return true
		})
	case was != is:
		differNames(&was.entries, &is.entries, func(name string, _, _ Ino, _, _ bool) { names[name] = true })
	}
	for name := range x.dirty[is.ino] {
		names[name] = true
	}
	if len(names) == 0 {
		return true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	if len(x.path) > 0 {
		x.path = append(x.path, '/')
	}
	x.todo = append(x.todo, level{was, is, sorted, len(x.path)})
	return true
}

// name gives what differs at the path, which is of that name in a directory.
func (x *export) name(name string, dirWas, dirIs *node) bool {
	var was *node
	if dirWas != nil {
		if ino, ok := dirWas.entries.get(name); ok {
			was = x.base.node(ino)
		}
	}
	ino, ok := dirIs.entries.get(name)
	is := x.now.node(ino)
	if is == nil {
		if was == nil && (!ok || dirIs.lower == nil) {
			return true
		}
		return x.give(Change{Path: string(x.path), Kind: ChangeGone}, nil)
	}
	if is.mnt != dirIs.mnt {
		return x.mount(is)
	}
	if is.lower != nil && !is.mine {
		if is.isDir() {
			return x.dir(was, is) // it only repeats what lies below
		}
		return true
	}
	if !is.isDir() {
		return x.file(was, is)
	}
	same := was != nil && was.ino == is.ino
	if !same || !alike(was, is) {
		e, err := x.entry(is)
		e.Opaque = !same && is.lower == nil
		if !x.give(e, err) {
			return false
		}
	}
	if !same {
		was = nil
	}
	return x.dir(was, is)
}

// mount gives what was changed in a mount.
func (x *export) mount(is *node) bool {
	m := x.now.mounts[is.mnt]
	if m.ReadOnly || is.dynamic != nil {
		return true
	}
	was := x.base.node(is.ino)
	switch {
	case !is.isDir():
		if is.lower != nil && !is.mine {
			return true
		}
		return x.file(was, is)
	case is.lower == nil || is.mine:
		if was == nil || !alike(was, is) {
			if !x.give(x.entry(is)) {
				return false
			}
		}
	}
	return x.dir(was, is)
}

// file gives a file that is no directory, if it differs.
func (x *export) file(was, is *node) bool {
	if is == was {
		return true
	}
	if is.nlink > 1 {
		if first, ok := x.shared[is.ino]; ok {
			return x.give(Change{Path: string(x.path), Kind: ChangeSame, First: first}, nil)
		}
		x.shared[is.ino] = int64(len(x.shared))
	}
	return x.give(x.entry(is))
}

func (x *export) give(e Change, err error) bool { return x.yield(e, err) && err == nil }

// alike reports whether a directory's own attributes are the same.
func alike(a, b *node) bool {
	return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.mtime == b.mtime
}

// entry describes the node at the path.
func (x *export) entry(n *node) (Change, error) {
	e := Change{
		Path: string(x.path), Mode: n.mode & 0o7777, UID: n.uid, GID: n.gid, ModTime: n.mtime.time(),
		Shared: !n.isDir() && n.nlink > 1,
	}
	switch n.typ() {
	case linux.S_IFREG:
		e.Kind, e.Size = ChangeFile, n.size
		if n.lower == nil {
			if n.pages.root != nil {
				e.Data = n.extents()
			}
			return e, nil
		}
		return belowEntry(e, n.lower)
	case linux.S_IFDIR:
		e.Kind = ChangeDir
	case linux.S_IFLNK:
		e.Kind, e.Target = ChangeLink, n.target
	case linux.S_IFIFO:
		e.Kind = ChangePipe
	case linux.S_IFSOCK:
		e.Kind = ChangeSocket
	case linux.S_IFCHR:
		e.Kind, e.Device = ChangeChar, uint64(n.rdev>>8)<<32|uint64(n.rdev&0xff)
	default:
		e.Kind, e.Device = ChangeBlock, uint64(n.rdev>>8)<<32|uint64(n.rdev&0xff)
	}
	return e, nil
}

// extents gives the contents of a file in memory. The node never changes: it
// is a snapshot's.
func (n *node) extents() iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		n.pages.each(func(i uint64, p *page) bool {
			off := int64(i) * pageSize
			b := p.b[:min(int64(len(p.b)), n.size-off)]
			return len(b) == 0 || yield(Extent{Offset: off, Bytes: b}, nil)
		})
	}
}

// belowEntry describes a file whose contents lie below, as they are now.
func belowEntry(e Change, l Lower) (Change, error) {
	h, err := l.Open()
	if err != nil {
		return e, errno(err)
	}
	e.Size, err = h.Size()
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	size := e.Size
	e.Data = func(yield func(Extent, error) bool) {
		h, err := l.Open()
		if err != nil {
			yield(Extent{}, errno(err))
			return
		}
		defer h.Close()
		buf := make([]byte, pageSize)
		for off := int64(0); off < size; {
			n, err := fill(h, buf[:min(int64(len(buf)), size-off)], off)
			if n > 0 && !zero(buf[:n]) && !yield(Extent{Offset: off, Bytes: buf[:n]}, nil) {
				return
			}
			off += int64(n)
			if err == io.EOF {
				return // it got shorter: what is missing is a hole
			}
			if err != nil {
				yield(Extent{}, errno(err))
				return
			}
		}
	}
	return e, errno(err)
}

// parentOf splits a path of an export.
func parentOf(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
