package bootfiles

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

// A draft is a directory in Data that is being filled. No other process uses it before
// publish.
type draft struct {
	data string
	path string
}

const draftPrefix = ".new-"

// newDraft makes a draft, and Data if needed.
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

// drop removes an unpublished draft.
func (d *draft) drop() { _ = os.RemoveAll(d.path) }

// write writes a file.
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

// kernel decompresses a kernel into the draft.
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

// publish syncs the draft to disk and renames it. If the name exists, its content is the
// same.
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

// sync writes all files to disk.
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

// choose makes a kernel in data the current one. It removes the others except the previous
// one, because machines may be starting with it.
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
		_ = os.RemoveAll(filepath.Join(data, e.Name())) // it only takes space
	}
	return nil
}

// ours reports whether an entry of Data was made by this package and is old.
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
