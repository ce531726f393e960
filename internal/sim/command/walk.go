package command

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// WalkFollow says which symbolic links are followed.
type WalkFollow uint8

// Which links are followed.
const (
	FollowNever WalkFollow = iota
	FollowRoots            // those that are named as roots
	FollowAll
)

// A WalkOrder says how a walk continues after a visit.
type WalkOrder uint8

// How a walk continues.
const (
	WalkNext WalkOrder = iota // go on, into the directory if it is one
	WalkSkip                  // go on, but not into the directory
	WalkStop                  // end the walk
)

// WalkOptions configure a walk.
type WalkOptions struct {
	Follow WalkFollow
	OneDev bool // directories of other file systems are visited but not entered
	Post   bool // directories are visited once more after what they hold
	Bare   bool // directories that cannot be entered are not told of

	// Bounded says that directories at MaxDepth are not entered.
	Bounded  bool
	MaxDepth int
}

// WalkVisit is the reason of a visit.
type WalkVisit uint8

// The reasons of a visit.
const (
	VisitBefore WalkVisit = iota // the file, before what it holds
	VisitAfter                   // a directory after what it holds
	VisitFailed                  // a directory that could not be read: Err says why
	VisitLoop                    // a directory that holds itself, by links
	VisitLost                    // a file that cannot be described: Err says why
)

// A WalkEntry is one visit of a file.
type WalkEntry struct {
	What  WalkVisit
	In    *vfs.View // whose working directory holds it
	Name  string    // within In
	Path  string    // from the root as it was named
	Info  vfs.Info  // of a link's target where links are followed
	Err   error
	Depth int
	Link  bool // it is a symbolic link that was followed
}

type walkLevel struct {
	view  vfs.View
	names []string
	entry WalkEntry // the directory
	deaf  error     // why nothing in it can be looked at
}

// Walk visits root and everything below it, names in a directory in byte order.
// The view of the first entry is the task's. A walk descends by working
// directories and keeps its position in a list, so that neither the length of a
// path nor the Go stack limits its depth.
func Walk(t *kernel.Task, root string, o WalkOptions, visit func(*WalkEntry) WalkOrder) {
	view := t.View
	w := walker{t: t, o: o, visit: visit}
	e := WalkEntry{In: &view, Name: root, Path: root}
	t.Traverse(1)
	if err := w.describe(&e, o.Follow != FollowNever); err != nil {
		e.What, e.Err = VisitLost, err
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
	t     *kernel.Task
	o     WalkOptions
	visit func(*WalkEntry) WalkOrder
	dev   uint64
	stack []walkLevel
}

// describe fills in Info. A link whose target is missing is described itself.
func (w *walker) describe(e *WalkEntry, follow bool) error {
	i, err := e.In.Lstat(e.Name)
	if err != nil {
		return err
	}
	if i.IsLink() && follow {
		target, err := e.In.Stat(e.Name)
		switch err {
		case nil:
			i, e.Link = target, true
		case linux.ENOENT, linux.ENOTDIR, linux.ELOOP:
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
		e.What = VisitAfter
		return w.visit(&e) != WalkStop
	}
	name := top.names[0]
	top.names[0] = ""
	top.names = top.names[1:]
	w.t.Traverse(1)
	e := WalkEntry{In: &top.view, Name: name, Path: JoinPath(top.entry.Path, name), Depth: top.entry.Depth + 1}
	w.t.Step(len(e.Path) >> 6)
	err := top.deaf
	if err == nil {
		err = w.describe(&e, w.o.Follow == FollowAll)
	}
	if err == linux.ENOENT {
		return true // it went meanwhile
	}
	if err != nil {
		e.What, e.Err = VisitLost, err
		return w.visit(&e) != WalkStop
	}
	return w.enter(e)
}

// enter visits a file and opens it if it is a directory to go into.
func (w *walker) enter(e WalkEntry) bool {
	if w.o.Follow == FollowAll && e.Info.IsDir() && w.within(e.Info) {
		e.What = VisitLoop
		return w.visit(&e) != WalkStop
	}
	switch w.visit(&e) {
	case WalkStop:
		return false
	case WalkSkip:
		return true
	case WalkNext:
	}
	if !e.Info.IsDir() || w.o.Bounded && e.Depth >= w.o.MaxDepth || w.o.OneDev && e.Info.Dev != w.dev {
		return !w.o.Post || !e.Info.IsDir() || w.after(e)
	}
	l := walkLevel{view: *e.In, entry: e}
	err := l.view.Chdir(e.Name)
	if err == nil && l.view.Dir != e.Info.Ino && e.Info.Ino != 0 {
		err = linux.ENOENT // something else stands there now
	}
	switch err {
	case nil:
		l.names, err = l.view.Names(".")
	case linux.EACCES:
		if l.names, err = e.In.Names(e.Name); err == nil {
			l.deaf = linux.EACCES
		}
	}
	if err != nil && !w.o.Bare {
		failed := e
		failed.What, failed.Err = VisitFailed, err
		if w.visit(&failed) == WalkStop {
			return false
		}
	}
	if err != nil {
		return !w.o.Post || w.after(e)
	}
	w.stack = append(w.stack, l)
	return true
}

func (w *walker) after(e WalkEntry) bool {
	e.What = VisitAfter
	return w.visit(&e) != WalkStop
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

// JoinPath appends a name to the path of a directory.
func JoinPath(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
