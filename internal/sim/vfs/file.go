package vfs

import (
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A File is an open file of any type. Its offset is its own; duplicates of a
// descriptor share one File. It is safe for many goroutines.
type File struct {
	fs    *FS
	ino   Ino
	flags int
	drop  bool // writing takes set-id bits away: the user is not 0

	dynamic bool
	node    *node  // of a dynamic file
	made    []byte // of a dynamic file: what it held when it was opened
	opened  Info   // of a dynamic file
	handle  Handle // that it was opened by, if the file is not one of the FS

	below Lower // of a file that was not copied up when it was opened

	mu    sync.Mutex
	off   int64     // guarded by mu
	lower LowerFile // guarded by mu
	after string    // guarded by mu: the name that ReadDir gave last
	trip  *trip     // guarded by mu: what ReadDir knows of below
	done  bool      // guarded by mu
}

// Flags returns what the file was opened with.
func (h *File) Flags() int { return h.flags }

// Ino returns the file's number. It is 0 for a dynamic file.
func (h *File) Ino() Ino { return h.ino }

// Handle returns the link that led to a file outside of the FS, or nil.
func (h *File) Handle() Handle { return h.handle }

// Info returns the attributes of the file as it is now.
func (h *File) Info() (Info, error) {
	if h.dynamic {
		return h.opened, nil
	}
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	n, err := h.fs.get(h.ino)
	if err != nil {
		return Info{}, err
	}
	return n.info(), nil
}

// Held tells how many bytes an open file keeps in memory by itself: those of a file that is made when it is opened.
func (h *File) Held() int { return cap(h.made) }

// Read reads from the offset on, which it moves. At the end it is io.EOF.
func (h *File) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.readAt(p, h.off)
	h.off += int64(n)
	return n, err
}

// ReadAt reads at an offset. Unlike io.ReaderAt says, less than asked for is
// no error; the end is io.EOF.
func (h *File) ReadAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readAt(p, off)
}

func (h *File) readAt(p []byte, off int64) (int, error) {
	switch {
	case h.done, h.flags&linux.O_ACCMODE == linux.O_WRONLY:
		return 0, linux.EBADF
	case off < 0:
		return 0, linux.EINVAL
	case h.dynamic && h.opened.IsDir():
		return 0, linux.EISDIR
	case h.dynamic:
		if off >= int64(len(h.made)) {
			return 0, io.EOF
		}
		return copy(p, h.made[off:]), nil
	}
	n, err, below := h.readMemory(p, off)
	if !below {
		return n, err
	}
	n, err = h.lower.ReadAt(p, off)
	if n > 0 && err == io.EOF {
		err = nil
	}
	if err != nil && err != io.EOF {
		err = errno(err)
	}
	return n, err
}

// readMemory reads what is in memory. below says that it is not.
func (h *File) readMemory(p []byte, off int64) (n int, err error, below bool) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	x, err := h.fs.get(h.ino)
	switch {
	case err != nil && h.lower != nil:
		return 0, nil, true
	case err != nil:
		return 0, err, false
	case x.isDir():
		return 0, linux.EISDIR, false
	case x.lower != nil:
		return 0, nil, h.lower != nil
	case len(p) == 0:
		return 0, nil, false
	}
	n, err = x.readAt(p, off)
	return n, err, false
}

// Write writes at the offset, which it moves; with O_APPEND at the end.
func (h *File) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, end, err := h.writeAt(p, h.off, h.flags&linux.O_APPEND != 0)
	if n > 0 {
		h.off = end
	}
	return n, err
}

// WriteAt writes at an offset.
func (h *File) WriteAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, _, err := h.writeAt(p, off, false)
	return n, err
}

