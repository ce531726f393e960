package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// files are a box's files, for a caller outside.
type files struct{ b *box }

// begin starts a call about a name; the caller ends it with done.
func (f *files) begin(ctx context.Context, op, name string) (vfs.View, error) {
	v := f.b.view(f.b.user)
	switch {
	case !strings.HasPrefix(name, "/"):
		return v, invalid(op, name, "the name is not absolute")
	case strings.IndexByte(name, 0) >= 0:
		return v, invalid(op, name, "the name holds a NUL byte")
	case len(name) > 4095:
		return v, invalid(op, name[:100]+"…", "the name is too long")
	case ctx.Err() != nil:
		return v, ended(ctx, op)
	}
	return v, f.b.enter()
}

func (f *files) done() { f.b.gate.RUnlock() }

// checkEntry refuses names that are no entry of a directory.
func checkEntry(op, name string) error {
	if last := path.Base(strings.TrimRight(name, "/")); last == "." || last == ".." || strings.Trim(name, "/") == "" {
		return invalid(op, name, `"/", and names that end in "." or "..", cannot be made, moved or removed`)
	}
	return nil
}

// ordinary refuses what cannot be read or written to an end.
func ordinary(op, name string, i vfs.Info) error {
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		return nil
	case linux.S_IFDIR:
		return invalid(op, name, "is a directory")
	case linux.S_IFIFO:
		return invalid(op, name, "is a FIFO, not an ordinary file")
	case linux.S_IFCHR:
		if i.Rdev != kernel.DevTTY {
			return nil
		}
	}
	return invalid(op, name, "is a device, not an ordinary file")
}

func (f *files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	if o.Offset < 0 || o.Length < 0 {
		return nil, invalid("open", name, "negative offset or length")
	}
	v, err := f.begin(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	defer f.done()
	i, err := v.Stat(name)
	if err != nil {
		return nil, failed("open", name, err)
	}
	if err := ordinary("open", name, i); err != nil {
		return nil, err
	}
	h, err := v.Open(name, linux.O_RDONLY, 0)
	if err != nil {
		return nil, failed("open", name, err)
	}
	left := o.Length
	if left == 0 {
		left = -1
	}
	return &reader{f.b, name, kernel.Outside(h), o.Offset, left}, nil
}

// A reader streams a file to the outside.
type reader struct {
	b    *box
	name string
	h    kernel.OutsideFile
	off  int64
	left int64 // -1 is all
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.b.enter(); err != nil {
		return 0, err
	}
	defer r.b.gate.RUnlock()
	if r.left >= 0 && int64(len(p)) > r.left {
		p = p[:r.left]
	}
	if len(p) == 0 && r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.h.ReadAt(p, r.off)
	r.off += int64(n)
	if r.left >= 0 {
		r.left -= int64(n)
	}
	if err != nil && err != io.EOF {
		err = failed("read", r.name, err)
	}
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (r *reader) Close() error { return r.h.Close() }

// permission checks the mode that something is to have; zero is usual.
func permission(op, name string, mode fs.FileMode, usual uint32) (uint32, error) {
	m := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		m |= linux.S_ISVTX
	}
	switch {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return 0, fmt.Errorf("%s %q: set-user-id and set-group-id bits may not be set: %w", op, name, paddock.Denied)
	case mode&^(fs.ModePerm|fs.ModeSticky) != 0:
		return 0, invalid(op, name, "the mode holds more than permission bits")
	case m == 0:
		return usual, nil
	}
	return m, nil
}

func (f *files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	mode, err := permission("create", name, o.Mode, 0o644)
	if err != nil {
		return nil, err
	}
	v, err := f.begin(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	defer f.done()
	if strings.HasSuffix(name, "/") || checkEntry("create", name) != nil {
		return nil, invalid("create", name, "the name is that of a directory")
	}
	v.Umask = 0
	if o.Parents {
		if err := parents(&v, path.Dir(name)); err != nil {
			return nil, failed("create", name, err)
		}
	}
	flags := linux.O_WRONLY | linux.O_CREAT
	if o.Append {
		flags |= linux.O_APPEND
	} else {
		flags |= linux.O_TRUNC
	}
	if o.Exclusive {
		flags |= linux.O_EXCL
	} else if i, err := v.Stat(name); err == nil {
		if err := ordinary("create", name, i); err != nil {
			return nil, err
		}
	}
	h, err := v.Open(name, flags, mode)
	if err != nil {
		return nil, failed("create", name, err)
	}
	return &writer{b: f.b, name: name, h: kernel.Outside(h)}, nil
}

// parents makes missing directories.
func parents(v *vfs.View, dir string) error {
	if dir == "/" {
		return nil
	}
	if _, err := v.Stat(dir); err != linux.ENOENT {
		return err
	}
	if err := parents(v, path.Dir(dir)); err != nil {
		return err
	}
	if err := v.Mkdir(dir, 0o755); err != nil && err != linux.EEXIST {
		return err
	}
	return nil
}

// A writer streams a file from the outside.
type writer struct {
	b    *box
	name string
	h    kernel.OutsideFile
	err  error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.b.enter(); err != nil {
		w.err = err
		return 0, err
	}
	defer w.b.gate.RUnlock()
	n, err := w.h.Write(p)
	if err != nil {
		w.err = failed("write", w.name, err)
	}
	return n, w.err
}

// Close returns what went wrong: the caller may not have looked before.
func (w *writer) Close() error { return errors.Join(w.err, w.h.Close()) }

func (f *files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	v, err := f.begin(ctx, "stat", name)
	if err != nil {
		return paddock.FileInfo{}, err
	}
	defer f.done()
	i, err := v.Lstat(name)
	if err != nil {
		return paddock.FileInfo{}, failed("stat", name, err)
	}
	return f.info(&v, path.Clean(name), i), nil
}

func (f *files) info(v *vfs.View, name string, i vfs.Info) paddock.FileInfo {
	info := paddock.FileInfo{Name: name, Size: i.Size, Mode: fileMode(i.Mode), ModTime: i.Mtime, UID: i.UID, GID: i.GID}
	for _, a := range f.b.accounts {
		if a.uid == i.UID {
			info.User = a.name
		}
		if a.gid == i.GID {
			info.Group = a.name
		}
	}
	if i.IsLink() {
		info.Link, _ = v.Readlink(name) // it may be gone by now
	}
	return info
}

func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & linux.S_IFMT {
	case linux.S_IFDIR:
		mode |= fs.ModeDir
	case linux.S_IFLNK:
		mode |= fs.ModeSymlink
	case linux.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case linux.S_IFSOCK:
		mode |= fs.ModeSocket
	case linux.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case linux.S_IFBLK:
		mode |= fs.ModeDevice
	}
	if m&linux.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if m&linux.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&linux.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	return mode
}

func (f *files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		if depth < 1 {
			yield(paddock.FileInfo{}, invalid("list", name, "the depth is less than 1"))
			return
		}
		// Directories are visited one by one, so that a box can be paused or
		// removed in between.
		todo := []struct {
			name  string
			depth int
		}{{name, depth}}
		for len(todo) > 0 {
			d := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			found, err := f.read(ctx, d.name)
			if err != nil {
				yield(paddock.FileInfo{}, err)
				return
			}
			for _, i := range found {
				if !yield(i, nil) {
					return
				}
				if i.Mode.IsDir() && d.depth > 1 {
					todo = append(todo, struct {
						name  string
						depth int
					}{i.Name, d.depth - 1})
				}
			}
		}
	}
}

