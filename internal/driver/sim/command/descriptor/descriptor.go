// Package descriptor looks at files as a task sees them: by name, where the
// name may be one of the task's own descriptors.
package descriptor

import (
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Stat describes a file, following links.
func Stat(t *proc.Task, path string) (vfs.Info, error) {
	if fd, ok := proc.OwnFD(path); ok {
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
