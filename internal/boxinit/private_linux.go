package boxinit

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// private returns what is done with the root before anything is mounted on it. The host gets it, to read what commands
// keep there, and what a snapshot had is put there. A guest kernel does both itself.
func (p *initProcess) private(files *Files) func(root *os.File) error {
	if p.guestKernel != nil {
		return nil
	}
	return func(root *os.File) error {
		if err := p.givePrivate(root); err != nil {
			return fmt.Errorf("give the host the private files: %w", err)
		}
		archive := files.One(FileImage)
		if archive == nil {
			return nil
		}
		if err := unpack(root, archive); err != nil {
			return fmt.Errorf("begin with the snapshot: %w", err)
		}
		return nil
	}
}

// givePrivate sends the host a copy of the root's mount, on which nothing will be mounted.
func (p *initProcess) givePrivate(root *os.File) error {
	fd, err := sys.Descriptor(root)
	if err != nil {
		return err
	}
	alone, err := sys.CloneTree(fd, "", false)
	if err != nil {
		return err
	}
	defer alone.Close()
	data, err := json.Marshal(Report{Private: true})
	if err != nil {
		return err
	}
	return p.control.Send(data, alone)
}

const (
	attributePrefix = "SCHILY.xattr."
	zeroBlock       = 4096
)

// unpack puts the files of an archive into a directory on which nothing is mounted. The host wrote the archive, but a guest
// chose what is in it. Names are looked up below root, and no link is followed. All files belong to the box's user.
func unpack(root, archive *os.File) error {
	u := &unpacker{root: root}
	t := tar.NewReader(io.NewSectionReader(archive, 0, 1<<62))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		if err := u.entry(h, t); err != nil {
			return unpacked(h.Name, err)
		}
	}
	// Entries made in a directory changed its time, and its mode may forbid them.
	for i := len(u.dirs) - 1; i >= 0; i-- {
		if err := u.finish(u.dirs[i]); err != nil {
			return unpacked(u.dirs[i].Name, err)
		}
	}
	return nil
}

// unpacked is an error about a file of an archive.
func unpacked(name string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("the files do not fit; raise the disk limit: %w", paddock.Exhausted)
	}
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = fmt.Errorf("this kernel's private files have no extended attributes, which need Linux 6.6: %w", paddock.Unsupported)
	}
	return fmt.Errorf("%s: %w", Words(name, 300), err)
}

type unpacker struct {
	root *os.File
	dirs []*tar.Header
}

// place opens the directory of a name, which it makes if it is missing. The base is empty for the root.
func (u *unpacker) place(name string) (dir *os.File, base string, err error) {
	name = strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if name == "" {
		dir, err = sys.OpenPath(u.root, ".", true)
		return dir, "", err
	}
	dir, err = walk(u.root, path.Dir("/"+name), 0o755)
	return dir, path.Base("/" + name), err
}

func (u *unpacker) entry(h *tar.Header, contents io.Reader) error {
	at, name, err := u.place(h.Name)
	if err != nil {
		return err
	}
	defer at.Close()
	dir, err := sys.Descriptor(at)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		u.dirs = append(u.dirs, h)
		if name == "" {
			return nil
		}
		err = sys.MkdirAt(dir, name, 0o700)
		if errors.Is(err, os.ErrExist) { // on the way to an earlier one
			_, err = sys.StatAt(dir, name)
		}
		return err
	case tar.TypeReg:
		err = u.file(dir, name, h.Size, contents)
	case tar.TypeSymlink:
		err = sys.SymlinkAt(h.Linkname, dir, name)
	case tar.TypeFifo:
		err = sys.MakeAt(dir, name, syscall.S_IFIFO|0o600, 0, 0)
	case tar.TypeLink:
		return u.link(h.Linkname, dir, name)
	default:
		return fmt.Errorf("a file of the type %q: %w", h.Typeflag, paddock.Invalid)
	}
	if err != nil {
		return err
	}
	return dress(dir, name, h)
}

// link makes another name of a file that was unpacked.
func (u *unpacker) link(to string, dir int, name string) error {
	from, base, err := u.place(to)
	if err != nil {
		return err
	}
	defer from.Close()
	fd, err := sys.Descriptor(from)
	if err != nil {
		return err
	}
	return sys.LinkAt(fd, base, dir, name)
}

// finish sets the attributes of a directory in which all was made.
func (u *unpacker) finish(h *tar.Header) error {
	at, name, err := u.place(h.Name)
	if err != nil {
		return err
	}
	defer at.Close()
	dir, err := sys.Descriptor(at)
	if err != nil {
		return err
	}
	if name == "" {
		return nil // the root is the box's own
	}
	return dress(dir, name, h)
}

// dress sets the attributes of a file.
func dress(dir int, name string, h *tar.Header) error {
	for record, value := range h.PAXRecords {
		if key, ok := strings.CutPrefix(record, attributePrefix); ok {
			if err := sys.SetAttributeAt(dir, name, key, value); err != nil {
				return err
			}
		}
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := sys.ChmodAt(dir, name, uint32(h.Mode)&0o7777); err != nil {
			return err
		}
	}
	return sys.TouchAt(dir, name, h.ModTime)
}

// file writes a file. Blocks of zeros become holes.
func (u *unpacker) file(dir int, name string, size int64, contents io.Reader) (err error) {
	fd, err := sys.OpenAt(dir, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "file")
	defer func() { err = errors.Join(err, f.Close()) }()
	buf, none := make([]byte, 256<<10), make([]byte, zeroBlock)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(contents, buf[:min(int64(len(buf)), size-at)])
		if err != nil {
			return fmt.Errorf("its contents are cut off: %w: %w", err, paddock.Invalid)
		}
		for part := buf[:n]; len(part) > 0; {
			m := min(len(part), zeroBlock)
			if !bytes.Equal(part[:m], none[:m]) {
				if _, err := f.WriteAt(part[:m], at); err != nil {
					return err
				}
			}
			part, at = part[m:], at+int64(m)
		}
	}
	return f.Truncate(size)
}
