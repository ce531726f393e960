package file

import (
	"fmt"
	"io"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// kindOf is what complaints and questions call a file.
func kindOf(i vfs.Info) string { return command.TypeName(i.Mode, i.Size) }

// clobber says what happens to a file that is in the way.
type clobber uint8

const (
	overwrite clobber = iota
	overwriteForced
	overwriteAsked
	overwriteNever
)

// keep are the attributes that a copy takes over.
type keep struct{ mode, owner, times, links bool }

// A copier copies and moves files as cp, mv and install do.
type copier struct {
	t      *kernel.Task
	backup backup
	follow command.WalkFollow
	keep   keep
	there  clobber

	move, recursive, verbose, update, oneDev  bool
	hard, symbolic, bare, removeFirst, forced bool
	noMode                                    bool // --no-preserve=mode
	fixed                                     bool // install: bits are those of a copy
	asOne                                     bool // special files are read, not made anew
	status                                    int
	links                                     map[node]string // what was copied already, with more than one name
	made                                      map[node]bool   // what was made
	sources                                   map[node]bool   // directories that were named
	dst                                       []vfs.View      // by depth: the directory that entries go to
	dirs                                      []level
	root                                      node // the directory that the copy of the present source makes
	from, to                                  string
}

// node tells files apart.
type node struct {
	dev uint64
	ino vfs.Ino
}

func nodeOf(i vfs.Info) node { return node{i.Dev, i.Ino} }

// A level is a directory that is being copied.
type level struct {
	made bool
	bits uint32
}

func newCopier(t *kernel.Task) *copier {
	return &copier{t: t, links: map[node]string{}, made: map[node]bool{}, sources: map[node]bool{}}
}

func (c *copier) fail(format string, args ...any) {
	c.status = 1
	c.t.Errorf(format, args...)
}

// copy copies or moves what stands at from to the name to.
func (c *copier) copy(from, to string) {
	c.from, c.to = from, to
	c.dst = append(c.dst[:0], c.t.View)
	c.dirs = c.dirs[:0]
	c.root = node{}
	if _, ok := kernel.OwnFD(from); ok {
		i, err := command.Stat(c.t, from)
		if err != nil {
			c.fail("cannot stat %s: %s", command.QuoteAlways(from), reason(err))
			return
		}
		c.visit(&command.WalkEntry{In: &c.t.View, Name: from, Path: from, Info: i, Link: true})
		return
	}
	command.Walk(c.t, from, command.WalkOptions{Follow: c.follow, OneDev: c.oneDev, Post: true}, c.visit)
}

// target gives where an entry goes to: a directory, the name in it, and how it
// is called.
func (c *copier) target(e *command.WalkEntry) (v *vfs.View, name, path string) {
	if e.Depth == 0 {
		return &c.dst[0], c.to, c.to
	}
	path = c.to
	if !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return &c.dst[e.Depth], e.Name, path + strings.TrimPrefix(e.Path[len(c.from):], "/")
}

func (c *copier) visit(e *command.WalkEntry) command.WalkOrder {
	switch e.What {
	case command.VisitLost:
		c.fail("cannot stat %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		return command.WalkNext
	case command.VisitFailed:
		c.fail("cannot access %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		return command.WalkNext
	case command.VisitLoop:
		c.fail("cannot copy cyclic symbolic link %s", command.QuoteAlways(e.Path))
		return command.WalkSkip
	case command.VisitAfter:
		c.leave(e)
		return command.WalkNext
	case command.VisitBefore:
	}
	if e.Info.IsLink() && (c.follow == command.FollowAll || c.follow == command.FollowRoots && e.Depth == 0) {
		c.fail("cannot stat %s: %s", command.QuoteAlways(e.Path), reason(linux.ENOENT))
		return command.WalkNext
	}
	if e.Info.IsDir() {
		return c.enter(e)
	}
	v, name, path := c.target(e)
	if e.Depth > 0 {
		c.t.Step(1)
	}
	c.file(e, v, name, path)
	return command.WalkNext
}

// enter makes the copy of a directory.
func (c *copier) enter(e *command.WalkEntry) command.WalkOrder {
	if !c.recursive {
		c.fail("-r not specified; omitting directory %s", command.QuoteAlways(e.Path))
		return command.WalkSkip
	}
	if c.root != (node{}) && nodeOf(e.Info) == c.root {
		c.fail("cannot copy a directory, %s, into itself, %s", command.QuoteAlways(c.from), command.QuoteAlways(c.to))
		return command.WalkSkip
	}
	v, name, path := c.target(e)
	if e.Depth == 0 {
		if c.sources[nodeOf(e.Info)] {
			c.t.Errorf("warning: source directory %s specified more than once", command.QuoteAlways(e.Path))
			return command.WalkSkip
		}
		c.sources[nodeOf(e.Info)] = true
	}
	i, err := v.Stat(name)
	if err != nil {
		if l, lerr := v.Lstat(name); lerr == nil {
			i, err = l, nil
		}
	}
	l := level{bits: e.Info.Mode & command.ModeBits}
	switch {
	case err == nil && !i.IsDir():
		c.fail("cannot overwrite non-directory %s with directory %s", command.QuoteAlways(path), command.QuoteAlways(e.Path))
		return command.WalkSkip
	case err == nil && nodeOf(i) == nodeOf(e.Info):
		c.fail("%s and %s are the same file", command.QuoteAlways(e.Path), command.QuoteAlways(path))
		return command.WalkSkip
	case err == nil:
	case err != linux.ENOENT && err != linux.ENOTDIR:
		c.fail("cannot stat %s: %s", command.QuoteAlways(path), reason(err))
		return command.WalkSkip
	default:
		if err := v.Mkdir(strings.TrimRight(name, "/"), l.bits|0o700); err != nil {
			c.fail("cannot create directory %s: %s", command.QuoteAlways(path), reason(err))
			return command.WalkSkip
		}
		l.made = true
		c.tell(e.Path, path, "")
	}
	below := *v
	if err := below.Chdir(name); err != nil {
		c.fail("cannot access %s: %s", command.QuoteAlways(path), reason(err))
		return command.WalkSkip
	}
	if e.Depth == 0 {
		if i, err := below.Stat("."); err == nil {
			c.root = nodeOf(i)
		}
	}
	c.dst = append(c.dst[:e.Depth+1], below)
	c.dirs = append(c.dirs[:e.Depth], l)
	return command.WalkNext
}

// leave gives the copy of a directory its attributes.
func (c *copier) leave(e *command.WalkEntry) {
	if e.Depth >= len(c.dirs) {
		return
	}
	v, name, path := c.target(e)
	l := c.dirs[e.Depth]
	c.dirs = c.dirs[:e.Depth]
	c.attributes(e.Info, v, name, path, true)
	if l.made && !c.keep.mode {
		bits := l.bits &^ c.t.View.Umask
		if c.noMode {
			bits = 0o777 &^ c.t.View.Umask
		}
		if i, err := v.Stat(name); err == nil && i.Mode&command.ModeBits != bits&0o1777|i.Mode&linux.S_ISGID {
			_ = v.Chmod(name, bits&0o1777|i.Mode&linux.S_ISGID) // it is ours
		}
	}
}

// tell says what was done, with -v.
func (c *copier) tell(from, to, kept string) {
	if !c.verbose {
		return
	}
	verb := ""
	if c.move {
		verb = "copied "
	}
	line := verb + command.QuoteAlways(from) + " -> " + command.QuoteAlways(to)
	if kept != "" {
		line += " (backup: " + command.QuoteAlways(kept) + ")"
	}
	say(c.t, line)
}

// attributes gives a copy what it is to take over.
func (c *copier) attributes(i vfs.Info, v *vfs.View, name, path string, follow bool) {
	if c.keep.owner {
		if err := v.Chown(name, i.UID, i.GID, follow); err != nil && v.UID == 0 {
			c.fail("failed to preserve ownership for %s: %s", command.QuoteAlways(path), reason(err))
		} else if err != nil {
			_ = v.Chown(name, -1, i.GID, follow) // the group at least, if that may be
		}
	}
	if c.keep.times {
		if err := v.Chtimes(name, i.Atime, i.Mtime, follow); err != nil {
			c.fail("preserving times for %s: %s", command.QuoteAlways(path), reason(err))
		}
	}
	if c.keep.mode && !i.IsLink() {
		if err := v.Chmod(name, i.Mode&command.ModeBits); err != nil {
			c.fail("preserving permissions for %s: %s", command.QuoteAlways(path), reason(err))
		}
	}
}

// file copies what is not a directory.
func (c *copier) file(e *command.WalkEntry, v *vfs.View, name, path string) {
	i, exists, ok := c.inTheWay(e, v, name, path)
	if !ok {
		return
	}
	kept := ""
	if exists {
		if c.backup.on {
			kept = c.backup.name(v, name)
			if err := v.Rename(name, kept); err != nil {
				c.fail("cannot backup %s: %s", command.QuoteAlways(path), reason(err))
				return
			}
			exists = false
			kept = path[:len(path)-len(name)] + kept
		} else if c.removeFirst || c.keep.links && i.Nlink > 1 || c.follow != command.FollowAll && !c.regular(e) ||
			i.IsLink() && (c.symbolic || c.hard) || (c.hard || c.symbolic) && c.forced {
			if err := v.Unlink(name); err != nil && err != linux.ENOENT {
				c.fail("cannot remove %s: %s", command.QuoteAlways(path), reason(err))
				return
			}
			if c.verbose && c.removeFirst {
				say(c.t, "removed ", command.QuoteAlways(path))
			}
			exists = false
		}
	}
	if c.keep.links && e.Info.Nlink > 1 && c.linked(e, v, name, path, kept) {
		return
	}
	c.tell(e.Path, path, kept)
	switch {
	case c.symbolic:
		if e.Path[:1] != "/" && (strings.Contains(path, "/") && parent(path) != ".") {
			c.fail("%s: can make relative symbolic links only in current directory", command.QuoteFile(path))
			return
		}
		if err := v.Symlink(e.Path, name); err != nil {
			c.fail("cannot create symbolic link %s to %s: %s", command.QuoteAlways(path), command.QuoteAlways(e.Path), reason(err))
		}
		return
	case c.hard:
		if err := c.link(e, v, name); err != nil {
			c.fail("cannot create hard link %s to %s: %s", command.QuoteAlways(path), command.QuoteAlways(e.Path), reason(err))
		}
		return
	case e.Info.IsLink():
		target, err := e.In.Readlink(e.Name)
		if err != nil {
			c.fail("cannot read symbolic link %s: %s", command.QuoteAlways(e.Path), reason(err))
			return
		}
		if err := v.Symlink(target, name); err != nil {
			c.fail("cannot create symbolic link %s: %s", command.QuoteAlways(path), reason(err))
			return
		}
		k := c.keep
		c.keep.mode = false
		c.attributes(e.Info, v, name, path, false)
		c.keep = k
		return
	case c.regular(e):
		if !c.contents(e, v, name, path, exists) {
			return
		}
	case e.Info.Mode&linux.S_IFMT == linux.S_IFIFO:
		if err := v.Mkfifo(name, e.Info.Mode&0o777); err != nil {
			c.fail("cannot create fifo %s: %s", command.QuoteAlways(path), reason(err))
			return
		}
	default:
		if err := v.Mknod(name, e.Info.Mode, e.Info.Rdev); err != nil {
			c.fail("cannot create special file %s: %s", command.QuoteAlways(path), reason(err))
			return
		}
	}
	c.attributes(e.Info, v, name, path, true)
}

// regular reports whether a file is copied by what it holds.
func (c *copier) regular(e *command.WalkEntry) bool {
	return e.Info.IsRegular() || c.asOne && !e.Info.IsLink()
}

func (c *copier) link(e *command.WalkEntry, v *vfs.View, name string) error {
	from := e.Name
	if e.In.Dir != v.Dir || e.Link {
		real, err := e.In.Realpath(parent(e.Name))
		if err == nil {
			from = command.JoinPath(real, base(e.Name))
		}
		if e.Link {
			if real, err := canonical(e.In, e.Name, allParts, true); err == nil {
				from = real
			}
		}
	}
	return v.Link(from, name)
}

// linked makes a hard link to the copy of another name of the same file.
func (c *copier) linked(e *command.WalkEntry, v *vfs.View, name, path, kept string) bool {
	earlier, ok := c.links[nodeOf(e.Info)]
	if !ok {
		if real, err := v.Realpath(name); err == nil {
			c.t.Grow(len(real) + 64)
			c.links[nodeOf(e.Info)] = real
		}
		return false
	}
	err := v.Link(earlier, name)
	if err == linux.EEXIST {
		if err = v.Unlink(name); err == nil {
			err = v.Link(earlier, name)
		}
	}
	if err != nil {
		c.fail("cannot create hard link %s to %s: %s", command.QuoteAlways(path), command.QuoteAlways(earlier), reason(err))
		return true
	}
	c.tell(e.Path, path, kept)
	return true
}

// inTheWay looks at what stands at a target. ok says to go on.
func (c *copier) inTheWay(e *command.WalkEntry, v *vfs.View, name, path string) (i vfs.Info, exists, ok bool) {
	own, isOwn := kernel.OwnFD(path)
	if isOwn {
		i, err := command.StatFD(c.t, own)
		return i, err == nil, true
	}
	through := c.regular(e) && !c.symbolic && !c.hard && !c.backup.on && !c.removeFirst && !c.move
	i, err := v.Lstat(name)
	l := i
	if err == nil && i.IsLink() && through {
		i, err = v.Stat(name)
	}
	switch err {
	case nil:
	case linux.ENOENT:
		return i, false, true
	case linux.ENOTDIR:
		if strings.HasSuffix(name, "/") {
			return i, false, true
		}
		c.fail("cannot stat %s: %s", command.QuoteAlways(path), reason(err))
		return i, false, false
	default:
		if err == linux.ELOOP && c.forced {
			return l, true, true
		}
		c.fail("cannot stat %s: %s", command.QuoteAlways(path), reason(err))
		return i, false, false
	}
	if c.same(e, i, l, v, name) {
		if c.hard {
			return i, true, false
		}
		c.fail("%s and %s are the same file", command.QuoteAlways(e.Path), command.QuoteAlways(path))
		return i, true, false
	}
	if i.IsDir() {
		c.fail("cannot overwrite directory %s with non-directory", command.QuoteAlways(path))
		return i, true, false
	}
	if c.update && !i.Mtime.Before(e.Info.Mtime) {
		return i, true, false
	}
	if c.there == overwriteNever || c.there == overwriteAsked && !c.ask(v, name, path, i) {
		return i, true, false
	}
	if e.Depth == 0 && c.made[nodeOf(i)] && !c.backup.on {
		c.fail("will not overwrite just-created %s with %s", command.QuoteAlways(path), command.QuoteAlways(e.Path))
		return i, true, false
	}
	return i, true, true
}

func (c *copier) same(e *command.WalkEntry, i, l vfs.Info, v *vfs.View, name string) bool {
	if nodeOf(e.Info) != nodeOf(i) {
		return c.symbolic && !c.forced && false
	}
	oneName := e.In.Dir == v.Dir && sameName(c.t, e.Name, name) && e.Depth == 0
	switch {
	case oneName:
		return true
	case c.hard:
		return true
	case c.backup.on, c.removeFirst:
		return false
	case l.IsLink() && !e.Link && !e.Info.IsLink() && c.forced && c.symbolic:
		return false
	case c.symbolic:
		return !c.forced
	}
	return true
}

// ask asks whether a file may be overwritten.
func (c *copier) ask(v *vfs.View, name, path string, i vfs.Info) bool {
	if !i.IsLink() && v.Access(name, 2) != nil {
		verb := "unwritable"
		if c.move || c.removeFirst || c.forced {
			verb = "replace"
			return yes(c.t, fmt.Sprintf("%s %s, overriding mode %s? ", verb, command.QuoteAlways(path), show(i.Mode&command.ModeBits)))
		}
		return yes(c.t, fmt.Sprintf("%s %s (mode %04o, %s); try anyway? ", verb, command.QuoteAlways(path), i.Mode&command.ModeBits, command.ModeString(i.Mode)[1:]))
	}
	return yes(c.t, "overwrite "+command.QuoteAlways(path)+"? ")
}

// contents copies what a file holds.
func (c *copier) contents(e *command.WalkEntry, v *vfs.View, name, path string, exists bool) bool {
	t := c.t
	src, err := command.OpenIn(t, e.In, e.Name, linux.O_RDONLY, 0)
	if err != nil {
		c.fail("cannot open %s for reading: %s", command.QuoteAlways(e.Path), reason(err))
		return false
	}
	src.Hold()
	defer src.Drop()
	bits := e.Info.Mode & 0o777
	switch {
	case c.fixed:
		bits = 0o600
	case c.noMode:
		bits = 0o666
	case c.keep.owner:
		bits &^= 0o077
	}
	flags := linux.O_WRONLY
	if !c.bare {
		flags |= linux.O_TRUNC
	}
	var dst *kernel.Desc
	if exists {
		dst, err = command.OpenIn(t, v, name, flags, 0)
		if err != nil && c.forced {
			if err = v.Unlink(name); err != nil {
				c.fail("cannot remove %s: %s", command.QuoteAlways(path), reason(err))
				return false
			}
			if c.verbose {
				say(t, "removed ", command.QuoteAlways(path))
			}
			exists = false
		}
	}
	if !exists && err == nil {
		dst, err = command.OpenIn(t, v, name, flags|linux.O_CREAT|linux.O_EXCL, bits)
		if err == linux.EEXIST {
			if l, lerr := v.Lstat(name); lerr == nil && l.IsLink() {
				c.fail("not writing through dangling symlink %s", command.QuoteAlways(path))
				return false
			}
		}
		if err == linux.EISDIR && strings.HasSuffix(name, "/") {
			err = linux.ENOTDIR
			if _, serr := v.Stat(name); serr == linux.ENOENT {
				c.fail("cannot create regular file %s: %s", command.QuoteAlways(path), "Not a directory")
				return false
			}
		}
	}
	if err != nil {
		c.fail("cannot create regular file %s: %s", command.QuoteAlways(path), reason(err))
		return false
	}
	dst.Hold()
	defer dst.Drop()
	if i, err := dst.File.Info(); err == nil && e.Depth == 0 && i.IsRegular() {
		c.made[nodeOf(i)] = true
	}
	if c.bare {
		return true
	}
	if err, reading := transfer(t, src, dst); err != nil {
		if reading {
			c.fail("error reading %s: %s", command.QuoteAlways(e.Path), reason(err))
		} else {
			c.fail("error writing %s: %s", command.QuoteAlways(path), reason(err))
		}
		return false
	}
	return true
}

// transfer copies one open file to another. Holes stay holes.
func transfer(t *kernel.Task, src, dst *kernel.Desc) (err error, reading bool) {
	in, ok1 := src.VFS()
	out, ok2 := dst.VFS()
	buf := make([]byte, 64<<10)
	if !ok1 || !ok2 {
		for {
			n, err := src.File.Read(t, buf)
			if n > 0 {
				if _, werr := dst.File.Write(t, buf[:n]); werr != nil {
					return werr, false
				}
			}
			t.Step(n>>6 + 1)
			if err == io.EOF {
				return nil, false
			}
			if err != nil {
				return err, true
			}
		}
	}
	at := int64(0)
	for {
		from, err := in.Seek(at, vfs.SeekData)
		if err == linux.ENXIO {
			break
		}
		if err != nil {
			return err, true
		}
		to, err := in.Seek(from, vfs.SeekHole)
		if err != nil {
			return err, true
		}
		for from < to {
			n, err := in.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
			if n > 0 {
				if _, werr := out.WriteAt(buf[:n], from); werr != nil {
					return werr, false
				}
				from += int64(n)
			}
			t.Step(n>>6 + 1)
			if err == io.EOF || err == nil && n == 0 {
				break
			}
			if err != nil {
				return err, true
			}
		}
		at = to
	}
	i, err := in.Info()
	if err != nil {
		return err, true
	}
	o, err := out.Info()
	if err != nil {
		return err, false
	}
	if i.Size > o.Size {
		return out.Truncate(i.Size), false
	}
	return nil, false
}
