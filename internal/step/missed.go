package step

// Missed notes that something changed in the roots which cannot be told by its path.
func (r *Recorder) Missed(why string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.mu.Unlock()
	return r.note(false, &entry{Op: opLeft, Why: why})
}

// Strict reports whether a change that cannot be undone is refused in every step.
func (j *Journal) Strict() bool { return j.opts.Strict }
