package vfs

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A lazy file has contents that are made when they are first needed. It is
// shared by all trees that came from the one where it was put.
type lazy struct {
	info LowerInfo // its size is -1 until it is known
	load func() ([]byte, error)

	mu     sync.Mutex
	loaded atomic.Bool // set with mu held
	b      []byte      // guarded by mu until loaded, then constant
}

// Provide makes a regular file whose contents load gives when it is first
// opened or, if size is negative, described. An error of load is EIO, and load
// is called again the next time; after it gave contents it is not. It is
// called with nothing locked, and never twice at once. What it gives must not
// change anymore; it counts as disk space only when the file is written to.
func (v *View) Provide(path string, mode uint32, size int64, load func() ([]byte, error)) error {
	f := v.FS
	return f.write(func(t *trip) error {
		p, err := v.vacant(t, path, false)
		if err != nil {
			return err
		}
		n, err := v.add(p, linux.S_IFREG|mode&0o7777&^v.Umask)
		if err != nil {
			return err
		}
		n.lower = &lazy{info: LowerInfo{Mode: n.mode, Size: max(size, -1), Mtime: n.mtime.time()}, load: load}
		n.mine, n.size = true, max(size, 0)
		return nil
	})
}

func (l *lazy) known() bool { return l.info.Size >= 0 || l.loaded.Load() }

func (l *lazy) content() ([]byte, error) {
	if l.loaded.Load() {
		return l.b, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded.Load() {
		return l.b, nil
	}
	b, err := l.load()
	if err != nil {
		return nil, errno(err)
	}
	l.b = b
	l.loaded.Store(true)
	return b, nil
}

func (l *lazy) Stat() (LowerInfo, error) {
	i := l.info
	i.Lower = l
	if l.loaded.Load() || i.Size < 0 {
		b, err := l.content()
		if err != nil {
			return i, err
		}
		i.Size = int64(len(b))
	}
	return i, nil
}

func (*lazy) Lookup(string) (LowerInfo, error) { return LowerInfo{}, linux.ENOTDIR }

func (*lazy) List() ([]string, error) { return nil, linux.ENOTDIR }

func (l *lazy) Open() (LowerFile, error) {
	b, err := l.content()
	if err != nil {
		return nil, err
	}
	return heldFile{bytes.NewReader(b)}, nil
}

// A heldFile is an open file whose bytes are at hand.
type heldFile struct{ *bytes.Reader }

func (h heldFile) Size() (int64, error) { return h.Reader.Size(), nil }

func (heldFile) Close() error { return nil }

// A tree is a directory or file of another FS, as something that lies below.
type tree struct {
	fs   *FS
	dir  Ino
	name string
}

// Tree returns a directory or file of an FS, for [FS.Mount] in another one: what
// is changed there is not changed in f, and what is changed in f shows where
// it was not changed there. Devices and pipes do not open.
func (f *FS) Tree(path string) (Lower, error) {
	v := View{FS: f, Dir: Root}
	i, err := v.Stat(path)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		if err := v.Chdir(path); err != nil {
			return nil, err
		}
		return &tree{f, v.Dir, "."}, nil
	}
	real, err := v.Realpath(path)
	return &tree{f, Root, real}, err
}

func (x *tree) view() *View { return &View{FS: x.fs, Dir: x.dir} }

func (x *tree) Stat() (LowerInfo, error) {
	v := x.view()
	i, err := v.Lstat(x.name)
	if err != nil {
		return LowerInfo{}, err
	}
	l := LowerInfo{Mode: i.Mode, Size: i.Size, Mtime: i.Mtime, Lower: x}
	if i.IsLink() {
		l.Target, err = v.Readlink(x.name)
	}
	return l, err
}

func (x *tree) Lookup(name string) (LowerInfo, error) {
	v := x.view()
	if err := v.Chdir(x.name); err != nil {
		return LowerInfo{}, err
	}
	return (&tree{x.fs, v.Dir, name}).Stat()
}

func (x *tree) List() ([]string, error) { return x.view().Names(x.name) }

func (x *tree) Open() (LowerFile, error) {
	h, err := x.view().Open(x.name, linux.O_RDONLY|linux.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	i, err := h.Info()
	if err == nil && !i.IsRegular() {
		err = linux.EACCES
	}
	if err != nil {
		_ = h.Close() // it was not used
		return nil, err
	}
	return treeFile{h}, nil
}

type treeFile struct{ *File }

func (h treeFile) Size() (int64, error) {
	i, err := h.Info()
	return i.Size, err
}

// ReadAt reads as io.ReaderAt says.
func (h treeFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		m, err := h.File.ReadAt(p[n:], off+int64(n))
		n += m
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}
