package step

import "errors"

// watch tells the watcher of a change.
func (r *Recorder) watch(w Watched) error { return Tell(r.j.opts.Watch, w) }

// Tell tells a watcher, which may be nil, of a change. [Refused] recognizes its error.
func Tell(to Watcher, w Watched) error {
	if to == nil {
		return nil
	}
	if err := to.Change(w); err != nil {
		return &refusedError{err}
	}
	return nil
}

// maxAsked bounds how many names are remembered of which the watcher was told that they change. Others are told each time.
const maxAsked = 100_000

// asked is a name of which the watcher was told that it changes, with what it is a name of.
type asked struct{ at, was key }

// watchChange tells the watcher of a change or a removal of what is at a present path: of each file once by each of its names,
// and of one with several names each time. It stands before all that may fail, so that nothing changes unknown to the watcher.
func (r *Recorder) watchChange(at key, verb Verb) error {
	if r.j.opts.Watch == nil {
		return nil
	}
	is, was, n := r.names.find(at)
	now, err := r.look(at)
	several := err != nil || now.Links > 1
	w := Watched{Root: at.root, Path: Text(at.path), Verb: verb}
	r.trace(&w, at, &now, err)
	switch linked := is == made && n != nil && n.link; {
	case linked && verb == Edited:
		was = n.was
		w.Was, w.WasRoot, w.Old = Text(was.path), was.root, true
	case is == made && (verb == Removed || !several): // what the step made, or a name that it made
		return nil
	case (is == gone || is == unknown) && err == nil && !now.Exists():
		return nil
	}
	k := asked{at, was}
	if verb == Edited && !several && r.asked[k] {
		return nil
	}
	if err := r.watch(w); err != nil {
		return err
	}
	if verb == Edited && len(r.asked) < maxAsked {
		r.asked[k] = true
	}
	return nil
}

// trace fills in what is known of the file at a path, and where it came from.
func (r *Recorder) trace(w *Watched, at key, now *State, unseen error) {
	if now.Links > 1 {
		w.Links, w.Inode = now.Links, [2]uint64{now.Dev, now.Ino}
	}
	is, was, _ := r.names.find(at)
	if up := at.parent(); (is == made || is == gone) && up.path != "" { // its directory may be one that was moved
		is, was, _ = r.names.find(up)
		was = was.in(at.path[len(up.path)+1:])
		if is != original && is != unknown {
			was = at
		}
	} else if is == made || is == gone {
		was = at
	}
	w.Old = unseen != nil || is == unknown || r.names.replaces(at)
	if is == original && was != at {
		w.Was, w.WasRoot, w.Old = Text(was.path), was.root, true
	}
}

// watchMade tells the watcher of what was made, which is there already: also the other name of a hard link.
func (r *Recorder) watchMade(at key, other *key) {
	if r.j.opts.Watch == nil {
		return
	}
	now, err := r.look(at)
	w := Watched{Root: at.root, Path: Text(at.path), Verb: Created, Link: err == nil && now.Kind == Symlink, Done: true}
	r.trace(&w, at, &now, err)
	if other != nil {
		w.From, w.FromRoot = Text(other.path), other.root
		if is, was, n := r.names.find(*other); is == original {
			w.Was, w.WasRoot = Text(was.path), was.root
		} else if is == made && n != nil && n.link {
			w.Was, w.WasRoot = Text(n.was.path), n.was.root
		}
		if w.Links == 0 { // it is gone already
			w.Links = 2
		}
	}
	_ = r.watch(w)
}

// watchMove tells the watcher of a move. An exchange is two: each of the names may be one that matters.
func (r *Recorder) watchMove(src, at key, how How) error {
	if r.j.opts.Watch == nil {
		return nil
	}
	w := r.traceMove(src, at)
	if w.Done = how == Free; how != Exchange {
		if err := r.watch(w); err != nil && how != Free {
			return err
		}
		return nil
	}
	back := r.traceMove(at, src)
	w.Half, back.Half = 1, 2
	if err := r.watch(w); err != nil {
		return err
	}
	return r.watch(back)
}

// traceMove returns what is known of a move, which may have been made already.
func (r *Recorder) traceMove(src, at key) Watched {
	w := Watched{Root: at.root, Path: Text(at.path), Verb: Moved, FromRoot: src.root, From: Text(src.path)}
	now, err := r.look(src)
	if err == nil && !now.Exists() {
		now, err = r.look(at)
	}
	r.trace(&w, src, &now, err)
	return w
}

// A refusedError is an error of the watcher.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// Refused reports whether an error of a Recorder means that the watcher refused a change.
func Refused(err error) bool {
	var r *refusedError
	return errors.As(err, &r)
}
