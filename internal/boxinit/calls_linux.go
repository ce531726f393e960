package boxinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// handlers returns the broker's functions by system call number. It is one map, which never
// changes. It is made at the first call, because only a box's init has a broker, and other
// programs import this package.
var handlers = sync.OnceValue(func() map[uint32]func(*call) reply {
	at := func(c *call) int { return c.fd(0) }
	cwd := func(*call) int { return sys.AtCWD }
	byName := map[string]func(*call) reply{
		"open":   func(c *call) reply { return c.open(cwd(c), c.args[0], int(uint32(c.args[1])), uint32(c.args[2])) },
		"openat": func(c *call) reply { return c.open(at(c), c.args[1], int(uint32(c.args[2])), uint32(c.args[3])) },
		"creat": func(c *call) reply {
			return c.open(cwd(c), c.args[0], syscall.O_CREAT|syscall.O_WRONLY|syscall.O_TRUNC, uint32(c.args[1]))
		},
		"mkdir":     func(c *call) reply { return c.mkdir(cwd(c), c.args[0], uint32(c.args[1])) },
		"mkdirat":   func(c *call) reply { return c.mkdir(at(c), c.args[1], uint32(c.args[2])) },
		"mknod":     func(c *call) reply { return c.mknod(cwd(c), c.args[0], uint32(c.args[1])) },
		"mknodat":   func(c *call) reply { return c.mknod(at(c), c.args[1], uint32(c.args[2])) },
		"symlink":   func(c *call) reply { return c.symlink(c.args[0], cwd(c), c.args[1]) },
		"symlinkat": func(c *call) reply { return c.symlink(c.args[0], c.fd(1), c.args[2]) },
		"unlink":    func(c *call) reply { return c.unlink(cwd(c), c.args[0], false) },
		"rmdir":     func(c *call) reply { return c.unlink(cwd(c), c.args[0], true) },
		"unlinkat":  func(c *call) reply { return c.unlink(at(c), c.args[1], c.args[2]&sys.RemoveDir != 0) },
		"truncate":  func(c *call) reply { return c.truncate(c.args[0], int64(c.args[1])) },
		"rename":    func(c *call) reply { return c.rename(cwd(c), c.args[0], cwd(c), c.args[1], 0) },
		"renameat":  func(c *call) reply { return c.rename(at(c), c.args[1], c.fd(2), c.args[3], 0) },
		"renameat2": func(c *call) reply { return c.rename(at(c), c.args[1], c.fd(2), c.args[3], uint(uint32(c.args[4]))) },
		"link":      func(c *call) reply { return c.link(cwd(c), c.args[0], cwd(c), c.args[1], 0) },
		"linkat":    func(c *call) reply { return c.link(at(c), c.args[1], c.fd(2), c.args[3], int(uint32(c.args[4]))) },
		"chmod":     func(c *call) reply { return c.chmod(cwd(c), c.args[0], uint32(c.args[1]), 0) },
		"fchmodat":  func(c *call) reply { return c.chmod(at(c), c.args[1], uint32(c.args[2]), 0) },
		"fchmodat2": func(c *call) reply { return c.chmod(at(c), c.args[1], uint32(c.args[2]), int(uint32(c.args[3]))) },
		"fchmod":    func(c *call) reply { return c.fchmod(c.fd(0), uint32(c.args[1])) },
		"chown":     func(c *call) reply { return c.chown(cwd(c), c.args[0], uint32(c.args[1]), uint32(c.args[2]), 0) },
		"lchown": func(c *call) reply {
			return c.chown(cwd(c), c.args[0], uint32(c.args[1]), uint32(c.args[2]), sys.NoFollow)
		},
		"fchown": func(c *call) reply { return c.fchown(c.fd(0), uint32(c.args[1]), uint32(c.args[2])) },
		"fchownat": func(c *call) reply {
			return c.chown(at(c), c.args[1], uint32(c.args[2]), uint32(c.args[3]), int(uint32(c.args[4])))
		},
		"connect": (*call).connect,
		"bind":    (*call).bind,
		"listen":  (*call).listen,
		"flock":   (*call).flock,
		"socket":  (*call).socket,
		"seccomp": (*call).filter,
		"prctl":   (*call).filter,

		"setsockopt": (*call).join,
		"socketpair": (*call).socketpair,

		"inotify_add_watch": (*call).watch,
		"sysinfo":           (*call).sysinfo,
		"sched_getaffinity": (*call).affinity,
	}
	table := make(map[uint32]func(*call) reply, len(byName))
	for name, nr := range sys.Numbers() {
		if h := byName[name]; h != nil {
			table[nr] = h
		}
	}
	return table
})

