package layer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A walk reads the files of a box from the host's side. A guest made them, and nothing changes them meanwhile. Each name
// is looked up in an open directory, and no link is followed.
type walk struct {
	dirs []string                                     // directories whose files count, as paths of entries; none is in another
	stub func(path string, e *snapshot.Entry) bool    // whether an entry only holds a place for a mount
	own  func(uid, gid uint32) (u, g uint32, ok bool) // the owner inside

	ctx    context.Context
	yield  func(snapshot.Entry, error) bool
	shared map[uint64]int64 // numbers of files with several names, by inode
}

const (
	deepest     = 1000    // nesting of directories, each of which is open meanwhile
	mostExtents = 1 << 18 // of one file; more are one
)

// errStop ends a walk whose reader has enough.
var errStop = errors.New("stop")

// entries yields the files of a box whose private file system root is.
func (w walk) entries(ctx context.Context, root *os.File) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		w.ctx, w.yield, w.shared = ctx, yield, map[uint64]int64{} //nolint:fatcontext // the copy lives as long as the call
		dirs := slices.SortedFunc(slices.Values(w.dirs), snapshot.Compare)
		for _, dir := range dirs {
			err := w.place(root, dir)
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(snapshot.Entry{}, err)
				return
			}
		}
	}
}

// place gives one of the directories.
func (w *walk) place(root *os.File, path string) error {
	at, err := sys.OpenPath(root, path, true)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the directory /%s of the sandbox: %w: %w", path, err, paddock.Conflict)
	}
	defer at.Close()
	fd, err := sys.Descriptor(at)
	if err != nil {
		return err
	}
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return told(path, err)
	}
	if st.Mode&sys.TypeMask != syscall.S_IFDIR { // a link at the end is opened itself
		return fmt.Errorf("/%s of the sandbox is no directory any more: %w", path, paddock.Conflict)
	}
	return w.entry(fd, "", path, 0)
}

// entry gives a name of an open directory, and what is below. The empty name is the directory itself.
func (w *walk) entry(dir int, name, path string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	st, err := sys.StatAt(dir, name)
	if err != nil {
		return told(path, err)
	}
	e := snapshot.Entry{Path: path, Mode: st.Mode & 0o7777, ModTime: time.Unix(0, st.ModTime)}
	var ok bool
	if e.UID, e.GID, ok = w.own(st.UID, st.GID); !ok {
		return told(path, fmt.Errorf("it belongs to user %d and group %d of the host, who are nobody in the sandbox: %w", st.UID, st.GID, paddock.Internal))
	}
	if e.Attributes, err = attributes(dir, name); err != nil {
		return told(path, err)
	}
	kind := st.Mode & sys.TypeMask
	if kind != syscall.S_IFDIR && st.Links > 1 {
		if first, ok := w.shared[st.Ino]; ok {
			return w.give(snapshot.Entry{Path: path, Kind: snapshot.Same, First: first})
		}
	}
	switch kind {
	case syscall.S_IFDIR:
		return w.dir(dir, name, &e, depth)
	case syscall.S_IFREG:
		e.Kind, e.Size = snapshot.File, st.Size
		if st.Size > 0 {
			e.Data = contents(dir, name, path, st)
		}
	case syscall.S_IFLNK:
		e.Kind = snapshot.Link
		if e.Target, err = sys.ReadLinkAt(dir, name); err != nil {
			return told(path, err)
		}
	case syscall.S_IFIFO:
		e.Kind = snapshot.Pipe
	case syscall.S_IFSOCK:
		return nil // whoever listens does not begin with the files
	default:
		return told(path, fmt.Errorf("it is a device, which nobody in this sandbox can make: %w", paddock.Internal))
	}
	if w.stub(path, &e) {
		return nil
	}
	if st.Links > 1 {
		e.Shared = true
		w.shared[st.Ino] = int64(len(w.shared))
	}
	return w.give(e)
}

func (w *walk) dir(dir int, name string, e *snapshot.Entry, depth int) error {
	if depth >= deepest {
		return fmt.Errorf("directories of the sandbox are nested more than %d deep: %w", deepest, paddock.Exhausted)
	}
	open := name
	if open == "" {
		open = "."
	}
	fd, err := sys.OpenAt(dir, open, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return told(e.Path, err)
	}
	d := os.NewFile(uintptr(fd), "directory")
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return told(e.Path, err)
	}
	e.Kind = snapshot.Dir
	if len(names) > 0 || !w.stub(e.Path, e) {
		if err := w.give(*e); err != nil {
			return err
		}
	}
	slices.Sort(names)
	for _, n := range names {
		if err := w.entry(fd, n, e.Path+"/"+n, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) give(e snapshot.Entry) error {
	if !w.yield(e, nil) {
		return errStop
	}
	return nil
}

// attributes returns the extended attributes of a file that a snapshot holds.
func attributes(dir int, name string) (map[string]string, error) {
	all, err := sys.AttributesAt(dir, name)
	if err != nil {
		return nil, err
	}
	var kept map[string]string
	for key, value := range all {
		switch {
		case strings.HasPrefix(key, "user."):
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		case strings.HasPrefix(key, "system.posix_acl_"):
			return nil, fmt.Errorf("it has an access control list, which a snapshot of this tier cannot hold; `setfacl -b` removes it: %w", paddock.Unsupported)
		}
	}
	return kept, nil
}

// contents yields the contents of a file, without its holes.
func contents(dir int, name, path string, st sys.FileStat) iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		err := read(dir, name, st, func(at int64, b []byte) bool { return yield(snapshot.Extent{Offset: at, Bytes: b}, nil) })
		if err != nil {
			yield(snapshot.Extent{}, told(path, err))
		}
	}
}

func read(dir int, name string, st sys.FileStat, yield func(int64, []byte) bool) error {
	fd, err := sys.OpenAt(dir, name, syscall.O_RDONLY, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	now, err := sys.StatAt(fd, "")
	if err != nil {
		return err
	}
	if now.Ino != st.Ino || now.Mode != st.Mode || now.Size != st.Size {
		return fmt.Errorf("it changed meanwhile: %w", paddock.Conflict)
	}
	extents, err := sys.Extents(f, st.Size, mostExtents)
	if err != nil {
		return err
	}
	buf := make([]byte, readSize)
	for _, x := range extents {
		for at, end := x.Offset, x.Offset+x.Length; at < end; {
			n, err := f.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
			if n == 0 {
				if errors.Is(err, io.EOF) {
					return fmt.Errorf("it got shorter meanwhile: %w", paddock.Conflict)
				}
				return err
			}
			if !yield(at, buf[:n]) {
				return nil
			}
			at += int64(n)
		}
	}
	return nil
}

// told is an error about a file of the sandbox.
func told(path string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("its owner may not read it; `chmod u+r` for a file, `chmod u+rx` for a directory: %w", paddock.Denied)
	}
	return fmt.Errorf("%.300q of the sandbox: %w", "/"+path, err)
}
