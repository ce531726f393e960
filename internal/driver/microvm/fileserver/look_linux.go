package fileserver

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func (r *request) putAttr(a *sys.Attr) {
	w := &r.out
	w.u64(mixed(a.Dev, a.Ino))
	w.u64(a.Size)
	w.u64(a.Blocks)
	for _, t := range []sys.Time{a.Access, a.Mod, a.Change} {
		w.u64(uint64(t.Sec))
	}
	for _, t := range []sys.Time{a.Access, a.Mod, a.Change} {
		w.u32(t.Nsec)
	}
	w.u32(a.Mode)
	w.u32(a.Links)
	w.u32(a.UID)
	w.u32(a.GID)
	w.u32(uint32(a.Rdev))
	w.u32(a.BlockSize)
	w.u32(0)
}

// validity is how long, in seconds, the machine may cache attributes.
func (r *region) validity() uint64 {
	if r.live {
		return liveTime
	}
	return systemTime
}

// nameValidity is how long the machine may cache a name. For a file that may change it is
// zero, so the machine asks at each use of the name and gets current attributes. A file
// that the host wrote before an open is therefore read completely, whatever size was
// cached. Directories of a path are cached.
func (r *region) nameValidity(a *sys.Attr) uint64 {
	if r.live && a.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return 0
	}
	return r.validity()
}

// putEntry describes a node in a region. Its number is 0 for a missing entry.
func (r *request) putEntry(id uint64, at *region, a *sys.Attr) {
	w := &r.out
	w.u64(id)
	w.u64(0) // numbers are never reused
	w.u64(at.nameValidity(a))
	w.u64(at.validity())
	w.u64(0) // nanoseconds of both
	r.putAttr(a)
}

// tell looks up an entry and describes it to the machine.
func (r *request) tell(parent *node, dir int, name string) (*node, sys.Attr, error) {
	a, err := sys.AttrAt(dir, name)
	if err != nil {
		return nil, a, err
	}
	n, err := r.server.enter(parent, name, &a)
	if err != nil {
		return nil, a, err
	}
	r.putEntry(n.id, n.region, &a)
	return n, a, nil
}

func (r *request) lookup() error {
	name, err := r.body.name()
	if err != nil {
		return err
	}
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	parent, err := s.directory(r.node)
	if err != nil {
		return err
	}
	parent.gate.RLock()
	defer parent.gate.RUnlock()
	d, err := s.openDir(parent)
	if err != nil {
		return err
	}
	defer d.done()
	_, _, err = r.tell(parent, d.fd, name)
	if region := parent.region.in(name); errors.Is(err, syscall.ENOENT) && !region.live {
		r.putEntry(0, region, &sys.Attr{})
		return nil
	}
	return err
}

func (r *request) getattr() error {
	flags := r.body.u32()
	r.body.skip(4)
	id := r.body.u64()
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if flags&getattrHandle != 0 {
		return r.use(id, n.kind == syscall.S_IFDIR, func(h *handle, fd int) error {
			a, err := sys.AttrAt(fd, "")
			if err == nil {
				r.putAttrOf(h.node, &a)
			}
			return err
		})
	}
	a, err := s.attr(n)
	if err != nil {
		return err
	}
	r.putAttrOf(n, &a)
	return nil
}

// putAttrOf answers GETATTR and SETATTR.
func (r *request) putAttrOf(n *node, a *sys.Attr) {
	r.out.u64(n.region.validity())
	r.out.u64(0)
	r.putAttr(a)
}

func (r *request) readlink() error {
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if n.kind != syscall.S_IFLNK {
		return syscall.EINVAL
	}
	return s.at(n, func(dir int, name string) error {
		says, err := sys.ReadLinkAt(dir, name)
		r.out.data = append(r.out.data[:headOut], says...)
		return err
	})
}

func (r *request) access() error {
	mask := r.body.u32()
	r.body.skip(4)
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if mask > 7 {
		return syscall.EINVAL
	}
	if mask&2 != 0 && !n.region.write {
		return syscall.EROFS
	}
	return s.at(n, func(dir int, name string) error {
		if name == "" {
			name = "."
		}
		return sys.AccessAt(dir, name, mask)
	})
}

