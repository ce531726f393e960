package vfs

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An Entry is one name of a directory.
type Entry struct {
	Name string
	Info Info
}

// ReadDir lists a directory in order of bytes, without "." and "..". The
// Info of each is that of Lstat; its number may be missing (0) for a file that
// lies below and was never looked at otherwise. For directories of any size,
// [File.ReadDir] gives a part at a time.
func (v *View) ReadDir(path string) ([]Entry, error) {
	var entries []Entry
	err := v.FS.read(func(t *trip) error {
		p, err := v.readable(t, path)
		if err != nil {
			return err
		}
		if err = t.list(p.node); err != nil {
			return err
		}
		entries, err = v.FS.list(t, v, p.node, "", 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Names returns the names in a directory in order of bytes, without "." and
// "..". It is cheaper than ReadDir, above all where something lies below.
func (v *View) Names(path string) ([]string, error) {
	var all []string
	err := v.FS.read(func(t *trip) error {
		p, err := v.readable(t, path)
		if err != nil {
			return err
		}
		d := p.node
		switch {
		case d.dynamic != nil:
			all = slices.Clone(d.dynamic.Names(v))
			slices.Sort(all)
		case d.lower == nil:
			all = v.FS.merged(d, nil)
		case t == nil || t.namedOf != d.lower:
			return &want{what: wantNames, lower: d.lower}
		default:
			all = v.FS.merged(d, t.names)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// merged gives the names of a directory. What lies below is sorted.
func (f *FS) merged(d *node, below []string) []string {
	all := make([]string, 0, d.entries.n+len(below))
	d.entries.after("", func(name string, ino Ino) bool {
		n := f.nodes.get(uint64(ino))
		if n == nil {
			return true
		}
		if d.lower != nil && n.lower != nil && !n.mine {
			if _, there := slices.BinarySearch(below, name); !there {
				return true // it came from below, and went there
			}
		}
		all = append(all, name)
		return true
	})
	if len(below) == 0 {
		return all
	}
	for _, name := range below {
		if _, ok := d.entries.get(name); !ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// readable walks to a directory that may be listed.
func (v *View) readable(t *trip, path string) (place, error) {
	p, err := v.find(t, path, following)
	switch {
	case err != nil:
		return p, err
	case !p.node.isDir():
		return p, linux.ENOTDIR
	case p.read, !v.may(p.node, 4):
		return p, linux.EACCES
	}
	return p, nil
}

// list asks for what lies below a directory, unless it is known.
func (t *trip) list(d *node) error {
	if d.lower == nil || t != nil && t.listed == d.lower {
		return nil
	}
	return &want{what: wantList, dir: d.ino, lower: d.lower}
}

// list gives up to most entries (0 is all) of a directory, of the names after one. What
// lies below is in the FS already, but for what had no room there.
func (f *FS) list(t *trip, v *View, d *node, after string, most int) ([]Entry, error) {
	if d.dynamic != nil {
		return f.listDynamic(v, d, after, most), nil
	}
	room := d.entries.n
	if most > 0 {
		room = min(room, most)
	}
	entries := make([]Entry, 0, room)
	var err error
	d.entries.after(after, func(name string, ino Ino) bool {
		if ino == 0 {
			return true
		}
		if most > 0 && len(entries) >= most {
			return false
		}
		n := f.nodes.get(uint64(ino))
		if n == nil {
			return true
		}
		if l, ok := n.lower.(*lazy); ok && !l.known() {
			err = &want{dir: d.ino, name: name, ino: ino, lower: l}
			return false
		}
		entries = append(entries, Entry{name, n.info()})
		return true
	})
	if err != nil || t == nil || len(t.extra) == 0 {
		return entries, err
	}
	for _, e := range t.extra {
		if e.Name > after {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if most > 0 && len(entries) > most {
		entries = entries[:most]
	}
	return entries, nil
}

func (f *FS) listDynamic(v *View, d *node, after string, most int) []Entry {
	all := slices.Clone(d.dynamic.Names(v))
	slices.Sort(all)
	var entries []Entry
	for _, name := range all {
		if name <= after {
			continue
		}
		if most > 0 && len(entries) >= most {
			break
		}
		if x, ok := d.dynamic.Lookup(v, name); ok {
			entries = append(entries, Entry{name, f.dynamicNode(v, x, d, name).info()})
		}
	}
	return entries
}

// empty gives ENOTEMPTY for a directory that holds something.
func (f *FS) empty(t *trip, v *View, d *node) error {
	if d.dynamic != nil {
		if len(d.dynamic.Names(v)) > 0 {
			return linux.ENOTEMPTY
		}
		return nil
	}
	var err error
	holds := func(below bool) {
		d.entries.after("", func(_ string, ino Ino) bool {
			if n := f.nodes.get(uint64(ino)); n != nil && (below || n.lower == nil) {
				err = linux.ENOTEMPTY
			}
			return err == nil
		})
	}
	if holds(d.lower == nil); err != nil {
		return err
	}
	if d.lower == nil {
		return nil
	}
	if err := t.list(d); err != nil {
		return err
	}
	if holds(true); err == nil && len(t.extra) > 0 {
		err = linux.ENOTEMPTY
	}
	return err
}

// A finding is what lies below a name.
type finding struct {
	name string
	old  *node // as it stood in the FS, if it did
	info LowerInfo
	err  error
}

// settleList brings up all of a directory.
func (f *FS) settleList(t *trip, w *want) error {
	below, err := w.lower.List()
	if err != nil {
		return errno(err)
	}
	found := f.unsettled(w.dir, below)
	for i := range found {
		x := &found[i]
		if x.old != nil {
			x.info, x.err = x.old.lower.Stat()
		} else {
			x.info, x.err = w.lower.Lookup(x.name)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.extra = nil
	for i := range found {
		if d := f.nodes.get(uint64(w.dir)); d == nil || d.lower != w.lower {
			return nil // the operation looks again
		}
		f.settleEntry(t, w.dir, &found[i])
	}
	t.listed = w.lower
	return nil
}

// unsettled gives the names of a directory that have something below them.
func (f *FS) unsettled(dir Ino, below []string) []finding {
	f.mu.RLock()
	defer f.mu.RUnlock()
	d := f.nodes.get(uint64(dir))
	if d == nil {
		return nil
	}
	var found []finding
	d.entries.after("", func(name string, ino Ino) bool {
		if n := f.nodes.get(uint64(ino)); n != nil && n.lower != nil {
			found = append(found, finding{name: name, old: n})
		}
		return true
	})
	for _, name := range below {
		if _, ok := d.entries.get(name); !ok {
			found = append(found, finding{name: name})
		}
	}
	return found
}

func (f *FS) settleEntry(t *trip, dir Ino, x *finding) {
	d := f.nodes.get(uint64(dir))
	if x.old == nil {
		if x.err != nil {
			return // it went since it was listed
		}
		if _, ok := d.entries.get(x.name); ok {
			return
		}
		if f.count < f.opts.Inodes/4*3 {
			if n, err := f.raise(d, x.name, x.info); err == nil {
				t.seen[n.ino] = true
				return
			}
		}
		m := f.mounts[d.mnt]
		passing := node{mnt: d.mnt, mode: x.info.Mode, uid: uint32(m.UID), gid: uint32(m.GID), nlink: 1, lower: x.info.Lower}
		passing.take(x.info)
		t.extra = append(t.extra, Entry{x.name, passing.info()})
		return
	}
	n := f.nodes.get(uint64(x.old.ino))
	if n == nil || n.lower != x.old.lower {
		return
	}
	// What cannot be asked is as it was.
	_ = f.refresh(t, dir, x.name, n, x.info, errno(x.err))
}
