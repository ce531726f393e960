package step

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// list returns the names in a directory in order, and whether there are more than most, or of more bytes than size. This user's own directories that
// nobody may read are made readable first if open says so.
func (t *tree) list(path string, most, size int, open bool) (names []string, more bool, err error) {
	fd, err := t.openFile(cmp.Or(path, "."), os.O_RDONLY|syscall.O_DIRECTORY)
	if open && errors.Is(err, syscall.EACCES) {
		if err := t.unlock(path, 0o700); err != nil {
			return nil, false, err
		}
		fd, err = t.openFile(cmp.Or(path, "."), os.O_RDONLY|syscall.O_DIRECTORY)
	}
	if err != nil {
		return nil, false, kinded(err)
	}
	d := os.NewFile(uintptr(fd), path)
	defer d.Close()
	for len(names) <= most && size >= 0 {
		some, err := d.Readdirnames(min(1000, most+1-len(names)))
		names = append(names, some...)
		for _, name := range some {
			size -= len(name)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, kinded(err)
		}
	}
	more = len(names) > most || size < 0
	slices.Sort(names)
	return names[:min(len(names), max(most, 0))], more, nil
}

// unlock adds permissions to a file of this user's own.
func (t *tree) unlock(path string, mode uint32) error {
	return t.in(path, func(dir int, name string) error {
		now, err := sys.AttrAt(dir, name)
		if err != nil {
			return err
		}
		return sys.ChmodAt(dir, name, now.Mode&0o7777|mode)
	})
}

// laid returns what an overlay means by a file of its upper layer.
func (t *tree) laid(path string, s *State) (l laid, err error) {
	err = t.in(path, func(dir int, name string) error {
		a, err := sys.AttrAt(dir, name)
		if err != nil {
			return err
		}
		l.whiteout = a.Mode&syscall.S_IFMT == syscall.S_IFCHR && a.Rdev == 0
		if s.Kind != Dir && s.Kind != File {
			return nil
		}
		all, err := sys.AttributesAt(dir, name)
		if errors.Is(err, syscall.EACCES) { // they are read as contents are
			if err := sys.ChmodAt(dir, name, a.Mode&0o7777|0o700); err != nil {
				return err
			}
			all, err = sys.AttributesAt(dir, name)
		}
		if err != nil {
			return err
		}
		l.read(all)
		return nil
	})
	return l, err
}

// identity tells which directory is at a path, of which s is the state.
func (t *tree) identity(path string, s *State) identity {
	id := identity{ino: s.Ino}
	_ = t.in(path, func(dir int, name string) (err error) {
		id.born, err = sys.BornAt(dir, name)
		return err // where it is not known, the number has to do
	})
	return id
}

// handle returns the handle of a file as an overlay keeps it. It is an error if its file system has none.
func (t *tree) handle(path string) (string, error) {
	fd, err := t.openPlace(path)
	if err != nil {
		return "", kinded(err)
	}
	defer sys.Close(fd)
	kind, handle, err := sys.HandleOf(fd)
	if err != nil {
		return "", err
	}
	return string([]byte{byte(kind)}) + string(handle), nil
}

// removeLayer removes a directory in a root with all that is in it, of which a sandbox may have made any tree: deep ones are
// moved up before they are removed, so that no path and no number of open files grows with them.
func removeLayer(root *os.Root, dir string) error {
	top, err := root.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	at := int(top.Fd())
	empty := func(fd int, name string) error {
		if a, err := sys.AttrAt(fd, name); err != nil || a.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			return cmp.Or(err, sys.UnlinkAt(fd, name))
		}
		if sys.RmdirAt(fd, name) == nil {
			return nil
		}
		if err := sys.ChmodAt(fd, name, 0o700); err != nil {
			return err
		}
		if fd == at {
			return nil // with what is in it, in its turn
		}
		return sys.RenameAt(fd, name, at, rand.Text())
	}
	for {
		names, err := top.Readdirnames(-1)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			return root.Remove(dir)
		}
		for _, name := range names {
			if err := empty(at, name); err != nil {
				return err
			}
			fd, err := sys.OpenAt(at, name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
			if errors.Is(err, syscall.ENOENT) {
				continue
			}
			if err != nil {
				return err
			}
			err = inside(fd, func(sub string) error { return empty(fd, sub) })
			if err = cmp.Or(err, sys.RmdirAt(at, name)); err != nil {
				return err
			}
		}
		if _, err := top.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// inside calls do with the name of each file in a directory that is open as fd, and closes it.
func inside(fd int, do func(name string) error) error {
	d := os.NewFile(uintptr(fd), "layer")
	defer d.Close()
	for {
		names, err := d.Readdirnames(1000)
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// furnish makes the directories of a layer over a directory of the host, which look like it.
func furnish(dir, lower string) error {
	st, err := os.Stat(lower)
	if err != nil {
		return err
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if at := mountBelow(string(table), lower); at != "" {
		return fmt.Errorf("something is mounted at %q, which a layer over %s does not show; unmount it, or name directories that hold no mount: %w", at, lower, paddock.Unsupported)
	}
	for _, name := range []string{"", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	upper := filepath.Join(dir, "upper")
	f, err := os.Open(upper)
	if err != nil {
		return err
	}
	defer f.Close()
	const probe = "user.paddock.probe"
	if err := sys.SetAttribute(f, probe, "y"); err != nil {
		return fmt.Errorf("the file system of %s has no extended attributes of users, which a layer needs; put that directory on a disk that has them, such as ext4: %w: %w", dir, err, paddock.Unsupported)
	}
	return errors.Join(sys.RemoveAttribute(f, probe), os.Chmod(upper, st.Mode().Perm()), os.Chtimes(upper, time.Time{}, st.ModTime()))
}

// awaitLock locks a file as soon as nobody else has it.
func awaitLock(ctx context.Context, f *os.File) error {
	for {
		held, err := tryLock(f)
		if held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// mountBelow returns a place of a table of mounts that is in a directory, or nothing.
func mountBelow(table, dir string) string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 5 {
			if at := unescape.Replace(fields[4]); at != dir && within(at, dir) {
				return at
			}
		}
	}
	return ""
}
