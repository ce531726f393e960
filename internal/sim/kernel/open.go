package kernel

import (
	"crypto/rand"
	"io"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Device numbers, as in Linux.
const (
	DevNull    = 1<<8 | 3
	DevZero    = 1<<8 | 5
	DevFull    = 1<<8 | 7
	DevRandom  = 1<<8 | 8
	DevURandom = 1<<8 | 9
	DevTTY     = 5 << 8
)

// Open opens a file of any kind, by the flags of open(2). /dev/fd/N,
// /dev/stdin and its like, and /proc/self/fd/N open the file behind the task's
// own descriptor anew where it is on the disk, as in Linux, and else are the
// descriptor again. Opening a named pipe waits for the other end.
func (t *Task) Open(path string, flags int, mode uint32) (*Desc, error) {
	if _, ok := OwnFD(path); ok {
		flags &^= linux.O_CREAT // nothing is made under such a name
	}
	f, err := t.View.Open(path, flags, mode)
	if err != nil {
		return t.ownFD(path, err)
	}
	if l, ok := f.Handle().(*fdLink); ok {
		_ = f.Close()
		return l.desc, nil
	}
	i, err := f.Info()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFDIR:
		return NewDesc(&diskFile{f}, path).pay(t, f.Held())
	case linux.S_IFIFO:
		return t.openFifo(f, path)
	case linux.S_IFCHR:
		_ = f.Close()
		if i.Rdev == DevTTY {
			return t.openTTY()
		}
		return NewDesc(&device{i}, path).pay(t, 0)
	}
	_ = f.Close()
	return nil, linux.ENXIO
}

// ownFD is Open of a name for a descriptor in a tree that has no /dev or /proc.
func (t *Task) ownFD(path string, err error) (*Desc, error) {
	if fd, ok := OwnFD(path); ok && (err == linux.ENOENT || err == linux.ENOTDIR) {
		if d := t.FD(fd); d != nil {
			return d, nil
		}
	}
	return nil, err
}

// OpenFD opens a file at the lowest free descriptor from least on.
func (t *Task) OpenFD(path string, flags int, mode uint32, least int) (int, error) {
	d, err := t.Open(path, flags, mode)
	if err != nil {
		return 0, err
	}
	fd, err := t.AddFD(d, least, false)
	if err != nil {
		d.Drop()
	}
	return fd, err
}

