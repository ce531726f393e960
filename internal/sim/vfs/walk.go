package vfs

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// maxLinks is how many symbolic links one path may follow, as in Linux.
const maxLinks = 40

// maxName is how long one name may be, as in Linux.
const maxName = 255

// A way says how a path is followed at its end.
type way int

const (
	following way = iota // a link at the end is followed
	staying              // it is not, unless the path ends in a slash
	making               // it is, for a file that may be made; a slash at the end is EISDIR
	naming               // it is not, not even before a slash: the name itself is meant
)

// A kind says what the last part of a path is.
type kind int

const (
	aName   kind = iota
	aDot         // "."
	aDots        // ".."
	aSlash       // nothing but slashes
	aHandle      // a link to an open file
)

// A place is where a path leads: an entry of a directory, there or not.
type place struct {
	dir   *node // nil where the last part is not a name
	name  string
	node  *node // nil where there is none
	last  kind
	slash bool // the path ended in a slash
	closed
}

// walk follows a path. The FS is locked, for reading at least. Where it needs
// to know what lies below, the error is a want.
func (v *View) walk(t *trip, path string, w way) (place, error) {
	f := v.FS
	if path == "" {
		return place{}, linux.ENOENT
	}
	if int64(len(path)) >= f.opts.Path {
		return place{}, linux.ENAMETOOLONG
	}
	if strings.IndexByte(path, 0) >= 0 {
		return place{}, linux.EINVAL
	}
	s := step{v: v, trip: t, way: w}
	start := v.Dir
	if path[0] == '/' {
		start = Root
	}
	var err error
	if s.dir, err = f.get(start); err != nil {
		return place{}, err
	}
	return s.follow(path)
}

// A step is where a walk stands.
type step struct {
	v     *View
	trip  *trip
	way   way
	dir   *node
	links int
}

func (s *step) follow(rest string) (place, error) {
	v, f := s.v, s.v.FS
	for {
		for rest != "" && rest[0] == '/' {
			rest = rest[1:]
		}
		if rest == "" {
			return s.at(s.dir, aSlash, true)
		}
		name, after := rest, ""
		i := strings.IndexByte(rest, '/')
		if i >= 0 {
			name, after = rest[:i], strings.TrimLeft(rest[i:], "/")
		}
		slash, final := i >= 0, after == ""
		shut, err := s.enter()
		if err != nil {
			return place{}, err
		}
		switch name {
		case ".":
			if final {
				return s.at(s.dir, aDot, slash)
			}
			rest = after
			continue
		case "..":
			if s.dir, err = f.up(s.dir); err != nil {
				return place{}, err
			}
			if final {
				return s.at(s.dir, aDots, slash)
			}
			rest = after
			continue
		}
		if final && slash && s.way == making {
			return place{}, linux.EISDIR
		}
		if len(name) > maxName {
			return place{}, linux.ENAMETOOLONG
		}
		n, err := f.child(s.trip, v, s.dir, name, final)
		if err != nil {
			if err == linux.ENOENT && final {
				return place{dir: s.dir, name: name, slash: slash, closed: f.closedAt(s.dir, name, shut)}, nil
			}
			return place{}, err
		}
		if n.isLink() && (!final || s.way == following || s.way == making || slash && s.way == staying) {
			if f.closedAt(s.dir, name, shut).read {
				return place{}, linux.EACCES
			}
			if x, ok := n.dynamic.(Handle); ok {
				to, err := f.behind(s.trip, v, n, x)
				switch {
				case err != nil:
					return place{}, err
				case final && slash && !to.isDir():
					return place{}, linux.ENOTDIR
				case final && to.shown != nil:
					return place{node: to, last: aHandle}, nil
				case final:
					return s.at(to, aHandle, slash)
				}
				s.dir, rest = to, after
				continue
			}
			if rest, err = s.jump(n, after, slash); err != nil {
				return place{}, err
			}
			continue
		}
		if final {
			if slash && s.way != naming && !n.isDir() {
				return place{}, linux.ENOTDIR
			}
			return place{dir: s.dir, name: name, node: n, slash: slash, closed: f.closedAt(s.dir, name, shut)}, nil
		}
		s.dir, rest = n, after
	}
}

// enter reports whether the walk may look up a name in the directory where it
// stands.
func (s *step) enter() (closed, error) {
	if !s.dir.isDir() {
		return closed{}, linux.ENOTDIR
	}
	if !s.v.may(s.dir, 1) {
		return closed{}, linux.EACCES
	}
	shut := s.v.FS.closed(s.dir)
	if shut.read {
		return closed{}, linux.EACCES
	}
	return shut, nil
}

