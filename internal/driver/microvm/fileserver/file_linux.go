package fileserver

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Cache times of the machine, in seconds.
const (
	systemTime = 600
	liveTime   = 1
)

// A handle is an open file or directory of the machine.
type handle struct {
	id    uint64
	node  *node
	flags int // for opening it again
	dir   bool

	// Server.mu guards these.
	place int         // index in node.handles
	open  *descriptor // nil after Restore until the next use
	gone  bool

	mu   sync.Mutex // held while it is opened again, or a directory is read
	dev  uint64     // for a directory
	next int64      // position of the descriptor in the directory
}

// close closes the descriptor. The server's mu is held.
func (h *handle) close() {
	h.gone = true
	if h.open != nil {
		h.open.done()
		h.open = nil
	}
}

// stillTime is how long a file must be unchanged before its times reliably show the next
// change. It is longer than the timestamp granularity of any file system.
const stillTime = 3 * time.Second

// permanent is the set of open flags that apply for the life of a handle.
const permanent = syscall.O_ACCMODE | syscall.O_SYNC | syscall.O_DSYNC

// openFlags returns the flags of the machine that apply here. For O_APPEND the machine
// sends the offset with each write.
func openFlags(flags uint32) int { return int(flags) & (permanent | syscall.O_TRUNC) }

func writes(flags int) bool {
	return flags&(syscall.O_ACCMODE|syscall.O_TRUNC|syscall.O_CREAT) != syscall.O_RDONLY
}

// openNode opens a file or directory by its name.
func (s *Server) openNode(n *node, flags int) (*descriptor, sys.Attr, error) {
	var d *descriptor
	var a sys.Attr
	if writes(flags) && !n.region.write {
		return nil, a, syscall.EROFS
	}
	switch n.kind {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		flags = syscall.O_RDONLY | syscall.O_DIRECTORY
	case syscall.S_IFLNK:
		return nil, a, syscall.ELOOP
	default:
		return nil, a, syscall.ENXIO
	}
	err := s.at(n, func(dir int, name string) error {
		if name == "" {
			name = "."
		}
		fd, err := sys.OpenAt(dir, name, flags, 0)
		if err != nil {
			return err
		}
		d = newDescriptor(fd)
		is := sys.Attr{}
		if a, err = sys.AttrAt(fd, ""); err == nil {
			is = a
			if a.Links == 0 && n.region.live && n.kind == syscall.S_IFREG && a.Mode&syscall.S_IFMT == syscall.S_IFREG && name != "." {
				// It has been replaced, or the broker opened a file without a name for it.
				is, err = sys.AttrAt(dir, name)
			}
		}
		if err == nil {
			s.mu.Lock()
			err = s.admit(n, &is)
			s.mu.Unlock()
		}
		if err != nil {
			d.done()
		}
		return err
	})
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ELOOP) {
		err = syscall.ESTALE
	}
	if errors.Is(err, syscall.ESTALE) && !n.region.live && n.kind == syscall.S_IFREG {
		// A replaced file of the system that is still in use keeps its content: see stays.
		if d := s.anyOpen(n); d != nil {
			if a, err = sys.AttrAt(d.fd, ""); err != nil {
				d.done()
			}
			return d, a, err
		}
	}
	return d, a, err
}

// hold makes a handle for an opened file, or closes it on an error. It reports whether the
// machine may keep its cached content. A live file is read again at each open, because a
// mapping on the host may change the content without changing the times. Programs are
// excepted, because they are large and run often. If two openings run at the same time, the
// machine may get the answers in either order. A change that only the change time shows is
// then seen at the next open.
func (s *Server) hold(n *node, d *descriptor, a *sys.Attr, flags int, program bool) (*handle, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[n.id] != n { // forgotten meanwhile
		d.done()
		return nil, false, syscall.ESTALE
	}
	if len(s.handles) >= s.handleMax {
		d.done()
		return nil, false, syscall.ENFILE
	}
	s.last++
	h := &handle{id: s.last, node: n, flags: flags & permanent, open: d, dir: n.kind == syscall.S_IFDIR, dev: a.Dev}
	s.handles[h.id] = h
	s.keep(h)
	same := n.seen.is(stampOf(a))
	kept := same || !n.opened
	if n.region.live {
		kept = same && n.still && program
	}
	n.opened, n.seen = true, stampOf(a)
	n.still = time.Since(time.Unix(a.Change.Sec, int64(a.Change.Nsec))) > s.stillTime
	return h, kept, nil
}

