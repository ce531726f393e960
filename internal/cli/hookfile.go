package cli

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// A hookFile is a file of settings of a coding agent. A sandbox may have written into the directory that it is in, so no
// link leads out of it, and none is followed without being asked for.
type hookFile struct {
	root *os.Root
	name string // below root
	path string // for people
}

// openHookFile opens the place of a file below a directory that is the user's word.
func openHookFile(dir, name string, follow bool) (*hookFile, error) {
	path := filepath.Join(dir, name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", dir, err, paddock.NotFound)
	}
	link, err := linkOnTheWay(root, name)
	switch {
	case err != nil:
		return nil, errors.Join(err, root.Close())
	case link == "":
		return &hookFile{root: root, name: filepath.FromSlash(name), path: path}, nil
	}
	if err := root.Close(); err != nil {
		return nil, err
	}
	actual, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		var parent string
		if parent, err = filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			actual = filepath.Join(parent, filepath.Base(path))
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, WithHint(fmt.Errorf("%s is a link that leads to nothing: %w", path, paddock.NotFound), "remove it, or make what it leads to")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, err, paddock.Denied)
	}
	if !follow {
		return nil, WithHint(fmt.Errorf("%s is a link, and what would be changed is %s: %w", filepath.Join(dir, link), actual, paddock.Denied), "if you mean that file: --follow")
	}
	if root, err = os.OpenRoot(filepath.Dir(actual)); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", filepath.Dir(actual), err, paddock.Denied)
	}
	return &hookFile{root: root, name: filepath.Base(actual), path: actual}, nil
}

// linkOnTheWay gives the first part of a name that is a link.
func linkOnTheWay(root *os.Root, name string) (string, error) {
	parts := strings.Split(filepath.ToSlash(name), "/")
	for i := range parts {
		here := filepath.Join(parts[:i+1]...)
		info, err := root.Lstat(here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("%s: %w: %w", here, err, paddock.Denied)
		case info.Mode()&fs.ModeSymlink != 0:
			return here, nil
		case i == len(parts)-1 && !info.Mode().IsRegular(), i < len(parts)-1 && !info.IsDir():
			return "", fmt.Errorf("%s is something else than it should be (%s): %w", filepath.Join(root.Name(), here), info.Mode(), paddock.Invalid)
		}
	}
	return "", nil
}

// read gives the file's content and mode. Nil is a file that is not there.
func (f *hookFile) read() ([]byte, fs.FileMode, error) {
	info, err := f.root.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no regular file: %w", f.path, paddock.Invalid)
	}
	if !ownFile(info) {
		return nil, 0, WithHint(fmt.Errorf("%s belongs to another user: %w", f.path, paddock.Denied), "run this as that user")
	}
	file, err := f.root.Open(f.name)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
	}
	defer file.Close()
	now, err := file.Stat()
	if err != nil || !os.SameFile(info, now) {
		return nil, 0, fmt.Errorf("%s was exchanged while it was opened: %w", f.path, paddock.Conflict)
	}
	data, err := io.ReadAll(io.LimitReader(file, settingsfile.MaxFile+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
	}
	if data == nil {
		data = []byte{}
	}
	return data, info.Mode().Perm(), nil
}

// replace puts other content in the place of what the file had, which was from. It gives the directories that it made.
func (f *hookFile) replace(from, to []byte, mode fs.FileMode) (made []string, err error) {
	if made, err = f.makeDirs(); err != nil {
		return made, err
	}
	name := filepath.Join(filepath.Dir(f.name), "."+filepath.Base(f.name)+".paddock-"+rand.Text())
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return made, fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
	}
	_, err = file.Write(to)
	if err == nil {
		err = errors.Join(file.Chmod(mode), file.Sync())
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = f.still(from)
	}
	if err == nil {
		err = f.root.Rename(name, f.name)
	}
	if err != nil {
		return made, fmt.Errorf("%s: %w", f.path, errors.Join(err, f.root.Remove(name)))
	}
	return made, nil
}