func (r *request) statfs() error {
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if n.kind != syscall.S_IFDIR {
		s.mu.Lock()
		n = n.parent
		s.mu.Unlock()
		if n == nil {
			return syscall.ESTALE
		}
	}
	d, err := s.openDir(n)
	if err != nil {
		return err
	}
	defer d.done()
	st, err := sys.StatFS(d.fd)
	if err != nil {
		return err
	}
	w := &r.out
	for _, v := range []uint64{st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree} {
		w.u64(v)
	}
	w.u32(uint32(st.Bsize))
	w.u32(nameMax)
	w.u32(uint32(st.Frsize))
	w.zero(7 * 4)
	return nil
}

const (
	entrySize  = 128 // size of putEntry's output
	direntSize = 24  // header of an entry in a reply
	hostDirent = 19  // header of the host's entry
	direntMin  = 512 // room for the host's longest entry
)

// readdir answers READDIR and READDIRPLUS. It asks the host for no more entries than
// certainly fit, so that the next read needs no search.
func (r *request) readdir() error {
	b := &r.body
	id, offset, length := b.u64(), int64(b.u64()), b.u32()
	b.skip(4 + 8 + 4 + 4)
	if err := b.end(); err != nil {
		return err
	}
	// The offset is any value of the host's file system.
	if offset < 0 || length > maxData {
		return syscall.EINVAL
	}
	size := int(length)
	return r.use(id, true, func(h *handle, fd int) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.next != offset {
			if _, err := syscall.Seek(fd, offset, 0); err != nil {
				return err
			}
			h.next = offset
		}
		return r.list(h, fd, size)
	})
}

func (r *request) list(h *handle, fd, size int) error {
	plus := r.head.op == opReaddirplus
	room := size * 3 / 4 // the host's shortest entry has 24 bytes, ours 32
	if plus {
		room = size * 3 / 20
	}
	data := r.buffer(0, max(room, direntMin))
	n, err := syscall.ReadDirent(fd, data)
	for err == syscall.EINTR {
		n, err = syscall.ReadDirent(fd, data)
	}
	if err == syscall.ENOENT {
		return nil // removed, and so empty
	}
	if err != nil {
		return err
	}
	r.out.data = r.buffer(1, headOut+size)[:headOut]
	l := lister{request: r, handle: h, dir: fd, end: headOut + size, plus: plus}
	if plus {
		h.node.gate.RLock()
		defer h.node.gate.RUnlock()
	}
	h.next = -1 // until the position of the descriptor is certain
	at, whole := l.add(data[:n])
	if whole {
		h.next = at
	}
	if len(r.out.data) == headOut && n > 0 {
		return syscall.EINVAL // no room for one entry
	}
	return nil
}

// A lister converts the host's entries to a reply.
type lister struct {
	*request

	handle *handle
	dir    int // descriptor of the directory
	end    int // end of the reply
	plus   bool
}

// add returns the offset after the last entry that fitted, and whether all did.
func (l *lister) add(data []byte) (int64, bool) {
	e := binary.LittleEndian
	var at int64
	for len(data) >= hostDirent {
		size := int(e.Uint16(data[16:]))
		if size < hostDirent || size > len(data) {
			return at, false
		}
		name := data[hostDirent:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		next := int64(e.Uint64(data[8:]))
		if !l.one(string(name), e.Uint64(data), uint64(next), uint32(data[18])) {
			return at, false
		}
		at = next
		data = data[size:]
	}
	return at, true
}

func (l *lister) one(name string, ino, next uint64, kind uint32) bool {
	size := direntSize + (len(name)+7)&^7
	if l.plus {
		size += entrySize
	}
	if len(l.out.data)+size > l.end {
		return false
	}
	if l.plus {
		if name == "." || name == ".." || checkName(name) != nil {
			l.out.zero(entrySize)
		} else if _, _, err := l.tell(l.handle.node, l.dir, name); err != nil {
			l.out.zero(entrySize) // only its name is sent
		}
	}
	w := &l.out
	w.u64(mixed(l.handle.dev, ino))
	w.u64(next)
	w.u32(uint32(len(name)))
	w.u32(kind)
	w.data = append(w.data, name...)
	w.zero(-len(name) & 7)
	return true
}