// jump gives the path that is left after a link.
func (s *step) jump(n *node, after string, slash bool) (string, error) {
	if s.links++; s.links > maxLinks {
		return "", linux.ELOOP
	}
	if n.target == "" {
		return "", linux.ENOENT
	}
	if n.target[0] == '/' {
		root, err := s.v.FS.get(Root)
		if err != nil {
			return "", err
		}
		s.dir = root
	}
	if slash {
		return n.target + "/" + after, nil
	}
	return n.target, nil
}

// at is a place that was not named.
func (s *step) at(n *node, last kind, slash bool) (place, error) {
	return place{node: n, last: last, slash: slash, closed: s.v.FS.closed(n)}, nil
}

// up gives the directory that holds a directory.
func (f *FS) up(d *node) (*node, error) {
	if d.above != nil {
		return d.above, nil
	}
	return f.get(d.parent)
}

// child finds an entry of a directory. With last, what is known of something
// below must be fresh.
func (f *FS) child(t *trip, v *View, d *node, name string, last bool) (*node, error) {
	if d.dynamic != nil {
		x, ok := d.dynamic.Lookup(v, name)
		if !ok {
			return nil, linux.ENOENT
		}
		return f.dynamicNode(v, x, d, name), nil
	}
	ino, ok := d.entries.get(name)
	switch {
	case ok && ino == 0:
		return nil, linux.ENOENT
	case ok:
		n := f.nodes.get(uint64(ino))
		if n == nil {
			return nil, linux.ENOENT
		}
		if n.lower != nil && (last || n.isLink()) && !t.fresh(n) {
			return nil, &want{dir: d.ino, name: name, ino: ino, lower: n.lower}
		}
		return n, nil
	case d.lower != nil && !t.missing(d.ino, name):
		return nil, &want{dir: d.ino, name: name, lower: d.lower}
	}
	return nil, linux.ENOENT
}

// find walks to a file that must be there.
func (v *View) find(t *trip, path string, w way) (place, error) {
	p, err := v.walk(t, path, w)
	if err == nil && p.node == nil {
		err = linux.ENOENT
	}
	return p, err
}

// vacant walks to a name that must not be there, in a directory that can be
// written.
func (v *View) vacant(t *trip, path string, dir bool) (place, error) {
	p, err := v.walk(t, path, naming)
	switch {
	case err != nil:
		return p, err
	case p.node != nil:
		return p, linux.EEXIST
	case p.slash && !dir:
		return p, linux.ENOENT
	}
	if err := v.writable(p.dir); err != nil {
		return p, err
	}
	if p.write {
		return p, linux.EACCES
	}
	return p, v.FS.room(p.dir, p.name)
}

// writable reports whether names may be made and removed in d.
func (v *View) writable(d *node) error {
	switch {
	case d.dynamic != nil:
		return linux.EPERM
	case v.FS.frozen(d):
		return linux.EROFS
	case !v.may(d, 3):
		return linux.EACCES
	case d.nlink == 0:
		return linux.ENOENT
	}
	return nil
}

// sticky reports whether a name of n in d is another's to remove.
func (v *View) sticky(d, n *node) bool {
	return d.mode&linux.S_ISVTX != 0 && v.UID != 0 && int(n.uid) != v.UID && int(d.uid) != v.UID
}

// may reports whether the view's user has all of the rights r (4 read, 2 write,
// 1 execute) on n.
func (v *View) may(n *node, r uint32) bool {
	if v.UID == 0 {
		return r&1 == 0 || n.isDir() || n.mode&0o111 != 0
	}
	bits := n.mode
	switch {
	case int(n.uid) == v.UID:
		bits >>= 6
	case v.inGroup(int(n.gid)):
		bits >>= 3
	}
	return bits&r == r
}

func (v *View) inGroup(gid int) bool {
	if gid == v.GID {
		return true
	}
	for _, g := range v.Groups {
		if g == gid {
			return true
		}
	}
	return false
}

// path names a file by the name that it got last.
func (f *FS) path(n *node) (string, error) {
	if n.ino == Root {
		return "/", nil
	}
	var parts []string
	size := int64(0)
	for n.ino != Root {
		if n.nlink == 0 {
			return "", linux.ENOENT
		}
		parts = append(parts, n.name)
		if size += int64(len(n.name)) + 1; size > maxPath {
			return "", linux.ENAMETOOLONG
		}
		up, err := f.up(n)
		if err != nil {
			return "", err
		}
		if ino, ok := up.entries.get(n.name); up.dynamic == nil && (!ok || ino != n.ino) {
			return "", linux.ENOENT // it had another name, which is gone
		}
		n = up
	}
	b := make([]byte, 0, size)
	for i := len(parts) - 1; i >= 0; i-- {
		b = append(append(b, '/'), parts[i]...)
	}
	return string(b), nil
}

// maxPath is the maximum length of a path that the FS returns. [FS.room] keeps
// paths shorter than [Options.Deepest]; what lies below a mount can be deeper.
const maxPath = 1 << 20
