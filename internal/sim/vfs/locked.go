package vfs

// LockedGetwd is Getwd for a [Dynamic], which is asked while the FS is locked.
func (v *View) LockedGetwd() (string, error) {
	n, err := v.FS.get(v.Dir)
	if err != nil {
		return "", err
	}
	return v.FS.path(n)
}
