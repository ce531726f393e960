package vfs

import "github.com/paddock-sandbox/paddock/internal/sim/linux"

// A View is how a task sees an FS. It is a value: copy it to fork it. A View
// by itself is used by one goroutine at a time; its FS by many.
type View struct {
	FS       *FS
	Dir      Ino // the working directory
	UID, GID int
	Groups   []int
	Umask    uint32
	Self     any // what a Dynamic knows the asking task by; may be a [Traverser]
}

// A Traverser is a task that pays for the directory entries that an operation
// visits.
type Traverser interface{ Traverse(entries int) }

// Stat returns the attributes of a file; a link is followed.
func (v *View) Stat(path string) (Info, error) { return v.stat(path, following) }

// Lstat returns the attributes of a file; a link is described itself.
func (v *View) Lstat(path string) (Info, error) { return v.stat(path, staying) }

func (v *View) stat(path string, w way) (Info, error) {
	var i Info
	err := v.FS.read(func(t *trip) error {
		p, err := v.find(t, path, w)
		if err == nil {
			i = p.node.info()
		}
		return err
	})
	return i, err
}

// Access reports whether the user has all of the rights in mode (4 read, 2
// write, 1 execute); 0 asks only whether the file is there.
func (v *View) Access(path string, mode uint32) error {
	return v.FS.read(func(t *trip) error {
		p, err := v.find(t, path, following)
		if err != nil {
			return err
		}
		special := p.node.typ() != linux.S_IFREG && !p.node.isDir() && !p.node.isLink()
		switch {
		case mode&2 != 0 && !special && v.FS.frozen(p.node):
			return linux.EROFS
		case mode&2 != 0 && p.write, mode&4 != 0 && p.read, !v.may(p.node, mode):
			return linux.EACCES
		}
		return nil
	})
}

// Mkdir makes a directory.
func (v *View) Mkdir(path string, mode uint32) error {
	return v.create(path, linux.S_IFDIR|mode&0o1777&^v.Umask, "", 0)
}

// Mkfifo makes a named pipe.
func (v *View) Mkfifo(path string, mode uint32) error {
	return v.create(path, linux.S_IFIFO|mode&0o7777&^v.Umask, "", 0)
}

// Mknod makes a file of the type in mode. Devices are made by user 0 only.
func (v *View) Mknod(path string, mode, rdev uint32) error {
	switch mode & linux.S_IFMT {
	case linux.S_IFCHR, linux.S_IFBLK:
		if v.UID != 0 {
			return linux.EPERM
		}
	case linux.S_IFREG, linux.S_IFIFO, linux.S_IFSOCK:
	default:
		return linux.EINVAL
	}
	return v.create(path, mode&(linux.S_IFMT|0o7777)&^v.Umask, "", rdev)
}

// Symlink makes a link at path that says target.
func (v *View) Symlink(target, path string) error {
	if target == "" {
		return linux.ENOENT
	}
	if int64(len(target)) >= v.FS.opts.Path {
		return linux.ENAMETOOLONG
	}
	return v.create(path, linux.S_IFLNK|0o777, target, 0)
}

func (v *View) create(path string, mode uint32, target string, rdev uint32) error {
	return v.FS.write(func(t *trip) error {
		p, err := v.vacant(t, path, mode&linux.S_IFMT == linux.S_IFDIR)
		if err != nil {
			return err
		}
		if v.FS.named+int64(len(target)) > v.FS.opts.Inodes*nameRoom {
			return linux.ENOSPC
		}
		n, err := v.add(p, mode)
		if err != nil {
			return err
		}
		n.target, n.rdev = target, rdev
		v.FS.named += int64(len(target))
		return nil
	})
}

// add makes a file at a vacant place.
func (v *View) add(p place, mode uint32) (*node, error) {
	f := v.FS
	gid := v.GID
	if p.dir.mode&linux.S_ISGID != 0 {
		gid = int(p.dir.gid)
		if mode&linux.S_IFMT == linux.S_IFDIR {
			mode |= linux.S_ISGID
		}
	}
	n, err := f.make(mode, v.UID, gid)
	if err != nil {
		return nil, err
	}
	n.mnt = p.dir.mnt
	dir, n := f.link(p.dir, p.name, n)
	f.tell(Made, dir, p.name, n)
	return n, nil
}

