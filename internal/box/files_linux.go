package box

import (
	"context"
	"io"
	"io/fs"
	"iter"

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
	return in.Create(ctx, name, o)
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
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	return in.Mkdir(ctx, name, o)
}

func (f files) Rename(ctx context.Context, from, to string) error {
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	return in.Rename(ctx, from, to)
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	return in.Remove(ctx, name, all)
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	return in.Chmod(ctx, name, mode)
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	in, err := f.fs(ctx)
	if err != nil {
		return err
	}
	return in.Symlink(ctx, target, name)
}

func (f files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	in, err := f.fs(ctx)
	if err != nil {
		return nil, err
	}
	return in.Watch(ctx, name, o)
}
