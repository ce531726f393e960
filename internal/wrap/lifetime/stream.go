package lifetime

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"net"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// A process counts as activity, and counts the callers attached to it.
type process struct {
	paddock.Process
	e      *entry
	detach func() // ends the counting of the caller, once

	writing context.Context // of input, while it waits for the sandbox; ends with Release and with the input's Close
	written context.CancelFunc
}

func (e *entry) process(p paddock.Process, out paddock.Output) paddock.Process {
	c := &process{Process: p, e: e, detach: func() {}}
	c.writing, c.written = context.WithCancel(context.Background())
	if !out.Detached {
		pid := p.ID()
		e.attach(pid, 1)
		c.detach = sync.OnceFunc(func() { e.attach(pid, -1) })
	}
	return c
}

func (p *process) Input() io.WriteCloser { return input{p.Process.Input(), p} }

func (p *process) Wait(ctx context.Context) (paddock.Exit, error) {
	exit, err := p.e.waitFor(ctx, p.Process)
	if err != nil {
		return exit, p.e.told(err)
	}
	p.detach()
	if exit.Cause == paddock.SandboxGone {
		p.e.mu.Lock()
		defer p.e.mu.Unlock()
		if why := p.e.rec.Ending; why != "" {
			exit.Reason = "the sandbox was removed " + p.e.rec.words(why)
		}
	}
	return exit, nil
}

func (p *process) Signal(ctx context.Context, sig syscall.Signal) error {
	done, err := p.e.begin(ctx, true)
	if err != nil {
		return err
	}
	defer done()
	return p.e.told(p.Process.Signal(ctx, sig))
}

func (p *process) Resize(ctx context.Context, size paddock.Size) error {
	done, err := p.e.begin(ctx, true)
	if err != nil {
		return err
	}
	defer done()
	return p.e.told(p.Process.Resize(ctx, size))
}

func (p *process) Release() {
	p.written()
	p.Process.Release()
	p.detach()
}

// An input resumes the sandbox at a write. A write that waits for that is given up by Close, and by the process's
// Release, as one that waits for the process is.
type input struct {
	io.WriteCloser
	p *process
}

func (w input) Write(b []byte) (int, error) {
	e := w.p.e
	ctx, cancel := context.WithCancel(w.p.writing)
	defer cancel()
	defer context.AfterFunc(e.d.ctx, cancel)()
	done, err := e.begin(ctx, true)
	if err != nil {
		return 0, err
	}
	defer done()
	return w.WriteCloser.Write(b)
}

func (w input) Close() error {
	w.p.written()
	return w.WriteCloser.Close()
}

// files counts each call as activity.
type files struct {
	paddock.FS
	e *entry
}

// within makes a call that counts as activity.
func (f files) within(ctx context.Context, call func() error) error {
	done, err := f.e.begin(ctx, true)
	if err != nil {
		return err
	}
	defer done()
	return f.e.told(call())
}

func (f files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	done, err := f.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	r, err := f.FS.Open(ctx, name, o)
	if err != nil {
		done()
		return nil, f.e.told(err)
	}
	return reader{r, done}, nil
}

func (f files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	done, err := f.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	w, err := f.FS.Create(ctx, name, o)
	if err != nil {
		done()
		return nil, f.e.told(err)
	}
	return writer{w, done}, nil
}

func (f files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	done, err := f.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	w, err := f.FS.Watch(ctx, name, o)
	if err != nil {
		done()
		return nil, f.e.told(err)
	}
	return watcher{w, done}, nil
}

func (f files) Stat(ctx context.Context, name string) (info paddock.FileInfo, err error) {
	err = f.within(ctx, func() error {
		info, err = f.FS.Stat(ctx, name)
		return err
	})
	return info, err
}

func (f files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		done, err := f.e.begin(ctx, true)
		if err != nil {
			yield(paddock.FileInfo{}, err)
			return
		}
		defer done()
		for info, err := range f.FS.List(ctx, name, depth) {
			if !yield(info, f.e.told(err)) {
				return
			}
		}
	}
}

func (f files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	return f.within(ctx, func() error { return f.FS.Mkdir(ctx, name, o) })
}

func (f files) Rename(ctx context.Context, from, to string) error {
	return f.within(ctx, func() error { return f.FS.Rename(ctx, from, to) })
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	return f.within(ctx, func() error { return f.FS.Remove(ctx, name, all) })
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.within(ctx, func() error { return f.FS.Chmod(ctx, name, mode) })
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	return f.within(ctx, func() error { return f.FS.Symlink(ctx, target, name) })
}

// Open files, watchers and connections count as activity until they are closed.

type reader struct {
	io.ReadCloser
	done func()
}

func (r reader) Close() error {
	defer r.done()
	return r.ReadCloser.Close()
}

type writer struct {
	io.WriteCloser
	done func()
}

func (w writer) Close() error {
	defer w.done()
	return w.WriteCloser.Close()
}

type watcher struct {
	paddock.Watcher
	done func()
}

func (w watcher) Close() error {
	defer w.done()
	return w.Watcher.Close()
}

type conn struct {
	net.Conn
	done func()
}

func (c conn) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// A halfConn is a connection with CloseWrite.
type halfConn struct {
	conn
	half interface{ CloseWrite() error }
}

func (c halfConn) CloseWrite() error { return c.half.CloseWrite() }

func newConn(c net.Conn, done func()) net.Conn {
	counted := conn{c, done}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return halfConn{counted, half}
	}
	return counted
}