func (h *File) writeAt(p []byte, off int64, atEnd bool) (n int, end int64, err error) {
	if h.done || h.flags&linux.O_ACCMODE == linux.O_RDONLY || h.dynamic {
		return 0, off, linux.EBADF
	}
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	x, err := f.get(h.ino)
	if err != nil {
		return 0, off, err
	}
	if atEnd {
		off = x.size
	}
	if off < 0 || !x.isRegular() {
		return 0, off, linux.EINVAL
	}
	x = f.owned(x)
	n, err = f.writeAt(x, p, off)
	if n > 0 {
		f.touch(x)
		if h.drop {
			x.dropSetID()
		}
		f.tellFile(Written, x)
	}
	return n, off + int64(n), err
}

// Truncate sets the file's size.
func (h *File) Truncate(size int64) error {
	if h.flags&linux.O_ACCMODE == linux.O_RDONLY || h.dynamic || size < 0 {
		return linux.EINVAL
	}
	f := h.fs
	return f.write(func(*trip) error {
		n, err := f.get(h.ino)
		switch {
		case err != nil:
			return err
		case !n.isRegular():
			return linux.EINVAL
		}
		return f.truncate(n, size, h.drop)
	})
}

// Seek moves the offset, as io.Seeker says. Beside its three ways there are
// [SeekData] and [SeekHole].
func (h *File) Seek(off int64, whence int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size, err := h.size(whence)
	if err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += h.off
	case io.SeekEnd:
		off += size
	case SeekData, SeekHole:
		if off < 0 || off >= size {
			return 0, linux.ENXIO
		}
		if off, err = h.next(off, size, whence == SeekData); err != nil {
			return 0, err
		}
	default:
		return 0, linux.EINVAL
	}
	if off < 0 {
		return 0, linux.EINVAL
	}
	if h.opened.IsDir() || off == 0 {
		h.after, h.trip = "", nil
	}
	h.off = off
	return off, nil
}

// Ways of Seek that Linux has: to the next byte that is written, or that is
// in a hole. The end of a file is a hole.
const (
	SeekData = 3
	SeekHole = 4
)

func (h *File) size(whence int) (int64, error) {
	if whence == io.SeekStart || whence == io.SeekCurrent {
		return 0, nil
	}
	if h.dynamic {
		return int64(len(h.made)), nil
	}
	i, err := h.Info()
	return i.Size, err
}

func (h *File) next(off, size int64, data bool) (int64, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	n := h.fs.nodes.get(uint64(h.ino))
	if n == nil || n.lower != nil || !n.isRegular() {
		if data {
			return off, nil
		}
		return size, nil
	}
	to := n.nextData(off, data)
	if data && to >= n.size {
		return 0, linux.ENXIO
	}
	return to, nil
}

// Path names the file by the name that it got last, or is ENOENT where that
// is gone.
func (h *File) Path() (string, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	return h.LockedPath()
}

// LockedPath is Path for a [Dynamic], which is called with the FS locked.
func (h *File) LockedPath() (string, error) {
	n := h.node
	if n == nil {
		var err error
		if n, err = h.fs.get(h.ino); err != nil {
			return "", err
		}
	}
	return h.fs.path(n)
}

// ReadDir returns the next entries of a directory, up to most, in order of
// bytes; none means that there are no more. What is made or removed meanwhile
// may be seen or not.
func (h *File) ReadDir(v *View, most int) ([]Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return nil, linux.EBADF
	}
	var entries []Entry
	f := h.fs
	err := f.read(func(t *trip) error {
		if t == nil {
			t = h.trip
		}
		h.trip = t
		d := h.node
		if d == nil {
			var err error
			if d, err = f.get(h.ino); err != nil {
				return err
			}
		}
		if !d.isDir() {
			return linux.ENOTDIR
		}
		if h.after == "" {
			if err := t.list(d); err != nil {
				return err
			}
		}
		var err error
		entries, err = f.list(t, v, d, h.after, max(most, 1))
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		h.after = entries[len(entries)-1].Name
	}
	return entries, nil
}

// Close releases the file. Closing twice is fine.
func (h *File) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return nil
	}
	h.done, h.trip = true, nil
	if h.lower != nil {
		_ = h.lower.Close() // it was only read
	}
	if !h.dynamic {
		h.fs.drop(h.ino)
	}
	return nil
}
