package box

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// secrets returns the files and directories of the shown system that are to be hidden, by real paths.
func (l *Layout) secrets() []string {
	var list []string
	add := func(name string) {
		shown := slices.ContainsFunc(hostroot.SystemDirs(), func(dir string) bool { return hostroot.Within(name, dir) })
		if shown && !slices.ContainsFunc(list, func(above string) bool { return hostroot.Within(name, above) }) {
			list = append(list, name)
		}
	}
	for _, name := range hostroot.Credentials() {
		if readable(name, l.ID.Root) {
			add(private.RealPath(name))
		}
	}
	if !l.ID.Root { // a root caller's sandboxes have a user of their own
		programs := filepath.SplitList(l.env["PATH"])
		for dir, levels := range hostroot.Closed() {
			for _, name := range closedTo(private.RealPath(dir), levels, programs) {
				add(name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// closedTo returns what others may not read in a directory and this many levels below, of what this user may. What
// holds a directory of programs is shown.
func closedTo(dir string, levels int, programs []string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if e.Type() != 0 && !e.IsDir() { // a link leads to what is looked at in its own place
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		name, others, may := filepath.Join(dir, e.Name()), fs.FileMode(0o004), sys.MayRead
		used := false
		if e.IsDir() {
			others, may = 0o001, sys.MayExecute
			used = slices.ContainsFunc(programs, func(p string) bool { return hostroot.Within(p, name) })
		}
		switch {
		case info.Mode()&others == 0 && !used && sys.AccessAt(sys.AtCWD, name, may) == nil:
			list = append(list, name)
		case e.IsDir() && levels > 1:
			list = append(list, closedTo(name, levels-1, programs)...)
		}
	}
	return list
}
