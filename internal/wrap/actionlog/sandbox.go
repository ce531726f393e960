package actionlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

type sandbox struct {
	paddock.Sandbox
	d *driver
}

func (s *sandbox) deed(what, target string) deed {
	return deed{sandbox: s.ID(), what: what, target: target}
}

func (s *sandbox) do(ctx context.Context, what, target string, call func() error) error {
	return s.d.do(ctx, s.deed(what, target), call)
}

func (s *sandbox) Start(ctx context.Context, cmd paddock.Cmd) (p paddock.Process, err error) {
	if err := s.d.ready(); err != nil {
		return nil, err
	}
	what := s.deed("process.start", "")
	what.args, what.dir = cmd.Args, cmd.Dir
	if p, err = s.Sandbox.Start(ctx, cmd); err == nil {
		what.target = strconv.Itoa(int(p.ID()))
	}
	s.d.tell(ctx, what, err)
	if err != nil {
		return nil, err
	}
	return newProcess(ctx, p, s), nil
}

func (s *sandbox) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (p paddock.Process, err error) {
	err = s.do(ctx, "process.attach", strconv.Itoa(int(pid)), func() error {
		p, err = s.Sandbox.Attach(ctx, pid, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newProcess(ctx, p, s), nil
}

// RecordCell implements interpreter.Recorder. It records the hash and size of the code, and
// only that a cell failed, because code and error text are the tenant's, and the guest
// could write them here.
func (s *sandbox) RecordCell(ctx context.Context, id, language, code string, run func() (failed bool, err error)) error {
	if err := s.d.ready(); err != nil {
		return err
	}
	what := s.deed("cell.run", id)
	what.args = []string{language, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(code))), strconv.Itoa(len(code)), "ended"}
	failed, err := run()
	switch {
	case err != nil:
		what.args[3] = "cut"
	case failed:
		what.args[3] = "failed"
	}
	s.d.tell(ctx, what, err)
	return err
}

func (s *sandbox) FS() paddock.FS { return files{s.Sandbox.FS(), s} }

func (s *sandbox) Dial(ctx context.Context, port int) (c net.Conn, err error) {
	err = s.do(ctx, "port.dial", strconv.Itoa(port), func() error {
		c, err = s.Sandbox.Dial(ctx, port)
		return err
	})
	return c, err
}

func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	return s.do(ctx, "sandbox.update", "", func() error { return s.Sandbox.Update(ctx, u) })
}

func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (id paddock.SnapshotID, err error) {
	if err := s.d.ready(); err != nil {
		return "", err
	}
	id, err = s.Sandbox.Snapshot(ctx, o)
	s.d.tell(ctx, s.deed("sandbox.snapshot", string(id)), err)
	return id, err
}

func (s *sandbox) Pause(ctx context.Context) error {
	return s.do(ctx, "sandbox.pause", "", func() error { return s.Sandbox.Pause(ctx) })
}

func (s *sandbox) Resume(ctx context.Context) error {
	return s.do(ctx, "sandbox.resume", "", func() error { return s.Sandbox.Resume(ctx) })
}

// Remove also removes a sandbox if it cannot record that, because a removal discloses
// nothing.
func (s *sandbox) Remove(ctx context.Context) error {
	err := s.Sandbox.Remove(ctx)
	s.d.tell(ctx, s.deed("sandbox.remove", ""), err)
	return err
}

// A process records its signals and input.
type process struct {
	paddock.Process
	s  *sandbox
	in io.WriteCloser
}

func newProcess(ctx context.Context, p paddock.Process, s *sandbox) paddock.Process {
	pid := strconv.Itoa(int(p.ID()))
	ctx = context.WithoutCancel(ctx) // the caller of Start or Attach writes the input
	in := &input{WriteCloser: p.Input(), d: s.d, first: sync.OnceFunc(func() { s.d.tell(ctx, s.deed("process.input", pid), nil) })}
	return &process{p, s, in}
}

func (p *process) Input() io.WriteCloser { return p.in }

func (p *process) Signal(ctx context.Context, sig syscall.Signal) error {
	target := strconv.Itoa(int(p.ID())) + " " + strconv.Itoa(int(sig))
	return p.s.do(ctx, "process.signal", target, func() error { return p.Process.Signal(ctx, sig) })
}

// An input records its first use.
type input struct {
	io.WriteCloser
	d     *driver
	first func()
}

func (w *input) Write(b []byte) (int, error) {
	if err := w.d.ready(); err != nil {
		return 0, err
	}
	n, err := w.WriteCloser.Write(b)
	if n > 0 {
		w.first()
	}
	return n, err
}

// files records changes and reads of files.
type files struct {
	paddock.FS
	s *sandbox
}

func (f files) Open(ctx context.Context, name string, o paddock.OpenOptions) (r io.ReadCloser, err error) {
	err = f.s.do(ctx, "file.read", name, func() error {
		r, err = f.FS.Open(ctx, name, o)
		return err
	})
	return r, err
}

func (f files) Create(ctx context.Context, name string, o paddock.CreateOptions) (w io.WriteCloser, err error) {
	err = f.s.do(ctx, "file.write", name, func() error {
		w, err = f.FS.Create(ctx, name, o)
		return err
	})
	return w, err
}

func (f files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	return f.s.do(ctx, "file.mkdir", name, func() error { return f.FS.Mkdir(ctx, name, o) })
}

// two runs an action with two names.
func (f files) two(ctx context.Context, what, name, other string, call func() error) error {
	d := f.s.deed(what, name)
	d.args = []string{other}
	return f.s.d.do(ctx, d, call)
}

func (f files) Rename(ctx context.Context, from, to string) error {
	return f.two(ctx, "file.rename", from, to, func() error { return f.FS.Rename(ctx, from, to) })
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	return f.s.do(ctx, "file.remove", name, func() error { return f.FS.Remove(ctx, name, all) })
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.s.do(ctx, "file.chmod", name, func() error { return f.FS.Chmod(ctx, name, mode) })
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	return f.two(ctx, "file.symlink", name, target, func() error { return f.FS.Symlink(ctx, target, name) })
}
