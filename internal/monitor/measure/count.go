package measure

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/monitor"
)

// Bounds of Count.
const (
	maxCounted = 200_000
	countPiece = 1000
)

// Count counts the files and directories in writable mounts outside of directories that tools rebuild. Commands may change
// them meanwhile in any way: no link is followed, and the work is bounded.
func Count(mounts []paddock.Mount) (n int, whole bool) {
	whole = true
	read := 0
	for _, m := range mounts {
		if !m.Write || m.Cache {
			continue
		}
		root, err := os.OpenRoot(m.Source)
		if err != nil {
			continue // a single file
		}
		more, names, all := countBelow(root, maxCounted-read)
		_ = root.Close() // only read
		n, read, whole = n+more, read+names, whole && all
	}
	return n, whole
}

// countBelow reads at most so many names, also of those that do not count.
func countBelow(root *os.Root, most int) (n, read int, whole bool) {
	dirs := []string{"."}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		if in, err := root.Lstat(dir); err != nil || !in.IsDir() {
			continue // it has become something else
		}
		f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which waits for no FIFO either
		if err != nil {
			continue
		}
		for {
			list, err := f.ReadDir(countPiece)
			for _, e := range list {
				name := filepath.Join(dir, e.Name())
				counts := !monitor.Rebuildable(name)
				if counts {
					n++
				}
				if read++; read >= most {
					_ = f.Close() // only read
					return n, read, false
				}
				if counts && e.IsDir() {
					dirs = append(dirs, name)
				}
			}
			if errors.Is(err, io.EOF) || err != nil || len(list) == 0 {
				break
			}
		}
		_ = f.Close() // only read
	}
	return n, read, true
}
