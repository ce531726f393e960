package box

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// files is the paddock.FS of a sandbox: that of its present agent.
type files struct{ s *Sandbox }

func (f files) fs(ctx context.Context) (paddock.FS, error) {
	g, err := f.s.running(ctx)
	if err != nil {
		return nil, err
	}
	return g.FS(), nil
}

func (f files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	in, err := f.fs(ctx)
	if err != nil {
		return nil, err
	}
	return in.Open(ctx, name, o)
}

func (f files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	in, err := f.fs(ctx)
	if err != nil {
		return nil, err
	}
	if !f.s.records() {
		return in.Create(ctx, name, o)
	}
	end, err := f.s.step(ctx, fileStep, []string{"write", name})
	if err != nil {
		return nil, err
	}
	w, err := in.Create(ctx, name, o)
	if err != nil {
		end(ctx, exitOf(err))
		return nil, err
	}
	return &recordedFile{WriteCloser: w, end: func(exit *paddock.Exit) { end(ctx, exit) }}, nil
}

func (f files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	in, err := f.fs(ctx)
	if err != nil {
		return paddock.FileInfo{}, err
	}
	return in.Stat(ctx, name)
}

func (f files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		in, err := f.fs(ctx)
		if err != nil {
			yield(paddock.FileInfo{}, err)
			return
		}
		in.List(ctx, name, depth)(yield)
	}
}

func (f files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	return f.change(ctx, []string{"mkdir", name}, func(in paddock.FS) error { return in.Mkdir(ctx, name, o) })
}

func (f files) Rename(ctx context.Context, from, to string) error {
	return f.change(ctx, []string{"rename", from, to}, func(in paddock.FS) error { return in.Rename(ctx, from, to) })
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	return f.change(ctx, []string{"remove", name}, func(in paddock.FS) error { return in.Remove(ctx, name, all) })
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.change(ctx, []string{"chmod", mode.String(), name}, func(in paddock.FS) error { return in.Chmod(ctx, name, mode) })
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	return f.change(ctx, []string{"symlink", target, name}, func(in paddock.FS) error { return in.Symlink(ctx, target, name) })
}

func (f files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	in, err := f.fs(ctx)
	if err != nil {
		return nil, err
	}
	return in.Watch(ctx, name, o)
}

// change makes a call that may change files, as a step if the sandbox records them.
func (f files) change(ctx context.Context, command []string, call func(paddock.FS) error) error {
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	if !f.s.records() {
		return call(in)
	}
	end, err := f.s.step(ctx, fileStep, command)
	if err != nil {
		return err
	}
	err = call(in)
	end(ctx, exitOf(err))
	return err
}

// exitOf returns how a call ended, as the exit of a command.
func exitOf(err error) *paddock.Exit {
	if err != nil {
		return &paddock.Exit{Cause: paddock.Exited, Code: 1}
	}
	return &paddock.Exit{Cause: paddock.Exited}
}

// A recordedFile is a file whose writing is a step, which ends when the file is closed.
type recordedFile struct {
	io.WriteCloser
	end  func(*paddock.Exit)
	once sync.Once
}

func (w *recordedFile) Close() error {
	err := w.WriteCloser.Close()
	w.once.Do(func() { w.end(exitOf(err)) })
	return err
}
