package vfs

import (
	"io"
	"sync"
	"syscall"
)

// A File is an open file of any type. Its offset is its own; duplicates of a
// descriptor share one File. It is safe for many goroutines.
type File struct {
	fs     *FS
	ino    Ino
	flags  int
	made   []byte // of a dynamic file: what it held when it was opened
	opened Info   // of a dynamic file

	mu    sync.Mutex
	off   int64     // guarded by mu
	lower LowerFile // guarded by mu
	done  bool      // guarded by mu
}

// Open opens a file, with the flags of open(2): O_RDONLY, O_WRONLY, O_RDWR,
// O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY and O_NOFOLLOW. Of named
// pipes and devices it gives a File that can only be asked what it is: the
// caller reads and writes those itself.
func (v *View) Open(path string, flags int, mode uint32) (*File, error) {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	follow := flags&syscall.O_NOFOLLOW == 0 && flags&(syscall.O_CREAT|syscall.O_EXCL) != syscall.O_CREAT|syscall.O_EXCL
	p, err := v.walk(path, follow)
	if err != nil {
		return nil, err
	}
	n := p.node
	if n == nil {
		switch {
		case flags&syscall.O_CREAT == 0:
			return nil, syscall.ENOENT
		case p.mustDir:
			return nil, syscall.EISDIR
		}
		if err := v.writable(p.dir); err != nil {
			return nil, err
		}
		if n, err = v.add(p, syscall.S_IFREG|mode&0o777&^v.Umask); err != nil {
			return nil, err
		}
	} else if err := v.openable(n, flags); err != nil {
		return nil, err
	}
	if n.dynamic != nil {
		return v.openDynamic(n, flags)
	}
	h := &File{fs: f, ino: n.ino, flags: flags}
	write := flags&syscall.O_ACCMODE != syscall.O_RDONLY
	if n.lower != nil && n.typ() == syscall.S_IFREG {
		if write {
			if n, err = f.copyUp(n, flags&syscall.O_TRUNC == 0); err != nil {
				return nil, err
			}
		} else if h.lower, err = n.lower.Open(); err != nil {
			return nil, err
		}
	}
	if flags&syscall.O_TRUNC != 0 && write && n.typ() == syscall.S_IFREG && n.size > 0 {
		n = f.own(n)
		f.resize(n, 0)
		f.touch(n)
		f.tell(Written, p.dir, p.name)
	}
	f.open[n.ino]++
	return h, nil
}

// openable tells why a file cannot be opened with flags.
func (v *View) openable(n *node, flags int) error {
	want := uint32(4)
	switch flags & syscall.O_ACCMODE {
	case syscall.O_WRONLY:
		want = 2
	case syscall.O_RDWR:
		want = 6
	}
	switch {
	case flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL:
		return syscall.EEXIST
	case n.isLink():
		return syscall.ELOOP
	case flags&syscall.O_DIRECTORY != 0 && !n.isDir():
		return syscall.ENOTDIR
	case n.isDir() && (want&2 != 0 || flags&syscall.O_CREAT != 0):
		return syscall.EISDIR
	case n.typ() == syscall.S_IFSOCK:
		return syscall.ENXIO
	case !v.may(n, want):
		return syscall.EACCES
	case want&2 != 0 && n.typ() == syscall.S_IFREG && v.FS.frozen(n):
		return syscall.EROFS
	}
	return nil
}

func (v *View) openDynamic(n *node, flags int) (*File, error) {
	h := &File{fs: v.FS, flags: flags, opened: n.info()}
	if n.typ() == syscall.S_IFREG {
		if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
			return nil, syscall.EACCES
		}
		b, err := n.dynamic.Content(v)
		if err != nil {
			return nil, err
		}
		h.made = b
	}
	return h, nil
}

// copyUp takes a file out of what lies below, with its contents if keep.
func (f *FS) copyUp(n *node, keep bool) (*node, error) {
	lower := n.lower
	n = f.own(n)
	if !keep {
		n.lower, n.size, n.pages = nil, 0, nil
		return n, nil
	}
	src, err := lower.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	size, err := src.Size()
	if err != nil {
		return nil, err
	}
	n.lower, n.size, n.pages = nil, 0, nil
	buf := make([]byte, min(size+1, pageSize))
	for off := int64(0); ; {
		m, err := src.ReadAt(buf, off)
		if m > 0 {
			if _, werr := f.writeAt(n, buf[:m], off); werr != nil {
				f.resize(n, 0)
				n.lower, n.size = lower, size
				return nil, werr
			}
			off += int64(m)
		}
		if err == io.EOF || m == 0 && err == nil {
			return n, nil
		}
		if err != nil {
			f.resize(n, 0)
			n.lower, n.size = lower, size
			return nil, syscall.EIO
		}
	}
}

