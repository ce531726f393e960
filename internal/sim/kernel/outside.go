package kernel

import (
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// An OutsideFile is an open file for somebody who is no task.
type OutsideFile interface {
	ReadAt(p []byte, off int64) (int, error)
	Write(p []byte) (int, error)
	Close() error
}

// Outside returns a file that was opened by a View, an ordinary one or a device,
// to somebody who is no task.
func Outside(f *vfs.File) OutsideFile {
	i, err := f.Info()
	if err == nil && i.Mode&linux.S_IFMT == linux.S_IFCHR {
		return &outsideDevice{f, device{i}}
	}
	return f
}

type outsideDevice struct {
	f *vfs.File
	d device
}

func (o *outsideDevice) ReadAt(p []byte, _ int64) (int, error) { return o.d.Read(nil, p) }

func (o *outsideDevice) Write(p []byte) (int, error) { return o.d.Write(nil, p) }

func (o *outsideDevice) Close() error { return o.f.Close() }