// still refuses to go on if the file has changed since it was read.
func (f *hookFile) still(from []byte) error {
	now, _, err := f.read()
	if err != nil {
		return err
	}
	if (now == nil) != (from == nil) || !bytes.Equal(now, from) {
		return WithHint(fmt.Errorf("it changed meanwhile: %w", paddock.Conflict), "try again")
	}
	return nil
}

// makeDirs makes the directories of the file.
func (f *hookFile) makeDirs() (made []string, err error) {
	parts := strings.Split(filepath.ToSlash(filepath.Dir(f.name)), "/")
	for i := range parts {
		here := filepath.Join(parts[:i+1]...)
		switch err := f.root.Mkdir(here, 0o755); {
		case err == nil:
			made = append(made, here)
		case !errors.Is(err, fs.ErrExist):
			return made, fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
		}
	}
	return made, nil
}

// remove removes the file, which had the content from, and of some directories those that are empty then.
func (f *hookFile) remove(from []byte, dirs []string) error {
	if err := f.still(from); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if err := f.root.Remove(f.name); err != nil {
		return fmt.Errorf("%s: %w: %w", f.path, err, paddock.Denied)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = f.root.Remove(dirs[i]) // not one that holds something else by now
	}
	return nil
}

// A hookRecord says what an installation did to a file.
type hookRecord struct {
	Version  int      `json:"version"`
	Agent    string   `json:"agent"`
	Path     string   `json:"path"`
	Dir      string   `json:"dir"`  // in which the file was looked for
	Name     string   `json:"name"` // below it
	Follow   bool     `json:"follow,omitempty"`
	Existed  bool     `json:"existed"`
	Original []byte   `json:"original,omitempty"`
	Written  []byte   `json:"written"`
	Projects []string `json:"projects,omitempty"` // as words of the hook
	Dirs     []string `json:"dirs,omitempty"`     // that were made
}

// original gives what the file had before; nil if there was none.
func (r *hookRecord) original() []byte {
	if !r.Existed {
		return nil
	}
	if r.Original == nil {
		return []byte{}
	}
	return r.Original
}

// hookRecords gives the directory of records.
func (a *App) hookRecords() (string, error) { return a.recordsOf(ofHooks) }

// ofHooks is what records of hooks are of.
const ofHooks = "hooks"

// recordsOf gives the directory of records of hooks, or of something else that is installed in such files.
func (a *App) recordsOf(what string) (string, error) {
	dir, err := configDir(a.Lookup)
	return filepath.Join(dir, what), err
}

func recordName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16]) + ".json"
}

// record gives the record of a file; nil if there is none.
func (a *App) record(what, path string) (*hookRecord, error) {
	dir, err := a.recordsOf(what)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, recordName(path))
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, err, paddock.Denied)
	}
	var r hookRecord
	if err := json.Unmarshal(data, &r); err != nil || r.Version != 1 || r.Path != path {
		return nil, WithHint(fmt.Errorf("%s is no record of this version: %w", name, paddock.Invalid), "remove it; what it is about is in %s", path)
	}
	return &r, nil
}

// keepRecord keeps a record for its owner alone.
func (a *App) keepRecord(what string, r *hookRecord) error {
	dir, err := a.recordsOf(what)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("record of hooks: %w: %w", err, paddock.Denied)
	}
	f, err := os.CreateTemp(dir, "record.") // of mode 0600
	if err != nil {
		return fmt.Errorf("record of hooks: %w: %w", err, paddock.Denied)
	}
	err = json.NewEncoder(f).Encode(r)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, recordName(r.Path)))
	}
	if err != nil {
		return fmt.Errorf("record of hooks: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// forgetRecord removes a record.
func (a *App) forgetRecord(what, path string) error {
	dir, err := a.recordsOf(what)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, recordName(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record of hooks: %w: %w", err, paddock.Denied)
	}
	return nil
}