// OwnFD returns the descriptor that a path names: /dev/fd/N, /dev/stdin and its
// like, /proc/self/fd/N.
func OwnFD(path string) (int, bool) {
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if n, ok := strings.CutPrefix(path, dir); ok {
			fd, err := strconv.Atoi(n)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}

func (t *Task) openTTY() (*Desc, error) {
	for _, fd := range t.FDs() {
		if _, ok := t.FD(fd).File.(Terminal); ok {
			return t.FD(fd), nil
		}
	}
	return nil, linux.ENXIO
}

// A diskFile is a file or directory of the FS.
type diskFile struct{ f *vfs.File }

// VFS returns the file below a descriptor, where it is one of the FS.
func (d *Desc) VFS() (*vfs.File, bool) {
	f, ok := d.File.(*diskFile)
	if !ok {
		return nil, false
	}
	return f.f, true
}

// onDisk returns the file of the FS below a descriptor, a named pipe's too.
func (d *Desc) onDisk() (*vfs.File, bool) {
	switch f := d.File.(type) {
	case *diskFile:
		return f.f, true
	case *fifo:
		return f.file, true
	}
	return nil, false
}

func (f *diskFile) Read(_ *Task, p []byte) (int, error) { return f.f.Read(p) }

func (f *diskFile) Write(t *Task, p []byte) (int, error) {
	var n int
	var err error
	part := p
	if t != nil && t.rlimit.size > 0 {
		part, err = f.fit(t, p)
	}
	if err == nil {
		if n, err = f.f.Write(part); err == nil && n < len(p) {
			err = linux.EFBIG
		}
	}
	if err == linux.EFBIG && t != nil {
		t.Signal(linux.SIGXFSZ)
		t.Check()
	}
	return n, err
}

func (f *diskFile) Seek(off int64, whence int) (int64, error) { return f.f.Seek(off, whence) }

func (f *diskFile) Info() (vfs.Info, error) { return f.f.Info() }

func (f *diskFile) Close() { _ = f.f.Close() }

type device struct{ i vfs.Info }

func (d *device) Read(_ *Task, p []byte) (int, error) {
	switch d.i.Rdev {
	case DevNull:
		return 0, io.EOF
	case DevZero, DevFull:
		clear(p)
		return len(p), nil
	case DevRandom, DevURandom:
		return rand.Read(p)
	}
	return 0, linux.ENXIO
}

func (d *device) Write(_ *Task, p []byte) (int, error) {
	switch d.i.Rdev {
	case DevNull, DevZero, DevRandom, DevURandom:
		return len(p), nil
	case DevFull:
		return 0, linux.ENOSPC
	}
	return 0, linux.ENXIO
}

func (d *device) Seek(int64, int) (int64, error) { return 0, nil }

func (d *device) Info() (vfs.Info, error) { return d.i, nil }

func (d *device) Close() {}

// openFifo joins a named pipe and waits for the other end.
func (t *Task) openFifo(f *vfs.File, path string) (*Desc, error) {
	k := t.K
	read := f.Flags()&linux.O_ACCMODE != linux.O_WRONLY
	write := f.Flags()&linux.O_ACCMODE != linux.O_RDONLY
	k.mu.Lock()
	p, ok := k.fifos[f.Ino()]
	if !ok {
		p = &pipe{opened: make(chan struct{})}
		p.changed = func() { k.forget(f.Ino(), p) }
		k.fifos[f.Ino()] = p
	}
	p.mu.Lock()
	if read {
		p.readers++
		p.readOpens++
	}
	if write {
		p.writers++
		p.writeOpens++
	}
	joined, reads, writes := p.readers > 0 && p.writers > 0, p.readOpens, p.writeOpens
	close(p.opened)
	p.opened = make(chan struct{})
	p.mu.Unlock()
	k.mu.Unlock()
	end := &fifo{file: f, p: p, read: read, write: write}
	d, err := NewDesc(end, path).pay(t, 0)
	if err != nil {
		return nil, err
	}
	for {
		p.mu.Lock()
		// The other end may have come and gone again: it was there.
		joined = joined || p.readOpens > reads && write || p.writeOpens > writes && read
		opened := p.opened
		p.mu.Unlock()
		if joined {
			return d, nil
		}
		if f.Flags()&linux.O_NONBLOCK != 0 {
			if read {
				return d, nil
			}
			d.Drop()
			return nil, linux.ENXIO
		}
		if err := t.awaitOpen(d, opened); err != nil {
			return nil, err
		}
	}
}

// awaitOpen waits, and lets go of d if the wait ends otherwise.
func (t *Task) awaitOpen(d *Desc, opened <-chan struct{}) (err error) {
	ok := false
	t.clock.stop(t.Run)
	defer func() {
		t.clock.start()
		if !ok {
			d.Drop()
		}
	}()
	for {
		t.Check()
		if t.caught != 0 {
			return linux.EINTR
		}
		select {
		case <-opened:
			ok = true
			return nil
		case <-t.wake:
		}
	}
}

func (k *Kernel) forget(ino vfs.Ino, p *pipe) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == 0 && p.writers == 0 && k.fifos[ino] == p {
		delete(k.fifos, ino)
	}
}

// A fifo is an end of a named pipe.
type fifo struct {
	file        *vfs.File
	p           *pipe
	read, write bool
}

func (f *fifo) Read(t *Task, b []byte) (int, error) {
	if !f.read {
		return 0, linux.EBADF
	}
	return (&pipeReader{f.p}).Read(t, b)
}

func (f *fifo) Write(t *Task, b []byte) (int, error) {
	if !f.write {
		return 0, linux.EBADF
	}
	return (&pipeWriter{f.p}).Write(t, b)
}

func (f *fifo) Info() (vfs.Info, error) { return f.file.Info() }

func (f *fifo) Close() {
	r, w := 0, 0
	if f.read {
		r = 1
	}
	if f.write {
		w = 1
	}
	f.p.close(r, w)
	_ = f.file.Close()
}
