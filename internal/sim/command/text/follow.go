package text

import (
	"context"
	"errors"
	"io"
	"path"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A follow says how tail goes on at the end.
type follow struct {
	on, name, retry bool
	pid             int
}

func (f *follow) by(how string) bool {
	switch how {
	case "":
		return false
	case "descriptor"[:min(len(how), 10)]:
		f.name = false
	case "name"[:min(len(how), 4)]:
		f.name = true
	default:
		return false
	}
	return true
}

// A followed file is one that tail waits for. r is nil while there is none.
type followed struct {
	name string
	r    *command.Reader
	f    *vfs.File
	ino  vfs.Ino
	at   int64
}

func (x *tail) following(names []string) int {
	status := 0
	device := false
	var list []*followed
	defer func() {
		for _, f := range list {
			if f.r != nil {
				f.r.Close()
			}
		}
	}()
	for _, name := range names {
		r, err := command.OpenReader(x.t, name)
		if err != nil {
			command.ComplainFile(x.t, slicing.Open, name, err)
			status = 1
			if x.follow.retry && x.follow.name {
				list = append(list, &followed{name: name})
			}
			continue
		}
		f := &followed{name: name, r: r}
		list = append(list, f)
		x.one(name, r)
		if err := r.Err(); err != nil {
			command.ComplainFile(x.t, slicing.Read, name, err)
			status = 1
		}
		f.settle()
		if f.f == nil {
			// A pipe has been read to its end; there will be no more. Of a
			// device nobody knows.
			if i, err := x.t.View.Stat(name); err == nil && i.Mode&linux.S_IFMT == linux.S_IFCHR {
				device = true
			}
			r.Close()
			f.r = nil
			list = list[:len(list)-1]
		}
	}
	for len(list) == 0 && device && x.follow.pid == 0 {
		if err := x.t.Until(func() bool { return false }); err != nil && err != linux.EINTR {
			return 1
		}
		x.t.Caught() // tail handles none
	}
	if len(list) == 0 {
		if status != 0 {
			x.t.Errorf("no files remaining")
		}
		return status
	}
	x.shown = list[len(list)-1]
	w := newWaker(x.t)
	defer w.close()
	for _, f := range list {
		w.watch(f, x.follow.name)
	}
	var died <-chan struct{}
	if x.follow.pid != 0 {
		if other, ok := x.t.K.Task(x.follow.pid); ok {
			died = other.Done()
			w.ends(died)
		}
	}
	for {
		x.w.Flush()
		gone := x.follow.pid != 0 && ended(died)
		moved := false
		for _, f := range list {
			if x.look(f) {
				moved = true
			}
		}
		switch {
		case moved:
		case gone:
			return status
		default:
			w.wait()
		}
	}
}

// ended reports whether a task has ended; nil is one that there never was.
func ended(done <-chan struct{}) bool {
	if done == nil {
		return true
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A waker wakes a task when one of several files changes. Whoever makes one
// closes it, which waits for its goroutines.
type waker struct {
	t      *kernel.Task
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ready  chan struct{}
	blind  bool // there are files that cannot be watched
}

func newWaker(t *kernel.Task) *waker {
	w := &waker{t: t, ready: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *waker) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// watch watches a file, or with name the directory that its name stands in.
func (w *waker) watch(f *followed, name bool) {
	at := f.name
	if name {
		at = path.Dir(f.name)
	} else if f.name == "-" {
		w.blind = true
		return
	}
	watch, err := w.t.View.Watch(at, false)
	if err != nil {
		w.blind = true
		return
	}
	w.wg.Go(func() {
		defer func() { _ = watch.Close() }() // nothing is kept in it
		for {
			if _, err := watch.Next(w.ctx); err != nil {
				return
			}
			w.wake()
		}
	})
}

// ends wakes when a task has ended.
func (w *waker) ends(done <-chan struct{}) {
	w.wg.Go(func() {
		select {
		case <-done:
			w.wake()
		case <-w.ctx.Done():
		}
	})
}

// wait waits for a change; of what cannot be watched, for the time in which
// there may have been one.
func (w *waker) wait() {
	var deadline time.Time
	if w.blind {
		deadline = time.Now().Add(100 * time.Millisecond)
	}
	if err := w.t.Await(w.ready, deadline); errors.Is(err, linux.EPIPE) {
		w.t.Exit(1)
	}
}

func (w *waker) close() {
	w.cancel()
	w.wg.Wait()
}

// settle notes where the file stands.
func (f *followed) settle() {
	file, ok := f.r.Desc().VFS()
	if !ok {
		return
	}
	f.f, f.ino = file, file.Ino()
	f.at, _ = file.Seek(0, io.SeekCurrent) // it can seek
}

// look shows what is new in a file.
func (x *tail) look(f *followed) bool {
	if x.follow.name {
		x.again(f)
	}
	if f.r == nil {
		return false
	}
	i, err := f.f.Info()
	if err != nil {
		return false
	}
	if i.Size < f.at {
		x.t.Errorf("%s: file truncated", command.QuoteFile(f.name))
		f.at = 0
	}
	if i.Size == f.at {
		return false
	}
	if x.shown != f {
		x.header(f.name)
		x.shown = f
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := f.f.ReadAt(buf, f.at)
		x.t.Step(1 + n>>6)
		x.w.Bytes(buf[:n])
		f.at += int64(n)
		if n == 0 || err != nil {
			return true
		}
	}
}

// again sees whether the name leads to another file now.
func (x *tail) again(f *followed) {
	i, err := x.t.View.Stat(f.name)
	quoted := command.QuoteAlways(f.name)
	switch {
	case err != nil && f.r != nil:
		x.t.Errorf("%s has become inaccessible: %s", quoted, vfs.Message(err))
		f.r.Close()
		f.r = nil
		if !x.follow.retry {
			x.t.Errorf("no files remaining")
			x.t.Exit(1)
		}
		return
	case err != nil || f.r != nil && i.Ino == f.ino || !i.IsRegular():
		return
	}
	r, err := command.OpenReader(x.t, f.name)
	if err != nil {
		return
	}
	if f.r != nil {
		x.t.Errorf("%s has been replaced;  following new file", quoted)
		f.r.Close()
	} else {
		x.t.Errorf("%s has appeared;  following new file", quoted)
	}
	f.r = r
	f.settle()
}
