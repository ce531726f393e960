package vminit

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// unpack unpacks an archive into an empty directory. It refuses names that lead out of it
// or through links.
func unpack(r io.Reader, root *os.File) error {
	u := &unpacker{root: root}
	defer u.close()
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack the private layer: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return fmt.Errorf("unpack %s: %w", cut(h.Name), err)
		}
	}
	// Entries made in a directory changed its time.
	for i := len(u.dirs) - 1; i >= 0; i-- {
		h := u.dirs[i]
		dir, name, err := u.place(h.Name)
		if err == nil {
			err = sys.TouchAt(dir, name, h.ModTime)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", cut(h.Name), err)
		}
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

type unpacker struct {
	root *os.File
	dirs []*tar.Header

	parent string   // of the last entry
	open   *os.File // that directory, or nil
}

func (u *unpacker) close() {
	if u.open != nil {
		u.open.Close()
	}
	u.open = nil
}

// place returns the directory and the name of an entry. The name is empty for the root.
func (u *unpacker) place(name string) (dir int, base string, err error) {
	name = path.Clean("/" + name)
	if name == "/" {
		dir, err = sys.Descriptor(u.root)
		return dir, "", err
	}
	parent := path.Dir(name)
	if u.open == nil || u.parent != parent {
		u.close()
		if u.open, err = sys.OpenPath(u.root, path.Join(".", parent), true); err != nil {
			return -1, "", err
		}
		u.parent = parent
	}
	dir, err = sys.Descriptor(u.open)
	return dir, path.Base(name), err
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	dir, name, err := u.place(h.Name)
	if err != nil {
		return err
	}
	mode := uint32(h.Mode) & permissions
	switch h.Typeflag {
	case tar.TypeLink:
		// Open the other name first, because it may be in another directory.
		from, err := sys.OpenPath(u.root, path.Join(".", path.Dir(path.Clean("/"+h.Linkname))), true)
		if err != nil {
			return err
		}
		defer from.Close()
		fd, err := sys.Descriptor(from)
		if err != nil {
			return err
		}
		return sys.LinkAt(fd, path.Base(h.Linkname), dir, name)
	case tar.TypeDir:
		if name != "" {
			err = sys.MkdirAt(dir, name, 0o700)
		}
		u.dirs = append(u.dirs, h)
	case tar.TypeReg:
		err = file(dir, name, content, h.Size)
	case tar.TypeSymlink:
		err = sys.SymlinkAt(h.Linkname, dir, name)
	case tar.TypeChar:
		err = sys.MakeAt(dir, name, syscall.S_IFCHR, uint32(h.Devmajor), uint32(h.Devminor))
	case tar.TypeBlock:
		err = sys.MakeAt(dir, name, syscall.S_IFBLK, uint32(h.Devmajor), uint32(h.Devminor))
	case tar.TypeFifo:
		err = sys.MakeAt(dir, name, syscall.S_IFIFO, 0, 0)
	default:
		return nil // archive makes no such entry
	}
	if err != nil {
		return err
	}
	return dress(dir, name, mode, h)
}

// dress sets the attributes of an entry. The mode comes after the owner, because a change
// of owner clears bits of it.
func dress(dir int, name string, mode uint32, h *tar.Header) error {
	if err := sys.ChownAt(dir, name, h.Uid, h.Gid); err != nil {
		return err
	}
	switch {
	case h.Typeflag == tar.TypeSymlink:
	case name == "":
		if err := sys.ChmodAt(dir, ".", mode); err != nil {
			return err
		}
	default:
		if err := sys.ChmodAt(dir, name, mode); err != nil {
			return err
		}
	}
	for key, value := range h.PAXRecords {
		if key, ok := strings.CutPrefix(key, attribute); ok {
			if err := sys.SetAttributeAt(dir, name, key, value); err != nil && !errors.Is(err, syscall.EOPNOTSUPP) {
				return err
			}
		}
	}
	return sys.TouchAt(dir, name, h.ModTime)
}

// file writes a file. Blocks of zeros become holes.
func file(dir int, name string, content io.Reader, size int64) (err error) {
	fd, err := sys.OpenAt(dir, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, f.Close()) }()
	buf, none := make([]byte, 64<<10), make([]byte, pageSize)
	at := int64(0)
	for {
		n, err := io.ReadFull(content, buf)
		if n == 0 {
			if !errors.Is(err, io.EOF) {
				return err
			}
			return f.Truncate(size)
		}
		for part := buf[:n]; len(part) > 0; {
			m := min(len(part), pageSize)
			if !bytes.Equal(part[:m], none[:m]) {
				if _, err := f.WriteAt(part[:m], at); err != nil {
					return err
				}
			}
			part, at = part[m:], at+int64(m)
		}
	}
}

// place opens the directory or file at an absolute path below root as a location. It makes
// it if needed. No link may lead there.
func place(root *os.File, name string, isFile bool) (*os.File, error) {
	rel := strings.TrimPrefix(path.Clean("/"+name), "/")
	if rel == "" {
		rel = "."
	}
	at, err := sys.OpenPath(root, rel, true)
	if !errors.Is(err, fs.ErrNotExist) || rel == "." {
		return at, err
	}
	parent, err := place(root, path.Dir("/"+rel), false)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fd, err := sys.Descriptor(parent)
	if err != nil {
		return nil, err
	}
	if isFile {
		err = sys.CreateAt(parent, path.Base(rel), 0o644)
	} else {
		err = sys.MkdirAt(fd, path.Base(rel), 0o755)
	}
	if err != nil {
		return nil, err
	}
	return sys.OpenPath(root, rel, true)
}