// Link adds a name to a file. A link is not followed.
func (v *View) Link(old, path string) error {
	f := v.FS
	return f.write(func(t *trip) error {
		from, err := v.find(t, old, staying)
		if err != nil {
			return err
		}
		p, err := v.vacant(t, path, false)
		if err != nil && err != linux.EACCES && err != linux.ENOSPC {
			return err
		}
		if lerr := v.linkable(from, p); lerr != nil {
			return lerr
		}
		if err != nil {
			return err
		}
		n := from.node
		switch {
		case n.isDir(), n.dynamic != nil:
			return linux.EPERM
		case n.nlink >= maxNames:
			return linux.EMLINK
		}
		if err := f.lift(n); err != nil {
			return err
		}
		dir, n := f.link(p.dir, p.name, n)
		f.tell(Made, dir, p.name, n)
		return nil
	})
}

// linkable tells why a file cannot have another name, where that comes before
// the rights on the directory. As in Linux with protected_hardlinks, others'
// files are linked only by those who may read and write them.
func (v *View) linkable(from, p place) error {
	n := from.node
	switch {
	case p.dir == nil:
		return linux.EACCES
	case n.mnt != p.dir.mnt:
		return linux.EXDEV
	case v.owns(n) == nil:
	case !n.isRegular(), n.mode&linux.S_ISUID != 0, n.mode&(linux.S_ISGID|0o010) == linux.S_ISGID|0o010, !v.may(n, 6):
		return linux.EPERM
	}
	if from.read || from.write {
		return linux.EACCES
	}
	return nil
}

// lift takes a file that is not a directory out of what lies below, because
// it is about to have a name that is not there.
func (f *FS) lift(n *node) error {
	switch {
	case n.lower == nil, n.isDir():
	case n.isRegular():
		return &want{what: wantContents, ino: n.ino, lower: n.lower}
	default:
		n = f.owned(n)
		size := n.size
		f.detach(n)
		n.size = size
	}
	return nil
}

// Readlink returns what a link says.
func (v *View) Readlink(path string) (string, error) {
	var target string
	err := v.FS.read(func(t *trip) error {
		p, err := v.find(t, path, staying)
		switch {
		case err != nil:
			return err
		case !p.node.isLink():
			return linux.EINVAL
		case p.read:
			return linux.EACCES
		}
		target = p.node.target
		return nil
	})
	return target, err
}

// Unlink removes a name that is not a directory's.
func (v *View) Unlink(path string) error { return v.remove(path, false) }

// Rmdir removes an empty directory.
func (v *View) Rmdir(path string) error { return v.remove(path, true) }

func (v *View) remove(path string, dir bool) error {
	f := v.FS
	return f.write(func(t *trip) error {
		p, err := v.walk(t, path, naming)
		if err != nil {
			return err
		}
		if p.last != aName {
			switch {
			case !dir:
				return linux.EISDIR
			case p.last == aSlash:
				return linux.EBUSY
			case p.last == aDots:
				return linux.ENOTEMPTY
			}
			return linux.EINVAL
		}
		if err := v.removable(t, p, dir); err != nil {
			return err
		}
		n := f.unlink(p.dir, p.name, p.node)
		if dir {
			n.nlink = 0
		}
		f.tell(Removed, f.owned(p.dir), p.name, n)
		f.release(n)
		return nil
	})
}

// removable tells why a name cannot be removed.
func (v *View) removable(t *trip, p place, dir bool) error {
	f := v.FS
	n := p.node
	switch {
	case p.dir.dynamic == nil && f.frozen(p.dir):
		return linux.EROFS
	case n == nil:
		return linux.ENOENT
	case !dir && p.slash && n.isDir():
		return linux.EISDIR
	case !dir && p.slash:
		return linux.ENOTDIR
	}
	if err := v.writable(p.dir); err != nil {
		return err
	}
	switch {
	case p.write, p.read:
		return linux.EACCES
	case v.sticky(p.dir, n):
		return linux.EPERM
	case dir && !n.isDir():
		return linux.ENOTDIR
	case !dir && n.isDir():
		return linux.EISDIR
	case f.mounted(n):
		return linux.EBUSY
	case dir:
		return f.empty(t, v, n)
	}
	return nil
}

// Rename moves a file, over one that is there.
func (v *View) Rename(old, path string) error {
	f := v.FS
	visited := 0
	err := f.write(func(t *trip) error {
		from, err := v.walk(t, old, naming)
		if err != nil {
			return err
		}
		to, err := v.walk(t, path, naming)
		if err != nil {
			return err
		}
		if err := v.renamable(t, from, to); err != nil || to.node != nil && to.node.ino == from.node.ino {
			return err
		}
		n, err := f.deepen(from.node, to.dir, to.name)
		visited += n
		if err != nil {
			return err
		}
		if err := f.lift(from.node); err != nil {
			return err
		}
		f.rename(from, to)
		return nil
	})
	if task, ok := v.Self.(Traverser); ok && visited > 0 {
		task.Traverse(visited) // it may wait, and nothing is locked now
	}
	return err
}

