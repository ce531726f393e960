package command

import (
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Stat returns the attributes of a file and follows links. A name below
// /dev/fd means the task's descriptor.
func Stat(t *kernel.Task, path string) (vfs.Info, error) {
	if fd, ok := kernel.OwnFD(path); ok {
		return StatFD(t, fd)
	}
	return t.View.Stat(path)
}

// StatFD returns the attributes of the file behind a descriptor.
func StatFD(t *kernel.Task, fd int) (vfs.Info, error) {
	d := t.FD(fd)
	if d == nil {
		return vfs.Info{}, linux.ENOENT
	}
	return d.File.Info()
}

// OpenIn opens a name relative to another working directory than the task's.
func OpenIn(t *kernel.Task, in *vfs.View, name string, flags int, mode uint32) (*kernel.Desc, error) {
	own := t.View.Dir
	t.View.Dir = in.Dir
	defer func() { t.View.Dir = own }()
	return t.Open(name, flags, mode)
}

// TerminalSize returns the size of the terminal behind a descriptor; ok is
// false if it is no terminal.
func TerminalSize(t *kernel.Task, fd int) (rows, cols int, ok bool) {
	d := t.FD(fd)
	if d == nil {
		return 0, 0, false
	}
	y, ok := d.File.(kernel.Terminal)
	if !ok {
		return 0, 0, false
	}
	rows, cols = y.Terminal()
	return rows, cols, true
}
