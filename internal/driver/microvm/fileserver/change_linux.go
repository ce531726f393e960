package fileserver

import (
	"errors"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	modeBits = 0o7777
	newBits  = 0o1777 // permitted mode bits of new files

	renameNoReplace = 1
	renameExchange  = 2
)

// make runs an operation in a directory and tells the machine of the new entry.
func (r *request) make(name string, do func(dir int) error) (*node, sys.Attr, error) {
	s := r.server
	parent, err := s.changing(r.node, name)
	if err != nil {
		return nil, sys.Attr{}, err
	}
	parent.gate.RLock()
	defer parent.gate.RUnlock()
	d, err := s.openDir(parent)
	if err != nil {
		return nil, sys.Attr{}, err
	}
	defer d.done()
	if err := do(d.fd); err != nil {
		return nil, sys.Attr{}, err
	}
	return r.tell(parent, d.fd, name)
}

// newName takes the name of a new entry from a request.
func (r *request) newName() (string, error) {
	name, err := r.body.name()
	if err == nil {
		err = r.body.end()
	}
	return name, err
}

func (r *request) mkdir() error {
	mode := r.body.u32()
	r.body.skip(4)
	name, err := r.newName()
	if err != nil {
		return err
	}
	if mode&sys.SetIDs != 0 {
		return syscall.EPERM
	}
	_, _, err = r.make(name, func(dir int) error { return sys.MkdirAt(dir, name, mode&newBits) })
	return err
}

func (r *request) mknod() error {
	mode := r.body.u32()
	r.body.skip(12)
	name, err := r.newName()
	if err != nil {
		return err
	}
	kind := mode & syscall.S_IFMT
	if kind == 0 {
		kind = syscall.S_IFREG
	}
	// A socket file that nobody has bound leads nowhere. The guest's kernel knows what was bound to it inside.
	if mode&sys.SetIDs != 0 || kind != syscall.S_IFREG && kind != syscall.S_IFIFO && kind != syscall.S_IFSOCK {
		return syscall.EPERM
	}
	_, _, err = r.make(name, func(dir int) error { return sys.Mknodat(dir, name, kind|mode&newBits) })
	return err
}

func (r *request) symlink() error {
	name, err := r.body.name()
	if err != nil {
		return err
	}
	says := r.body.text()
	if err := r.body.end(); err != nil {
		return err
	}
	switch {
	case says == "":
		return syscall.ENOENT
	case len(says) >= pathMax:
		return syscall.ENAMETOOLONG
	}
	_, _, err = r.make(name, func(dir int) error { return sys.SymlinkAt(says, dir, name) })
	return err
}

func (r *request) link() error {
	old := r.body.u64()
	name, err := r.newName()
	if err != nil {
		return err
	}
	n, err := r.server.node(old)
	if err != nil {
		return err
	}
	switch {
	case n.kind == syscall.S_IFDIR:
		return syscall.EPERM
	case !n.region.write:
		return syscall.EROFS
	}
	s := r.server
	if _, err := s.attr(n); err != nil {
		return err
	}
	s.mu.Lock()
	s.know(n)
	s.mu.Unlock()
	_, _, err = r.make(name, func(dir int) error {
		return s.at(n, func(from int, says string) error { return sys.Linkat(from, says, dir, name) })
	})
	return err
}

func (r *request) create() error {
	asked, mode := r.body.u32(), r.body.u32()
	r.body.skip(8)
	name, err := r.newName()
	if err != nil {
		return err
	}
	if mode&sys.SetIDs != 0 {
		return syscall.EPERM
	}
	flags := openFlags(asked)
	var d *descriptor
	n, a, err := r.make(name, func(dir int) error {
		fd, err := sys.OpenAt(dir, name, flags&^syscall.O_TRUNC|syscall.O_CREAT|syscall.O_EXCL, mode&newBits)
		if errors.Is(err, syscall.EEXIST) && asked&syscall.O_EXCL == 0 {
			fd, err = openThere(dir, name, flags)
		}
		if err == nil {
			d = newDescriptor(fd)
		}
		return err
	})
	if err != nil {
		if d != nil {
			d.done()
		}
		return err
	}
	// The entry may already be another file, which has another node. The broker opens a file without a name where the
	// entry holds only what it wrote itself.
	is, err := sys.AttrAt(d.fd, "")
	if err == nil && (is.Dev != a.Dev || is.Ino != a.Ino) && is.Links > 0 {
		err = syscall.ESTALE
	}
	if err != nil {
		d.done()
		r.server.forget(n.id, 1)
		return err
	}
	h, kept, err := r.server.hold(n, d, &is, flags, false)
	if err != nil {
		r.server.forget(n.id, 1)
		return err
	}
	r.putOpen(h, kept)
	return nil
}

