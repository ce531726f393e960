package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A draft is a directory in Data that is being filled. Nobody sees it before it
// is published.
type draft struct {
	data string
	path string
}

const draftPrefix = ".new-"

// newDraft makes one, and Data if need be.
func newDraft(data string) (*draft, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	if err := trusted(data); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(data, draftPrefix)
	if err != nil {
		return nil, err
	}
	d := &draft{data: data, path: path}
	return d, os.Chmod(path, 0o755)
}

// drop removes what was not published.
func (d *draft) drop() { _ = os.RemoveAll(d.path) }

// write makes a file.
func (d *draft) write(name string, data []byte) error {
	path := filepath.Join(d.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// kernel unpacks one.
func (d *draft) kernel(i image) error {
	data, err := i.unpack()
	if err != nil {
		return err
	}
	if err := checkEntry(bytes.NewReader(data)); err != nil {
		return err
	}
	return d.write("vmlinux", data)
}

// publish gives the draft its name, when all of it is on the disk. One that is
// there already is the same.
func (d *draft) publish(name string) error {
	if err := d.sync(); err != nil {
		return err
	}
	path := filepath.Join(d.data, name)
	err := os.Rename(d.path, path)
	if err != nil && isDir(path) {
		d.drop()
		return nil
	}
	return err
}

// sync has all of it written to the disk.
func (d *draft) sync() error {
	dir, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return fs.WalkDir(dir.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := dir.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// choose makes a kernel in data the one that is used, and removes those that
// are neither this one nor the one before: machines may just be starting with
// it.
func choose(data, name string) error {
	link := filepath.Join(data, current)
	before, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if before != name {
		tmp := fmt.Sprintf("%s%d-%s", draftPrefix, os.Getpid(), current)
		tmp = filepath.Join(data, tmp)
		if err := os.Symlink(name, tmp); err != nil {
			return err
		}
		if err := os.Rename(tmp, link); err != nil {
			return errors.Join(err, os.Remove(tmp))
		}
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !ours(e) || e.Name() == name || e.Name() == before {
			continue
		}
		_ = os.RemoveAll(filepath.Join(data, e.Name())) // it only takes room
	}
	return nil
}

// ours tells whether an entry of Data was made by this package and is old.
func ours(e fs.DirEntry) bool {
	st, err := e.Info()
	if err != nil || time.Since(st.ModTime()) < 24*time.Hour {
		return false
	}
	if strings.HasPrefix(e.Name(), draftPrefix) {
		return true
	}
	release, sum, ok := cutLast(e.Name(), "-")
	return ok && e.IsDir() && validRelease(release) && len(sum) == 8 && strings.Trim(sum, "0123456789abcdef") == ""
}