func isConnect(nr int32) bool { return uint32(nr) == sys.Numbers()["connect"] }

func orGoOn(err error) reply {
	if errors.Is(err, errGoOn) {
		return goOn
	}
	return fails(err)
}

// open opens here only if the call changes something below a tree. The filter reports no
// other calls.
func (c *call) open(dirfd int, addr uint64, flags int, mode uint32) reply {
	if flags&sys.OpenPathOnly != 0 {
		return goOn // it cannot change anything
	}
	if flags&sys.OpenTmpfile == sys.OpenTmpfile {
		return c.openTmpfile(dirfd, addr, flags, mode)
	}
	exclusive := flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL
	p, err := c.find(dirfd, addr, flags&syscall.O_NOFOLLOW == 0 && !exclusive)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	st, err := sys.StatAt(p.dir, p.base)
	there := err == nil
	isDir := there && st.Mode&sys.TypeMask == sys.TypeDir
	if p.slash && !isDir {
		return reply{err: syscall.EISDIR}
	}
	if there && st.Mode&sys.SetIDs != 0 && !isDir {
		c.refuse("write", p.full, "programs with a set-id bit")
		return reply{err: syscall.EACCES}
	}
	switch {
	case !there && flags&syscall.O_CREAT == 0:
		return fails(err)
	case there && exclusive:
		return reply{err: syscall.EEXIST}
	case isDir && flags&(syscall.O_ACCMODE|syscall.O_CREAT|syscall.O_TRUNC) != 0:
		return reply{err: syscall.EISDIR}
	}
	if flags&syscall.O_CREAT != 0 { // also if it is there: another sandbox may remove it
		if err := c.claim(p); err != nil {
			return fails(err)
		}
	}
	kind, rule := c.sortOf(p.tree, p.full)
	sample := kind == sortSample && !isDir
	if sample && !c.maySample(p, st, there) {
		c.refuse("write", p.full, rule)
		return reply{err: syscall.EACCES}
	}
	if !sample {
		if r, decided := c.openContent(p, st, there, flags); decided {
			return r
		}
		if !c.mayMake("write", p, isDir) {
			return reply{err: syscall.EACCES}
		}
	}
	if flags&syscall.O_CREAT != 0 {
		if mode, err = c.masked(mode); err != nil {
			return fails(err)
		}
	} else {
		mode = 0
	}
	fd, err := c.openSeen(p, flags&^syscall.O_CLOEXEC, mode, there && !isDir)
	if errors.Is(err, syscall.ENXIO) && flags&syscall.O_NONBLOCK == 0 && st.Mode&sys.TypeMask == sys.TypeFIFO {
		return c.openFIFO(p, flags)
	}
	if err != nil {
		return fails(err)
	}
	if flags&syscall.O_NONBLOCK == 0 {
		if err := sys.Blocking(fd); err != nil {
			sys.Close(fd)
			return fails(err)
		}
	}
	if sample && !there {
		c.sampled(fd)
	}
	return reply{open: true, fd: fd, keep: flags&syscall.O_CLOEXEC == 0}
}

// openSeen opens a place, and reports the change that this is. there says that a file is to be opened.
func (c *call) openSeen(p *place, flags int, mode uint32, there bool) (fd int, err error) {
	flags |= syscall.O_NONBLOCK // so that a FIFO cannot block the broker
	if c.witness == nil {
		return sys.Openat(p.dir, p.base, flags, mode)
	}
	const most = 4 // others with the same directory can make and remove it each time
	for range most {
		if there {
			if flags&(syscall.O_ACCMODE|syscall.O_TRUNC) != 0 {
				if err = c.before(ChangeContent, p); errors.Is(err, syscall.ENOENT) && flags&syscall.O_CREAT != 0 {
					there = false
					continue
				}
				if err != nil {
					return -1, err
				}
			}
			fd, err = sys.Openat(p.dir, p.base, flags&^syscall.O_CREAT, 0)
			if flags&(syscall.O_ACCMODE|syscall.O_TRUNC) != 0 {
				err = c.undone(p, err)
			}
			if !errors.Is(err, syscall.ENOENT) || flags&syscall.O_CREAT == 0 {
				return fd, err
			}
			there = false
			continue
		}
		if flags&syscall.O_CREAT == 0 {
			return sys.Openat(p.dir, p.base, flags, mode) // a directory
		}
		fd, err = sys.Openat(p.dir, p.base, flags|syscall.O_EXCL, mode)
		if err == nil {
			c.made(p)
			return fd, nil
		}
		if !errors.Is(err, syscall.EEXIST) || flags&syscall.O_EXCL != 0 {
			return -1, err
		}
		there = true
	}
	return -1, syscall.EBUSY
}

