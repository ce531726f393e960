// Package private lists the caller's own files that no sandbox may see, such as the keys and the state of a
// server.
package private

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// Files lists files and directories by absolute paths.
type Files struct {
	Paths []string
	Shown []string // directories in Paths that sandboxes may have nevertheless, such as images
}

// Real returns the list with the paths to which links lead now, without those that are below others.
func (f Files) Real() Files {
	var r Files
	var all []string
	for _, name := range f.Paths {
		all = append(all, RealPath(name))
	}
	slices.Sort(all)
	for _, name := range all { // what is above comes before
		if !slices.ContainsFunc(r.Paths, func(above string) bool { return hostroot.Within(name, above) }) {
			r.Paths = append(r.Paths, name)
		}
	}
	for _, name := range f.Shown {
		r.Shown = append(r.Shown, RealPath(name))
	}
	return r
}

// Refuse returns an error if a directory or file that a sandbox is to have is part of what is private. The paths
// are real.
func (f Files) Refuse(what, source string) error {
	within := func(dir string) bool { return hostroot.Within(source, dir) }
	if i := slices.IndexFunc(f.Paths, within); i >= 0 && !slices.ContainsFunc(f.Shown, within) {
		return fmt.Errorf("%s %s: %s belongs to this server alone, and no sandbox may see it: %w", what, source, f.Paths[i], paddock.Denied)
	}
	return nil
}

// In returns the places in a sandbox where a mount of source at target would show what is private. The paths are
// real.
func (f Files) In(source, target string) []string {
	var list []string
	for _, name := range f.Paths {
		if hostroot.Within(name, source) {
			list = append(list, path.Join(target, strings.TrimPrefix(name, strings.TrimSuffix(source, "/"))))
		}
	}
	return list
}

// RealPath follows the links of a path. What is not there yet will be where they lead.
func RealPath(name string) string {
	name = filepath.Clean(name)
	if real, err := filepath.EvalSymlinks(name); err == nil || name == "/" {
		return cmp.Or(real, name)
	}
	return filepath.Join(RealPath(filepath.Dir(name)), filepath.Base(name))
}

// Images returns the directory of images beside a data directory, where it really is: either may be a link.
func Images(data string) string { return RealPath(data + "-images") }

// Place returns what to hide so that nobody sees a file with a secret. If its directory is for secrets alone, it
// is the directory, because a renewed file has the same name but is another file.
func Place(file string) string {
	dir := filepath.Dir(file)
	top := slices.Contains(hostroot.SystemDirs(), dir) || !hostroot.Within(dir, "/etc") && !hostroot.Within(dir, "/opt")
	if top {
		return file
	}
	if st, err := os.Stat(dir); strings.HasPrefix(filepath.Base(dir), "paddock") || err == nil && st.Mode()&0o001 == 0 {
		return dir
	}
	return file
}
