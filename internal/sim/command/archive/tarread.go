package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// An extraction unpacks, lists or compares members.
type extraction struct {
	p    *tape
	own  vfs.Ino
	dirs []made
	buf  []byte

	total int64 // bytes of members
}

// made is a directory whose attributes are set at the end.
type made struct {
	dir  vfs.Ino // where its name is looked up
	name string
	bits uint32
	time time.Time
}

func (x *extraction) begin(p *tape) {
	x.p, x.own, x.buf = p, p.t.View.Dir, make([]byte, 32<<10)
}

// member deals with one member. The error is one of the archive.
func (x *extraction) member(s *source, h *tar.Header, dir string) error {
	p := x.p
	p.t.View.Dir = x.own
	defer func() { p.t.View.Dir = x.own }()
	switch p.op {
	case 't':
		name := h.Name
		if p.original {
			shorter, ok := p.stripParts(p.renamed(name, false))
			if !ok {
				return x.skip(s)
			}
			name = shorter
		}
		p.stripped(h.Name, "member names")
		p.verbose++
		p.tell(h, name, 1)
		p.verbose--
		return x.skip(s)
	case 'd':
		return x.compare(s, h, dir)
	}
	name, ok := p.stripParts(p.renamed(h.Name, false))
	if !ok {
		return x.skip(s)
	}
	if dir != "" {
		if err := p.t.View.Chdir(dir); err != nil {
			p.t.Errorf("%s: Cannot open: %s", dir, reason(err))
			p.t.Errorf("Error is not recoverable: exiting now")
			p.t.Exit(2)
		}
	}
	dots := strings.Contains("/"+name+"/", "/../")
	name = p.stripped(name, "member names")
	if dots && !p.absolute {
		p.fail("%s: Member name contains '..'", shown(h.Name))
		return x.skip(s)
	}
	if p.toStdout {
		p.tell(h, h.Name, 1)
		if h.Typeflag != tar.TypeReg {
			return x.skip(s)
		}
		return copyAll(p.t.Out(), members{x, s.r}, x.buf)
	}
	if p.original {
		p.tell(h, name, 1)
	} else {
		p.tell(h, h.Name, 1)
	}
	return x.extract(s, h, name)
}

// cut says that the archive ends in the middle of something.
func (x *extraction) cut() int {
	x.end()
	if x.p.op == 'x' {
		x.p.t.Errorf("Unexpected EOF in archive")
	}
	return x.p.fatal("Unexpected EOF in archive")
}

func (x *extraction) skip(s *source) error { return copyAll(io.Discard, members{x, s.r}, x.buf) }

// members reads a member's contents, guarded and counted: holes take no room
// in an archive.
type members struct {
	x *extraction
	r io.Reader
}

func (m members) Read(b []byte) (n int, err error) {
	err = guard(func() error {
		n, err = m.r.Read(b)
		return err
	})
	t := m.x.p.t
	t.Step(n>>6 + 1)
	m.x.total += int64(n)
	t.Bound("archive", m.x.total, t.K.Limits.Archive)
	return n, err
}

