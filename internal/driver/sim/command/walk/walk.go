// Package walk goes through trees of files, as deep as they are: it goes down
// by working directories and keeps its place in a list, so that neither the
// length of a path nor a stack ends it.
package walk

import (
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Follow says which symbolic links are followed.
type Follow uint8

// Which links are followed.
const (
	Never Follow = iota
	Roots        // those that are named as roots
	All
)

// An Order is what to do after a visit.
type Order uint8

// What to do after a visit.
const (
	Next Order = iota // go on, into the directory if it is one
	Skip              // go on, but not into the directory
	Stop              // end the walk
)

// Options say how to walk.
type Options struct {
	Follow Follow
	OneDev bool // directories of other file systems are visited but not entered
	Post   bool // directories are visited once more after what they hold
	Bare   bool // directories that cannot be entered are not told of

	// Bounded says that directories at MaxDepth are not entered.
	Bounded  bool
	MaxDepth int
}

// What a visit is for.
type What uint8

// What a visit is for.
const (
	Here   What = iota // the file, before what it holds
	After              // a directory after what it holds
	Failed             // a directory that could not be read: Err says why
	Loop               // a directory that holds itself, by links
	Lost               // a file that cannot be described: Err says why
)

// An Entry is a file that is visited.
type Entry struct {
	What  What
	In    *vfs.View // whose working directory holds it
	Name  string    // within In
	Path  string    // from the root as it was named
	Info  vfs.Info  // of a link's target where links are followed
	Err   error
	Depth int
	Link  bool // it is a symbolic link that was followed
}

type level struct {
	view  vfs.View
	names []string
	entry Entry // the directory
	deaf  error // why nothing in it can be looked at
}

// Walk visits root and all below it. The view of the first entry is the
// task's; names within a directory come in order of bytes.
func Walk(t *proc.Task, root string, o Options, visit func(*Entry) Order) {
	view := t.View
	w := walker{t: t, o: o, visit: visit}
	e := Entry{In: &view, Name: root, Path: root}
	t.Traverse(1)
	if err := w.describe(&e, o.Follow != Never); err != nil {
		e.What, e.Err = Lost, err
		visit(&e)
		return
	}
	w.dev = e.Info.Dev
	if !w.enter(e) {
		return
	}
	for len(w.stack) > 0 {
		if !w.step() {
			return
		}
	}
}

type walker struct {
	t     *proc.Task
	o     Options
	visit func(*Entry) Order
	dev   uint64
	stack []level
}

// describe fills in Info. A link whose target is missing is described itself.
func (w *walker) describe(e *Entry, follow bool) error {
	i, err := e.In.Lstat(e.Name)
	if err != nil {
		return err
	}
	if i.IsLink() && follow {
		target, err := e.In.Stat(e.Name)
		switch err {
		case nil:
			i, e.Link = target, true
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
		default:
			return err
		}
	}
	e.Info = i
	return nil
}

func (w *walker) step() bool {
	top := &w.stack[len(w.stack)-1]
	if len(top.names) == 0 {
		e := top.entry
		w.stack = w.stack[:len(w.stack)-1]
		if !w.o.Post {
			return true
		}
		e.What = After
		return w.visit(&e) != Stop
	}
	name := top.names[0]
	top.names[0] = ""
	top.names = top.names[1:]
	w.t.Traverse(1)
	e := Entry{In: &top.view, Name: name, Path: Join(top.entry.Path, name), Depth: top.entry.Depth + 1}
	w.t.Step(len(e.Path) >> 6)
	err := top.deaf
	if err == nil {
		err = w.describe(&e, w.o.Follow == All)
	}
	if err == syscall.ENOENT {
		return true // it went meanwhile
	}
	if err != nil {
		e.What, e.Err = Lost, err
		return w.visit(&e) != Stop
	}
	return w.enter(e)
}

// enter visits a file and opens it if it is a directory to go into.
func (w *walker) enter(e Entry) bool {
	if w.o.Follow == All && e.Info.IsDir() && w.within(e.Info) {
		e.What = Loop
		return w.visit(&e) != Stop
	}
	switch w.visit(&e) {
	case Stop:
		return false
	case Skip:
		return true
	case Next:
	}
	if !e.Info.IsDir() || w.o.Bounded && e.Depth >= w.o.MaxDepth || w.o.OneDev && e.Info.Dev != w.dev {
		return !w.o.Post || !e.Info.IsDir() || w.after(e)
	}
	l := level{view: *e.In, entry: e}
	err := l.view.Chdir(e.Name)
	if err == nil && l.view.Dir != e.Info.Ino && e.Info.Ino != 0 {
		err = syscall.ENOENT // something else stands there now
	}
	switch err {
	case nil:
		l.names, err = l.view.Names(".")
	case syscall.EACCES:
		if l.names, err = e.In.Names(e.Name); err == nil {
			l.deaf = syscall.EACCES
		}
	}
	if err != nil && !w.o.Bare {
		failed := e
		failed.What, failed.Err = Failed, err
		if w.visit(&failed) == Stop {
			return false
		}
	}
	if err != nil {
		return !w.o.Post || w.after(e)
	}
	w.stack = append(w.stack, l)
	return true
}

func (w *walker) after(e Entry) bool {
	e.What = After
	return w.visit(&e) != Stop
}

func (w *walker) within(i vfs.Info) bool {
	w.t.Step(len(w.stack) >> 3)
	for n := range w.stack {
		if d := &w.stack[n].entry.Info; d.Ino == i.Ino && d.Dev == i.Dev {
			return true
		}
	}
	return false
}

// Join puts a name behind a directory's.
func Join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
