package observe

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/paddock-sandbox/paddock"
)

// files are the files of an observed sandbox.
type files struct {
	inner paddock.FS
	s     *site
}

func (f *files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	return ask(ctx, f.s, FileOpen, func(ctx context.Context) (io.ReadCloser, error) { return f.inner.Open(ctx, name, o) })
}

func (f *files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	return ask(ctx, f.s, FileCreate, func(ctx context.Context) (io.WriteCloser, error) { return f.inner.Create(ctx, name, o) })
}

func (f *files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	return ask(ctx, f.s, FileStat, func(ctx context.Context) (paddock.FileInfo, error) { return f.inner.Stat(ctx, name) })
}

// List is reported at the end of the iteration.
func (f *files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		ctx, end := f.s.begin(ctx, FileList)
		var last error
		defer func() { end(last) }()
		for info, err := range f.inner.List(ctx, name, depth) {
			last = err
			if !yield(info, err) {
				return
			}
		}
	}
}

func (f *files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	return f.s.do(ctx, FileMkdir, func(ctx context.Context) error { return f.inner.Mkdir(ctx, name, o) })
}

func (f *files) Rename(ctx context.Context, from, to string) error {
	return f.s.do(ctx, FileRename, func(ctx context.Context) error { return f.inner.Rename(ctx, from, to) })
}

func (f *files) Remove(ctx context.Context, name string, all bool) error {
	return f.s.do(ctx, FileRemove, func(ctx context.Context) error { return f.inner.Remove(ctx, name, all) })
}

func (f *files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.s.do(ctx, FileChmod, func(ctx context.Context) error { return f.inner.Chmod(ctx, name, mode) })
}

func (f *files) Symlink(ctx context.Context, target, name string) error {
	return f.s.do(ctx, FileSymlink, func(ctx context.Context) error { return f.inner.Symlink(ctx, target, name) })
}

func (f *files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	return ask(ctx, f.s, FileWatch, func(ctx context.Context) (paddock.Watcher, error) { return f.inner.Watch(ctx, name, o) })
}
