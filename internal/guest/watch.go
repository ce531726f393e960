package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"connectrpc.com/connect"
	"github.com/fsnotify/fsnotify"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

func (h *handler) Watch(ctx context.Context, req *connect.Request[guestpb.WatchRequest], out *connect.ServerStream[guestpb.WatchResponse]) error {
	name, err := checkName("watch", req.Msg.Name)
	if err != nil {
		return err
	}
	var w *watch
	err = h.within(ctx, func(f *files) (err error) { w, err = f.watch(ctx, h.s.turns, name, req.Msg.Recursive); return err })
	if err != nil {
		return err
	}
	defer w.close()
	if err := out.Send(&guestpb.WatchResponse{}); err != nil {
		return err
	}
	for {
		events, err := w.next(ctx)
		if err != nil {
			return err
		}
		if err := out.Send(&guestpb.WatchResponse{Events: events}); err != nil {
			return err
		}
	}
}

// A watch collects what changes below one name. A file is watched by the
// directory that holds it, so that it may be replaced by another of its name.
type watch struct {
	asked     string // the name that events carry
	real      string // what it is without links
	single    bool   // one file, not a directory
	recursive bool
	queue     *eventQueue
	notify    *fsnotify.Watcher
	done      chan struct{} // closed when run has ended

	// Used by run only, and before it by watch.

	// dirs are the directories with a kernel watch, by real path.
	dirs map[string]struct{}
	// told are files whose creation was told because they were found in a new
	// directory, and for which the kernel may tell it once more.
	told map[string]struct{}
	// moved is the name that was last told to be renamed. The kernel tells it
	// twice for directories: once above it, once in it.
	moved string
}

// maxTold bounds watch.told. Beyond it a creation may be told twice.
const maxTold = 16 << 10

// watch begins to watch. The caller closes it.
func (f *files) watch(ctx context.Context, t turns, name string, recursive bool) (*watch, error) {
	w := &watch{
		asked: tidy(name), recursive: recursive, queue: newEventQueue(),
		done: make(chan struct{}), dirs: map[string]struct{}{}, told: map[string]struct{}{},
	}
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return nil, failed("watch", name, err)
	}
	st, err := sys.StatAt(p.fd(), p.base)
	above := ""
	if err == nil {
		above, err = sys.PathOf(p.fd())
	}
	p.close()
	if err != nil {
		return nil, failed("watch", name, err)
	}
	w.real = join(above, p.base)
	w.single = st.Mode&syscall.S_IFMT != syscall.S_IFDIR

	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		return nil, exhausted(name, err)
	}
	if w.single {
		err = w.add(above)
	} else {
		err = w.addTree(w.real, false)
	}
	if err != nil {
		_ = w.notify.Close()
		return nil, exhausted(name, err)
	}
	go func() {
		defer close(w.done)
		w.queue.end(w.run(ctx, t))
	}()
	return w, nil
}

func (w *watch) close() {
	_ = w.notify.Close()
	<-w.done
}

// next waits for events.
func (w *watch) next(ctx context.Context) ([]*guestpb.FileEvent, error) {
	events, lost, err := w.queue.take(ctx)
	if err != nil {
		return nil, err
	}
	if lost {
		// What was lost came last: it is told by an event of its own, so that
		// the loss is known even if nothing happens any more.
		events = append(events, &guestpb.FileEvent{Op: guestpb.FileOp_FILE_OP_WRITE, Name: []byte(w.asked), Lost: true})
	}
	return events, nil
}

// run collects events until the watch is closed.
func (w *watch) run(ctx context.Context, t turns) error {
	for {
		select {
		case event, ok := <-w.notify.Events:
			if !ok {
				return context.Canceled
			}
			if err := t.do(ctx, func() error { return w.take(event) }); err != nil {
				return err
			}
		case err, ok := <-w.notify.Errors:
			switch {
			case !ok:
				return context.Canceled
			case errors.Is(err, fsnotify.ErrEventOverflow):
				w.queue.lose()
			default:
				return failed("watch", w.asked, err)
			}
		}
	}
}

