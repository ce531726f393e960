package command

import (
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An Input is a file that a tool reads: one opened by name, or standard
// input. It is a reader of the task.
type Input struct {
	t *kernel.Task
	d *kernel.Desc
}

// Open opens a file for reading; "-" is standard input.
func Open(t *kernel.Task, name string) (*Input, error) {
	if name == "-" {
		d := t.FD(0)
		if d == nil {
			return nil, linux.EBADF
		}
		return &Input{t, d.Hold()}, nil
	}
	d, err := t.Open(name, linux.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Input{t, d.Hold()}, nil
}

// Desc returns the open file, to ask what it is or to seek in it.
func (i *Input) Desc() *kernel.Desc { return i.d }

func (i *Input) Read(p []byte) (int, error) {
	i.t.Step(1)
	return i.d.File.Read(i.t, p)
}

// Close releases the file.
func (i *Input) Close() error {
	i.d.Drop()
	return nil
}

// An Output is a file that a tool writes.
type Output struct {
	t *kernel.Task
	d *kernel.Desc
}

// Create opens a file for writing, with the flags of open(2) besides
// O_WRONLY|O_CREAT; "-" is not special.
func Create(t *kernel.Task, name string, flags int) (*Output, error) {
	d, err := t.Open(name, linux.O_WRONLY|linux.O_CREAT|flags, 0o666)
	if err != nil {
		return nil, err
	}
	return &Output{t, d.Hold()}, nil
}

// Desc returns the open file.
func (o *Output) Desc() *kernel.Desc { return o.d }

func (o *Output) Write(p []byte) (int, error) {
	o.t.Step(1)
	return o.d.File.Write(o.t, p)
}

// Close releases the file.
func (o *Output) Close() error {
	o.d.Drop()
	return nil
}

// Room is [kernel.Room] for bytes of a file, within the limit "input".
func Room(t *kernel.Task, b []byte, n int) []byte {
	if b == nil {
		n = max(n, 4096)
	}
	return kernel.Room(t, "input", max(t.K.Limits.Input, 4096), b, n)
}

// ReadAll reads a whole file, up to the limit "input".
func ReadAll(t *kernel.Task, name string) ([]byte, error) {
	in, err := Open(t, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return All(t, in)
}

// All reads a reader to its end, up to the limit "input". What it holds is
// counted until the task ends.
func All(t *kernel.Task, r io.Reader) ([]byte, error) {
	var b []byte
	for {
		b = Room(t, b, 1)
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