// reported reports that something was made at a place, if it was.
func (c *call) reported(p *place, err error) reply {
	if err == nil {
		c.made(p)
	}
	return result(err)
}

// openTmpfile makes an unnamed file in a directory of a tree.
func (c *call) openTmpfile(dirfd int, addr uint64, flags int, mode uint32) reply {
	path, err := sys.ReadString(c.tid, addr, pathMax)
	if err != nil {
		return fails(err)
	}
	start, path, err := c.start(dirfd, path)
	if err != nil {
		return fails(err)
	}
	defer closeUnless(start, sys.AtCWD)
	if !sys.NotifValid(c.listener, c.id) {
		return fails(syscall.ESRCH)
	}
	dir, err := sys.ResolveDir(start, path)
	if err != nil {
		return goOn
	}
	defer sys.Close(dir)
	full, err := c.pathIn(dir, "#")
	if err != nil || c.treeOf(full) == nil {
		return goOn
	}
	if !c.may("write", full, c.treeOf(full), false) {
		return reply{err: syscall.EACCES}
	}
	if mode, err = c.masked(mode); err != nil {
		return fails(err)
	}
	fd, err := sys.Openat(dir, ".", flags&^(syscall.O_CLOEXEC|syscall.O_NOFOLLOW), mode)
	if err != nil {
		return fails(err)
	}
	return reply{open: true, fd: fd, keep: flags&syscall.O_CLOEXEC == 0}
}

// masked applies the caller's umask; the broker's is zero.
func (c *call) masked(mode uint32) (uint32, error) {
	mask, err := sys.UmaskOf(c.tid)
	return mode & 0o1777 &^ mask, err
}

func (c *call) mkdir(dirfd int, addr uint64, mode uint32) reply {
	p, err := c.find(dirfd, addr, false)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	if p.there() {
		return reply{err: syscall.EEXIST}
	}
	if err := c.claim(p); err != nil {
		return fails(err)
	}
	if kind, _ := c.sortOf(p.tree, p.full); kind != sortHooks && kind != sortEmpty && !c.mayMake("make", p, true) {
		return reply{err: syscall.EACCES}
	}
	if mode, err = c.masked(mode); err != nil {
		return fails(err)
	}
	return c.reported(p, sys.MkdirAt(p.dir, p.base, mode))
}

func (c *call) mknod(dirfd int, addr uint64, mode uint32) reply {
	p, err := c.find(dirfd, addr, false)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	if p.there() {
		return reply{err: syscall.EEXIST}
	}
	if err := c.claim(p); err != nil {
		return fails(err)
	}
	if !c.mayMake("make", p, false) {
		return reply{err: syscall.EACCES}
	}
	switch kind := mode & sys.TypeMask; kind {
	case 0, sys.TypeRegular, sys.TypeFIFO, sys.TypeSocket: // one that nobody has bound
		if mode, err = c.masked(mode); err != nil {
			return fails(err)
		}
		return c.reported(p, sys.Mknodat(p.dir, p.base, mode|kind))
	default:
		return reply{err: syscall.EPERM}
	}
}

func (c *call) symlink(target uint64, dirfd int, addr uint64) reply {
	says, err := sys.ReadString(c.tid, target, pathMax)
	if err != nil {
		return fails(err)
	}
	p, err := c.find(dirfd, addr, false)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	if p.there() {
		return reply{err: syscall.EEXIST}
	}
	// git and libgit2 make one with this text to find out whether there are links.
	if p.inGit() && says != "testing" {
		c.refuse("link", p.full, linkInGit)
		return reply{err: syscall.EACCES}
	}
	if !c.staysPut("link", p, nil) {
		return reply{err: syscall.EACCES}
	}
	if err := c.claim(p); err != nil {
		return fails(err)
	}
	if !c.mayMake("link", p, false) {
		return reply{err: syscall.EACCES}
	}
	return c.reported(p, sys.SymlinkAt(says, p.dir, p.base))
}

