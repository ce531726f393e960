package vfs

import (
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// change walks to a file and changes it, if the user may: by owning it unless
// allowed says otherwise.
func (v *View) change(path string, w way, allowed func(*node) error, do func(*node)) error {
	f := v.FS
	return f.write(func(t *trip) error {
		p, err := v.find(t, path, w)
		if err != nil {
			return err
		}
		n := p.node
		switch {
		case n.dynamic != nil:
			return linux.EPERM
		case f.frozen(n):
			return linux.EROFS
		case p.write, p.read:
			return linux.EACCES
		}
		if err := allowed(n); err != nil {
			return err
		}
		n = f.owned(n)
		f.claim(n)
		n.ctime = stampOf(f.opts.Now())
		do(n)
		f.tell(Changed, p.dir, p.name, n)
		return nil
	})
}

// owns gives EPERM unless the user owns a file.
func (v *View) owns(n *node) error {
	if v.UID != 0 && v.UID != int(n.uid) {
		return linux.EPERM
	}
	return nil
}

// Chmod changes permission bits; a link is followed.
func (v *View) Chmod(path string, mode uint32) error {
	return v.change(path, following, v.owns, func(n *node) {
		n.mode = n.typ() | mode&0o7777
		if v.UID != 0 && !v.inGroup(int(n.gid)) {
			n.mode &^= linux.S_ISGID
		}
	})
}

// Chown changes the owner (-1 keeps); with follow, that of a link's target.
// Only user 0 gives files away.
func (v *View) Chown(path string, uid, gid int, follow bool) error {
	allowed := func(n *node) error {
		switch {
		case v.UID == 0:
			return nil
		case uid < 0 && gid < 0:
			if n.isDir() || n.mode&linux.S_ISUID == 0 && n.mode&(linux.S_ISGID|0o010) != linux.S_ISGID|0o010 {
				return nil
			}
			return v.owns(n) // set-id bits go
		case v.UID != int(n.uid), uid >= 0 && uid != v.UID, gid >= 0 && gid != int(n.gid) && !v.inGroup(gid):
			return linux.EPERM
		}
		return nil
	}
	return v.change(path, ending(follow), allowed, func(n *node) {
		if uid >= 0 {
			n.uid = uint32(uid)
		}
		if gid >= 0 {
			n.gid = uint32(gid)
		}
		if !n.isDir() {
			n.dropSetID()
		}
	})
}

// dropSetID takes away what a file that others changed must not keep.
func (n *node) dropSetID() {
	n.mode &^= linux.S_ISUID
	if n.mode&0o010 != 0 {
		n.mode &^= linux.S_ISGID
	}
}

func ending(follow bool) way {
	if follow {
		return following
	}
	return staying
}

// Chtimes sets the times of access and change; a zero one stays. Only the
// owner may. [View.Touch] sets both to now.
func (v *View) Chtimes(path string, atime, mtime time.Time, follow bool) error {
	if atime.IsZero() && mtime.IsZero() {
		return nil
	}
	return v.change(path, ending(follow), v.owns, func(n *node) {
		if !atime.IsZero() {
			n.atime = stampOf(atime)
		}
		if !mtime.IsZero() {
			n.mtime = stampOf(mtime)
		}
	})
}

// Touch sets the times of access and change to now, as whoever may write may.
func (v *View) Touch(path string, follow bool) error {
	allowed := func(n *node) error {
		if v.owns(n) != nil && !v.may(n, 2) {
			return linux.EACCES
		}
		return nil
	}
	return v.change(path, ending(follow), allowed, func(n *node) { n.atime, n.mtime = n.ctime, n.ctime })
}

// Truncate sets a file's size; a link is followed.
func (v *View) Truncate(path string, size int64) error {
	f := v.FS
	if size < 0 {
		return linux.EINVAL
	}
	return f.write(func(t *trip) error {
		p, err := v.find(t, path, following)
		if err != nil {
			return err
		}
		n := p.node
		switch {
		case n.isDir():
			return linux.EISDIR
		case !n.isRegular():
			return linux.EINVAL
		case f.frozen(n):
			return linux.EROFS
		case !v.may(n, 2), p.write, p.read, n.dynamic != nil:
			return linux.EACCES
		}
		return f.truncate(n, size, v.UID != 0)
	})
}

// truncate sets the size of a regular file.
func (f *FS) truncate(n *node, size int64, drop bool) error {
	if size > f.opts.FileSize {
		return linux.EFBIG
	}
	if n.lower != nil {
		if size > 0 {
			return &want{what: wantContents, ino: n.ino, lower: n.lower}
		}
		f.detach(f.owned(n))
	}
	n = f.owned(n)
	f.resize(n, size)
	f.touch(n)
	if drop {
		n.dropSetID()
	}
	f.tellFile(Written, n)
	return nil
}
