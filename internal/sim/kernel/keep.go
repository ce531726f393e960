package kernel

// Keep holds a file open for the task, beside its descriptors: until Unkeep,
// until the task becomes another program, or until it ends, however it does.
func (t *Task) Keep(d *Desc) {
	d.ref()
	t.kept = append(t.kept, d)
}

// Unkeep undoes one Keep.
func (t *Task) Unkeep(d *Desc) {
	for i := len(t.kept) - 1; i >= 0; i-- {
		if t.kept[i] == d {
			t.kept = append(t.kept[:i], t.kept[i+1:]...)
			d.unref()
			return
		}
	}
}

// unkeep undoes all.
func (t *Task) unkeep() {
	for _, d := range t.kept {
		d.unref()
	}
	t.kept = nil
}