// Flags tells what the file was opened with.
func (h *File) Flags() int { return h.flags }

// Ino tells the file's number; dynamic files have none.
func (h *File) Ino() Ino { return h.ino }

// Info describes the file as it is now.
func (h *File) Info() (Info, error) {
	if h.ino == 0 {
		return h.opened, nil
	}
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	n, err := h.fs.get(h.ino)
	if err != nil {
		return Info{}, err
	}
	return n.info(), nil
}

// Read reads from the offset on, which it moves. At the end it is io.EOF.
func (h *File) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.readAt(p, h.off)
	h.off += int64(n)
	return n, err
}

// ReadAt reads at an offset. At the end it is io.EOF.
func (h *File) ReadAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readAt(p, off)
}

func (h *File) readAt(p []byte, off int64) (int, error) {
	switch {
	case h.done, h.flags&syscall.O_ACCMODE == syscall.O_WRONLY:
		return 0, syscall.EBADF
	case off < 0:
		return 0, syscall.EINVAL
	case h.ino == 0:
		if h.opened.IsDir() {
			return 0, syscall.EISDIR
		}
		if off >= int64(len(h.made)) {
			return 0, io.EOF
		}
		return copy(p, h.made[off:]), nil
	case h.lower != nil:
		n, err := h.lower.ReadAt(p, off)
		if n > 0 && err == io.EOF {
			err = nil
		}
		return n, err
	}
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	n, err := h.fs.get(h.ino)
	if err != nil {
		return 0, err
	}
	if n.isDir() {
		return 0, syscall.EISDIR
	}
	return n.readAt(p, off)
}

func (n *node) readAt(p []byte, off int64) (int, error) {
	if off >= n.size {
		return 0, io.EOF
	}
	if rest := n.size - off; int64(len(p)) > rest {
		p = p[:rest]
	}
	done := 0
	for done < len(p) {
		i, at := int(off/pageSize), int(off%pageSize)
		part := p[done:min(len(p), done+pageSize-at)]
		got := 0
		if i < len(n.pages) && n.pages[i] != nil && at < len(n.pages[i].b) {
			got = copy(part, n.pages[i].b[at:])
		}
		clear(part[got:])
		done += len(part)
		off += int64(len(part))
	}
	return done, nil
}

// Write writes at the offset, which it moves; with O_APPEND at the end.
func (h *File) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, end, err := h.writeAt(p, h.off, h.flags&syscall.O_APPEND != 0)
	if n > 0 {
		h.off = end
	}
	return n, err
}

// WriteAt writes at an offset.
func (h *File) WriteAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, _, err := h.writeAt(p, off, false)
	return n, err
}

func (h *File) writeAt(p []byte, off int64, atEnd bool) (n int, end int64, err error) {
	if h.done || h.flags&syscall.O_ACCMODE == syscall.O_RDONLY || h.ino == 0 {
		return 0, off, syscall.EBADF
	}
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	x, err := f.get(h.ino)
	if err != nil {
		return 0, off, err
	}
	if atEnd {
		off = x.size
	}
	if off < 0 {
		return 0, off, syscall.EINVAL
	}
	x = f.own(x)
	n, err = f.writeAt(x, p, off)
	if n > 0 {
		f.touch(x)
		x.mode &^= syscall.S_ISUID | syscall.S_ISGID
		f.tellFile(Written, x)
	}
	return n, off + int64(n), err
}

// writeAt writes into an owned node, as far as there is room.
func (f *FS) writeAt(n *node, p []byte, off int64) (int, error) {
	var short error
	if off >= f.opts.FileSize && len(p) > 0 {
		return 0, syscall.EFBIG
	}
	if rest := f.opts.FileSize - off; int64(len(p)) > rest {
		p, short = p[:rest], syscall.EFBIG
	}
	done := 0
	for done < len(p) {
		i, at := int(off/pageSize), int(off%pageSize)
		part := p[done:min(len(p), done+pageSize-at)]
		pg, err := f.ownPage(n, i, at+len(part))
		if err != nil {
			return done, err
		}
		copy(pg.b[at:], part)
		done += len(part)
		off += int64(len(part))
		n.size = max(n.size, off)
	}
	return done, short
}