// openThere opens an existing regular file.
func openThere(dir int, name string, flags int) (int, error) {
	regular := func(dir int, name string) error {
		a, err := sys.AttrAt(dir, name)
		if err == nil && a.Mode&syscall.S_IFMT != syscall.S_IFREG {
			err = syscall.EEXIST
		}
		return err
	}
	if err := regular(dir, name); err != nil {
		return -1, err
	}
	fd, err := sys.OpenAt(dir, name, flags, 0)
	if err != nil {
		return -1, err
	}
	if err := regular(fd, ""); err != nil {
		sys.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (r *request) remove() error {
	name, err := r.newName()
	if err != nil {
		return err
	}
	s := r.server
	parent, err := s.changing(r.node, name)
	if err != nil {
		return err
	}
	parent.gate.Lock()
	defer parent.gate.Unlock()
	d, err := s.openDir(parent)
	if err != nil {
		return err
	}
	defer d.done()
	if r.head.op == opRmdir {
		err = sys.RmdirAt(d.fd, name)
	} else {
		err = sys.UnlinkAt(d.fd, name)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.names[entry{parent.id, name}]; n != nil {
		s.closeDir(n)
		s.detach(n, parent, name)
	}
	return nil
}

func (r *request) rename() error {
	id := r.body.u64()
	var flags uint32
	if r.head.op == opRename2 {
		flags = r.body.u32()
		r.body.skip(4)
	}
	name, err := r.body.name()
	if err != nil {
		return err
	}
	newName, err := r.newName()
	if err != nil {
		return err
	}
	if flags != 0 && flags != renameNoReplace && flags != renameExchange {
		return syscall.EINVAL
	}
	s := r.server
	from, err := s.changing(r.node, name)
	if err != nil {
		return err
	}
	to, err := s.changing(id, newName)
	if err != nil {
		return err
	}
	defer lockBoth(from, to)()
	a, err := s.openDir(from)
	if err != nil {
		return err
	}
	defer a.done()
	b, err := s.openDir(to)
	if err != nil {
		return err
	}
	defer b.done()
	return s.move(
		func() error { return sys.Renameat2(a.fd, name, b.fd, newName, uint(flags)) },
		func() { s.moved(from, name, to, newName, flags == renameExchange) })
}

// lockBoth locks the gates of two directories, always in the same order.
func lockBoth(a, b *node) (unlock func()) {
	if a == b {
		a.gate.Lock()
		return a.gate.Unlock
	}
	if a.id > b.id {
		a, b = b, a
	}
	a.gate.Lock()
	b.gate.Lock()
	return func() {
		b.gate.Unlock()
		a.gate.Unlock()
	}
}

// A change holds the fields of SETATTR.
type change struct {
	valid       uint32
	handle      uint64
	size        uint64
	access, mod sys.Time
	mode        uint32
	uid, gid    uint32
}

func (b *body) change() change {
	var c change
	c.valid = b.u32()
	b.skip(4)
	c.handle = b.u64()
	c.size = b.u64()
	b.skip(8)
	c.access.Sec, c.mod.Sec = int64(b.u64()), int64(b.u64())
	b.skip(8)
	c.access.Nsec, c.mod.Nsec = b.u32(), b.u32()
	b.skip(4)
	c.mode = b.u32()
	b.skip(4)
	c.uid, c.gid = b.u32(), b.u32()
	b.skip(4)
	return c
}

func (r *request) setattr() error {
	c := r.body.change()
	if err := r.body.end(); err != nil {
		return err
	}
	s := r.server
	n, err := s.node(r.node)
	if err != nil {
		return err
	}
	if !n.region.write {
		return syscall.EROFS
	}
	before, err := s.attr(n)
	if err != nil {
		return err
	}
	// The owner of a file never changes.
	if c.valid&setUID != 0 && c.uid != before.UID || c.valid&setGID != 0 && c.gid != before.GID {
		return syscall.EPERM
	}
	if c.valid&setMode != 0 {
		if err := s.setMode(n, c.mode&modeBits, before.Mode&modeBits); err != nil {
			return err
		}
	}
	if c.valid&setSize != 0 {
		if err := r.setSize(n, &c); err != nil {
			return err
		}
	}
	if c.valid&(setAtime|setMtime) != 0 {
		if err := s.setTimes(n, &c); err != nil {
			return err
		}
	}
	after, err := s.attr(n)
	if err != nil {
		return err
	}
	r.putAttrOf(n, &after)
	return nil
}

// setMode sets a mode without set-id bits.
func (s *Server) setMode(n *node, mode, before uint32) error {
	if mode&sys.SetIDs&^before != 0 {
		return syscall.EPERM
	}
	if mode == before {
		return nil
	}
	if n.kind == syscall.S_IFLNK {
		return syscall.EOPNOTSUPP
	}
	mode &= newBits
	if d := s.anyOpen(n); d != nil {
		defer d.done()
		return sys.ChmodFile(d.fd, mode)
	}
	return s.at(n, func(dir int, name string) error {
		if name == "" {
			return sys.ChmodFile(dir, mode)
		}
		fd, err := sys.OpenPlaceAt(dir, name)
		if err != nil {
			return err
		}
		defer sys.Close(fd)
		return sys.ChmodFile(fd, mode)
	})
}

func (r *request) setSize(n *node, c *change) error {
	if n.kind != syscall.S_IFREG || int64(c.size) < 0 {
		return syscall.EINVAL
	}
	cut := func(fd int) error {
		for {
			if err := sys.Truncate(fd, int64(c.size)); !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	}
	if c.valid&setHandle != 0 {
		// A read-only handle is not one that the machine's kernel would use.
		err := r.use(c.handle, false, func(_ *handle, fd int) error { return cut(fd) })
		if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EBADF) {
			return err
		}
	}
	d, _, err := r.server.openNode(n, syscall.O_WRONLY)
	if err != nil {
		return err
	}
	defer d.done()
	return cut(d.fd)
}

func (s *Server) setTimes(n *node, c *change) error {
	given := func(t sys.Time, set, now uint32) sys.Time {
		switch {
		case c.valid&set == 0:
			return sys.Time{Nsec: sys.TimeOmit}
		case c.valid&now != 0:
			return sys.Time{Nsec: sys.TimeNow}
		}
		return t
	}
	if c.access.Nsec >= 1e9 || c.mod.Nsec >= 1e9 {
		return syscall.EINVAL
	}
	access, mod := given(c.access, setAtime, setAtimeNow), given(c.mod, setMtime, setMtimeNow)
	if d := s.anyOpen(n); d != nil {
		defer d.done()
		return sys.SetTimesAt(d.fd, "", access, mod)
	}
	return s.at(n, func(dir int, name string) error { return sys.SetTimesAt(dir, name, access, mod) })
}
