package vfs

import (
	"strings"
	"syscall"
	"time"
)

// A View is how a task sees an FS. It is a value: copy it to fork it. A View
// by itself is used by one goroutine at a time; its FS by many.
type View struct {
	FS       *FS
	Dir      Ino // the working directory
	UID, GID int
	Groups   []int
	Umask    uint32
	Self     any // what a Dynamic knows the asking task by
}

// maxLinks is how many symbolic links one path may follow, as in Linux.
const maxLinks = 40

// maxName is how long one name may be, as in Linux.
const maxName = 255

// A place is where a path leads: an entry of a directory, there or not.
type place struct {
	dir     *node
	name    string // empty where the path ends in "/", "." or ".."
	node    *node  // nil where there is none
	mustDir bool   // the path ended in a slash
}

// may tells whether the view's user has all of the rights r (4 read, 2 write,
// 1 execute) on n.
func (v *View) may(n *node, r uint32) bool {
	if v.UID == 0 {
		return r&1 == 0 || n.isDir() || n.mode&0o111 != 0
	}
	bits := n.mode
	switch {
	case n.uid == v.UID:
		bits >>= 6
	case v.inGroup(n.gid):
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

// walk follows a path. With last, a link at its end is followed too. The FS
// is locked for writing: lower files may come up.
func (v *View) walk(path string, last bool) (place, error) {
	if path == "" {
		return place{}, syscall.ENOENT
	}
	if int64(len(path)) > v.FS.opts.Path {
		return place{}, syscall.ENAMETOOLONG
	}
	if strings.IndexByte(path, 0) >= 0 {
		return place{}, syscall.EINVAL
	}
	return v.follow(path, last)
}

func (v *View) follow(path string, last bool) (place, error) {
	f := v.FS
	start := v.Dir
	if path[0] == '/' {
		start = Root
	}
	dir, err := f.get(start)
	if err != nil {
		return place{}, err
	}
	links := 0
	rest := path
	for {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return place{dir: dir, node: dir}, nil
		}
		name, after, more := strings.Cut(rest, "/")
		tail := strings.TrimLeft(after, "/")
		final := tail == ""
		if len(name) > maxName {
			return place{}, syscall.ENAMETOOLONG
		}
		if !dir.isDir() {
			return place{}, syscall.ENOTDIR
		}
		if !v.may(dir, 1) {
			return place{}, syscall.EACCES
		}
		switch name {
		case ".":
			rest = tail
			if final {
				return place{dir: dir, node: dir}, nil
			}
			continue
		case "..":
			if dir, err = f.get(dir.parent); err != nil {
				return place{}, err
			}
			rest = tail
			continue
		}
		n, err := f.child(v, dir, name)
		if err == syscall.ENOENT && final {
			if dir, err = f.again(dir); err != nil {
				return place{}, err
			}
			return place{dir: dir, name: name, mustDir: more}, nil
		}
		if err != nil {
			return place{}, err
		}
		if n.isLink() && (!final || last || more) {
			if links++; links > maxLinks {
				return place{}, syscall.ELOOP
			}
			if n.target == "" {
				return place{}, syscall.ENOENT
			}
			if n.target[0] == '/' {
				if dir, err = f.get(Root); err != nil {
					return place{}, err
				}
			} else if dir, err = f.again(dir); err != nil {
				return place{}, err
			}
			rest = n.target
			if !final || more {
				rest += "/" + tail
			}
			if int64(len(rest)) > f.opts.Path {
				return place{}, syscall.ENAMETOOLONG
			}
			continue
		}
		if final {
			if more && !n.isDir() {
				return place{}, syscall.ENOTDIR
			}
			if dir, err = f.again(dir); err != nil {
				return place{}, err
			}
			return place{dir: dir, name: name, node: n, mustDir: more}, nil
		}
		dir, rest = n, tail
	}
}

// again gives the present form of a node: bringing up an entry from below may
// have put a copy in its place.
func (f *FS) again(n *node) (*node, error) {
	if n.dynamic != nil {
		return n, nil
	}
	return f.get(n.ino)
}

// find walks to a file that must be there.
func (v *View) find(path string, last bool) (place, error) {
	p, err := v.walk(path, last)
	if err == nil && p.node == nil {
		err = syscall.ENOENT
	}
	return p, err
}

// make walks to a name that must not be there, in a directory that can be
// written.
func (v *View) vacant(path string, dir bool) (place, error) {
	p, err := v.walk(path, false)
	switch {
	case err != nil:
	case p.node != nil:
		err = syscall.EEXIST
	case p.mustDir && !dir:
		err = syscall.ENOENT
	default:
		err = v.writable(p.dir)
	}
	return p, err
}

// writable tells whether names may be made and removed in d.
func (v *View) writable(d *node) error {
	switch {
	case d.dynamic != nil:
		return syscall.EPERM
	case d.nlink == 0 && d.ino != Root:
		return syscall.ENOENT
	case v.FS.frozen(d):
		return syscall.EROFS
	case !v.may(d, 3):
		return syscall.EACCES
	}
	return nil
}

// sticky tells whether a name of n in d is another's to remove.
func (v *View) sticky(d, n *node) bool {
	return d.mode&syscall.S_ISVTX != 0 && v.UID != 0 && n.uid != v.UID && d.uid != v.UID
}

// Stat describes a file; a link is followed.
func (v *View) Stat(path string) (Info, error) { return v.stat(path, true) }

// Lstat describes a file; a link is described itself.
func (v *View) Lstat(path string) (Info, error) { return v.stat(path, false) }

func (v *View) stat(path string, last bool) (Info, error) {
	v.FS.mu.Lock()
	defer v.FS.mu.Unlock()
	p, err := v.find(path, last)
	if err != nil {
		return Info{}, err
	}
	return p.node.info(), nil
}

// Access tells whether the user has all of the rights in mode (4 read, 2
// write, 1 execute); 0 asks only whether the file is there.
func (v *View) Access(path string, mode uint32) error {
	v.FS.mu.Lock()
	defer v.FS.mu.Unlock()
	p, err := v.find(path, true)
	switch {
	case err != nil:
		return err
	case mode&2 != 0 && v.FS.frozen(p.node):
		return syscall.EROFS
	case !v.may(p.node, mode):
		return syscall.EACCES
	}
	return nil
}

// Mkdir makes a directory.
func (v *View) Mkdir(path string, mode uint32) error {
	_, err := v.create(path, syscall.S_IFDIR|mode&0o1777&^v.Umask, func(*node) {})
	return err
}

// Mkfifo makes a named pipe.
func (v *View) Mkfifo(path string, mode uint32) error {
	_, err := v.create(path, syscall.S_IFIFO|mode&0o777&^v.Umask, func(*node) {})
	return err
}

// Mknod makes a file of the type in mode. Devices are made by user 0 only.
func (v *View) Mknod(path string, mode, rdev uint32) error {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFCHR, syscall.S_IFBLK:
		if v.UID != 0 {
			return syscall.EPERM
		}
	case syscall.S_IFREG, syscall.S_IFIFO, syscall.S_IFSOCK:
	default:
		return syscall.EINVAL
	}
	_, err := v.create(path, mode&(syscall.S_IFMT|0o777)&^v.Umask, func(n *node) { n.rdev = rdev })
	return err
}

