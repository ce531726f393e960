package cli

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// A changedFile is one that a run changed, and that programs on this machine
// obey later: a build script, a hook, a package's install steps.
type changedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// A change is what is looked at to find them.
type change struct {
	since time.Time // by the kernel's own coarse clock, as files are stamped
}

const (
	// looked bounds the entries that are looked at, so that a command cannot
	// make the end of its run last.
	looked = 100_000
	// deep bounds how deep that goes, because each name of a deep tree is
	// walked to from its top.
	deep = 64
	// listed bounds the files that are told.
	listed = 1_000
)

// beginning notes the time before a run. The stamp comes from a new pipe,
// because files are stamped by a clock that lags behind that of time.Now.
func beginning() change {
	r, w, err := os.Pipe()
	if err != nil {
		return change{} // then everything counts as changed
	}
	defer r.Close()
	defer w.Close()
	info, err := r.Stat()
	if err != nil {
		return change{}
	}
	return change{since: ChangeTime(info)}
}

// files lists the noteworthy files below the writable mounts that were made or
// changed since. whole tells whether everything could be looked at. Installed
// packages and the objects of git are passed over: nobody reads them as text.
//
// The tree is the guest's work. It is opened by os.Root, so that no link leads
// out of it, and the guest cannot set the change times that are asked.
func (c change) files(mounts []paddock.Mount) (found []changedFile, whole bool) {
	l := &looking{names: protect.Noteworthy(), since: c.since, left: looked, whole: true}
	for _, m := range mounts {
		if !m.Write || m.Cache {
			continue
		}
		root, err := os.OpenRoot(m.Source)
		if err != nil {
			continue // a single file, or gone: then it has no names below it
		}
		l.directory(root, ".", 0)
		root.Close()
	}
	slices.SortStableFunc(l.found, func(a, b changedFile) int { return strings.Compare(a.Path, b.Path) })
	return l.found, l.whole
}

// looking is what files has seen so far.
type looking struct {
	names *protect.Set
	since time.Time
	left  int // entries that may still be looked at
	found []changedFile
	whole bool
}

// directory looks at a directory below root. It reads some entries at a time, because there may be more
// than fit into memory.
func (l *looking) directory(root *os.Root, name string, depth int) {
	const batch = 1000
	// Another sandbox may have put a FIFO in its place.
	d, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		l.whole = false // the rest is looked at
		return
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(batch)
		for _, e := range entries {
			if l.left--; l.left < 0 || len(l.found) >= listed {
				l.whole = false
				return
			}
			l.entry(root, path.Join(name, e.Name()), e.IsDir(), depth+1)
		}
		if err != nil {
			l.whole = l.whole && errors.Is(err, io.EOF)
			return
		}
	}
}

func (l *looking) entry(root *os.Root, name string, dir bool, depth int) {
	if dir {
		switch base := path.Base(name); {
		case base == "node_modules" || base == "objects" && path.Base(path.Dir(name)) == ".git":
		case depth > deep:
			l.whole = false
		default:
			l.directory(root, name, depth)
		}
		return
	}
	rule, hit := l.names.Match(name)
	if hit != protect.Protected {
		return
	}
	// Else it was removed meanwhile, or is older.
	if info, err := root.Lstat(name); err == nil && !ChangeTime(info).Before(l.since) {
		l.found = append(l.found, changedFile{filepath.Join(root.Name(), name), l.names.Reason(rule)})
	}
}