func (x *extraction) extract(s *source, h *tar.Header, name string) error {
	p := x.p
	t := p.t
	v := &t.View
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		trimmed = "."
	}
	if !p.absolute && p.g.through(trimmed, h.Typeflag == tar.TypeDir) {
		p.fail("%s: Cannot open: it lies behind a link of the archive that leads out of the directory", shown(name))
		return x.skip(s)
	}
	i, err := v.Lstat(trimmed)
	there := err == nil
	if there && h.Typeflag != tar.TypeDir {
		switch {
		case p.skipOld:
			return x.skip(s)
		case p.newer && !i.Mtime.Before(h.ModTime):
			t.Errorf("Current `%s' is newer or same age", shown(name))
			return x.skip(s)
		case p.keepOld:
			p.fail("%s: Cannot open: %s", shown(name), reason(linux.EEXIST))
			return x.skip(s)
		}
	}
	bits := uint32(h.Mode) & command.ModeBits
	if !p.modes && v.UID != 0 {
		bits &= 0o777 &^ v.Umask
	} else if !p.modes {
		bits &= 0o7777
	}
	switch h.Typeflag {
	case tar.TypeDir:
		x.directory(h, trimmed, bits, i, there)
		return nil
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return x.file(s, h, trimmed, bits)
	}
	make := func(do func() error) {
		err := do()
		if err == linux.ENOENT {
			if err = p.g.parents(trimmed); err == nil {
				err = do()
			}
		}
		if err == linux.EEXIST {
			if err = p.g.clear(trimmed); err == nil {
				err = do()
			}
		}
		if err != nil {
			verb := map[byte]string{tar.TypeSymlink: "create symlink to '" + shown(h.Linkname) + "'", tar.TypeLink: "hard link to '" + shown(h.Linkname) + "'", tar.TypeFifo: "mkfifo"}[h.Typeflag]
			if verb == "" {
				verb = "mknod"
			}
			p.fail("%s: Cannot %s: %s", shown(name), verb, reason(err))
		}
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		make(func() error {
			err := v.Symlink(h.Linkname, trimmed)
			if err == nil {
				p.g.made(trimmed, h.Linkname)
				if !p.touch {
					_ = v.Chtimes(trimmed, h.ModTime, h.ModTime, false) // it is ours
				}
			}
			return err
		})
	case tar.TypeLink:
		target, ok := p.stripParts(h.Linkname)
		if !ok {
			return nil
		}
		target = p.stripped(target, "hard link targets")
		if !p.absolute && p.g.through(target, false) { // a link's second name is the same link, and known
			p.fail("%s: Cannot hard link to '%s': it lies behind a link of the archive that leads out of the directory", shown(name), shown(h.Linkname))
			return nil
		}
		if i, err := v.Lstat(target); err == nil && there {
			if j, err := v.Lstat(trimmed); err == nil && i.Ino == j.Ino && i.Dev == j.Dev {
				return nil
			}
		}
		make(func() error { return v.Link(target, trimmed) })
	case tar.TypeFifo:
		make(func() error { return v.Mkfifo(trimmed, bits) })
	case tar.TypeChar, tar.TypeBlock:
		kind := uint32(linux.S_IFCHR)
		if h.Typeflag == tar.TypeBlock {
			kind = linux.S_IFBLK
		}
		make(func() error { return v.Mknod(trimmed, kind|bits, uint32(h.Devmajor)<<8|uint32(h.Devminor)) })
	default:
		t.Errorf("%s: Unknown file type '%c', extracted as normal file", shown(name), h.Typeflag)
		return x.file(s, h, trimmed, bits)
	}
	return nil
}

func (x *extraction) directory(h *tar.Header, name string, bits uint32, i vfs.Info, there bool) {
	p := x.p
	v := &p.t.View
	if there && i.IsLink() {
		if to, err := v.Stat(name); err == nil && to.IsDir() && (p.overDir || !p.ownLink(name)) {
			i = to
		}
	}
	if there && !i.IsDir() {
		if err := p.g.clear(name); err != nil {
			p.fail("%s: Cannot mkdir: %s", shown(h.Name), reason(err))
			return
		}
		there = false
	}
	if !there {
		err := v.Mkdir(name, 0o700)
		if err == linux.ENOENT {
			if err = p.g.parents(name); err == nil {
				err = v.Mkdir(name, 0o700)
			}
		}
		if err != nil {
			p.fail("%s: Cannot mkdir: %s", shown(h.Name), reason(err))
			return
		}
	}
	p.t.Grow(len(name) + 64)
	x.dirs = append(x.dirs, made{v.Dir, name, bits, h.ModTime})
}

// ownLink reports whether a link was made of this archive.
func (p *tape) ownLink(name string) bool { return p.g.through(name, true) }

