package guest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// files does what the host asks of the sandbox's files.
//
// Every change is made relative to a descriptor of the directory that holds
// the name, with links resolved by hand before, and follows no link at the
// name itself. So the guard is asked about exactly the entry that is changed,
// whatever the commands inside move about meanwhile. Links are resolved by
// what they say, never by the kernel's magic links in /proc, which would lead
// a host's write into the agent's own descriptors.
//
// The guard sees these operations: "write" (a file is made or written), "make"
// (a directory is made), "link" (a symbolic link is made), "chmod" and
// "remove". It does a rename itself.
type files struct {
	guard Guard // nil allows all
	names *names
}

const (
	maxName  = 4095 // bytes of a name: PATH_MAX without its NUL
	maxLinks = 40   // as the kernel
)

// A fileError says which operation on which name failed, and why in words.
type fileError struct {
	op, name string
	words    string
	kind     paddock.Kind
}

func (e *fileError) Error() string { return fmt.Sprintf("%s %q: %s", e.op, e.name, e.words) }
func (e *fileError) Unwrap() error { return e.kind }

// failed turns err into a fileError. One that has a kind keeps it.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var known *fileError
	if errors.As(err, &known) {
		return err
	}
	kind, words := classify(err)
	return &fileError{op, name, words, kind}
}

func invalid(op, name, words string) error {
	return &fileError{op, name, words, paddock.Invalid}
}

// classify is the one place that gives errors of the kernel their kinds.
func classify(err error) (paddock.Kind, string) {
	var kind paddock.Kind
	if errors.As(err, &kind) {
		return kind, err.Error()
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return paddock.Internal, err.Error()
	}
	switch errno {
	case syscall.ENOSPC:
		return paddock.Exhausted, "the disk is full"
	case syscall.EDQUOT:
		return paddock.Exhausted, "the disk quota is used up"
	case syscall.EFBIG:
		return paddock.Exhausted, "the file would be larger than is allowed"
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EMLINK:
		return paddock.Exhausted, errno.Error()
	case syscall.ENOENT:
		return paddock.NotFound, "does not exist"
	case syscall.EEXIST:
		return paddock.Exists, "is already there"
	case syscall.EACCES, syscall.EPERM:
		return paddock.Denied, errno.Error()
	case syscall.EROFS:
		return paddock.Denied, "is on a read-only file system"
	case syscall.EISDIR:
		return paddock.Invalid, "is a directory"
	case syscall.ENOTDIR:
		return paddock.Invalid, "is not a directory, or goes through something that is not one"
	case syscall.ENAMETOOLONG:
		return paddock.Invalid, "the name is too long"
	case syscall.ELOOP:
		return paddock.Invalid, "too many links, one after another"
	case syscall.EXDEV:
		return paddock.Invalid, "the new name is on another file system: copy it there, then remove it"
	case syscall.EINVAL, syscall.ENXIO, syscall.ENODEV, syscall.ESPIPE:
		return paddock.Invalid, errno.Error()
	case syscall.EAGAIN:
		return paddock.Invalid, "would block: it is not an ordinary file"
	case syscall.ENOTEMPTY:
		return paddock.Conflict, "the directory is not empty"
	case syscall.EBUSY, syscall.ETXTBSY:
		return paddock.Conflict, errno.Error()
	case syscall.EOPNOTSUPP, syscall.ENOSYS:
		return paddock.Unsupported, errno.Error()
	}
	return paddock.Internal, errno.Error()
}

// checkName refuses what cannot be a name.
func checkName(op string, raw []byte) (string, error) {
	name := string(raw)
	switch {
	case len(name) > maxName:
		return "", invalid(op, name[:64]+"…", fmt.Sprintf("the name is too long: %d bytes, at most %d", len(name), maxName))
	case strings.IndexByte(name, 0) >= 0:
		return "", invalid(op, name, "the name holds a NUL byte")
	case name == "" || name[0] != '/':
		return "", invalid(op, name, "the name is not absolute")
	}
	return name, nil
}

// tidy drops empty and "." components; "..", which links make meaningful, stays.
func tidy(name string) string {
	parts := components(name)
	if len(parts) > 0 && parts[len(parts)-1] == "." {
		parts = parts[:len(parts)-1]
	}
	return "/" + strings.Join(parts, "/")
}

// components splits a path. A trailing slash or dot, which asks for a
// directory, is kept as a last component ".".
func components(path string) []string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 && (strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.")) {
		parts = append(parts, ".")
	}
	return parts
}

// A place is an entry of an open directory. The directory itself, where a name
// ends in "/" or "..", is the entry ".".
type place struct {
	dir  *os.File // O_PATH
	base string
	kept *[]func() // what the guard keeps until the place is closed
}

func newPlace(dir *os.File, base string) place { return place{dir, base, new([]func())} }

func (p place) fd() int { return int(p.dir.Fd()) }

func (p place) close() {
	p.release()
	p.dir.Close()
}

