package python

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	ours "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// files is the computer's tree, as the engine sees it.
type files struct {
	ours.UnimplementedFS
	p *process
}

// absolute names a file; the engine's names begin below the root.
func absolute(name string) string { return "/" + strings.TrimPrefix(name, "/") }

// try runs an operation on the tree.
func (f *files) try(op func() error) ours.Errno {
	var err error
	if !f.p.guard(func() { err = op() }) {
		return ours.EINTR
	}
	return errno(err)
}

func errno(err error) ours.Errno {
	if err == nil || err == io.EOF {
		return 0
	}
	var no linux.Errno
	if !errors.As(err, &no) {
		return ours.EIO
	}
	switch no {
	case linux.EACCES:
		return ours.EACCES
	case linux.EAGAIN:
		return ours.EAGAIN
	case linux.EBADF:
		return ours.EBADF
	case linux.EEXIST:
		return ours.EEXIST
	case linux.EINTR:
		return ours.EINTR
	case linux.EINVAL:
		return ours.EINVAL
	case linux.EISDIR:
		return ours.EISDIR
	case linux.ELOOP:
		return ours.ELOOP
	case linux.ENAMETOOLONG:
		return ours.ENAMETOOLONG
	case linux.ENOENT:
		return ours.ENOENT
	case linux.ENOTDIR:
		return ours.ENOTDIR
	case linux.ENOTEMPTY:
		return ours.ENOTEMPTY
	case linux.EPERM:
		return ours.EPERM
	case linux.EROFS:
		return ours.EROFS
	case linux.ENOSYS:
		return ours.ENOSYS
	case linux.EOPNOTSUPP:
		return ours.ENOTSUP
	}
	return ours.EIO
}

func (f *files) OpenFile(name string, flag ours.Oflag, perm fs.FileMode) (ours.File, ours.Errno) {
	name = absolute(name)
	if e := f.p.own[name]; e != nil {
		return &own{entry: e}, 0
	}
	flags := linux.O_RDONLY
	switch flag & (ours.O_RDONLY | ours.O_RDWR | ours.O_WRONLY) {
	case ours.O_RDWR:
		flags = linux.O_RDWR
	case ours.O_WRONLY:
		flags = linux.O_WRONLY
	}
	for _, x := range []struct {
		from ours.Oflag
		to   int
	}{
		{ours.O_APPEND, linux.O_APPEND}, {ours.O_CREAT, linux.O_CREAT}, {ours.O_DIRECTORY, linux.O_DIRECTORY}, {ours.O_EXCL, linux.O_EXCL},
		{ours.O_NOFOLLOW, linux.O_NOFOLLOW}, {ours.O_NONBLOCK, linux.O_NONBLOCK}, {ours.O_TRUNC, linux.O_TRUNC},
	} {
		if flag&x.from != 0 {
			flags |= x.to
		}
	}
	o := &open{f: f, name: name, append: flag&ours.O_APPEND != 0}
	no := f.try(func() error {
		d, err := f.p.t.Open(name, flags, uint32(perm.Perm()))
		if err != nil {
			return err
		}
		// It counts as a descriptor.
		if o.fd, err = f.p.t.AddFD(d, 3, true); err != nil {
			d.Drop()
			return err
		}
		o.d = d
		return nil
	})
	if no != 0 {
		return nil, no
	}
	return o, 0
}

func (f *files) Stat(name string) (sys.Stat_t, ours.Errno)  { return f.stat(name, true) }
func (f *files) Lstat(name string) (sys.Stat_t, ours.Errno) { return f.stat(name, false) }

func (f *files) stat(name string, follow bool) (st sys.Stat_t, no ours.Errno) {
	name = absolute(name)
	if e := f.p.own[name]; e != nil {
		return (&own{entry: e}).Stat()
	}
	no = f.try(func() error {
		look := f.p.t.View.Stat
		if !follow {
			look = f.p.t.View.Lstat
		}
		i, err := look(name)
		if err == nil {
			st = described(i)
		}
		return err
	})
	return st, no
}

