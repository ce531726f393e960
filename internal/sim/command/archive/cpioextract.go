package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// input counts what is read of an archive.
type input struct {
	c *cpio
	r io.Reader
}

func (in input) Read(b []byte) (int, error) {
	n, err := in.r.Read(b)
	in.c.bytes += int64(n)
	in.c.t.Step(1 + n>>6)
	return n, err
}

// extract does -i and -t.
func (c *cpio) extract() {
	for _, p := range c.a.Operands {
		c.patterns = append(c.patterns, compile(p))
	}
	if file, ok := c.a.Value("E"); ok {
		b, err := command.ReadAll(c.t, file)
		if err != nil {
			c.fatal("%s: Cannot open: %s", file, reason(err))
			return
		}
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(line) > 0 {
				c.patterns = append(c.patterns, compile(string(line)))
			}
		}
	}
	var r io.Reader = c.t.In()
	name, ok := c.a.Value("I")
	if !ok {
		name, ok = c.a.Value("F")
	}
	if ok {
		in, err := command.Open(c.t, name)
		if err != nil {
			c.fatal("Cannot open %s: %s", name, reason(err))
			return
		}
		defer in.Close()
		r = in
	}
	b := bufio.NewReaderSize(input{c, r}, 32<<10)
	cr := &cpioReader{r: b}
	if head, _ := b.Peek(512); len(head) > 262 && string(head[257:262]) == "ustar" {
		cr.tape = tar.NewReader(b)
	}
	for c.status < 3 {
		h, err := cr.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.fatal("%s", err)
			return
		}
		c.t.Traverse(1)
		if len(c.patterns) > 0 && matches(c.t, c.patterns, h.name) == c.a.Has("f") {
			continue
		}
		switch {
		case c.a.Has("t") && c.a.Has("v"):
			c.long(h)
		case c.a.Has("t"):
			_, _ = c.t.Out().WriteString(h.name + "\n") // the end of the program tells of it
		case c.a.Has("to-stdout"):
			if h.mode&linux.S_IFMT == linux.S_IFREG {
				err = copyAll(c.t.Out(), contents{c, cr}, c.buf)
			}
		default:
			err = c.member(h, contents{c, cr})
		}
		if err != nil {
			c.fatal("%s", reason(err))
		}
	}
	_, _ = io.Copy(io.Discard, b) // the zeros at the end, of a pipe's writer
}

// contents are those of members, guarded and counted.
type contents struct {
	c *cpio
	r io.Reader
}

func (m contents) Read(b []byte) (n int, err error) {
	err = guard(func() error {
		n, err = m.r.Read(b)
		return err
	})
	m.c.total += int64(n)
	m.c.t.Bound("archive", m.c.total, m.c.t.K.Limits.Archive)
	return n, err
}

// pass does -p.
func (c *cpio) pass() {
	if i, err := c.t.View.Stat(c.dir); err != nil || !i.IsDir() {
		if err == nil {
			err = linux.ENOTDIR
		}
		c.fatal("%s: Cannot stat: %s", strings.TrimRight(c.dir, "/"), reason(err))
		return
	}
	c.each(func(name string, i vfs.Info) bool {
		h, err := c.describe(name, i)
		if err != nil {
			c.fail("%s: Cannot readlink: %s", name, reason(err))
			return true
		}
		var r io.Reader = strings.NewReader("")
		if i.IsRegular() {
			src, err := command.Open(c.t, name)
			if err != nil {
				c.fail("%s: Cannot open: %s", name, reason(err))
				return true
			}
			defer src.Close()
			r = io.LimitReader(src, i.Size)
			c.bytes += i.Size
			if c.a.Has("l") {
				h.hard = name
			}
		}
		if err := c.member(h, contents{c, r}); err != nil {
			c.fatal("%s: %s", name, reason(err))
		}
		return c.status < 3
	})
}

// place gives the name that a member gets here; false is that it may not.
func (c *cpio) place(h *record) (string, bool) {
	name := h.name
	if !c.a.Has("absolute-filenames") {
		safe, prefix := safeName(name)
		if prefix != "" && !c.warned[prefix] && len(c.warned) < 1000 {
			c.warned[prefix] = true
			if c.dir == "" {
				c.t.Errorf("Removing leading `%s' from member names", prefix)
			}
		}
		name = safe
	}
	name = strings.TrimRight(name, "/")
	if name == "" {
		name = "."
	}
	// Nothing goes through a link, whoever made it.
	for i := 1; i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		c.t.Step(1)
		if l, err := c.t.View.Lstat(c.dir + name[:i]); err == nil && l.IsLink() {
			c.fail("%s: not extracted: %s is a symbolic link", h.name, c.dir+name[:i])
			return "", false
		}
	}
	return c.dir + name, true
}