// release ends what the guard keeps.
func (p place) release() {
	for _, done := range *p.kept {
		done()
	}
	*p.kept = nil
}

// A search says how to find a place.
type search struct {
	follow  bool // resolve a link at the last component
	parents bool // make missing directories before it
}

// find resolves name to a place. The last component need not exist.
func (f *files) find(name string, s search) (place, error) {
	w := walk{files: f, parents: s.parents, own: len(components(name)), dir: -1}
	if err := w.root(); err != nil {
		return place{}, err
	}
	base, err := w.run(components(name), s.follow)
	if err != nil {
		syscall.Close(w.dir)
		return place{}, err
	}
	return newPlace(os.NewFile(uintptr(w.dir), "directory of "+name), base), nil
}

// entry finds the place of a name that is to be made, moved or removed: not
// "/", and nothing that ends in "..". A trailing slash means nothing here.
func (f *files) entry(name string, s search) (place, error) {
	p, err := f.find(tidy(name), s)
	if err != nil {
		return place{}, err
	}
	if p.base == "." {
		p.close()
		return place{}, &fileError{"change", name, `"/", and names that end in "..", cannot be made, moved or removed`, paddock.Invalid}
	}
	return p, nil
}

// allow asks the guard, about a directory under its own name.
func (f *files) allow(op string, p place) error {
	if f.guard == nil {
		return nil
	}
	check := func(dir *os.File, base string) error {
		done, err := f.guard.Check(op, dir, base)
		if done != nil {
			*p.kept = append(*p.kept, done)
		}
		return err
	}
	if p.base != "." {
		return check(p.dir, p.base)
	}
	name, err := sys.PathOf(p.fd())
	if err != nil {
		return err
	}
	if name == "/" {
		return check(p.dir, p.base)
	}
	fd, err := sys.OpenDirAt(p.fd(), "..")
	if err != nil {
		return err
	}
	above := os.NewFile(uintptr(fd), "directory")
	defer above.Close()
	return check(above, path.Base(name))
}

// A walk goes down a path one directory at a time.
type walk struct {
	files   *files
	parents bool
	own     int // how many of the components to come are the caller's, not a link's
	dir     int
	links   int
}

func (w *walk) root() error {
	fd, err := sys.OpenDirAt(-1, "/")
	if err != nil {
		return err
	}
	w.move(fd)
	return nil
}

func (w *walk) move(to int) {
	if w.dir >= 0 {
		syscall.Close(w.dir)
	}
	w.dir = to
}

// run walks todo and gives the last component that is left, or ".".
func (w *walk) run(todo []string, follow bool) (string, error) {
	for made := 0; len(todo) > 0; {
		part, last := todo[0], len(todo) == 1
		switch {
		case part == ".":
			todo = todo[1:]
			continue
		case last && part != ".." && !follow:
			return part, nil
		case !last || part == "..":
			fd, err := sys.OpenDirAt(w.dir, part)
			if err == nil {
				w.move(fd)
				todo = todo[1:]
				continue
			}
			if err == syscall.ENOENT && part != ".." && w.parents && len(todo) <= w.own && made < maxName {
				made++
				if err := w.make(part); err != nil {
					return "", err
				}
				continue
			}
			if err != syscall.ENOTDIR && err != syscall.ELOOP {
				return "", err
			}
		}
		target, err := sys.ReadLinkAt(w.dir, part)
		switch {
		case last && (err == syscall.EINVAL || err == syscall.ENOENT):
			return part, nil
		case err == syscall.EINVAL:
			return "", syscall.ENOTDIR
		case err != nil:
			return "", err
		case target == "":
			return "", syscall.ENOENT
		}
		if w.links++; w.links > maxLinks {
			return "", syscall.ELOOP
		}
		if target[0] == '/' {
			if err := w.root(); err != nil {
				return "", err
			}
		}
		todo = append(components(target), todo[1:]...)
		w.own = min(w.own, len(todo)-len(components(target)))
	}
	return ".", nil
}

// make makes the missing directory name, unless another was faster.
func (w *walk) make(name string) error {
	fd, err := sys.OpenDirAt(w.dir, ".")
	if err != nil {
		return err
	}
	p := newPlace(os.NewFile(uintptr(fd), "directory"), name)
	defer p.close()
	if err := w.files.allow("make", p); err != nil {
		return err
	}
	if err := mkdir(p, 0o755); err != nil && err != syscall.EEXIST {
		return err
	}
	return nil
}

// mkdir makes a directory with exactly this mode, whatever the umask is.
func mkdir(p place, mode uint32) error {
	if err := sys.MkdirAt(p.fd(), p.base, mode); err != nil {
		return err
	}
	st, err := sys.StatAt(p.fd(), p.base)
	if err != nil {
		return err
	}
	if st.Mode&0o777 != mode&0o777 {
		return sys.ChmodAt(p.fd(), p.base, mode)
	}
	return nil
}