func (x *extraction) file(s *source, h *tar.Header, name string, bits uint32) error {
	p := x.p
	v := &p.t.View
	open := func() (*vfs.File, error) {
		return v.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_EXCL, 0o600)
	}
	f, err := open()
	if err == linux.ENOENT || err == linux.ENOTDIR {
		if err = p.g.parents(name); err == nil {
			f, err = open()
		}
	}
	if err == linux.EEXIST {
		if err = p.g.clear(name); err == nil {
			f, err = open()
		} else if err == linux.EISDIR {
			if err = v.Rmdir(name); err == nil {
				f, err = open()
			} else {
				err = linux.EISDIR
			}
		}
	}
	if err != nil {
		p.fail("%s: Cannot open: %s", shown(h.Name), reason(err))
		return x.skip(s)
	}
	err = copyAll(fileWriter{f}, members{x, s.r}, x.buf)
	_ = f.Close() // every write was looked at
	var e linux.Errno
	if errors.As(err, &e) {
		p.fail("%s: Cannot write: %s", shown(h.Name), reason(e))
		return x.skip(s)
	}
	if !p.touch {
		_ = v.Chtimes(name, h.ModTime, h.ModTime, false) // it is ours
	}
	if v.UID == 0 {
		x.owner(h, name)
	}
	if cerr := v.Chmod(name, bits); cerr != nil {
		p.fail("%s: Cannot change mode to %s: %s", shown(h.Name), command.ModeString(bits), reason(cerr))
	}
	return err
}

func (x *extraction) owner(h *tar.Header, name string) {
	uid, gid := h.Uid, h.Gid
	if !x.p.numeric {
		if u, ok := x.p.book.User(h.Uname); ok {
			uid = u.UID
		}
		if g, ok := x.p.book.Group(h.Gname); ok {
			gid = g.GID
		}
	}
	_ = x.p.t.View.Chown(name, uid, gid, false) // root may
}

type fileWriter struct{ f *vfs.File }

func (w fileWriter) Write(b []byte) (int, error) { return w.f.Write(b) }

// end gives directories their attributes, the deepest first.
func (x *extraction) end() {
	p := x.p
	v := &p.t.View
	defer func() { v.Dir = x.own }()
	for i := len(x.dirs) - 1; i >= 0; i-- {
		d := x.dirs[i]
		v.Dir = d.dir
		if j, err := v.Lstat(d.name); err != nil || !j.IsDir() {
			continue // something else stands there now
		}
		if !p.touch {
			_ = v.Chtimes(d.name, d.time, d.time, false) // it is ours
		}
		_ = v.Chmod(d.name, d.bits) // it is ours
	}
}

// compare tells how a file differs from the member.
func (x *extraction) compare(s *source, h *tar.Header, dir string) error {
	p := x.p
	v := &p.t.View
	if dir != "" {
		if err := v.Chdir(dir); err != nil {
			p.fail("%s: Cannot open: %s", dir, reason(err))
			return x.skip(s)
		}
	}
	p.tell(h, h.Name, 1)
	differ := func(what string) {
		p.status = max(p.status, 1)
		_, _ = p.t.Out().WriteString(shown(h.Name) + ": " + what + "\n")
	}
	name := strings.TrimRight(p.stripped(h.Name, "member names"), "/")
	i, err := v.Lstat(name)
	if err != nil {
		p.t.Errorf("%s: Warning: Cannot stat: %s", shown(h.Name), reason(err))
		p.status = max(p.status, 1)
		return x.skip(s)
	}
	switch h.Typeflag {
	case tar.TypeReg:
		if !i.IsRegular() {
			differ("File type differs")
			return x.skip(s)
		}
		if i.Mode&command.ModeBits != uint32(h.Mode)&command.ModeBits {
			differ("Mode differs")
		}
		if i.Mtime.Unix() != h.ModTime.Unix() {
			differ("Mod time differs")
		}
		if i.Size != h.Size {
			differ("Size differs")
			return x.skip(s)
		}
		in, err := command.Open(p.t, name)
		if err != nil {
			p.fail("%s: Cannot open: %s", shown(name), reason(err))
			return x.skip(s)
		}
		defer in.Close()
		other := make([]byte, len(x.buf))
		for {
			n, err := io.ReadFull(members{x, s.r}, x.buf)
			m, _ := io.ReadFull(in, other[:n]) // what is missing differs
			if !bytes.Equal(x.buf[:n], other[:m]) {
				differ("Contents differ")
				return x.skip(s)
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	case tar.TypeSymlink:
		if target, err := v.Readlink(name); err != nil || target != h.Linkname {
			differ("Symlink differs")
		}
	case tar.TypeDir:
		if !i.IsDir() {
			differ("File type differs")
		} else if i.Mode&command.ModeBits != uint32(h.Mode)&command.ModeBits {
			differ("Mode differs")
		}
	}
	return nil
}