// Symlink makes a link at path that says target.
func (v *View) Symlink(target, path string) error {
	if target == "" {
		return syscall.ENOENT
	}
	if int64(len(target)) > v.FS.opts.Path {
		return syscall.ENAMETOOLONG
	}
	_, err := v.create(path, syscall.S_IFLNK|0o777, func(n *node) { n.target = target })
	return err
}

func (v *View) create(path string, mode uint32, fill func(*node)) (Ino, error) {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := v.vacant(path, mode&syscall.S_IFMT == syscall.S_IFDIR)
	if err != nil {
		return 0, err
	}
	n, err := v.add(p, mode)
	if err != nil {
		return 0, err
	}
	fill(n)
	return n.ino, nil
}

// add makes a file at a vacant place.
func (v *View) add(p place, mode uint32) (*node, error) {
	f := v.FS
	gid := v.GID
	if p.dir.mode&syscall.S_ISGID != 0 {
		gid = p.dir.gid
		if mode&syscall.S_IFMT == syscall.S_IFDIR {
			mode |= syscall.S_ISGID
		}
	}
	n, err := f.make(mode, v.UID, gid)
	if err != nil {
		return nil, err
	}
	dir, n := f.link(p.dir, p.name, n)
	f.tell(Made, dir, p.name)
	return n, nil
}

// Link gives a file one more name. A link is not followed.
func (v *View) Link(old, path string) error {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := v.find(old, false)
	if err != nil {
		return err
	}
	if from.node.isDir() || from.node.dynamic != nil {
		return syscall.EPERM
	}
	p, err := v.vacant(path, false)
	if err != nil {
		return err
	}
	n, err := f.again(from.node)
	if err != nil {
		return err
	}
	if f.mount(n) != f.mount(p.dir) {
		return syscall.EXDEV
	}
	dir, _ := f.link(p.dir, p.name, n)
	f.tell(Made, dir, p.name)
	return nil
}

