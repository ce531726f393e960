package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A Host is a directory or file of the host, as something that lies below. It
// is read through an os.Root, one name at a time: a symbolic link of the host
// is never followed, but shown as a link of the simulated tree; a name that
// turns into a link between two looks at it is not there. Only regular files
// are opened, and none of /proc and its like. Nothing is ever written.
//
// Names linked to one file are separate files here. A Host follows what
// changes on the host, except where the tree above has its own.
type Host struct {
	top  *os.Root
	name string // of the one file, or empty
	dev  uint64 // the file system of the directory or file

	mu    sync.Mutex
	dirs  map[*hostFile]*hostDir // guarded by mu: directories that are open
	clock uint64                 // guarded by mu
	files int                    // guarded by mu: regular files that are open
}

// What a Host keeps open, and takes from the host at most.
const (
	maxHostDirs  = 64
	maxHostFiles = 1024
	maxHostNames = 1_000_000 // in one directory
	maxHostDepth = 1000
)

// HostDir returns a directory of the host for [FS.Mount]. The root stays the
// caller's, who closes it after the last FS that has it below.
func HostDir(root *os.Root) (*Host, error) {
	h := &Host{top: root}
	i, err := root.Lstat(".")
	if err != nil {
		return nil, errno(err)
	}
	if !i.IsDir() {
		return nil, linux.ENOTDIR
	}
	if err := realDir(root); err != nil {
		return nil, errno(err)
	}
	h.dev = device(i)
	return h, nil
}

// realDir is real for a directory.
func realDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return real(d)
}

// HostFile returns one regular file in a directory of the host, as HostDir.
func HostFile(root *os.Root, name string) (*Host, error) {
	i, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, errno(err)
	case i.Mode()&fs.ModeSymlink != 0:
		return nil, linux.ELOOP
	case !i.Mode().IsRegular():
		return nil, linux.EINVAL
	}
	h := &Host{top: root, name: name}
	f, err := h.openRegular(root, name)
	switch {
	case err == nil:
		return h, f.Close()
	case os.IsPermission(err):
		return nil, linux.EACCES
	}
	return nil, errno(err)
}

// Close releases directories that are kept open. The Host can still be used.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for x, d := range h.dirs {
		if d.refs == 0 {
			errs = append(errs, d.root.Close())
			delete(h.dirs, x)
		}
	}
	return errors.Join(errs...)
}

// self is the file or directory itself.
func (h *Host) self() *hostFile { return &hostFile{host: h, name: h.name} }

// Stat returns the attributes of the directory or file.
func (h *Host) Stat() (LowerInfo, error) {
	if h.name == "" {
		i, err := h.top.Lstat(".")
		if err != nil {
			return LowerInfo{}, errno(err)
		}
		return lowerInfo(i, h), nil
	}
	l, err := h.self().Stat()
	l.Lower = h
	return l, err
}

// Lookup returns the attributes of an entry of the directory.
func (h *Host) Lookup(name string) (LowerInfo, error) {
	if h.name != "" {
		return LowerInfo{}, linux.ENOTDIR
	}
	return (&hostFile{host: h, name: name, depth: 1}).Stat()
}

// List names the entries of the directory.
func (h *Host) List() ([]string, error) {
	if h.name != "" {
		return nil, linux.ENOTDIR
	}
	return list(h.top)
}

// Open opens the file.
func (h *Host) Open() (LowerFile, error) {
	if h.name == "" {
		return nil, linux.EISDIR
	}
	return h.self().Open()
}

// A hostFile is a file of any type below a Host's directory.
type hostFile struct {
	host  *Host
	dir   *hostFile // nil is the Host's own directory
	name  string
	depth int
}

// A hostDir is a directory that is open.
type hostDir struct {
	root *os.Root
	is   fs.FileInfo
	refs int
	used uint64
}

// in runs do in the directory of a file.
func (x *hostFile) in(do func(*os.Root) error) error {
	if x.dir == nil {
		return do(x.host.top)
	}
	return x.dir.inside(do)
}

// inside runs do in a directory itself.
func (x *hostFile) inside(do func(*os.Root) error) error {
	if x.depth > maxHostDepth {
		return linux.ENAMETOOLONG
	}
	var d *hostDir
	err := x.in(func(above *os.Root) error {
		var err error
		d, err = x.host.hold(x, above)
		return err
	})
	if err != nil {
		return err
	}
	defer x.host.back(x, d)
	return do(d.root)
}

