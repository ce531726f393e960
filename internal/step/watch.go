package step

import "errors"

// watch tells the watcher of a change.
func (r *Recorder) watch(w Watched) error {
	if r.j.opts.Watch == nil {
		return nil
	}
	if err := r.j.opts.Watch.Change(w); err != nil {
		return &refusedError{err}
	}
	return nil
}

// watchMade tells the watcher of what was made, which is there already.
func (r *Recorder) watchMade(at key) {
	if r.j.opts.Watch == nil {
		return
	}
	s, err := r.look(at)
	_ = r.watch(Watched{Root: at.root, Path: Text(at.path), Verb: Created, Link: err == nil && s.Kind == Symlink, Done: true})
}

// watchMove tells the watcher of a move. An exchange is two: each of the names may be one that matters.
func (r *Recorder) watchMove(src, at key, how How) error {
	w := Watched{Root: at.root, Path: Text(at.path), Verb: Moved, FromRoot: src.root, From: Text(src.path), Done: how == Free}
	if how != Exchange {
		if err := r.watch(w); err != nil && how != Free {
			return err
		}
		return nil
	}
	w.Half = 1
	back := Watched{Root: src.root, Path: w.From, Verb: Moved, FromRoot: at.root, From: w.Path, Half: 2}
	if err := r.watch(w); err != nil {
		return err
	}
	return r.watch(back)
}

// A refusedError is an error of the watcher.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// Refused reports whether an error of a Recorder means that the watcher refused a change.
func Refused(err error) bool {
	var r *refusedError
	return errors.As(err, &r)
}
