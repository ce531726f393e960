package box

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// notForEverybody returns files and directories of the host's system that the calling user may read and others may
// not. Commands have this user's rights, and would read them too.
func notForEverybody() []string {
	// Deeper, and in other directories, are too many files to look at for each sandbox. LIMITS.md says so.
	return slices.Concat(closedTo("/etc", 3), closedTo("/opt", 2), closedTo("/usr/local", 2))
}

// closedTo returns what others may not read in a directory and this many levels below, of what this user may.
func closedTo(dir string, levels int) []string {
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
		if e.IsDir() {
			others, may = 0o001, sys.MayExecute
		}
		switch {
		case info.Mode()&others == 0 && sys.AccessAt(sys.AtCWD, name, may) == nil:
			list = append(list, name)
		case e.IsDir() && levels > 1:
			list = append(list, closedTo(name, levels-1)...)
		}
	}
	return list
}