func described(i vfs.Info) sys.Stat_t {
	mode := fs.FileMode(i.Mode & 0o777)
	switch i.Mode & linux.S_IFMT {
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
	return sys.Stat_t{
		Dev: i.Dev, Ino: uint64(i.Ino), Mode: mode, Nlink: uint64(i.Nlink), Size: i.Size,
		Atim: i.Atime.UnixNano(), Mtim: i.Mtime.UnixNano(), Ctim: i.Ctime.UnixNano(),
	}
}

func (f *files) Mkdir(name string, perm fs.FileMode) ours.Errno {
	return f.try(func() error { return f.p.t.View.Mkdir(absolute(name), uint32(perm.Perm())) })
}

func (f *files) Chmod(name string, perm fs.FileMode) ours.Errno {
	return f.try(func() error { return f.p.t.View.Chmod(absolute(name), uint32(perm.Perm())) })
}

func (f *files) Rename(from, to string) ours.Errno {
	return f.try(func() error { return f.p.t.View.Rename(absolute(from), absolute(to)) })
}

func (f *files) Rmdir(name string) ours.Errno {
	return f.try(func() error { return f.p.t.View.Rmdir(absolute(name)) })
}

func (f *files) Unlink(name string) ours.Errno {
	return f.try(func() error { return f.p.t.View.Unlink(absolute(name)) })
}

func (f *files) Link(old, name string) ours.Errno {
	return f.try(func() error { return f.p.t.View.Link(absolute(old), absolute(name)) })
}

func (f *files) Symlink(target, name string) ours.Errno {
	return f.try(func() error { return f.p.t.View.Symlink(target, absolute(name)) })
}

func (f *files) Readlink(name string) (target string, no ours.Errno) {
	no = f.try(func() (err error) {
		target, err = f.p.t.View.Readlink(absolute(name))
		return err
	})
	return target, no
}

func (f *files) Utimens(name string, atim, mtim int64) ours.Errno {
	return f.try(func() error { return f.p.t.View.Chtimes(absolute(name), moment(atim), moment(mtim), true) })
}

// moment gives a time; the engine's word for "leave it" is a zero one.
func moment(ns int64) time.Time {
	if ns == ours.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// An open is an open file.
type open struct {
	ours.UnimplementedFile
	f      *files
	d      *kernel.Desc
	fd     int
	name   string
	append bool
}

func (o *open) info() (i vfs.Info, no ours.Errno) {
	no = o.f.try(func() (err error) {
		i, err = o.d.File.Info()
		return err
	})
	return i, no
}

func (o *open) Dev() (uint64, ours.Errno) {
	i, no := o.info()
	return i.Dev, no
}

func (o *open) Ino() (sys.Inode, ours.Errno) {
	i, no := o.info()
	return uint64(i.Ino), no
}

func (o *open) IsDir() (bool, ours.Errno) {
	i, no := o.info()
	return i.IsDir(), no
}

func (o *open) IsAppend() bool { return o.append }

func (o *open) Stat() (sys.Stat_t, ours.Errno) {
	i, no := o.info()
	return described(i), no
}

func (o *open) Read(b []byte) (n int, no ours.Errno) {
	no = o.f.try(func() (err error) {
		n, err = o.d.File.Read(o.f.p.t, b)
		return err
	})
	return n, no
}

func (o *open) Write(b []byte) (n int, no ours.Errno) {
	no = o.f.try(func() (err error) {
		o.f.p.t.Step(len(b) / 256)
		n, err = o.d.File.Write(o.f.p.t, b)
		return err
	})
	return n, no
}

func (o *open) at(op func(*vfs.File) (int, error)) (n int, no ours.Errno) {
	no = o.f.try(func() (err error) {
		f, ok := o.d.VFS()
		if !ok {
			return linux.EINVAL
		}
		n, err = op(f)
		return err
	})
	return n, no
}

func (o *open) Pread(b []byte, off int64) (int, ours.Errno) {
	return o.at(func(f *vfs.File) (int, error) { return f.ReadAt(b, off) })
}

func (o *open) Pwrite(b []byte, off int64) (int, ours.Errno) {
	return o.at(func(f *vfs.File) (int, error) { return f.WriteAt(b, off) })
}

func (o *open) Seek(off int64, whence int) (now int64, no ours.Errno) { //nolint:govet // stdmethods: the runtime's interface has this one
	no = o.f.try(func() (err error) {
		s, ok := o.d.File.(kernel.Seeker)
		if !ok {
			return linux.EINVAL
		}
		now, err = s.Seek(off, whence)
		return err
	})
	return now, no
}

func (o *open) Readdir(n int) (list []ours.Dirent, no ours.Errno) {
	if n < 0 {
		n = 1 << 20
	}
	no = o.f.try(func() error {
		f, ok := o.d.VFS()
		if !ok {
			return linux.ENOTDIR
		}
		entries, err := f.ReadDir(&o.f.p.t.View, n)
		o.f.p.t.Traverse(len(entries))
		for i := range entries {
			list = append(list, ours.Dirent{Ino: uint64(entries[i].Info.Ino), Name: entries[i].Name, Type: described(entries[i].Info).Mode.Type()})
		}
		return err
	})
	return list, no
}

func (o *open) Truncate(size int64) ours.Errno {
	_, no := o.at(func(f *vfs.File) (int, error) { return 0, f.Truncate(size) })
	return no
}

func (*open) Sync() ours.Errno     { return 0 }
func (*open) Datasync() ours.Errno { return 0 }

func (o *open) Utimens(atim, mtim int64) ours.Errno { return o.f.Utimens(o.name, atim, mtim) }

func (o *open) Close() ours.Errno {
	return o.f.try(func() error { return o.f.p.t.CloseFD(o.fd) })
}

// An own is an open file of the interpreter's own.
type own struct {
	ours.UnimplementedFile
	*entry
	off  int64
	next int // of the children
}

func (o *own) IsDir() (bool, ours.Errno) { return o.dir, 0 }

func (o *own) Dev() (uint64, ours.Errno) { return 1 << 40, 0 }

func (o *own) Ino() (sys.Inode, ours.Errno) { return o.ino, 0 }

func (o *own) Stat() (sys.Stat_t, ours.Errno) {
	if o.dir {
		return sys.Stat_t{Dev: 1 << 40, Ino: o.ino, Mode: fs.ModeDir | 0o555, Nlink: 2}, 0
	}
	return sys.Stat_t{Dev: 1 << 40, Ino: o.ino, Mode: 0o444, Nlink: 1, Size: o.size}, 0
}

func (o *own) Read(b []byte) (int, ours.Errno) {
	n, no := o.Pread(b, o.off)
	o.off += int64(n)
	return n, no
}

func (o *own) Pread(b []byte, off int64) (int, ours.Errno) {
	if o.dir {
		return 0, ours.EISDIR
	}
	if off < 0 || off >= o.size {
		return 0, 0
	}
	n, err := o.at.ReadAt(b[:min(int64(len(b)), o.size-off)], off)
	return n, errno(err)
}

func (o *own) Seek(off int64, whence int) (int64, ours.Errno) { //nolint:govet // as above
	switch whence {
	case io.SeekCurrent:
		off += o.off
	case io.SeekEnd:
		off += o.size
	}
	if off < 0 {
		return 0, ours.EINVAL
	}
	o.off, o.next = off, 0
	return off, 0
}

func (o *own) Readdir(n int) ([]ours.Dirent, ours.Errno) {
	rest := o.children[o.next:]
	if n > 0 && n < len(rest) {
		rest = rest[:n]
	}
	o.next += len(rest)
	return rest, 0
}

func (*own) Close() ours.Errno { return 0 }
