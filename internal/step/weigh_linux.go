package step

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A rank is a directory on the way to what is measured, with the names in it that are still to be looked at.
type rank struct {
	dir   *os.File
	names []string
}

// weigh returns what a directory with all that is in it takes on its disk, up to about so many files. A sandbox changes it
// meanwhile, so names are looked up in open directories only, and few are kept. It calls again now and then, and ends with
// its error.
func weigh(dir string, most int, again func() error) (w weight, err error) {
	top, err := os.Open(dir)
	if err != nil {
		w.hidden = !errors.Is(err, os.ErrNotExist)
		return w, nil
	}
	way := []rank{{dir: top}}
	defer func() {
		for _, r := range way {
			r.dir.Close()
		}
	}()
	for len(way) > 0 && w.files < most {
		if err := again(); err != nil {
			return w, err
		}
		at := &way[len(way)-1]
		if len(at.names) == 0 {
			at.names, err = at.dir.Readdirnames(100)
			if len(at.names) == 0 {
				w.hidden = w.hidden || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ENOENT)
				at.dir.Close()
				way = way[:len(way)-1]
			}
			continue
		}
		name := at.names[len(at.names)-1]
		at.names = at.names[:len(at.names)-1]
		if next := w.add(int(at.dir.Fd()), name); next >= 0 {
			d := os.NewFile(uintptr(next), name)
			if len(way) == maxDepth {
				d.Close()
				w.deep = true
				continue
			}
			way = append(way, rank{dir: d})
		}
	}
	return w, nil
}

// add adds a file of an open directory. If it is a directory, it returns a descriptor of it, otherwise -1.
func (w *weight) add(dir int, name string) int {
	gone := func(err error) bool {
		return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
	}
	a, err := sys.AttrAt(dir, name)
	if err != nil {
		w.hidden = w.hidden || !gone(err)
		return -1
	}
	w.files++
	w.bytes += int64(a.Blocks) * 512
	if a.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return -1
	}
	fd, err := sys.OpenAt(dir, name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		w.hidden = w.hidden || !gone(err)
		return -1
	}
	return fd
}