func (c *call) unlink(dirfd int, addr uint64, dir bool) reply {
	p, err := c.find(dirfd, addr, false)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	st, err := sys.StatAt(p.dir, p.base)
	switch isDir := st.Mode&sys.TypeMask == sys.TypeDir; {
	case err != nil:
		return fails(err)
	case dir && !isDir:
		return reply{err: syscall.ENOTDIR}
	case !dir && isDir:
		return reply{err: syscall.EISDIR}
	}
	ok, decided := c.removable(p, dir)
	delete(c.samples, inode{st.Dev, st.Ino})
	if decided && !ok {
		return reply{err: syscall.EACCES}
	}
	if c.unmakes(p) {
		c.refuse("remove", p.full, ".git/config")
		return reply{err: syscall.EACCES}
	}
	if !decided && !c.mayAt("remove", p, dir) { // the kernel removes only an empty directory
		return reply{err: syscall.EACCES}
	}
	if p.slash && !dir {
		return reply{err: syscall.ENOTDIR}
	}
	if err := c.before(ChangeRemoved, p); err != nil {
		return fails(err)
	}
	if dir {
		return result(c.undone(p, sys.RmdirAt(p.dir, p.base)))
	}
	return result(c.undone(p, sys.UnlinkAt(p.dir, p.base)))
}

func (c *call) truncate(addr uint64, size int64) reply {
	p, err := c.find(sys.AtCWD, addr, true)
	if err != nil {
		return orGoOn(err)
	}
	defer p.close()
	if !c.mayAt("write", p, false) {
		return reply{err: syscall.EACCES}
	}
	fd, err := c.openSeen(p, syscall.O_WRONLY, 0, true)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return result(sys.Truncate(fd, size))
}

// rename requires both ends in trees. A move between a tree and another place crosses
// mounts, which the kernel refuses by itself.
func (c *call) rename(fromFD int, from uint64, toFD int, to uint64, flags uint) reply {
	if flags&sys.RenameWhiteout != 0 {
		return reply{err: syscall.EINVAL}
	}
	a, err := c.find(fromFD, from, false)
	if err != nil {
		return orGoOn(err)
	}
	defer a.close()
	b, err := c.find(toFD, to, false)
	if err != nil {
		if errors.Is(err, errGoOn) {
			return reply{err: c.renameError(toFD, to)}
		}
		return fails(err)
	}
	defer b.close()
	if err := c.claim(b); err != nil {
		return fails(err)
	}
	return c.move(a, b, flags)
}

// move renames what is at a place, if it may be at the other one.
func (c *call) move(a, b *place, flags uint) reply {
	if !a.there() {
		return reply{err: syscall.ENOENT}
	}
	if kind, _ := c.sortOf(b.tree, b.full); kind == sortConfig {
		return c.replace(a, b, flags)
	}
	if !c.mayAt("rename", a, false) || !c.mayMake("rename", b, false) {
		return reply{err: syscall.EACCES}
	}
	if c.unmakes(a) {
		c.refuse("rename", a.full, ".git/config")
		return reply{err: syscall.EACCES}
	}
	exchange := flags&sys.RenameExchange != 0
	if !a.mayEnter(b) || exchange && !b.mayEnter(a) {
		c.refuse("rename", b.full, linkInGit)
		return reply{err: syscall.EACCES}
	}
	// What is in a directory was not judged for where it goes. A repository that leaves would take the way to its working
	// tree along, which leads elsewhere from there.
	if b.inModules() && !a.plain() || a.inModules() && !a.plain() || a.inModules() && exchange && !b.plain() {
		c.refuse("rename", b.full, ".git/modules")
		return reply{err: syscall.EACCES}
	}
	is, err := sys.StatAt(a.dir, a.base)
	if err != nil {
		return fails(err)
	}
	if !isPlain(is) && !c.staysPut("rename", b, a) || exchange && !b.plain() && !c.staysPut("rename", a, b) {
		return reply{err: syscall.EACCES}
	}
	if (a.slash || b.slash) && is.Mode&sys.TypeMask != sys.TypeDir { // only directories may be named so
		return reply{err: syscall.ENOTDIR}
	}
	over, err := sys.StatAt(b.dir, b.base)
	same := err == nil && over.Dev == is.Dev && over.Ino == is.Ino // two names of one file: the kernel does nothing
	replaces := err == nil && !same && flags&(sys.RenameExchange|sys.RenameNoReplace) == 0
	if replaces {
		if err := c.before(ChangeRemoved, b); err != nil {
			return fails(err)
		}
	}
	if err := sys.Renameat2(a.dir, a.base, b.dir, b.base, flags); err != nil {
		if replaces {
			err = c.undone(b, err)
		}
		return fails(err)
	}
	r := c.renamed(a, b, is, exchange)
	if r == done && !same {
		c.moved(a, b, exchange)
	}
	return r
}

