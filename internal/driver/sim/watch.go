package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func (f *files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	v, err := f.begin(ctx, "watch", name)
	if err != nil {
		return nil, err
	}
	defer f.done()
	w, err := v.Watch(name, o.Recursive)
	if err != nil {
		return nil, failed("watch", name, err)
	}
	x := &watcher{b: f.b, name: name, w: w, closed: make(chan struct{})}
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.b.watchers[x] = true
	return x, nil
}

// A watcher gives the changes of a part of the tree to the outside.
type watcher struct {
	b      *box
	name   string
	w      *vfs.Watch
	closed chan struct{}
}

func (w *watcher) Next(ctx context.Context) (paddock.Event, error) {
	e, err := w.w.Next(ctx)
	switch {
	case err == linux.EBADF && w.b.removed():
		return paddock.Event{}, fmt.Errorf("sandbox %s was removed: %w", w.b.id, paddock.Unavailable)
	case err == linux.EBADF:
		return paddock.Event{}, fmt.Errorf("the watcher is closed: %w", paddock.Canceled)
	case err != nil:
		return paddock.Event{}, ended(ctx, "watch "+w.name)
	}
	out := paddock.Event{Name: e.Path, Lost: e.Lost}
	if !strings.HasPrefix(out.Name, "/") {
		out.Name = "/" + out.Name
	}
	switch e.Op {
	case vfs.Made:
		out.Op = paddock.EventCreate
	case vfs.Written:
		out.Op = paddock.EventWrite
	case vfs.Removed:
		out.Op = paddock.EventRemove
	case vfs.Moved:
		out.Op = paddock.EventRename
	case vfs.Changed:
		out.Op = paddock.EventChmod
	}
	return out, nil
}

func (w *watcher) Close() error {
	w.b.mu.Lock()
	delete(w.b.watchers, w)
	w.b.mu.Unlock()
	return w.w.Close()
}