// Readlink tells what a link says.
func (v *View) Readlink(path string) (string, error) {
	v.FS.mu.Lock()
	defer v.FS.mu.Unlock()
	p, err := v.find(path, false)
	if err != nil {
		return "", err
	}
	if !p.node.isLink() {
		return "", syscall.EINVAL
	}
	return p.node.target, nil
}

// Unlink removes a name that is not a directory's.
func (v *View) Unlink(path string) error { return v.remove(path, false) }

// Rmdir removes an empty directory.
func (v *View) Rmdir(path string) error { return v.remove(path, true) }

func (v *View) remove(path string, dir bool) error {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := v.find(path, false)
	if err != nil {
		return err
	}
	if p.name == "" {
		switch {
		case !dir:
			return syscall.EISDIR
		case p.node.ino == Root:
			return syscall.EBUSY
		case strings.HasSuffix(strings.TrimRight(path, "/"), ".."):
			return syscall.ENOTEMPTY
		}
		return syscall.EINVAL
	}
	if err := v.writable(p.dir); err != nil {
		return err
	}
	switch {
	case v.sticky(p.dir, p.node):
		return syscall.EPERM
	case f.mounted(p.node):
		return syscall.EBUSY
	case dir && !p.node.isDir():
		return syscall.ENOTDIR
	case !dir && p.node.isDir():
		return syscall.EISDIR
	case !dir && p.mustDir:
		return syscall.ENOTDIR
	case dir:
		if err := f.empty(v, p.node); err != nil {
			return err
		}
	}
	n := f.unlink(p.dir, p.name, p.node)
	if dir {
		n.nlink = 0
	}
	f.tell(Removed, p.dir, p.name)
	f.release(n)
	return nil
}

// empty gives ENOTEMPTY for a directory that holds something.
func (f *FS) empty(v *View, d *node) error {
	names, err := f.names(v, d)
	if err == nil && len(names) > 0 {
		err = syscall.ENOTEMPTY
	}
	return err
}

// Rename moves a file, over one that is there.
func (v *View) Rename(old, path string) error {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := v.find(old, false)
	if err != nil {
		return err
	}
	to, err := v.walk(path, false)
	if err != nil {
		return err
	}
	if from.name == "" || to.name == "" {
		return syscall.EBUSY
	}
	// Walking to the second may have replaced nodes of the first.
	if from.dir, err = f.again(from.dir); err != nil {
		return err
	}
	if from.node, err = f.again(from.node); err != nil {
		return err
	}
	if err := v.renamable(from, to); err != nil {
		return err
	}
	if to.node != nil && to.node.ino == from.node.ino {
		return nil
	}
	if to.node != nil {
		n := f.unlink(to.dir, to.name, to.node)
		if n.isDir() {
			n.nlink = 0
		}
		f.release(n)
	}
	n := f.unlink(from.dir, from.name, from.node)
	if to.dir, err = f.again(to.dir); err != nil {
		return err
	}
	dir, _ := f.link(to.dir, to.name, n)
	f.tell(Moved, from.dir, from.name)
	f.tell(Made, dir, to.name)
	return nil
}

// renamable tells why a file cannot be moved.
func (v *View) renamable(from, to place) error {
	f := v.FS
	if err := v.writable(from.dir); err != nil {
		return err
	}
	if err := v.writable(to.dir); err != nil {
		return err
	}
	dir := from.node.isDir()
	switch {
	case from.mustDir && !dir, to.mustDir && !dir:
		return syscall.ENOTDIR
	case v.sticky(from.dir, from.node):
		return syscall.EPERM
	case f.mounted(from.node):
		return syscall.EBUSY
	case f.mount(from.node) != f.mount(to.dir):
		return syscall.EXDEV
	}
	if dir {
		for d := to.dir; ; {
			if d.ino == from.node.ino {
				return syscall.EINVAL
			}
			if d.ino == Root {
				break
			}
			up, err := f.get(d.parent)
			if err != nil {
				return err
			}
			d = up
		}
	}
	if to.node == nil {
		return nil
	}
	switch {
	case v.sticky(to.dir, to.node):
		return syscall.EPERM
	case f.mounted(to.node):
		return syscall.EBUSY
	case dir && !to.node.isDir():
		return syscall.ENOTDIR
	case !dir && to.node.isDir():
		return syscall.EISDIR
	case dir && to.node.ino != from.node.ino:
		return f.empty(v, to.node)
	}
	return nil
}

