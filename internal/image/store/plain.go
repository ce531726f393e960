package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// openPlain opens a file of a directory that a sandbox may have made, and may change meanwhile: it waits for no other end of
// a FIFO, and returns files alone.
func openPlain(root *os.Root, name string) (*os.File, error) {
	return plain(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

func plain(f *os.File, err error) (*os.File, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", err, paddock.Internal), f.Close())
	}
	if !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("it is no file: %w", paddock.Invalid), f.Close())
	}
	return f, nil
}

// A dirs is the file system of a directory for who walks in it. What was a directory a moment ago may be a FIFO now.
type dirs struct{ root *os.Root }

func (d dirs) Open(name string) (fs.File, error) {
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReadDir implements [fs.ReadDirFS].
func (d dirs) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, err
}

// Stat implements [fs.StatFS].
func (d dirs) Stat(name string) (fs.FileInfo, error) { return d.root.Stat(name) }
