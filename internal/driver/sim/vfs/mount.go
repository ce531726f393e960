package vfs

// frozen tells whether a node lies in a read-only mount.
func (f *FS) frozen(*node) bool { return false }

// mount tells which mount a node lies in.
func (f *FS) mount(*node) Ino { return Root }

// mounted tells whether a mount stands at a node.
func (f *FS) mounted(*node) bool { return false }
