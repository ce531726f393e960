package agentlogin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/paddock-sandbox/paddock"
)

// A vault is the agent's file on the host. Its directory was opened before the box began, and no link of the file
// itself is followed.
type vault struct {
	path string // for people
	dir  *os.Root
	name string
}

// openVault opens the directory of a file. Without the directory it is NotFound.
func openVault(path string) (*vault, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, paddock.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open the directory of %s: %w", path, err)
	}
	return &vault{path: path, dir: dir, name: filepath.Base(path)}, nil
}

// read reads the file. It must be a plain file.
func (v *vault) read() (document, error) {
	before, err := v.dir.Lstat(v.name)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, fmt.Errorf("%s: %w", v.path, paddock.NotFound)
	}
	if err == nil && !before.Mode().IsRegular() {
		return document{}, fmt.Errorf("%s is not a plain file, and links to tokens are not followed: %w", v.path, paddock.Invalid)
	}
	if err != nil {
		return document{}, fmt.Errorf("read %s: %w", v.path, err)
	}
	f, err := v.dir.Open(v.name)
	if err != nil {
		return document{}, fmt.Errorf("read %s: %w", v.path, err)
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return document{}, fmt.Errorf("read %s: %w", v.path, err)
	}
	if !os.SameFile(before, now) {
		return document{}, fmt.Errorf("%s changed while it was opened: %w", v.path, paddock.Conflict)
	}
	data, err := io.ReadAll(io.LimitReader(f, documentMax+1))
	if err != nil {
		return document{}, fmt.Errorf("read %s: %w", v.path, err)
	}
	if len(data) > documentMax {
		return document{}, fmt.Errorf("%s has more than 1 MiB: %w", v.path, paddock.Invalid)
	}
	d, err := parseDocument(data)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w: %w", v.path, err, paddock.Invalid)
	}
	return d, nil
}

// write replaces the file at once, for its owner alone.
func (v *vault) write(d document) error {
	data, err := d.bytes()
	if err != nil {
		return err
	}
	temporary := ".paddock-login-" + rand.Text()
	if err := v.fill(temporary, data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", v.path, err), v.drop(temporary))
	}
	return nil
}

func (v *vault) fill(temporary string, data []byte) error {
	f, err := v.dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if before, err := v.dir.Lstat(v.name); err == nil {
		if err := keepOwner(v.dir, temporary, before); err != nil {
			return err
		}
	}
	return v.dir.Rename(temporary, v.name)
}

func (v *vault) drop(temporary string) error {
	if err := v.dir.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
