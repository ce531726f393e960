// Package descriptor looks at files as a task sees them: by name, where the
// name may be one of the task's own descriptors.
package descriptor

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Own gives the descriptor that a path names: /dev/fd/N, /dev/stdin and its
// like, /proc/self/fd/N.
func Own(path string) (int, bool) {
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if n, ok := strings.CutPrefix(path, dir); ok {
			fd, err := strconv.Atoi(n)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}

// Stat describes a file, following links.
func Stat(t *proc.Task, path string) (vfs.Info, error) {
	if fd, ok := Own(path); ok {
		return FD(t, fd)
	}
	return t.View.Stat(path)
}

// FD describes what a descriptor leads to.
func FD(t *proc.Task, fd int) (vfs.Info, error) {
	d := t.FD(fd)
	if d == nil {
		return vfs.Info{}, syscall.ENOENT
	}
	return d.File.Info()
}

// OpenIn is the task's Open of a name in another working directory.
func OpenIn(t *proc.Task, in *vfs.View, name string, flags int, mode uint32) (*proc.Desc, error) {
	own := t.View.Dir
	t.View.Dir = in.Dir
	defer func() { t.View.Dir = own }()
	return t.Open(name, flags, mode)
}

// Terminal tells whether a descriptor is a terminal, and its size.
func Terminal(t *proc.Task, fd int) (rows, cols int, ok bool) {
	d := t.FD(fd)
	if d == nil {
		return 0, 0, false
	}
	y, ok := d.File.(proc.Terminal)
	if !ok {
		return 0, 0, false
	}
	rows, cols = y.Terminal()
	return rows, cols, true
}