// renamed looks again, because another sandbox with the same mount may have put something else in the place of what was
// judged, and moves it back.
func (c *call) renamed(a, b *place, was sys.FileStat, exchange bool) reply {
	is, err := sys.StatAt(b.dir, b.base)
	fine := err != nil || isPlain(is) || (is.Dev == was.Dev && is.Ino == was.Ino || !b.inGit()) && c.staysPut("rename", b, b)
	if fine && exchange {
		is, err := sys.StatAt(a.dir, a.base)
		fine = err != nil || isPlain(is) || (is.Mode&sys.TypeMask != sys.TypeLink || !a.inGit()) && c.staysPut("rename", a, a)
	}
	if fine {
		return done
	}
	flags := uint(sys.RenameNoReplace)
	if exchange {
		flags = sys.RenameExchange
	}
	if sys.Renameat2(b.dir, b.base, a.dir, a.base, flags) != nil {
		_ = sys.UnlinkAt(b.dir, b.base) // only a link or a file
	}
	return reply{err: syscall.EACCES}
}

// renameError returns why the second path of a rename is in no tree: most often its
// directory does not exist.
func (c *call) renameError(dirfd int, addr uint64) syscall.Errno {
	path, err := sys.ReadString(c.tid, addr, pathMax)
	if err != nil || path == "" {
		return syscall.ENOENT
	}
	start := sys.AtCWD
	if !strings.HasPrefix(path, "/") {
		if start, err = sys.DirOf(c.tid, dirfd); err != nil {
			return syscall.EBADF
		}
		defer sys.Close(start)
	}
	dirPart, base := split(path)
	if base == "" || base == "." || base == ".." {
		return syscall.EBUSY
	}
	dir, err := sys.ResolveDir(start, dirPart)
	if err != nil {
		var e syscall.Errno
		if errors.As(err, &e) {
			return e
		}
		return syscall.ENOENT
	}
	sys.Close(dir)
	return syscall.EXDEV
}

func (c *call) link(fromFD int, from uint64, toFD int, to uint64, flags int) reply {
	b, err := c.find(toFD, to, false)
	if err != nil {
		return orGoOn(err)
	}
	defer b.close()
	if b.there() {
		return reply{err: syscall.EEXIST}
	}
	if err := c.claim(b); err != nil {
		return fails(err)
	}
	if !c.mayMake("link", b, false) {
		return reply{err: syscall.EACCES}
	}
	if flags&sys.FollowLink != 0 {
		// This is how an unnamed file gets a name.
		if path, err := sys.ReadString(c.tid, from, pathMax); err == nil {
			if n, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok {
				return c.linkFD(n, b)
			}
		}
	}
	a, err := c.find(fromFD, from, flags&sys.FollowLink != 0)
	if err != nil {
		if errors.Is(err, errGoOn) {
			return reply{err: c.linkError(fromFD, from)}
		}
		return fails(err)
	}
	defer a.close()
	if !a.there() {
		return reply{err: syscall.ENOENT}
	}
	if !c.mayAt("link", a, false) {
		return reply{err: syscall.EACCES}
	}
	if !a.mayEnter(b) {
		c.refuse("link", b.full, linkInGit)
		return reply{err: syscall.EACCES}
	}
	if !c.staysPut("link", b, a) {
		return reply{err: syscall.EACCES}
	}
	if err := sys.Linkat(a.dir, a.base, b.dir, b.base); err != nil {
		return fails(err)
	}
	// Another sandbox with the same mount may have made it a link meanwhile.
	if b.inGit() && !b.plain() {
		_ = sys.UnlinkAt(b.dir, b.base)
		return reply{err: syscall.EACCES}
	}
	c.linked(a.full, b)
	return done
}

func (c *call) linkError(dirfd int, addr uint64) syscall.Errno {
	if e := c.renameError(dirfd, addr); e != syscall.EBUSY {
		return e
	}
	return syscall.EPERM
}