// hold opens a directory that is no link, or takes the one that is open, if it
// still stands where it stood.
func (h *Host) hold(x *hostFile, above *os.Root) (*hostDir, error) {
	was, err := above.Lstat(x.name)
	if err != nil {
		return nil, err
	}
	if !was.IsDir() {
		return nil, linux.ENOTDIR
	}
	if d := h.kept(x, was); d != nil {
		return d, nil
	}
	// With the dot, the name is opened as a directory: had it become a pipe,
	// opening it would wait.
	root, err := above.OpenRoot(x.name + "/.")
	if err != nil {
		return nil, err
	}
	is, err := root.Lstat(".")
	if err == nil && !os.SameFile(was, is) {
		err = linux.ENOENT // it became a link, or another directory
	}
	if err == nil && device(is) != h.dev {
		err = realDir(root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return h.keep(x, &hostDir{root: root, is: is, refs: 1}), nil
}

// kept gives a directory that is open and is the one that stands there, or
// nil.
func (h *Host) kept(x *hostFile, was fs.FileInfo) *hostDir {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[x]
	if d == nil {
		return nil
	}
	if !os.SameFile(d.is, was) {
		delete(h.dirs, x)
		if d.refs == 0 {
			_ = d.root.Close() // it was only read
		}
		return nil
	}
	d.refs++
	h.clock++
	d.used = h.clock
	return d
}

// keep keeps a directory open, as long as there are not many.
func (h *Host) keep(x *hostFile, d *hostDir) *hostDir {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	d.used = h.clock
	if h.dirs == nil {
		h.dirs = map[*hostFile]*hostDir{}
	}
	if h.dirs[x] == nil && (len(h.dirs) < maxHostDirs || h.evict()) {
		h.dirs[x] = d
	}
	return d // one that is not kept is closed when it comes back
}

// evict closes the directory that was not used for the longest time.
func (h *Host) evict() bool {
	var oldest *hostFile
	for x, d := range h.dirs {
		if d.refs == 0 && (oldest == nil || d.used < h.dirs[oldest].used) {
			oldest = x
		}
	}
	if oldest == nil {
		return false
	}
	_ = h.dirs[oldest].root.Close() // it was only read
	delete(h.dirs, oldest)
	return true
}

func (h *Host) back(x *hostFile, d *hostDir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.refs--; d.refs == 0 && h.dirs[x] != d {
		_ = d.root.Close() // it was only read
	}
}

// Stat returns the attributes of a file.
func (x *hostFile) Stat() (LowerInfo, error) {
	var l LowerInfo
	err := x.in(func(dir *os.Root) error {
		i, err := dir.Lstat(x.name)
		if err != nil {
			return err
		}
		l = lowerInfo(i, x)
		if l.Mode&linux.S_IFMT == linux.S_IFLNK {
			l.Target, err = dir.Readlink(x.name)
		}
		return err
	})
	return l, errno(err)
}

// Lookup returns the attributes of an entry of a directory.
func (x *hostFile) Lookup(name string) (LowerInfo, error) {
	return (&hostFile{host: x.host, dir: x, name: name, depth: x.depth + 1}).Stat()
}

// List names the entries of a directory.
func (x *hostFile) List() ([]string, error) {
	var names []string
	err := x.inside(func(dir *os.Root) error {
		var err error
		names, err = list(dir)
		return err
	})
	return names, errno(err)
}

func list(dir *os.Root) ([]string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, errno(err)
	}
	defer d.Close()
	var all []string
	for {
		names, err := d.Readdirnames(4096)
		all = append(all, names...)
		switch {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, errno(err)
		case len(all) > maxHostNames:
			return nil, linux.EOVERFLOW
		}
	}
}

// Open opens a regular file.
func (x *hostFile) Open() (LowerFile, error) {
	if err := x.host.count(1); err != nil {
		return nil, err
	}
	var f *os.File
	err := x.in(func(dir *os.Root) error {
		var err error
		for range 3 { // it may be replaced by renaming while it is opened
			if f, err = x.host.openRegular(dir, x.name); err != linux.ESTALE {
				return err
			}
		}
		return err
	})
	if err != nil {
		_ = x.host.count(-1) // giving back does not fail
		return nil, errno(err)
	}
	return &hostOpen{f, x.host}, nil
}

// openRegular opens a regular file that is no link. ESTALE says that the name
// was another file a moment before.
func (h *Host) openRegular(dir *os.Root, name string) (*os.File, error) {
	was, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !was.Mode().IsRegular() {
		return nil, linux.EACCES
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	switch {
	case err != nil:
	case !is.Mode().IsRegular():
		err = linux.EACCES
	case !os.SameFile(was, is):
		err = linux.ESTALE
	case device(is) != h.dev || h.name != "":
		err = real(f)
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close() // it was not read
	return nil, err
}

func (h *Host) count(n int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > 0 && h.files >= maxHostFiles {
		return linux.ENFILE
	}
	h.files += n
	return nil
}

// A hostOpen is a regular file that is open.
type hostOpen struct {
	*os.File
	host *Host
}

// Size returns how long the file is now.
func (o *hostOpen) Size() (int64, error) {
	i, err := o.Stat()
	if err != nil {
		return 0, errno(err)
	}
	return i.Size(), nil
}

// Close closes the file.
func (o *hostOpen) Close() error {
	_ = o.host.count(-1) // giving back does not fail
	return o.File.Close()
}

// lowerInfo describes a file of the host. Set-id bits mean nothing here.
func lowerInfo(i fs.FileInfo, l Lower) LowerInfo {
	m := i.Mode()
	mode := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		mode |= linux.S_ISVTX
	}
	size := i.Size()
	switch {
	case m.IsRegular():
		mode |= linux.S_IFREG
	case m.IsDir():
		mode |= linux.S_IFDIR
	case m&fs.ModeSymlink != 0:
		mode, size = linux.S_IFLNK|0o777, 0
	case m&fs.ModeNamedPipe != 0:
		mode |= linux.S_IFIFO
	case m&fs.ModeSocket != 0:
		mode |= linux.S_IFSOCK
	case m&fs.ModeCharDevice != 0:
		mode |= linux.S_IFCHR
	default:
		mode |= linux.S_IFBLK
	}
	return LowerInfo{Mode: mode, Size: size, Mtime: i.ModTime(), Lower: l}
}