// change walks to a file and lets f change it, if the view's user owns it.
func (v *View) change(path string, last bool, do func(*node)) error {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := v.find(path, last)
	switch {
	case err != nil:
		return err
	case f.frozen(p.node):
		return syscall.EROFS
	case p.node.dynamic != nil, v.UID != 0 && v.UID != p.node.uid:
		return syscall.EPERM
	}
	n := f.own(p.node)
	n.ctime = f.opts.Now()
	do(n)
	f.tell(Changed, p.dir, p.name)
	return nil
}

// Chmod changes permission bits; a link is followed.
func (v *View) Chmod(path string, mode uint32) error {
	return v.change(path, true, func(n *node) { n.mode = n.typ() | mode&0o7777 })
}

// Chown changes the owner (-1 keeps); with follow, that of a link's target.
// Only user 0 gives files away.
func (v *View) Chown(path string, uid, gid int, follow bool) error {
	if v.UID != 0 && (uid >= 0 && uid != v.UID || gid >= 0 && !v.inGroup(gid)) {
		v.FS.mu.Lock()
		defer v.FS.mu.Unlock()
		if _, err := v.find(path, follow); err != nil {
			return err
		}
		return syscall.EPERM
	}
	return v.change(path, follow, func(n *node) {
		if uid >= 0 {
			n.uid = uid
		}
		if gid >= 0 {
			n.gid = gid
		}
		n.mode &^= syscall.S_ISUID | syscall.S_ISGID
	})
}

// Chtimes sets the times of access and change; a zero one stays. Whoever may
// write may set both to now, only the owner to something else.
func (v *View) Chtimes(path string, atime, mtime time.Time, follow bool) error {
	return v.change(path, follow, func(n *node) {
		if !atime.IsZero() {
			n.atime = atime
		}
		if !mtime.IsZero() {
			n.mtime = mtime
		}
	})
}

// Chdir moves the view to a directory.
func (v *View) Chdir(path string) error {
	v.FS.mu.Lock()
	defer v.FS.mu.Unlock()
	p, err := v.find(path, true)
	switch {
	case err != nil:
		return err
	case !p.node.isDir():
		return syscall.ENOTDIR
	case !v.may(p.node, 1):
		return syscall.EACCES
	case p.node.dynamic != nil:
		return syscall.EACCES
	}
	v.Dir = p.node.ino
	return nil
}

// Getwd tells the working directory's path, without links.
func (v *View) Getwd() (string, error) {
	v.FS.mu.RLock()
	defer v.FS.mu.RUnlock()
	n, err := v.FS.get(v.Dir)
	if err != nil {
		return "", err
	}
	return v.FS.path(n)
}

// path names a directory.
func (f *FS) path(n *node) (string, error) {
	if n.ino == Root {
		return "/", nil
	}
	var parts []string
	for n.ino != Root {
		if n.nlink == 0 {
			return "", syscall.ENOENT
		}
		parts = append(parts, n.name)
		up, err := f.get(n.parent)
		if err != nil {
			return "", err
		}
		n = up
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	return b.String(), nil
}

// Realpath names a file without links, "." and "..". The last part need not
// be there.
func (v *View) Realpath(path string) (string, error) {
	v.FS.mu.Lock()
	defer v.FS.mu.Unlock()
	p, err := v.walk(path, true)
	if err != nil {
		return "", err
	}
	if p.name == "" {
		return v.FS.path(p.node)
	}
	if p.node != nil && p.node.isDir() && p.node.dynamic == nil {
		return v.FS.path(p.node)
	}
	dir, err := v.FS.path(p.dir)
	if err != nil {
		return "", err
	}
	if dir == "/" {
		dir = ""
	}
	return dir + "/" + p.name, nil
}

// An Entry is one name of a directory.
type Entry struct {
	Name string
	Info Info
}

// ReadDir lists a directory in order of bytes, without "." and "..". The
// Info of each is that of Lstat.
func (v *View) ReadDir(path string) ([]Entry, error) {
	f := v.FS
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := v.find(path, true)
	switch {
	case err != nil:
		return nil, err
	case !p.node.isDir():
		return nil, syscall.ENOTDIR
	case !v.may(p.node, 4):
		return nil, syscall.EACCES
	}
	return f.list(v, p.node)
}

func (f *FS) list(v *View, d *node) ([]Entry, error) {
	names, err := f.names(v, d)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		if d, err = f.again(d); err != nil {
			return nil, err
		}
		n, err := f.child(v, d, name)
		if err == syscall.ENOENT {
			continue // it went from below just now
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{name, n.info()})
	}
	return entries, nil
}
