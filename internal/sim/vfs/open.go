package vfs

import "github.com/paddock-sandbox/paddock/internal/sim/linux"

// Open opens a file, with the flags of open(2): O_RDONLY, O_WRONLY, O_RDWR,
// O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY and O_NOFOLLOW. Of named
// pipes, of devices and of what [File.Handle] gives, it is a File that can only
// be asked what it is: the caller reads and writes those itself.
func (v *View) Open(path string, flags int, mode uint32) (*File, error) {
	const fresh = linux.O_CREAT | linux.O_EXCL
	if flags&linux.O_ACCMODE == linux.O_ACCMODE ||
		flags&linux.O_CREAT != 0 && flags&linux.O_DIRECTORY != 0 {
		return nil, linux.EINVAL
	}
	w := following
	switch {
	case flags&fresh == fresh, flags&linux.O_CREAT != 0 && flags&linux.O_NOFOLLOW != 0:
		w = naming
	case flags&linux.O_CREAT != 0:
		w = making
	case flags&linux.O_NOFOLLOW != 0:
		w = staying
	}
	var h *File
	do := func(t *trip) error {
		var err error
		h, err = v.open(t, path, flags, mode, w)
		return err
	}
	var err error
	if flags&(linux.O_CREAT|linux.O_TRUNC) == 0 {
		err = v.FS.read(do)
	} else {
		err = v.FS.write(do)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (v *View) open(t *trip, path string, flags int, mode uint32, w way) (*File, error) {
	f := v.FS
	p, err := v.walk(t, path, w)
	if err != nil {
		return nil, err
	}
	if w == naming && p.slash && p.last == aName {
		return nil, linux.EISDIR
	}
	n := p.node
	made := false
	switch {
	case n == nil && flags&linux.O_CREAT == 0:
		return nil, linux.ENOENT
	case n == nil:
		if err := v.writable(p.dir); err != nil {
			return nil, err
		}
		if p.write || p.read {
			return nil, linux.EACCES
		}
		if err := f.room(p.dir, p.name); err != nil {
			return nil, err
		}
		if n, err = v.add(p, linux.S_IFREG|mode&0o7777&^v.Umask); err != nil {
			return nil, err
		}
		made = true
	default:
		if err := v.openable(p, flags); err != nil {
			return nil, err
		}
	}
	if n.dynamic != nil {
		return v.openDynamic(n, flags)
	}
	h := &File{fs: f, ino: n.ino, flags: flags, drop: v.UID != 0}
	if n.isRegular() && !made {
		if err := v.ready(t, h, p, n); err != nil {
			return nil, err
		}
	}
	f.hold(n.ino)
	return h, nil
}

// ready prepares a file that was there: it is cut, or comes up from below.
func (v *View) ready(t *trip, h *File, p place, n *node) error {
	f := v.FS
	switch {
	case h.flags&linux.O_TRUNC != 0:
		n = f.owned(n)
		if n.lower != nil {
			f.detach(n)
		}
		f.resize(n, 0)
		f.touch(n)
		if h.drop {
			n.dropSetID()
		}
		if p.dir != nil {
			f.tell(Written, p.dir, p.name, n)
		}
	case n.lower == nil:
	case h.flags&linux.O_ACCMODE != linux.O_RDONLY:
		return &want{what: wantContents, ino: n.ino, lower: n.lower}
	default:
		h.below, h.lower = n.lower, t.take(n.lower)
		if h.lower == nil {
			return &want{what: wantOpen, ino: n.ino, lower: n.lower}
		}
	}
	return nil
}

// openable tells why a file cannot be opened, in Linux's order.
func (v *View) openable(p place, flags int) error {
	n := p.node
	ask := uint32(4)
	switch flags & linux.O_ACCMODE {
	case linux.O_WRONLY:
		ask = 2
	case linux.O_RDWR:
		ask = 6
	}
	if flags&linux.O_TRUNC != 0 {
		ask |= 2
	}
	switch {
	case flags&(linux.O_CREAT|linux.O_EXCL) == linux.O_CREAT|linux.O_EXCL:
		return linux.EEXIST
	case n.isDir() && flags&linux.O_CREAT != 0:
		return linux.EISDIR
	case flags&linux.O_DIRECTORY != 0 && !n.isDir():
		return linux.ENOTDIR
	case n.isLink():
		return linux.ELOOP
	case n.isDir() && ask&2 != 0:
		return linux.EISDIR
	case ask&2 != 0 && n.isRegular() && v.FS.frozen(n):
		return linux.EROFS
	case !v.may(n, ask), p.read, ask&2 != 0 && p.write:
		return linux.EACCES
	case n.lower != nil && !n.isRegular() && !n.isDir():
		return linux.EACCES // a pipe, socket or device of the host
	case n.typ() == linux.S_IFSOCK:
		return linux.ENXIO
	}
	return nil
}

func (v *View) openDynamic(n *node, flags int) (*File, error) {
	h := &File{fs: v.FS, flags: flags, dynamic: true, opened: n.info(), node: n}
	if h.handle, _ = n.dynamic.(Handle); h.handle != nil {
		return h, nil
	}
	if n.isRegular() {
		if flags&linux.O_ACCMODE != linux.O_RDONLY {
			return nil, linux.EACCES
		}
		b, err := n.dynamic.Content(v)
		if err != nil {
			return nil, err
		}
		h.made = b
	}
	return h, nil
}

// hold counts one more handle of a file. The FS is locked, for reading at
// least.
func (f *FS) hold(ino Ino) {
	f.hmu.Lock()
	defer f.hmu.Unlock()
	if f.open == nil {
		f.open = map[Ino]int{}
	}
	f.open[ino]++
}

// drop counts one handle less, and frees a file that has no name either.
func (f *FS) drop(ino Ino) {
	if !f.idle(ino) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes.get(uint64(ino)); n != nil && n.nlink == 0 && f.open[ino] == 0 {
		f.free(n)
	}
}

// idle gives a handle back and tells whether the file may be free now.
func (f *FS) idle(ino Ino) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.hmu.Lock()
	defer f.hmu.Unlock()
	if f.open[ino]--; f.open[ino] > 0 {
		return false
	}
	delete(f.open, ino)
	n := f.nodes.get(uint64(ino))
	return n != nil && n.nlink == 0
}
