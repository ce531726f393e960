package vfs

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// An Op says what happened to a file.
type Op string

// What can happen to a file.
const (
	Made    Op = "made"
	Written Op = "written"
	Removed Op = "removed"
	Moved   Op = "moved"   // the path is the old one; the new one is Made
	Changed Op = "changed" // its mode, owner or times
)

// An Event is one change of a file.
type Event struct {
	Op   Op
	Path string
	Lost bool // events before this one were dropped
}

// maxEvents is how many events wait for a reader.
const maxEvents = 8192

// A Watch tells what changes in a part of the tree.
type Watch struct {
	fs        *FS
	path      string
	ino       Ino
	dir       bool
	recursive bool

	mu     sync.Mutex
	queue  []Event       // guarded by mu
	closed bool          // guarded by mu
	wake   chan struct{} // has one element, or is closed, where there may be something
}

// Watch returns what changes from now on in a directory, or of one file.
// With recursive, also in directories below. Paths begin with the given one,
// without a slash at its end. It ends with Close.
func (v *View) Watch(path string, recursive bool) (*Watch, error) {
	w := &Watch{fs: v.FS, path: strings.TrimRight(path, "/"), recursive: recursive, wake: make(chan struct{}, 1)}
	err := v.FS.write(func(t *trip) error {
		p, err := v.find(t, path, following)
		switch {
		case err != nil:
			return err
		case p.read, !v.may(p.node, 4):
			return linux.EACCES
		case p.node.above != nil:
			return linux.EPERM
		}
		w.ino, w.dir = p.node.ino, p.node.isDir()
		v.FS.watches = append(slices.Clip(v.FS.watches), w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Watch watches with the rights of user 0.
func (f *FS) Watch(path string, recursive bool) (*Watch, error) {
	v := View{FS: f, Dir: Root}
	return v.Watch(path, recursive)
}

// Next waits for the next event. After Close it is EBADF.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := w.pop(); ok || err != nil {
			return e, err
		}
		select {
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		case <-w.wake:
		}
	}
}

func (w *Watch) pop() (Event, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return Event{}, false, linux.EBADF
	case len(w.queue) == 0:
		return Event{}, false, nil
	}
	e := w.queue[0]
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return e, true, nil
}

// Close ends the watch. Closing twice is fine.
func (w *Watch) Close() error {
	f := w.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches = slices.DeleteFunc(slices.Clone(f.watches), func(x *Watch) bool { return x == w })
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed, w.queue = true, nil
		close(w.wake)
	}
	return nil
}

func (w *Watch) push(op Op, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if n := len(w.queue); n > 0 && w.queue[n-1].Op == op && w.queue[n-1].Path == path && op == Written {
		return // the reader has not seen the one before yet
	}
	w.queue = append(w.queue, Event{Op: op, Path: path})
	if len(w.queue) > maxEvents {
		w.queue = w.queue[1:] // what is newest tells most
		w.queue[0].Lost = true
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell reports that something happened to n, which stands or stood as name in
// dir (nil if it is not at hand).
func (f *FS) tell(op Op, dir *node, name string, n *node) {
	if len(f.watches) > 0 {
		f.report(op, dir, name, n)
	}
}

// tellFile reports that something happened to a file whose name is not at hand.
func (f *FS) tellFile(op Op, n *node) {
	if len(f.watches) > 0 {
		f.report(op, nil, "", n)
	}
}

func (f *FS) report(op Op, dir *node, name string, n *node) {
	if dir == nil && n.ino != Root {
		dir, name = f.nodes.get(uint64(n.parent)), n.name
		if dir != nil {
			if ino, ok := dir.entries.get(name); !ok || ino != n.ino {
				dir = nil // it had another name, which is gone
			}
		}
	}
	for _, w := range f.watches {
		if w.ino == n.ino {
			w.push(op, w.shown(""))
		}
		if rest, ok := f.seen(dir, w); ok && w.dir {
			w.push(op, w.shown(rest+name))
		}
	}
}

// shown gives the path of something below what is watched.
func (w *Watch) shown(rest string) string {
	switch {
	case rest != "":
		return w.path + "/" + rest
	case w.path == "":
		return "/"
	}
	return w.path
}

// seen reports whether a watch sees what is in a directory, and the path from
// the one to the other, with a slash at its end if there is any.
func (f *FS) seen(d *node, w *Watch) (string, bool) {
	if d == nil {
		return "", false
	}
	if d.ino == w.ino {
		return "", true
	}
	if !w.recursive {
		return "", false
	}
	var parts []string
	size := 0
	for d.ino != w.ino {
		if size += len(d.name) + 1; d.ino == Root || size > maxPath {
			return "", false
		}
		parts = append(parts, d.name)
		if d = f.nodes.get(uint64(d.parent)); d == nil {
			return "", false
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/") + "/", true
}