func (c *call) linkFD(number string, to *place) reply {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return reply{err: syscall.ENOENT}
	}
	fd, err := c.selfDescriptor(n)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return fails(err)
	}
	if st.Mode&sys.TypeMask != sys.TypeRegular {
		return reply{err: syscall.EPERM}
	}
	// A second name for a protected file would allow writing to it.
	path, err := c.where(fd)
	if err != nil {
		return fails(err)
	}
	if t := c.treeOf(path); t != nil && !c.mayFile("link", path, t, st, false) {
		return reply{err: syscall.EACCES}
	}
	if err := c.findable(path, st); err != nil {
		return fails(err)
	}
	if err := sys.LinkFD(fd, to.dir, to.base); err != nil {
		return fails(err)
	}
	if st.Links > 0 {
		c.linked(path, to)
	} else {
		c.made(to)
	}
	return done
}

// mayFile decides an operation on an open file. Another sandbox may exchange directories above it, so it
// has to be where its path says, as seen from the directory that is judged. A file that lost the name by
// which it was opened has no directory.
func (c *call) mayFile(op, path string, t *tree, st sys.FileStat, directory bool) bool {
	if t.protected == nil || path == "/" || strings.HasSuffix(path, " (deleted)") {
		return c.may(op, path, t, directory)
	}
	above, base := split(path)
	dir, err := sys.ResolvePlain(above)
	if err != nil {
		return false
	}
	defer sys.Close(dir)
	if at, err := sys.StatAt(dir, base); err != nil || at.Dev != st.Dev || at.Ino != st.Ino {
		return false
	}
	return c.mayIn(op, path, t, dir, directory)
}

// findable returns an error unless a report can name an open file of a mount, or it has no name at all. The name by which
// it was opened may be gone, and the file be there under others: nobody could be told which.
func (c *call) findable(path string, st sys.FileStat) error {
	t := c.treeOf(path)
	if t == nil || t.private() || st.Links == 0 {
		return nil
	}
	if !plainPath(t.rel(path)) {
		return syscall.ENAMETOOLONG
	}
	if c.witness == nil {
		return nil
	}
	at, err := t.stat(t.rel(path))
	if errors.Is(err, syscall.EACCES) {
		return err
	}
	if err != nil || at.Dev != st.Dev || at.Ino != st.Ino {
		return syscall.ENOENT
	}
	return nil
}

// descriptor returns a copy of one of the calling thread's open files.
func (c *call) descriptor(n int) (int, error) { return c.descriptorOf(c.tid, n) }

// selfDescriptor returns a copy of the open file that /proc/self/fd of the caller names. It is one of
// the process's first thread.
func (c *call) selfDescriptor(n int) (int, error) {
	tgid, err := sys.ProcessOf(c.tid)
	if err != nil {
		return -1, err
	}
	return c.descriptorOf(tgid, n)
}

func (c *call) descriptorOf(tid, n int) (int, error) {
	fd, err := sys.DescriptorOf(tid, n)
	if err != nil {
		return -1, err
	}
	if !sys.NotifValid(c.listener, c.id) {
		sys.Close(fd)
		return -1, syscall.ESRCH
	}
	return fd, nil
}

// chmod is always made here, wherever the file is. Landlock would not stop a call that is
// continued and then turns out to concern a tree.
func (c *call) chmod(dirfd int, addr uint64, mode uint32, flags int) reply {
	fd, err := c.fileAt(dirfd, addr, flags)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return c.chmodFile(fd, mode)
}

// fileAt opens what a call names, to decide about it and to change that very file.
func (c *call) fileAt(dirfd int, addr uint64, flags int) (int, error) {
	path, err := sys.ReadString(c.tid, addr, pathMax)
	if err != nil {
		return -1, err
	}
	if path == "" && flags&sys.EmptyPath != 0 {
		return c.descriptor(dirfd)
	}
	if n, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok && !strings.Contains(n, "/") {
		number, err := strconv.Atoi(n)
		if err != nil {
			return -1, syscall.ENOENT
		}
		return c.selfDescriptor(number)
	}
	start, path, err := c.start(dirfd, path)
	if err != nil {
		return -1, err
	}
	defer closeUnless(start, sys.AtCWD)
	if !sys.NotifValid(c.listener, c.id) {
		return -1, syscall.ESRCH
	}
	open := sys.ResolveFile
	if flags&sys.NoFollow != 0 {
		open = sys.ResolveLink
	}
	return open(start, path)
}

func (c *call) fchmod(n int, mode uint32) reply {
	fd, err := c.descriptor(n)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return c.chmodFile(fd, mode)
}