func (f *files) read(ctx context.Context, name string) ([]paddock.FileInfo, error) {
	v, err := f.begin(ctx, "list", name)
	if err != nil {
		return nil, err
	}
	defer f.done()
	entries, err := v.ReadDir(name)
	if err != nil {
		return nil, failed("list", name, err)
	}
	found := make([]paddock.FileInfo, 0, len(entries))
	for _, e := range entries {
		found = append(found, f.info(&v, path.Join(name, e.Name), e.Info))
	}
	return found, nil
}

func (f *files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	mode, err := permission("mkdir", name, o.Mode, 0o755)
	if err != nil {
		return err
	}
	v, err := f.begin(ctx, "mkdir", name)
	if err != nil {
		return err
	}
	defer f.done()
	v.Umask = 0
	if o.Parents {
		if i, err := v.Stat(name); err == nil && i.IsDir() {
			return nil
		}
		if err := parents(&v, path.Dir(path.Clean(name))); err != nil {
			return failed("mkdir", name, err)
		}
	}
	if err := checkEntry("mkdir", name); err != nil {
		if _, serr := v.Stat(name); serr == nil {
			return failed("mkdir", name, linux.EEXIST)
		}
		return err
	}
	return failed("mkdir", name, v.Mkdir(name, mode))
}

func (f *files) Rename(ctx context.Context, from, to string) error {
	v, err := f.begin(ctx, "rename", from)
	if err != nil {
		return err
	}
	defer f.done()
	if err := errors.Join(checkEntry("rename", from), checkEntry("rename to", to)); err != nil {
		return err
	}
	if !strings.HasPrefix(to, "/") || strings.IndexByte(to, 0) >= 0 || len(to) > 4095 {
		return invalid("rename to", to, "the name is not absolute, holds a NUL byte or is too long")
	}
	if _, err := v.Lstat(from); err != nil {
		return failed("rename", from, err)
	}
	return failed("rename to", to, v.Rename(from, to))
}

func (f *files) Remove(ctx context.Context, name string, all bool) error {
	v, err := f.begin(ctx, "remove", name)
	if err != nil {
		return err
	}
	defer f.done()
	if err := checkEntry("remove", name); err != nil {
		return err
	}
	if all {
		err := v.RemoveAll(name)
		if err == linux.ENOENT {
			err = nil
		}
		return failed("remove", name, err)
	}
	err = v.Unlink(name)
	if err == linux.EISDIR {
		err = v.Rmdir(name)
	}
	return failed("remove", name, err)
}

func (f *files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	m, err := permission("chmod", name, mode, 0)
	if err != nil {
		return err
	}
	v, err := f.begin(ctx, "chmod", name)
	if err != nil {
		return err
	}
	defer f.done()
	return failed("chmod", name, v.Chmod(name, m))
}

func (f *files) Symlink(ctx context.Context, target, name string) error {
	v, err := f.begin(ctx, "symlink", name)
	if err != nil {
		return err
	}
	defer f.done()
	switch {
	case target == "":
		return invalid("symlink", name, "the target is empty")
	case len(target) > 4095:
		return invalid("symlink", name, "the target is too long")
	case strings.IndexByte(target, 0) >= 0:
		return invalid("symlink", name, "the target holds a NUL byte")
	}
	if err := checkEntry("symlink", name); err != nil {
		return err
	}
	return failed("symlink", name, v.Symlink(target, name))
}
