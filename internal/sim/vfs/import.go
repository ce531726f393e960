package vfs

import (
	"fmt"
	"iter"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Import makes the tree into what an export says, which must be relative to
// what the tree is now. It ends at the first error; what was done before stays.
// Entries are checked as those of a stranger: no link is followed, and a parent
// that is not a directory is an error. The bounds of the FS hold.
//
// It is for a tree that nobody uses yet: it is not one step for others.
func (f *FS) Import(entries iter.Seq2[Change, error]) error {
	x := intake{fs: f, times: map[Ino]stamp{}}
	for e, err := range entries {
		if err != nil {
			return err
		}
		if err := x.take(&e); err != nil {
			return fmt.Errorf("import %q: %w", e.Path, err)
		}
	}
	return x.finish()
}

// An intake is an Import that goes on.
type intake struct {
	fs     *FS
	dir    string        // the directory of the last entry
	way    []stage       // the directories that lead to it
	shared []Ino         // files that may have other names, in the order of their entries
	times  map[Ino]stamp // of directories: they get them when all was made
}

// A stage is a directory on the way to another one.
type stage struct {
	size int // of its path, which that of the other begins with
	ino  Ino
}

func (x *intake) finish() error {
	f := x.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	for ino, at := range x.times {
		if n := f.nodes.get(uint64(ino)); n != nil && n.mtime != at {
			n = f.owned(n)
			f.claim(n)
			n.mtime = at
		}
	}
	return nil
}

// into finds the directory that holds a path, without following links. It goes
// on from the directory of the last entry, as far as that is on the way: entries
// change nothing but what is in their own directories.
func (x *intake) into(path string) (*View, string, error) {
	dir, name := parentOf(path)
	for len(x.way) > 0 {
		at := x.way[len(x.way)-1].size
		if strings.HasPrefix(dir, x.dir[:at]) && (len(dir) == at || dir[at] == '/') {
			break
		}
		x.way = x.way[:len(x.way)-1]
	}
	v, at := View{FS: x.fs, Dir: Root}, 0
	if n := len(x.way); n > 0 {
		v.Dir, at = x.way[n-1].ino, x.way[n-1].size
	}
	x.dir = dir
	for at < len(dir) {
		rest := dir[at:]
		if at > 0 {
			rest = rest[1:] // a slash
		}
		part, _, _ := strings.Cut(rest, "/")
		if err := enterDir(&v, part); err != nil {
			return nil, "", err
		}
		at = len(dir) - len(rest) + len(part)
		x.way = append(x.way, stage{at, v.Dir})
	}
	if name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
		return nil, "", linux.EINVAL
	}
	return &v, name, nil
}

// enterDir goes into a directory that is no link.
func enterDir(v *View, name string) error {
	if name == "" || name == "." || name == ".." {
		return linux.EINVAL
	}
	i, err := v.Lstat(name)
	if err != nil {
		return err
	}
	if !i.IsDir() {
		return linux.ENOTDIR
	}
	return v.Chdir(name)
}

func (x *intake) take(e *Change) error {
	if e.Path == "" {
		if e.Kind != ChangeDir {
			return linux.EINVAL
		}
		return x.dress(&View{FS: x.fs, Dir: Root}, ".", e)
	}
	v, name, err := x.into(e.Path)
	if err != nil {
		return err
	}
	if e.Kind == ChangeDir && !e.Opaque {
		if i, err := v.Lstat(name); err == nil && i.IsDir() {
			return x.dress(v, name, e)
		}
	}
	if _, ok := x.times[v.Dir]; !ok {
		i, err := v.Lstat(".")
		if err != nil {
			return err
		}
		x.times[v.Dir] = stampOf(i.Mtime) // as it was, unless it has an entry of its own
	}
	if err := v.RemoveAll(name); err != nil {
		return err
	}
	if e.Kind == ChangeGone {
		return nil
	}
	if e.Kind == ChangeSame {
		return x.same(v, name, e.First)
	}
	if err := build(v, name, e); err != nil {
		return err
	}
	if err := x.dress(v, name, e); err != nil {
		return err
	}
	if e.Shared {
		i, err := v.Lstat(name)
		if err != nil {
			return err
		}
		x.shared = append(x.shared, i.Ino)
	}
	return nil
}

// build makes a file of any type.
func build(v *View, name string, e *Change) error {
	rdev := uint32(e.Device>>32)<<8 | uint32(e.Device&0xff)
	switch e.Kind {
	case ChangeDir:
		return v.Mkdir(name, 0o700)
	case ChangeLink:
		return v.Symlink(e.Target, name)
	case ChangePipe:
		return v.Mkfifo(name, 0o600)
	case ChangeSocket:
		return v.Mknod(name, linux.S_IFSOCK|0o600, 0)
	case ChangeChar:
		return v.Mknod(name, linux.S_IFCHR|0o600, rdev)
	case ChangeBlock:
		return v.Mknod(name, linux.S_IFBLK|0o600, rdev)
	case ChangeFile:
		return pour(v, name, e)
	}
	return linux.EINVAL
}

// pour makes a regular file.
func pour(v *View, name string, e *Change) error {
	h, err := v.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer h.Close()
	if e.Data != nil {
		for x, err := range e.Data {
			if err != nil {
				return err
			}
			if _, err := h.WriteAt(x.Bytes, x.Offset); err != nil {
				return err
			}
		}
	}
	return h.Truncate(e.Size)
}

// dress sets the attributes of what name leads to.
func (x *intake) dress(v *View, name string, e *Change) error {
	if err := v.Chown(name, int(e.UID), int(e.GID), false); err != nil {
		return err
	}
	if e.Kind != ChangeLink {
		if err := v.Chmod(name, e.Mode); err != nil {
			return err
		}
	}
	if e.Kind != ChangeDir {
		return v.Chtimes(name, e.ModTime, e.ModTime, false)
	}
	i, err := v.Lstat(name)
	if err != nil {
		return err
	}
	x.times[i.Ino] = stampOf(e.ModTime)
	return nil
}

// same gives a file another name.
func (x *intake) same(v *View, name string, first int64) error {
	f := x.fs
	if first < 0 || first >= int64(len(x.shared)) {
		return linux.EINVAL
	}
	ino := x.shared[first]
	return f.write(func(t *trip) error {
		p, err := v.vacant(t, name, false)
		if err != nil {
			return err
		}
		n, err := f.get(ino)
		switch {
		case err != nil:
			return err
		case n.isDir() || n.mnt != p.dir.mnt:
			return linux.EINVAL
		case n.nlink >= maxNames:
			return linux.EMLINK
		}
		f.link(p.dir, p.name, n)
		return nil
	})
}