func (w *watch) take(event fsnotify.Event) error {
	name := event.Name
	if w.single && name != w.real {
		return nil
	}
	_, isDir := w.dirs[name]
	switch {
	case event.Has(fsnotify.Create):
		if w.moved == name {
			w.moved = ""
		}
		if _, ok := w.told[name]; ok {
			delete(w.told, name)
		} else {
			w.put(guestpb.FileOp_FILE_OP_CREATE, name)
		}
		if w.recursive && !w.single {
			return exhausted(w.asked, w.addTree(name, true))
		}
	case event.Has(fsnotify.Write):
		w.put(guestpb.FileOp_FILE_OP_WRITE, name)
	case event.Has(fsnotify.Remove):
		delete(w.told, name)
		if isDir {
			w.forget(name)
		}
		w.put(guestpb.FileOp_FILE_OP_REMOVE, name)
	case event.Has(fsnotify.Rename):
		delete(w.told, name)
		if isDir {
			// What is below it has other names now. Where it comes back into
			// sight, it is added again.
			w.forget(name)
		}
		if w.moved != name {
			w.put(guestpb.FileOp_FILE_OP_RENAME, name)
		}
		w.moved = name
	case event.Has(fsnotify.Chmod):
		w.put(guestpb.FileOp_FILE_OP_CHMOD, name)
	}
	return nil
}

// put queues an event under the name that was asked for.
func (w *watch) put(op guestpb.FileOp, name string) {
	if below, ok := strings.CutPrefix(name, w.real); ok {
		name = join(w.asked, strings.TrimPrefix(below, "/"))
	}
	w.queue.put(op, name)
}

func (w *watch) add(dir string) error {
	if err := w.notify.Add(dir); err != nil {
		return err
	}
	w.dirs[dir] = struct{}{}
	return nil
}

// addTree watches dir and, where the watch is recursive, the directories
// below. With tell, dir is new: what is found in it is told as created, and
// what has gone again is passed over.
func (w *watch) addTree(dir string, tell bool) error {
	for todo := []string{dir}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, watched := w.dirs[dir]; watched && tell {
			continue // found before its creation was told: all in it was told too, or will be
		}
		fd, err := sys.OpenAt(-1, dir, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
		if err == nil {
			// The kernel's watch first, then the look: so nothing is missed.
			if err = w.add(dir); err == nil && w.recursive {
				err = each(fd, func(base string) error {
					name := join(dir, base)
					st, err := sys.StatAt(fd, base)
					if gone(err) {
						return nil
					}
					if err != nil {
						return err
					}
					if tell {
						w.tell(name)
					}
					if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
						todo = append(todo, name)
					}
					return nil
				})
			}
			syscall.Close(fd)
		}
		first := !tell && len(w.dirs) <= 1
		switch {
		case err == nil:
		case errors.Is(err, syscall.ENOSPC):
			return err
		case errors.Is(err, syscall.ENAMETOOLONG):
			w.queue.lose() // deeper than any program can name
		case first || !tell && !gone(err):
			return failed("watch", dir, err)
		case !gone(err) && !errors.Is(err, syscall.EACCES):
			return failed("watch", dir, err)
		case errors.Is(err, syscall.EACCES):
			w.queue.lose()
		}
	}
	return nil
}

// tell tells the creation of what was found, once.
func (w *watch) tell(name string) {
	if _, ok := w.told[name]; ok {
		return
	}
	if len(w.told) >= maxTold {
		clear(w.told)
	}
	w.told[name] = struct{}{}
	w.put(guestpb.FileOp_FILE_OP_CREATE, name)
}

// forget drops the kernel's watches of dir and what is below.
func (w *watch) forget(dir string) {
	for name := range w.dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			_ = w.notify.Remove(name) // it may be gone already
			delete(w.dirs, name)
		}
	}
}

// gone tells whether err means that a directory was removed or replaced.
func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// exhausted names the kernel's limits, which its error numbers hide.
func exhausted(name string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return limit(name, "fs.inotify.max_user_watches", "directories to watch")
	case errors.Is(err, syscall.EMFILE):
		return limit(name, "fs.inotify.max_user_instances, or that of open files,", "watchers")
	}
	return failed("watch", name, err)
}

func limit(name, sysctl, what string) error {
	return &fileError{"watch", name, fmt.Sprintf("too many %s: the kernel's limit %s is reached", what, sysctl), paddock.Exhausted}
}

func join(dir, base string) string {
	switch {
	case base == "" || base == ".":
		return dir
	case dir == "/":
		return "/" + base
	}
	return dir + "/" + base
}
