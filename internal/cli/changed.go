package cli

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
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
	names := protect.Noteworthy()
	left := looked
	whole = true
	for _, m := range mounts {
		if !m.Write {
			continue
		}
		root, err := os.OpenRoot(m.Source)
		if err != nil {
			continue // a single file, or gone: then it has no names below it
		}
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && strings.Count(name, "/") > deep {
				whole = false
				return fs.SkipDir
			}
			if left--; left < 0 || len(found) >= listed {
				whole = false
				return fs.SkipAll
			}
			switch {
			case err != nil:
				whole = false
				return nil //nolint:nilerr // what cannot be read is told by whole, and the rest is looked at
			case d.IsDir():
				if base := path.Base(name); base == "node_modules" || base == "objects" && path.Base(path.Dir(name)) == ".git" {
					return fs.SkipDir
				}
				return nil
			}
			rule, hit := names.Match(name)
			if hit != protect.Protected {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // it was removed in the meantime
			}
			if ChangeTime(info).Before(c.since) {
				return nil
			}
			found = append(found, changedFile{filepath.Join(m.Source, name), names.Reason(rule)})
			return nil
		})
		if err != nil {
			whole = false
		}
		root.Close()
	}
	return found, whole
}