// rename moves a file for which that is possible.
func (f *FS) rename(from, to place) {
	if to.node != nil {
		n := f.unlink(to.dir, to.name, to.node)
		if n.isDir() {
			n.nlink = 0
		}
		f.tell(Removed, f.owned(to.dir), to.name, n)
		f.release(n)
	}
	n := f.unlink(from.dir, from.name, from.node)
	f.claim(n)
	f.tell(Moved, f.owned(from.dir), from.name, n)
	dir, n := f.link(to.dir, to.name, n)
	f.tell(Made, dir, to.name, n)
}

// renamable tells why a file cannot be moved, in Linux's order.
func (v *View) renamable(t *trip, from, to place) error {
	f := v.FS
	fromDir, toDir := from.dir, to.dir
	if fromDir == nil || toDir == nil {
		return linux.EBUSY
	}
	n := from.node
	switch {
	case fromDir.mnt != toDir.mnt:
		return linux.EXDEV
	case fromDir.dynamic == nil && f.frozen(fromDir):
		return linux.EROFS
	case n == nil:
		return linux.ENOENT
	case !n.isDir() && (from.slash || to.slash):
		return linux.ENOTDIR
	case n.isDir() && f.within(toDir, n):
		return linux.EINVAL
	case to.node != nil && to.node.isDir() && f.within(fromDir, to.node):
		return linux.ENOTEMPTY
	case to.node != nil && to.node.ino == n.ino:
		return nil
	}
	if err := v.writable(fromDir); err != nil {
		return err
	}
	switch {
	case from.write, from.read:
		return linux.EACCES
	case v.sticky(fromDir, n):
		return linux.EPERM
	}
	if err := v.writable(toDir); err != nil {
		return err
	}
	if err := v.replaceable(n, to); err != nil {
		return err
	}
	switch {
	case n.isDir() && fromDir.ino != toDir.ino && !v.may(n, 2):
		return linux.EACCES // ".." in it is rewritten
	case f.mounted(n), to.node != nil && f.mounted(to.node):
		return linux.EBUSY
	}
	if n.isDir() && f.ruled(n) {
		if err := f.movable(n, toDir, to.name); err != nil {
			return err
		}
	}
	if to.node != nil && to.node.isDir() {
		if err := f.empty(t, v, to.node); err != nil {
			return err
		}
	}
	return f.room(toDir, to.name)
}

// replaceable tells why a place cannot be moved to.
func (v *View) replaceable(n *node, to place) error {
	switch {
	case to.write, to.node != nil && to.read:
		return linux.EACCES
	case to.node == nil:
		return nil
	case v.sticky(to.dir, to.node):
		return linux.EPERM
	case n.isDir() && !to.node.isDir():
		return linux.ENOTDIR
	case !n.isDir() && to.node.isDir():
		return linux.EISDIR
	}
	return nil
}

// within reports whether d is n or lies below it.
func (f *FS) within(d, n *node) bool {
	for {
		if d.ino == n.ino {
			return true
		}
		if d.ino == Root {
			return false
		}
		up, err := f.up(d)
		if err != nil {
			return false
		}
		d = up
	}
}

// Chdir moves the view to a directory.
func (v *View) Chdir(path string) error {
	return v.FS.read(func(t *trip) error {
		p, err := v.find(t, path, following)
		switch {
		case err != nil:
			return err
		case !p.node.isDir():
			return linux.ENOTDIR
		case !v.may(p.node, 1), p.read, p.node.above != nil:
			return linux.EACCES
		}
		v.Dir = p.node.ino
		return nil
	})
}

// Getwd returns the working directory's path, without links.
func (v *View) Getwd() (string, error) {
	v.FS.mu.RLock()
	defer v.FS.mu.RUnlock()
	return v.LockedGetwd()
}

// Realpath names a file without links, "." and "..". The last part need not
// be there.
func (v *View) Realpath(path string) (string, error) {
	var real string
	err := v.FS.read(func(t *trip) error {
		p, err := v.walk(t, path, following)
		if err != nil {
			return err
		}
		at := p.dir
		if p.last != aName {
			at = p.node
		}
		if real, err = v.FS.path(at); err != nil || p.last != aName {
			return err
		}
		if real == "/" {
			real = ""
		}
		real += "/" + p.name
		return nil
	})
	return real, err
}
