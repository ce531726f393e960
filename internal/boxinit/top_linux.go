package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// The directory of a mount is the host's, as a whole: who may enter it decides what programs of the host can do there,
// also those that start a sandbox's next command. So its mode, owner and access list stay as the host made them. A guest
// may only take rights of the group and of others away, as programs do that keep secrets in their directory.
//
// Access lists are attributes, which no filter lets a guest set.

// topRule is the rule about them.
const topRule = "the mode and the owner of a mount's own directory"

// keepTops notes the directories of mounts, before the guest runs, and those above one that another mount shows. They are
// known by inode, because a mount can show them below any path.
func (b *broker) keepTops(trees []Tree) error {
	for _, inner := range trees {
		if !inner.Protected {
			continue // the box's own
		}
		if err := b.keepTop(inner.Path); err != nil {
			return err
		}
		for _, outer := range trees {
			if !outer.Protected || inner.Source == outer.Source || !below(inner.Source, outer.Source) {
				continue
			}
			for dir := path.Dir(inner.Source); dir != outer.Source; dir = path.Dir(dir) {
				if err := b.keepTop(path.Join(outer.Path, strings.TrimPrefix(dir, outer.Source))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *broker) keepTop(at string) error {
	fd, err := sys.ResolvePlain(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a mount that may be missing, or one that covers this
	}
	if err != nil {
		return fmt.Errorf("look at the mount %s: %w", at, err)
	}
	defer sys.Close(fd)
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return fmt.Errorf("look at the mount %s: %w", at, err)
	}
	if st.Mode&sys.TypeMask == sys.TypeDir {
		b.tops[inode{st.Dev, st.Ino}] = true
	}
	return nil
}

// isTop reports whether a file is the directory of a mount, or one of the host's above a mount, by the way to which the
// host reaches it.
func (b *broker) isTop(full string, st sys.FileStat) bool {
	if st.Mode&sys.TypeMask != sys.TypeDir {
		return false
	}
	if b.tops[inode{st.Dev, st.Ino}] {
		return true
	}
	if t := b.treeOf(full); t == nil || t.protected == nil {
		return false
	}
	for _, h := range b.hosts {
		if h != full && below(h, full) {
			return true
		}
	}
	return false
}

// topAt is isTop for a place.
func (b *broker) topAt(p *place) bool {
	st, err := sys.StatAt(p.dir, p.base)
	return err == nil && b.isTop(p.full, st)
}

// takesRights reports whether a mode gives nobody a right that another has not, and takes none from the owner.
func takesRights(from, to uint32) bool {
	const special, owner, rest = 0o7000, 0o700, 0o077
	return (from^to)&(special|owner) == 0 && to&^from&rest == 0
}

// mayMode decides about a new mode of a directory that isTop.
func (b *broker) mayMode(full string, st sys.FileStat, mode uint32) bool {
	if takesRights(st.Mode, mode) {
		return true
	}
	b.refuse("chmod", full, topRule)
	return false
}

// chown is always made here, as chmod is.
func (c *call) chown(dirfd int, addr uint64, uid, gid uint32, flags int) reply {
	if flags&^(sys.EmptyPath|sys.NoFollow) != 0 {
		return reply{err: syscall.EINVAL}
	}
	fd, err := c.fileAt(dirfd, addr, flags)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return c.chownFile(fd, uid, gid)
}

func (c *call) fchown(n int, uid, gid uint32) reply {
	fd, err := c.descriptor(n)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return c.chownFile(fd, uid, gid)
}

// chownFile changes the owner of an open file. This process has no more rights than the caller: it makes a group of a
// file that of its user, and no more.
func (c *call) chownFile(fd int, uid, gid uint32) reply {
	full, err := c.where(fd)
	if err != nil {
		return fails(err)
	}
	if c.treeOf(full) == nil && c.sealed.Load() {
		return reply{err: syscall.EPERM} // as for chmod
	}
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return fails(err)
	}
	if c.isTop(full, st) {
		const same = ^uint32(0)
		if (uid == same || uid == st.UID) && (gid == same || gid == st.GID) {
			return done
		}
		c.refuse("chown", full, topRule)
		return reply{err: syscall.EPERM}
	}
	return result(sys.ChownAt(fd, "", int(int32(uid)), int(int32(gid))))
}
