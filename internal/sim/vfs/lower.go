package vfs

import (
	"bytes"
	"io"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A Lower is what lies below a node until it is changed: a directory or file
// of the host, another tree, or a file that is made when it is first read. It
// is only read from. Lowers are compared: the same pointer is the same file.
// They are asked with nothing locked, by many goroutines at once.
//
// Their errors are Errno where they can be; anything else counts as EIO.
type Lower interface {
	// Stat describes the file itself, as it is now.
	Stat() (LowerInfo, error)
	// Lookup describes an entry of a directory.
	Lookup(name string) (LowerInfo, error)
	// List names the entries of a directory.
	List() ([]string, error)
	// Open opens a regular file for reading.
	Open() (LowerFile, error)
}

// LowerInfo describes a file below.
type LowerInfo struct {
	Mode   uint32 // S_IFMT and permission bits
	Size   int64
	Mtime  time.Time
	Target string // of a symbolic link
	Lower  Lower  // the file itself
}

// A LowerFile is an open file below.
type LowerFile interface {
	io.ReaderAt
	Size() (int64, error)
	Close() error
}

// A want is the error of an operation that has to know what lies below, and
// has changed nothing yet. What it wants is fetched with nothing locked, then
// the operation begins anew.
type want struct {
	what  wish
	dir   Ino
	name  string
	ino   Ino   // of a node that is there
	lower Lower // whom to ask
}

type wish int

const (
	wantEntry    wish = iota // the entry name of dir, or how ino is now
	wantOpen                 // the file of ino, opened
	wantContents             // the contents of ino, copied up
	wantList                 // what dir holds
	wantNames                // the names in it
)

func (*want) Error() string { return "what lies below is not known" }

// A trip is what one operation found out about what lies below. A nil trip
// knows nothing.
type trip struct {
	seen    map[Ino]bool // nodes that are as they are below
	absent  []absent     // names that are not there
	file    LowerFile
	fileOf  Lower
	listed  Lower
	extra   []Entry  // entries of what is listed for which there was no room
	names   []string // of a directory, sorted
	namedOf Lower
	rounds  int
}

type absent struct {
	dir  Ino
	name string
}

func (t *trip) fresh(n *node) bool { return t != nil && t.seen[n.ino] }

func (t *trip) missing(dir Ino, name string) bool {
	if t != nil {
		for _, a := range t.absent {
			if a.dir == dir && a.name == name {
				return true
			}
		}
	}
	return false
}

// done closes a file that was opened and not used.
func (t *trip) done() {
	if t != nil && t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// take gives the file that was opened for a lower.
func (t *trip) take(l Lower) LowerFile {
	if t == nil || t.file == nil || t.fileOf != l {
		return nil
	}
	h := t.file
	t.file = nil
	return h
}

// maxRounds is how often one operation asks what lies below. A path has at
// most 2,048 names, and each link starts anew.
const maxRounds = 100_000

// read runs an operation that changes nothing.
func (f *FS) read(do func(*trip) error) error {
	var t *trip
	defer func() { t.done() }()
	for {
		w, err := f.reading(t, do)
		if w == nil {
			return err
		}
		if t, err = f.settle(t, w); err != nil {
			return err
		}
	}
}

func (f *FS) reading(t *trip, do func(*trip) error) (*want, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return wanted(do(t))
}

// write runs an operation that may change something: after it returned a
// want, nothing.
func (f *FS) write(do func(*trip) error) error {
	var t *trip
	defer func() { t.done() }()
	for {
		w, err := f.writing(t, do)
		if w == nil {
			return err
		}
		if t, err = f.settle(t, w); err != nil {
			return err
		}
	}
}

func (f *FS) writing(t *trip, do func(*trip) error) (*want, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return wanted(do(t))
}

func wanted(err error) (*want, error) {
	w, ok := err.(*want)
	if ok {
		return w, nil
	}
	return nil, err
}

// errno makes an Errno of what a lower says.
func errno(err error) error {
	if err == nil {
		return nil
	}
	e, _ := linux.FromHost(err)
	return e
}

// settle fetches what is wanted. Nothing is locked.
func (f *FS) settle(t *trip, w *want) (*trip, error) {
	if t == nil {
		t = &trip{seen: map[Ino]bool{}}
	}
	if t.rounds++; t.rounds > maxRounds {
		return t, linux.EIO
	}
	switch {
	case w.what == wantOpen:
		return t, f.settleOpen(t, w)
	case w.what == wantContents:
		return t, f.copyUp(w)
	case w.what == wantList:
		return t, f.settleList(t, w)
	case w.what == wantNames:
		var err error
		if t.names, err = w.lower.List(); err != nil {
			return t, errno(err)
		}
		slices.Sort(t.names)
		t.namedOf = w.lower
		return t, nil
	case w.ino != 0:
		i, err := w.lower.Stat()
		return t, f.renew(t, w, i, errno(err))
	}
	i, err := w.lower.Lookup(w.name)
	err = errno(err)
	switch {
	case (err == linux.ENOENT || err == linux.ENOTDIR) && !t.seen[w.dir]:
		return t, f.recheck(t, w) // the directory itself may be what went
	case err == linux.ENOENT:
		t.absent = append(t.absent, absent{w.dir, w.name})
		return t, nil
	case err != nil:
		return t, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes.get(uint64(w.dir))
	if d == nil || d.lower != w.lower {
		return t, nil // it changed meanwhile: the operation looks again
	}
	if _, ok := d.entries.get(w.name); ok {
		return t, nil
	}
	n, err := f.raise(d, w.name, i)
	if err != nil {
		return t, err
	}
	t.seen[n.ino] = true
	return t, nil
}

// recheck brings the directory of a want up to date.
func (f *FS) recheck(t *trip, w *want) error {
	i, err := w.lower.Stat()
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes.get(uint64(w.dir))
	if d == nil || d.lower != w.lower {
		return nil // it changed meanwhile: the operation looks again
	}
	return f.refresh(t, d.parent, d.name, d, i, errno(err))
}

// raise makes a node for an entry below d.
func (f *FS) raise(d *node, name string, i LowerInfo) (*node, error) {
	if err := f.spare(d, name); err != nil {
		return nil, err
	}
	m := f.mounts[d.mnt]
	n, err := f.make(i.Mode, m.UID, m.GID)
	if err != nil {
		return nil, err
	}
	d = f.owned(d)
	n.mnt, n.lower = d.mnt, i.Lower
	f.clean++
	n.nlink, n.parent, n.name = 1, d.ino, name
	f.enter(d, name, n.ino)
	if n.isDir() {
		d.subdirs++
	}
	f.named += int64(len(i.Target))
	n.take(i)
	return n, nil
}

// take notes what lies below a node.
func (n *node) take(i LowerInfo) {
	if !n.mine {
		n.mode = i.Mode
		n.atime, n.mtime, n.ctime = stampOf(i.Mtime), stampOf(i.Mtime), stampOf(i.Mtime)
	}
	n.size, n.target = i.Size, i.Target
}

// renew brings a node up to date with what lies below it.
func (f *FS) renew(t *trip, w *want, i LowerInfo, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes.get(uint64(w.ino))
	if n == nil || n.lower != w.lower {
		return nil
	}
	return f.refresh(t, w.dir, w.name, n, i, err)
}

// refresh is renew with the FS locked.
func (f *FS) refresh(t *trip, dir Ino, name string, n *node, i LowerInfo, err error) error {
	switch {
	case err == nil && i.Mode&linux.S_IFMT == n.typ():
		t.seen[n.ino] = true
		if i.Size != n.size || i.Target != n.target || !n.mine && (i.Mode != n.mode || stampOf(i.Mtime) != n.mtime) {
			f.named += int64(len(i.Target) - len(n.target))
			f.owned(n).take(i)
		}
		return nil
	case n.ino == f.mounts[n.mnt].root:
		return linux.ENOENT
	case err == nil, err == linux.ENOENT, err == linux.ENOTDIR:
		t.seen[n.ino] = true // once is enough, even where it has no place to go from
		f.vanish(dir, name, n)
		return nil
	}
	return err
}

// vanish notes that what lay below a node went.
func (f *FS) vanish(dir Ino, name string, n *node) {
	n = f.owned(n)
	if n.isDir() && (n.mine || n.entries.n > 0) {
		f.claim(n)
		n.lower = nil // what was made in it stays
		return
	}
	d := f.nodes.get(uint64(dir))
	if d == nil {
		return
	}
	if ino, ok := d.entries.get(name); !ok || ino != n.ino {
		return
	}
	d = f.owned(d)
	f.leave(d, name)
	if n.isDir() {
		d.subdirs--
	}
	n.nlink--
	f.release(n)
}

// leave takes a name out of an owned directory, without a trace.
func (f *FS) leave(d *node, name string) {
	if d.entries.remove(f.owner, name) {
		f.named -= nameCost + int64(len(name))
	}
}

// sweep forgets nodes that only repeat what lies below, where they are many.
func (f *FS) sweep() {
	if f.clean < f.opts.Inodes/8 {
		return
	}
	var idle []*node
	f.nodes.each(func(_ uint64, n *node) bool {
		if n.lower != nil && !n.mine && !n.isDir() && n.nlink == 1 && f.open[n.ino] == 0 && n.ino != f.mounts[n.mnt].root {
			idle = append(idle, n)
		}
		return true
	})
	for _, n := range idle {
		d := f.nodes.get(uint64(n.parent))
		if d == nil || d.lower == nil {
			continue
		}
		f.leave(f.owned(d), n.name)
		f.free(n)
	}
	f.clean = min(f.clean, f.opts.Inodes/8) // what is left are directories
}

// settleOpen opens what lies below a file.
func (f *FS) settleOpen(t *trip, w *want) error {
	t.done()
	h, err := w.lower.Open()
	if err != nil {
		return errno(err)
	}
	t.file, t.fileOf = h, w.lower
	size, err := h.Size()
	if err != nil {
		return errno(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes.get(uint64(w.ino)); n != nil && n.lower == w.lower && n.size != size {
		f.owned(n).size = size
	}
	return nil
}

// copyUp takes a file out of what lies below, with its contents. They are
// charged before they are read; nothing is locked while they are.
func (f *FS) copyUp(w *want) error {
	src, err := w.lower.Open()
	if err != nil {
		return errno(err)
	}
	defer src.Close()
	// It may be all holes: to read them takes as long as if they were not.
	if size, err := src.Size(); err != nil || size > f.opts.FileSize {
		if err == nil {
			err = linux.EFBIG
		}
		return errno(err)
	}
	var up node // its pages belong to nobody, so they are copied when written to
	buf := make([]byte, pageSize)
	for off := int64(0); ; {
		m, rerr := fill(src, buf, off)
		if off+int64(m) > f.opts.FileSize {
			err = linux.EFBIG
			break
		}
		if !zero(buf[:m]) {
			if err = f.reserve(charge(int64(m))); err != nil {
				break
			}
			up.held += charge(int64(m))
			up.pages.set(nil, uint64(off/pageSize), &page{b: bytes.Clone(buf[:m])})
		}
		off += int64(m)
		up.size = off
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			err = errno(rerr)
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes.get(uint64(w.ino))
	if err != nil || n == nil || n.lower != w.lower {
		f.used -= up.held
		return err // where another was faster, the operation looks again
	}
	n = f.owned(n)
	f.detach(n)
	n.size, n.held, n.pages = up.size, up.held, up.pages
	return nil
}

// detach cuts an owned node off from what lies below; it holds nothing then.
func (f *FS) detach(n *node) {
	f.claim(n)
	n.lower, n.size = nil, 0
}

func (f *FS) reserve(bytes int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used+bytes > f.opts.Disk {
		return linux.ENOSPC
	}
	f.used += bytes
	return nil
}

// fill reads until buf is full or the file ends.
func fill(src LowerFile, buf []byte, off int64) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := src.ReadAt(buf[n:], off+int64(n))
		n += m
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