// ownPage gives page i of an owned node, at least size long, to change.
func (f *FS) ownPage(n *node, i, size int) (*page, error) {
	for len(n.pages) <= i {
		n.pages = append(n.pages, nil)
	}
	pg := n.pages[i]
	have := 0
	if pg != nil {
		have = len(pg.b)
	}
	if more := int64(size - have); more > 0 {
		if f.used+more > f.opts.Disk {
			return nil, syscall.ENOSPC
		}
		f.used += more
	}
	switch {
	case pg == nil:
		pg = &page{owner: f.owner, b: make([]byte, size)}
		n.pages[i] = pg
	case pg.owner != f.owner:
		b := make([]byte, max(size, have))
		copy(b, pg.b)
		pg = &page{owner: f.owner, b: b}
		n.pages[i] = pg
	case size > have:
		if size <= cap(pg.b) {
			pg.b = pg.b[:size]
		} else {
			b := make([]byte, size, min(pageSize, max(2*cap(pg.b), size)))
			copy(b, pg.b)
			pg.b = b
		}
	}
	return pg, nil
}

// resize sets the size of an owned node; what is new is a hole.
func (f *FS) resize(n *node, size int64) {
	if size < n.size {
		keep := int((size + pageSize - 1) / pageSize)
		for i := keep; i < len(n.pages); i++ {
			if n.pages[i] != nil {
				f.used -= int64(len(n.pages[i].b))
			}
		}
		if keep < len(n.pages) {
			clear(n.pages[keep:])
			n.pages = n.pages[:keep]
		}
		if last := keep - 1; last >= 0 && last < len(n.pages) && n.pages[last] != nil {
			if cut := int(size - int64(last)*pageSize); cut < len(n.pages[last].b) {
				pg := n.pages[last]
				f.used -= int64(len(pg.b) - cut)
				if pg.owner == f.owner {
					clear(pg.b[cut:])
					pg.b = pg.b[:cut]
				} else {
					n.pages[last] = &page{owner: f.owner, b: append([]byte(nil), pg.b[:cut]...)}
				}
			}
		}
	}
	n.size = size
}

// Truncate sets the file's size.
func (h *File) Truncate(size int64) error {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.flags&syscall.O_ACCMODE == syscall.O_RDONLY || h.ino == 0 {
		return syscall.EINVAL
	}
	n, err := f.get(h.ino)
	if err != nil {
		return err
	}
	return f.truncate(n, size)
}

func (f *FS) truncate(n *node, size int64) error {
	switch {
	case n.isDir():
		return syscall.EISDIR
	case n.typ() != syscall.S_IFREG, size < 0:
		return syscall.EINVAL
	case size > f.opts.FileSize:
		return syscall.EFBIG
	}
	n = f.own(n)
	f.resize(n, size)
	f.touch(n)
	f.tellFile(Written, n)
	return nil
}

// Seek moves the offset, as io.Seeker says.
func (h *File) Seek(off int64, whence int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += h.off
	case io.SeekEnd:
		i, err := h.Info()
		if err != nil {
			return 0, err
		}
		if h.ino == 0 {
			i.Size = int64(len(h.made))
		}
		off += i.Size
	default:
		return 0, syscall.EINVAL
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	h.off = off
	return off, nil
}

// Path names the file where it is a directory, or ENOENT.
func (h *File) Path() (string, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	n, err := h.fs.get(h.ino)
	if err != nil {
		return "", err
	}
	if !n.isDir() {
		return "", syscall.ENOTDIR
	}
	return h.fs.path(n)
}

// Close lets go of the file. Closing twice is fine.
func (h *File) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return nil
	}
	h.done = true
	var err error
	if h.lower != nil {
		err = h.lower.Close()
	}
	if h.ino == 0 {
		return err
	}
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[h.ino]--; f.open[h.ino] <= 0 {
		delete(f.open, h.ino)
		if n, nerr := f.get(h.ino); nerr == nil && n.nlink == 0 {
			f.release(n)
		}
	}
	return err
}
