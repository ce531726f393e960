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

// A room is a file beside the vault's that takes its place at once, and already holds the bytes that it may need. A box
// can fill the disk; it must not do so between an exchange and the storing of its tokens.
type room struct {
	v    *vault
	name string
	file *os.File
}

// grown is how much longer a file may be with other tokens: three of them, and times.
const grown = 3*tokenMax + 4096

// reserve makes room for a file of so many bytes.
func (v *vault) reserve(size int) (*room, error) {
	name := ".paddock-login-" + rand.Text()
	f, err := v.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make room beside %s: %w", v.path, err)
	}
	r := &room{v: v, name: name, file: f}
	err = hold(f, size, func() error { return allocate(f, int64(size)) })
	if err = errors.Join(err, f.Sync()); err == nil {
		err = r.own()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make room beside %s: %w", v.path, err), r.drop())
	}
	return r, nil
}

// hold has a file keep room for so many bytes. Allocated blocks are room also where an overwrite takes new blocks, as on btrfs.
// Where none can be allocated, bytes have to do that no file system makes smaller.
func hold(f io.Writer, size int, allocate func() error) error {
	if err := allocate(); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	noise := make([]byte, size)
	_, _ = rand.Read(noise) // never fails
	_, err := f.Write(noise)
	return err
}

// own gives the file to the owner of the vault's.
func (r *room) own() error {
	before, err := r.v.dir.Lstat(r.v.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return keepOwner(r.file, before)
}

// write replaces the vault's file at once, for its owner alone. The room is used up if there is no error.
func (r *room) write(d document) error {
	data, err := d.bytes()
	if err != nil {
		return err
	}
	_, err = r.file.WriteAt(data, 0)
	if err = errors.Join(err, r.file.Truncate(int64(len(data))), r.file.Sync()); err == nil {
		err = r.own()
	}
	if err == nil {
		err = r.v.dir.Rename(r.name, r.v.name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", r.v.path, err)
	}
	return r.file.Close()
}

// drop gives the room back.
func (r *room) drop() error {
	err := r.file.Close()
	if gone := r.v.dir.Remove(r.name); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