// chmodFile changes the mode of an open file, if its present name permits that.
func (c *call) chmodFile(fd int, mode uint32) reply {
	path, err := c.where(fd)
	if err != nil {
		return fails(err)
	}
	t := c.treeOf(path)
	if t == nil && c.sealed.Load() {
		// A file of a tree that is no longer mounted: its name cannot be determined.
		return reply{err: syscall.EPERM}
	}
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return fails(err)
	}
	if c.isTop(path, st) && !c.mayMode(path, st, mode) {
		return reply{err: syscall.EPERM}
	}
	if t != nil {
		if !c.mayConfig(st, path, t, mode) && !c.mayFile("chmod", path, t, st, true) {
			return reply{err: syscall.EACCES}
		}
		if err := c.findable(path, st); err != nil {
			return fails(err)
		}
		p := &place{full: path, tree: t}
		if st.Links == 0 { // nobody finds it any more
			return result(sys.ChmodFile(fd, mode&0o1777))
		}
		kind := ChangeMode
		if isPlain(st) && mode&0o400 == 0 {
			kind = ChangeContent // the host may not be able to read it afterwards, and nothing could bring it back
		}
		if err := c.before(kind, p); err != nil {
			return fails(err)
		}
		return result(c.undone(p, sys.ChmodFile(fd, mode&0o1777)))
	}
	return result(sys.ChmodFile(fd, mode&0o1777))
}

// errUnreadable means that the memory of a program cannot be read, which its user may execute only.
var errUnreadable = fmt.Errorf("the program may only be executed: %w", syscall.EACCES)

// mayConfig permits what git tries on its configuration to find out whether modes hold. Nobody else gets the right to
// write to it.
func (c *call) mayConfig(st sys.FileStat, path string, t *tree, mode uint32) bool {
	if st.Mode&sys.TypeMask != sys.TypeRegular || mode&0o022&^st.Mode != 0 {
		return false
	}
	kind, _ := c.sortOf(t, path)
	return kind == sortConfig
}

const addressMax = 128 // of a socket, as in sockaddr_storage

// address copies a socket address and the socket of the call. It returns the path if the
// address is a socket file.
func (c *call) address() (fd int, addr []byte, path string, err error) {
	n := uint32(c.args[2])
	if n > addressMax {
		return -1, nil, "", syscall.EINVAL
	}
	addr = make([]byte, n)
	if got, err := sys.ReadMemory(c.tid, c.args[1], addr); errors.Is(err, syscall.EPERM) {
		return -1, nil, "", errUnreadable
	} else if err != nil || got != len(addr) {
		return -1, nil, "", syscall.EFAULT
	}
	fd, err = c.descriptor(c.fd(0))
	if err != nil {
		return -1, nil, "", err
	}
	family, err := sys.SocketFamily(fd)
	if err != nil {
		sys.Close(fd)
		return -1, nil, "", err
	}
	if family == sys.FamilyUnix && len(addr) > 2 && binary.NativeEndian.Uint16(addr) == sys.FamilyUnix && addr[2] != 0 {
		name, _, _ := bytes.Cut(addr[2:], []byte{0})
		path = string(name)
	}
	return fd, addr, path, nil
}

// connect is always made here, because the guest can change whether a descriptor is a Unix
// socket between the decision and the call.
func (c *call) connect() reply {
	fd, addr, path, err := c.address()
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	if path == "" {
		if c.abstract(fd, addr) {
			return reply{err: syscall.EPERM}
		}
		err := sys.ConnectRaw(fd, addr)
		if c.alone && errors.Is(err, syscall.ENETUNREACH) {
			c.unreachable(fd, addr)
		}
		return result(err)
	}
	file, full, err := c.socketFile(path)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(file)
	if !c.ours(full) {
		bound := c.hidden(file)
		if bound < 0 {
			c.refuse("connect", full, foreignSocket)
			return reply{err: syscall.EACCES}
		}
		defer sys.Close(bound)
		return result(sys.ConnectFile(fd, bound))
	}
	return result(sys.ConnectFile(fd, file))
}

// unreachable records a connection out of a box without a network. A datagram socket is not recorded,
// because programs connect it only to learn their own address.
func (c *call) unreachable(fd int, addr []byte) {
	if to, ok := sys.RawAddress(addr); ok && sys.IsStream(fd) {
		c.refuse("connect", to.String(), nameserver.NoNetwork)
	}
}