// keep adds a handle to its node. mu is held.
func (s *Server) keep(h *handle) {
	h.place = len(h.node.handles)
	h.node.handles = append(h.node.handles, h)
	h.node.refs++
}

// handle returns the open descriptor of a handle. The caller calls done.
func (s *Server) handle(id uint64, dir bool) (*handle, *descriptor, error) {
	s.mu.Lock()
	h := s.handles[id]
	if h == nil || h.dir != dir {
		s.mu.Unlock()
		return nil, nil, syscall.EBADF
	}
	if h.open != nil {
		d := h.open.use()
		s.mu.Unlock()
		return h, d, nil
	}
	s.mu.Unlock()
	d, err := s.openAgain(h)
	return h, d, err
}

// openAgain opens a handle that another process had open.
func (s *Server) openAgain(h *handle) (*descriptor, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	if h.open != nil {
		defer s.mu.Unlock()
		return h.open.use(), nil
	}
	s.mu.Unlock()
	d, a, err := s.openNode(h.node, h.flags)
	if err != nil {
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			err = syscall.ESTALE
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.gone {
		d.done()
		return nil, syscall.EBADF
	}
	h.open, h.dev = d, a.Dev
	return d.use(), nil
}

// use calls do with the open descriptor of a handle.
func (r *request) use(id uint64, dir bool, do func(h *handle, fd int) error) error {
	h, d, err := r.server.handle(id, dir)
	if err != nil {
		return err
	}
	defer d.done()
	return do(h, d.fd)
}

// open answers OPEN and OPENDIR.
func (r *request) open() error {
	asked := r.body.u32()
	flags := openFlags(asked)
	r.body.skip(4)
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if dir := r.head.op == opOpendir; dir != (n.kind == syscall.S_IFDIR) {
		if dir {
			return syscall.ENOTDIR
		}
		return syscall.EISDIR
	}
	d, a, err := s.openNode(n, flags)
	if err != nil {
		return err
	}
	h, kept, err := s.hold(n, d, &a, flags, asked&openExec != 0 && n.kind == syscall.S_IFREG)
	if err != nil {
		return err
	}
	r.putOpen(h, kept)
	return nil
}

func (r *request) putOpen(h *handle, kept bool) {
	var flags uint32
	if kept {
		flags = openKeepCache
		if h.dir {
			flags |= openCacheDir
		}
		if h.node.region.live {
			flags |= openNoFlush // no flush is needed; without this flag the machine's init does not lend the file
		}
	}
	r.out.u64(h.id)
	r.out.u32(flags)
	r.out.u32(0)
}

func (r *request) release() error {
	id := r.body.u64()
	r.body.skip(16)
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.handles[id]
	if h == nil || h.dir != (r.head.op == opReleasedir) {
		return syscall.EBADF
	}
	delete(s.handles, id)
	h.close()
	n := h.node
	end := len(n.handles) - 1
	n.handles[h.place] = n.handles[end]
	n.handles[h.place].place = h.place
	n.handles = n.handles[:end]
	n.refs--
	s.drop(n)
	return nil
}

// span reads an offset and a size, which must be valid for a file.
func span(offset uint64, size uint32) (int64, int, error) {
	if size > maxData || int64(offset) < 0 || int64(offset)+int64(size) < 0 {
		return 0, 0, syscall.EINVAL
	}
	return int64(offset), int(size), nil
}

func (r *request) pread() error {
	b := &r.body
	id := b.u64()
	offset, size, err := span(b.u64(), b.u32())
	b.skip(4 + 8 + 4 + 4)
	if e := b.end(); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	return r.use(id, false, func(_ *handle, fd int) error {
		data := r.buffer(1, headOut+size)
		n, err := whole(syscall.Pread, fd, data[headOut:], offset)
		r.out.data = data[:headOut+n]
		return err
	})
}

// whole reads or writes until the data is done or the file ends. An error after partial
// success is returned by the next call.
func whole(call func(fd int, data []byte, offset int64) (int, error), fd int, data []byte, offset int64) (int, error) {
	n := 0
	for n < len(data) {
		got, err := call(fd, data[n:], offset+int64(n))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if got <= 0 {
			if n > 0 {
				err = nil
			}
			return n, err
		}
		n += got
	}
	return n, nil
}

func (r *request) pwrite() error {
	b := &r.body
	id := b.u64()
	offset, size, err := span(b.u64(), b.u32())
	how := b.u32()
	b.skip(8)
	flags := b.u32()
	b.skip(4)
	if err != nil {
		return err
	}
	data := b.take(size)
	if len(data) != size || b.end() != nil {
		return syscall.EINVAL
	}
	return r.use(id, false, func(_ *handle, fd int) error {
		var n int
		var err error
		if flags&syscall.O_APPEND != 0 && how&writeCache == 0 {
			n, err = sys.AppendTo(fd, data)
		} else {
			n, err = whole(syscall.Pwrite, fd, data, offset)
		}
		if err != nil {
			return err
		}
		r.out.u32(uint32(n))
		r.out.u32(0)
		return nil
	})
}

func (r *request) fsync() error {
	id, flags := r.body.u64(), r.body.u32()
	r.body.skip(4)
	if err := r.body.end(); err != nil {
		return err
	}
	return r.use(id, r.head.op == opFsyncdir, func(_ *handle, fd int) error {
		for {
			sync := syscall.Fsync
			if flags&fsyncData != 0 {
				sync = syscall.Fdatasync
			}
			if err := sync(fd); !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	})
}

// Modes of fallocate that FUSE has: keep the size, punch a hole, write zeros.
const allocateModes = 0x1 | 0x2 | 0x10

func (r *request) fallocate() error {
	b := &r.body
	id, offset, length, mode := b.u64(), int64(b.u64()), int64(b.u64()), b.u32()
	b.skip(4)
	if err := b.end(); err != nil {
		return err
	}
	if offset < 0 || length <= 0 || offset+length < 0 {
		return syscall.EINVAL
	}
	if mode&^allocateModes != 0 {
		return syscall.EOPNOTSUPP
	}
	return r.use(id, false, func(_ *handle, fd int) error {
		for {
			if err := syscall.Fallocate(fd, mode, offset, length); !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	})
}

// Modes of lseek that need the server.
const seekData, seekHole = 3, 4

func (r *request) lseek() error {
	b := &r.body
	id, offset, whence := b.u64(), int64(b.u64()), b.u32()
	b.skip(4)
	if err := b.end(); err != nil {
		return err
	}
	if whence != seekData && whence != seekHole {
		return syscall.EINVAL
	}
	return r.use(id, false, func(_ *handle, fd int) error {
		at, err := syscall.Seek(fd, offset, int(whence))
		if err != nil {
			return err
		}
		r.out.u64(uint64(at))
		return nil
	})
}

// copyMax bounds the copy of one request. The machine asks for the rest.
const copyMax = 64 << 20

func (r *request) copyRange() error {
	b := &r.body
	from, fromOff := b.u64(), int64(b.u64())
	b.skip(8)
	to, toOff, length, flags := b.u64(), int64(b.u64()), b.u64(), b.u64()
	if err := b.end(); err != nil {
		return err
	}
	if fromOff < 0 || toOff < 0 || flags != 0 {
		return syscall.EINVAL
	}
	return r.use(from, false, func(_ *handle, in int) error {
		return r.use(to, false, func(_ *handle, out int) error {
			n, err := sys.CopyRange(in, fromOff, out, toOff, int(min(length, copyMax)))
			if err != nil {
				return err
			}
			r.out.u32(uint32(n))
			r.out.u32(0)
			return nil
		})
	})
}
