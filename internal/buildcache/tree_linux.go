package buildcache

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	// deepest is how many directories are open at a time.
	deepest = 100
	// largest is the size that a file counts with at most, so that sums of holes do not overflow.
	largest = 1 << 60
)

// Measure adds up a directory of what sandboxes have put there, and stops above one of the bounds. It follows no link. If
// directories are too deep in each other, it returns more files than the bound.
func Measure(dir string, maxBytes, maxFiles int64) (bytes, files int64, err error) {
	size, err := measure(dir, bound{maxBytes, maxFiles})
	return size.bytes, size.files, err
}

// measure adds up a tree. It stops above the bound. A tree that is too deep counts as one above it.
func measure(dir string, most bound) (size bound, err error) {
	fd, err := sys.OpenAt(sys.AtCWD, dir, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, syscall.ENOENT) {
		return size, nil
	}
	if err != nil {
		return size, err
	}
	err = size.add(fd, 0, most)
	return size, err
}

// add closes the directory.
func (b *bound) add(fd, depth int, most bound) error {
	f := os.NewFile(uintptr(fd), "cache")
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		if len(names) == 0 {
			return nil // the end, or a directory that was removed meanwhile
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if b.bytes > most.bytes || b.files > most.files {
				return nil
			}
			st, err := sys.StatAt(fd, name)
			if err != nil {
				continue // it was removed meanwhile
			}
			b.files++
			b.bytes += min(max(st.Size, 4096), largest)
			if st.Mode&sys.TypeMask != sys.TypeDir {
				continue
			}
			if depth == deepest {
				b.files = most.files + 1
				return nil
			}
			below, err := sys.OpenAt(fd, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
			if errors.Is(err, syscall.EACCES) { // its owner is the caller, who may look again
				if err := sys.ChmodAt(fd, name, 0o700); err != nil {
					continue
				}
				if below, err = sys.OpenAt(fd, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0); err == nil {
					err = b.addClosed(below, st.Mode&0o7777, depth+1, most)
					if err != nil {
						return err
					}
					continue
				}
			}
			if err != nil {
				continue
			}
			if err := b.add(below, depth+1, most); err != nil {
				return err
			}
		}
	}
}

// addClosed is add for a directory that had to be opened to its owner first, and has its mode again then.
func (b *bound) addClosed(fd int, mode uint32, depth int, most bound) error {
	again, err := syscall.Dup(fd)
	if err != nil {
		sys.Close(fd)
		return err
	}
	defer sys.Close(again)
	syscall.CloseOnExec(again)
	err = b.add(fd, depth, most)
	return errors.Join(err, syscall.Fchmod(again, mode))
}

// Clear removes a directory with what sandboxes have put there, however deep, and whatever its modes. It follows no link.
// It is no error if the directory is missing.
func Clear(dir string) error { return clearAll(dir) }

// clearAll removes a tree, however deep, and whatever its modes. Nothing of it gets a name outside of it: what is beside may
// be taken for something else there.
func clearAll(dir string) error {
	up, err := sys.OpenAt(sys.AtCWD, filepath.Dir(dir), syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer sys.Close(up)
	c := &clearing{top: -1}
	if err := c.remove(up, filepath.Base(dir), 0); err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return nil
}

type clearing struct {
	top int // the directory that is cleared
}

func (c *clearing) remove(dir int, name string, depth int) error {
	err := sys.UnlinkAt(dir, name)
	if err == nil || !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	if err := sys.ChmodAt(dir, name, 0o700); err != nil {
		return err
	}
	if depth == deepest { // it goes when the top is read again; those who made the tree cannot have taken the name
		return sys.RenameAt(dir, name, c.top, ".deep-"+rand.Text())
	}
	fd, err := sys.OpenAt(dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if depth == 0 {
		c.top = fd
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		if len(names) == 0 {
			break // removal of the directory says what is wrong
		}
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := c.remove(fd, n, depth+1); err != nil && !errors.Is(err, syscall.ENOENT) {
				return err
			}
		}
		if _, err := f.Seek(0, 0); err != nil {
			return err
		}
	}
	return sys.RmdirAt(dir, name)
}
