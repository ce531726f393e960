package kernel

import (
	"sync/atomic"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A File is what an open descriptor leads to.
type File interface {
	// Read gives io.EOF at the end. It may wait; then it is a checkpoint.
	Read(t *Task, p []byte) (int, error)
	// Write writes all of p, or says why not.
	Write(t *Task, p []byte) (int, error)
	// Info describes it as stat does.
	Info() (vfs.Info, error)
	// Close is called once, when the last descriptor is closed.
	Close()
}

// A Seeker is a File with an offset.
type Seeker interface {
	Seek(off int64, whence int) (int64, error)
}

// A Peeker is a File that shows what it holds without taking it, so that a
// program can read a line and leave the rest to others.
type Peeker interface {
	// Peek waits for something and shows it; io.EOF is the end. The bytes
	// are valid until the next call on the file.
	Peek(t *Task) ([]byte, error)
	// Discard takes n bytes of what was shown.
	Discard(n int)
}

// A Terminal is a File that is one.
type Terminal interface {
	Terminal() (rows, cols int)
}

// A Desc is an open file that descriptors share.
type Desc struct {
	File   File
	Name   string // what it was opened as, for /proc and messages
	refs   atomic.Int32
	heap   *budget.Counter // where cost is counted; nil if nothing is
	cost   int64
	lock   atomic.Pointer[hold] // that it has of the file
	closed atomic.Bool
}

// NewDesc makes a Desc that nobody holds yet; [Task.SetFD] takes hold of it.
// One that never gets a holder must be released by [Desc.Drop].
func NewDesc(f File, name string) *Desc { return &Desc{File: f, Name: name} }

func (d *Desc) ref() { d.refs.Add(1) }

func (d *Desc) unref() {
	if d.refs.Add(-1) == 0 {
		d.letGo()
		d.shut()
	}
}

// descCost is about what an open file takes, beside what it holds.
const descCost = 256

// pay counts an open file, and so many bytes that it holds, as heap until it is closed. Nobody has d yet. Where it is too
// much, the file is closed and the run ends.
func (d *Desc) pay(t *Task, held int) (*Desc, error) {
	n := int64(descCost + held)
	if err := t.K.heap.Add(n); err != nil {
		d.File.Close()
		return nil, t.Must(err)
	}
	d.heap, d.cost = t.K.heap, n
	return d, nil
}

// shut closes the file, and gives back what it took, once.
func (d *Desc) shut() {
	if d.closed.Swap(true) {
		return
	}
	if d.heap != nil {
		_ = d.heap.Add(-d.cost)
	}
	d.File.Close()
}

// Hold keeps the file open until as many calls of Drop.
func (d *Desc) Hold() *Desc { d.ref(); return d }

// Drop undoes Hold; of a Desc that nobody ever held, it closes the file.
func (d *Desc) Drop() {
	if d.refs.Load() == 0 {
		d.shut()
		return
	}
	d.unref()
}

type fdEntry struct {
	d       *Desc
	cloexec bool
}

// FD returns what a descriptor leads to, or nil.
func (t *Task) FD(fd int) *Desc {
	if fd < 0 || fd >= len(t.fds) {
		return nil
	}
	return t.fds[fd].d
}

// SetFD makes fd lead to d, in place of what was there. EBADF is a number
// over the limit.
func (t *Task) SetFD(fd int, d *Desc, cloexec bool) error {
	if fd < 0 || int64(fd) >= t.maxFDs() {
		return linux.EBADF
	}
	for len(t.fds) <= fd {
		t.fds = append(t.fds, fdEntry{})
	}
	d.ref()
	if old := t.fds[fd].d; old != nil {
		old.unref()
	}
	t.fds[fd] = fdEntry{d, cloexec}
	return nil
}

// SetCloexec says whether a program that is started does not get fd.
func (t *Task) SetCloexec(fd int, on bool) {
	if t.FD(fd) != nil {
		t.fds[fd].cloexec = on
	}
}

// Cloexec reports whether a program that is started does not get fd.
func (t *Task) Cloexec(fd int) bool { return t.FD(fd) != nil && t.fds[fd].cloexec }

// Dup2 makes to lead where from leads.
func (t *Task) Dup2(from, to int) error {
	d := t.FD(from)
	if d == nil {
		return linux.EBADF
	}
	return t.SetFD(to, d, false)
}

// AddFD puts d at the lowest free number from least on. EMFILE is no more.
func (t *Task) AddFD(d *Desc, least int, cloexec bool) (int, error) {
	fd := least
	for t.FD(fd) != nil {
		fd++
	}
	if err := t.SetFD(fd, d, cloexec); err != nil {
		return 0, linux.EMFILE
	}
	return fd, nil
}

// CloseFD closes a descriptor.
func (t *Task) CloseFD(fd int) error {
	if t.FD(fd) == nil {
		return linux.EBADF
	}
	d := t.fds[fd].d
	t.fds[fd] = fdEntry{}
	d.unref()
	return nil
}

// FDs lists the open descriptors.
func (t *Task) FDs() []int {
	var list []int
	for fd := range t.fds {
		if t.fds[fd].d != nil {
			list = append(list, fd)
		}
	}
	return list
}

// stepShift says how many bytes of input and output are a step: 16. So a
// program that does nothing but pass on bytes comes to checkpoints, and to an
// end.
const stepShift = 4

// Read reads from a descriptor.
func (t *Task) Read(fd int, p []byte) (int, error) {
	d := t.FD(fd)
	if d == nil {
		return 0, linux.EBADF
	}
	n, err := d.File.Read(t, p)
	t.Step(1 + n>>stepShift)
	return n, err
}

// Write writes all of p to a descriptor. A pipe that nobody reads kills by
// SIGPIPE, or is EPIPE where that is ignored or caught.
func (t *Task) Write(fd int, p []byte) (int, error) {
	d := t.FD(fd)
	if d == nil {
		return 0, linux.EBADF
	}
	t.Step(1 + len(p)>>stepShift)
	n, err := d.File.Write(t, p)
	if err == linux.EPIPE {
		t.Signal(linux.SIGPIPE)
		t.Check()
	}
	return n, err
}