// member makes a file of a member. The error ends the run: it is one of the
// archive, or of what is copied.
func (c *cpio) member(h *record, r io.Reader) error {
	name, ok := c.place(h)
	if !ok {
		return nil
	}
	v := &c.t.View
	kind := h.mode & linux.S_IFMT
	at := time.Unix(h.mtime, 0)
	if old, err := v.Lstat(name); err == nil {
		if old.IsDir() {
			if kind == linux.S_IFDIR {
				c.directory(h, name)
				return nil
			}
			c.fail("cannot remove current %s: %s", name, reason(linux.EISDIR))
			return nil
		}
		if !c.a.Has("u") && old.Mtime.Unix() >= h.mtime {
			c.t.Errorf("%s not created: newer or same age version exists", name)
			return nil
		}
		if c.dir != "" {
			if src, err := v.Lstat(h.name); err == nil && src.Dev == old.Dev && src.Ino == old.Ino {
				c.fail("%s and %s are the same file", h.name, name)
				return nil
			}
		}
		if err := v.Unlink(name); err != nil {
			c.fail("cannot remove current %s: %s", name, reason(err))
			return nil
		}
	} else if i := strings.LastIndexByte(name, '/'); i > 0 && c.a.Has("d") {
		if err := v.MkdirAll(name[:i], 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
			c.fail("cannot make directory `%s': %s", name[:i], reason(err))
			return nil
		}
	}
	var err error
	switch kind {
	case linux.S_IFDIR:
		if err = v.Mkdir(name, 0o700); err == nil {
			c.directory(h, name)
			return nil
		}
	case linux.S_IFLNK:
		err = v.Symlink(h.target, name)
	case linux.S_IFIFO:
		err = v.Mkfifo(name, h.mode&0o7777)
	case linux.S_IFCHR, linux.S_IFBLK:
		err = v.Mknod(name, h.mode, uint32(h.rdev))
	case linux.S_IFREG:
		done, ferr := c.file(h, name, r)
		if ferr != nil || !done {
			return ferr
		}
	default:
		c.fail("%s: unknown file type", h.name)
		return nil
	}
	if err != nil {
		c.fail("%s: Cannot create: %s", name, reason(err))
		return nil
	}
	if v.UID == 0 && !c.a.Has("no-preserve-owner") {
		_ = v.Chown(name, h.uid, h.gid, false) // root may
	}
	if kind != linux.S_IFLNK {
		_ = v.Chmod(name, h.mode&0o7777) // it is ours
	}
	if c.a.Has("m") {
		_ = v.Chtimes(name, at, at, false) // it is ours
	}
	c.tell(name)
	return nil
}

func (c *cpio) directory(h *record, name string) {
	c.t.Grow(len(name) + 64)
	c.dirs = append(c.dirs, made{name: name, bits: h.mode & 0o7777, time: time.Unix(h.mtime, 0)})
	c.tell(name)
}

// file makes a regular file; false is that it has complained, or that there
// is nothing more to do for it.
func (c *cpio) file(h *record, name string, r io.Reader) (bool, error) {
	v := &c.t.View
	from, linked := h.hard, h.hard != ""
	if linked && c.dir == "" { // of ustar: a member of the archive
		first := *h
		first.name = h.hard
		var ok bool
		if from, ok = c.place(&first); !ok {
			return false, nil
		}
	}
	first, known := c.links[h.ino]
	if known && !linked && h.nlink > 1 {
		if i, err := v.Lstat(first.name); err == nil && i.Ino == first.ino {
			from, linked = first.name, true
		}
	}
	flags := linux.O_WRONLY | linux.O_CREAT | linux.O_EXCL
	if linked {
		err := v.Link(from, name)
		if err != nil && (c.dir == "" || !errors.Is(err, linux.EXDEV)) {
			c.fail("cannot link %s to %s: %s", from, name, reason(err))
			return false, nil
		}
		if err == nil && (h.size == 0 || c.dir != "" || h.hard != "") {
			c.tell(name)
			return false, nil
		}
		if err == nil {
			flags = linux.O_WRONLY | linux.O_TRUNC // the contents come with a later name
		}
	}
	f, err := v.Open(name, flags, 0o600)
	if err != nil {
		c.fail("%s: Cannot open: %s", name, reason(err))
		return false, nil
	}
	err = copyAll(fileWriter{f}, r, c.buf)
	i, ierr := f.Info()
	_ = f.Close() // every write was looked at
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if h.nlink > 1 && h.ino != 0 && ierr == nil && !known {
		c.t.Grow(len(name) + 48)
		c.links[h.ino] = placed{name, i.Ino}
	}
	return true, nil
}
