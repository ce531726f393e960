package step

// Missed notes that something changed in the roots which cannot be told by its path.
func (r *Recorder) Missed(why string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.mu.Unlock()
	return r.note(false, &entry{Op: opLeft, Why: why})
}

// Unseen is Missed for a change of which nobody can tell what it is, which the watcher is told. made says that it was made
// already. Otherwise it is refused if that was asked for.
func (r *Recorder) Unseen(why string, made bool) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if err := r.watch(Watched{Verb: Unseen, Done: made}); err != nil && !made {
		return err
	}
	return r.note(false, &entry{Op: opLeft, Why: why})
}

// Strict reports whether a change that cannot be undone is refused in every step.
func (j *Journal) Strict() bool { return j.opts.Strict }