// abstract reports whether an address is an abstract Unix socket of the host. With the
// host's network they are shared, and the agent is not restricted.
func (c *call) abstract(fd int, addr []byte) bool {
	family, err := sys.SocketFamily(fd)
	return c.hostNet && (err != nil || family == sys.FamilyUnix) && len(addr) > 2
}

// socketFile opens the file at path as the caller sees it, following links, and returns
// where it is.
func (c *call) socketFile(path string) (file int, full string, err error) {
	start, err := sys.DirOf(c.tid, sys.AtCWD)
	if err != nil {
		return -1, "", err
	}
	defer sys.Close(start)
	file, err = sys.ResolveFile(start, path)
	if err != nil {
		return -1, "", err
	}
	full, err = c.where(file)
	if err == nil && !strings.HasPrefix(full, "/") {
		err = syscall.ECONNREFUSED
	}
	if err != nil {
		sys.Close(file)
		return -1, "", err
	}
	return file, full, nil
}

// foreignSocket is the rule about sockets that are not the sandbox's own.
const foreignSocket = "sockets of programs outside the sandbox"

// bind makes socket files in private trees, and in writable mounts of the host. There it hides them,
// because otherwise the host could connect to the box.
func (c *call) bind() reply {
	fd, addr, path, err := c.address()
	if errors.Is(err, errUnreadable) && c.landlock && !c.hostNet {
		return goOn // Landlock allows socket files in the box's own directories only
	}
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	if path == "" {
		if c.abstract(fd, addr) {
			return reply{err: syscall.EPERM}
		}
		return result(sys.BindRaw(fd, addr))
	}
	start, err := sys.DirOf(c.tid, sys.AtCWD)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(start)
	dirPart, base := split(path)
	if base == "" || base == "." || base == ".." {
		return reply{err: syscall.EADDRINUSE}
	}
	dir, err := sys.ResolveDir(start, dirPart)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(dir)
	full, err := c.pathIn(dir, base)
	if err != nil {
		return fails(err)
	}
	own := c.ours(full)
	if !own {
		p := &place{dir: dir, base: base, full: full, tree: c.treeOf(full)}
		defer p.release()
		if p.tree == nil || c.root != "" || !c.changes(full) {
			c.refuse("bind", full, foreignSocket)
			return reply{err: syscall.EACCES}
		}
		if err := c.tellable(p); err != nil {
			return fails(err)
		}
		if err := c.claim(p); err != nil {
			return fails(err)
		}
		if !c.mayAt("bind", p, false) {
			return reply{err: syscall.EACCES}
		}
	}
	mask, err := sys.UmaskOf(c.tid)
	if err != nil {
		return fails(err)
	}
	if !own {
		return result(c.bindHidden(fd, addr, start, &place{dir: dir, base: base, full: full, tree: c.treeOf(full)}, dirPart, mask))
	}
	if c.keepsAddress(start, dirPart, full, own) {
		return result(sys.BindBelow(fd, addr, start, dir, mask))
	}
	if err = sys.BindUnix(fd, dir, base); err == nil {
		err = sys.ChmodAt(dir, base, 0o777&^mask)
	}
	return result(err)
}

// keepsAddress reports whether a socket may be bound by the path that the program gave, dirPart in start,
// for a socket file at full. Then the kernel walks the path again, and only Landlock keeps the file in the
// directory that was judged, or below. So if a mount of the host is below, the path must be plain: every
// directory on it holds a mount, and stays where it is. In a mount, where names are judged, it must be plain
// too: the guest moves nothing there without the broker, which makes one change after another. Another
// sandbox with the same mount has another broker, so a name that is part of a repository by being there is
// made in the open directory.
func (c *call) keepsAddress(start int, dirPart, full string, own bool) bool {
	if !c.landlock || c.root != "" || !own && protect.IsBarePart(filepath.Base(full)) {
		return false
	}
	dir := filepath.Dir(full)
	if own && !slices.ContainsFunc(c.hosts, func(h string) bool { return below(h, dir) }) {
		return true
	}
	return c.plain(start, dirPart, dir)
}

// plain reports whether dirPart leads from start to dir without a link or a step upwards.
func (c *call) plain(start int, dirPart, dir string) bool {
	if slices.Contains(strings.Split(dirPart, "/"), "..") {
		return false
	}
	from := "/"
	if !strings.HasPrefix(dirPart, "/") {
		var err error
		if from, err = c.where(start); err != nil {
			return false
		}
	}
	return filepath.Join(from, dirPart) == dir
}
