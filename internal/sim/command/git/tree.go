package git

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A tree is a directory of the computer as the library's file system. Each of
// its operations is a checkpoint of the task.
type tree struct {
	t    *kernel.Task
	root string
	meta bool // it is a repository, whose files the library reads whole
}

func (x *tree) at(name string) string { return path.Join(x.root, path.Join("/", name)) }

// failure makes an error that the library's os.IsNotExist, os.IsExist and
// os.IsPermission recognise; these know the numbers of the host alone.
func failure(op, name string, err error) error {
	switch err {
	case nil:
		return nil
	case linux.ENOENT:
		err = fs.ErrNotExist
	case linux.EEXIST:
		err = fs.ErrExist
	case linux.EACCES:
		err = fs.ErrPermission
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (x *tree) Create(name string) (billy.File, error) {
	return x.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

func (x *tree) Open(name string) (billy.File, error) { return x.OpenFile(name, os.O_RDONLY, 0) }

func (x *tree) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	f, err := x.open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (x *tree) open(name string, flag int, perm os.FileMode) (*file, error) {
	x.t.Step(16)
	if flag&os.O_CREATE != 0 {
		if err := x.t.View.MkdirAll(path.Dir(x.at(name)), 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
			return nil, failure("open", name, err)
		}
	}
	f, err := x.t.View.Open(x.at(name), openFlags(flag), uint32(perm.Perm()))
	if err != nil {
		return nil, failure("open", name, err)
	}
	i, err := f.Info()
	if err == nil && !i.IsRegular() && !i.IsDir() {
		err = linux.EINVAL // reading a pipe would wait
	}
	if err == nil && !soundIndex(name, f, i.Size) {
		err = linux.EINVAL
	}
	if err == nil && x.meta && flag&(os.O_WRONLY|os.O_RDWR) == 0 && i.Size > mostOf(name) {
		err = linux.EFBIG
	}
	if err != nil {
		return nil, errors.Join(failure("open", name, err), f.Close())
	}
	return &file{f, x.t, name}, nil
}

// mostOf bounds the bytes of a file of a repository that the library reads.
func mostOf(name string) int64 {
	switch {
	case name == "index" || strings.HasPrefix(name, "objects/"):
		return 1<<63 - 1 // it was looked through, or is not read by the library
	case name == "packed-refs":
		return 16 << 20
	}
	return 1 << 20
}

// openFlags translates the flags of the host's open, which the library speaks.
func openFlags(flag int) int {
	out := linux.O_RDONLY
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		out = linux.O_WRONLY
	case os.O_RDWR:
		out = linux.O_RDWR
	}
	for _, f := range [...]struct{ host, own int }{
		{os.O_APPEND, linux.O_APPEND}, {os.O_CREATE, linux.O_CREAT}, {os.O_EXCL, linux.O_EXCL}, {os.O_TRUNC, linux.O_TRUNC},
	} {
		if flag&f.host != 0 {
			out |= f.own
		}
	}
	return out
}

func (x *tree) Stat(name string) (os.FileInfo, error) {
	x.t.Step(8)
	i, err := x.t.View.Stat(x.at(name))
	return info{path.Base(name), i}, failure("stat", name, err)
}

func (x *tree) Lstat(name string) (os.FileInfo, error) {
	x.t.Step(8)
	i, err := x.t.View.Lstat(x.at(name))
	return info{path.Base(name), i}, failure("lstat", name, err)
}

func (x *tree) Rename(from, to string) error {
	x.t.Step(16)
	if err := x.t.View.MkdirAll(path.Dir(x.at(to)), 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
		return failure("rename", to, err)
	}
	return failure("rename", from, x.t.View.Rename(x.at(from), x.at(to)))
}

func (x *tree) Remove(name string) error {
	x.t.Step(16)
	err := x.t.View.Unlink(x.at(name))
	if err == linux.EISDIR {
		err = x.t.View.Rmdir(x.at(name))
	}
	return failure("remove", name, err)
}

func (*tree) Join(elem ...string) string { return path.Join(elem...) }

func (x *tree) TempFile(dir, prefix string) (billy.File, error) {
	for i := range 10_000 {
		name := path.Join(dir, prefix+strconv.Itoa(x.t.PID)+"-"+strconv.Itoa(i))
		f, err := x.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, failure("open", prefix, linux.EEXIST)
}

func (x *tree) ReadDir(name string) ([]os.FileInfo, error) {
	list, err := x.t.View.ReadDir(x.at(name))
	if err != nil {
		return nil, failure("readdir", name, err)
	}
	x.t.Traverse(len(list))
	x.t.Grow(perListed * len(list)) // whoever asked may keep them
	out := make([]os.FileInfo, 0, len(list))
	for _, e := range list {
		out = append(out, info{e.Name, e.Info})
	}
	return out, nil
}

// perListed is what a name in a list has in memory.
const perListed = 150

func (x *tree) MkdirAll(name string, perm os.FileMode) error {
	return failure("mkdir", name, x.t.View.MkdirAll(x.at(name), uint32(perm.Perm())))
}

func (x *tree) Symlink(target, link string) error {
	if err := x.t.View.MkdirAll(path.Dir(x.at(link)), 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
		return failure("symlink", link, err)
	}
	return failure("symlink", link, x.t.View.Symlink(target, x.at(link)))
}

func (x *tree) Readlink(link string) (string, error) {
	s, err := x.t.View.Readlink(x.at(link))
	return s, failure("readlink", link, err)
}

func (x *tree) Chroot(name string) (billy.Filesystem, error) {
	return &tree{x.t, x.at(name), x.meta}, nil
}

func (x *tree) Root() string { return x.root }

// A file is an open file.
type file struct {
	f    *vfs.File
	t    *kernel.Task
	name string
}

func (f *file) Name() string { return f.name }

func (f *file) Read(p []byte) (int, error) {
	f.t.Step(1 + len(p)/256)
	return f.f.Read(p)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.t.Step(1 + len(p)/256)
	done := 0
	for done < len(p) {
		n, err := f.f.ReadAt(p[done:], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (f *file) Write(p []byte) (int, error) {
	f.t.Step(1 + len(p)/256)
	return f.f.Write(p)
}

func (f *file) Seek(off int64, whence int) (int64, error) { return f.f.Seek(off, whence) }

func (f *file) Close() error { return f.f.Close() }

func (*file) Lock() error   { return nil }
func (*file) Unlock() error { return nil }

func (f *file) Truncate(size int64) error { return f.f.Truncate(size) }

// An info describes a file.
type info struct {
	name string
	i    vfs.Info
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.i.Size }
func (i info) ModTime() time.Time { return i.i.Mtime }
func (i info) IsDir() bool        { return i.i.IsDir() }
func (info) Sys() any             { return nil }

func (i info) Mode() os.FileMode {
	m := os.FileMode(i.i.Mode & 0o777)
	switch i.i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
	case linux.S_IFDIR:
		m |= os.ModeDir
	case linux.S_IFLNK:
		m |= os.ModeSymlink
	default:
		m |= os.ModeIrregular
	}
	return m
}

var _ billy.Filesystem = (*tree)(nil)
