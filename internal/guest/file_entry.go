package guest

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// stat describes a file; a link at the name is described itself.
func (f *files) stat(name string) (*guestpb.File, error) {
	p, err := f.find(name, search{})
	if err != nil {
		return nil, failed("stat", name, err)
	}
	defer p.close()
	file, err := f.describe(p.fd(), p.base, tidy(name), f.names.now(f))
	return file, failed("stat", name, err)
}

// describe gives what is known of the entry base of dir, which is called name.
func (f *files) describe(dir int, base, name string, r roll) (*guestpb.File, error) {
	st, err := sys.StatAt(dir, base)
	if err != nil {
		return nil, err
	}
	file := &guestpb.File{
		Name: []byte(name), Size: st.Size, Mode: st.Mode, ModTime: st.ModTime,
		Uid: st.UID, Gid: st.GID, User: r.users[st.UID], Group: r.groups[st.GID],
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		target, err := sys.ReadLinkAt(dir, base)
		if err != nil {
			return nil, err
		}
		file.Link = []byte(target)
	}
	return file, nil
}

func (f *files) mkdir(name string, mode uint32, parents bool) error {
	mode, err := permission("mkdir", name, mode, 0o755)
	if err != nil {
		return err
	}
	if tidy(name) == "/" && parents {
		return nil
	}
	p, err := f.entry(name, search{parents: parents})
	if err != nil {
		return failed("mkdir", name, err)
	}
	defer p.close()
	if parents {
		// What is there already needs nobody's leave.
		if st, err := sys.StatAt(p.fd(), p.base); err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			return nil
		}
	}
	if err = f.allow("make", p); err == nil {
		err = mkdir(p, mode)
	}
	if err == syscall.EEXIST && parents && f.isDir(name) {
		return nil
	}
	return failed("mkdir", name, err)
}

// isDir tells whether name is a directory, or a link to one.
func (f *files) isDir(name string) bool {
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return false
	}
	defer p.close()
	st, err := sys.StatAt(p.fd(), p.base)
	return err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

func (f *files) rename(from, to string) error {
	old, err := f.entry(from, search{})
	if err != nil {
		return failed("rename", from, err)
	}
	defer old.close()
	if _, err := sys.StatAt(old.fd(), old.base); err != nil {
		return failed("rename", from, err)
	}
	next, err := f.entry(to, search{})
	if err != nil {
		return failed("rename to", to, err)
	}
	defer next.close()
	if f.guard != nil {
		return failed("rename to", to, f.guard.Rename(old.dir, old.base, next.dir, next.base))
	}
	return failed("rename to", to, sys.RenameAt(old.fd(), old.base, next.fd(), next.base))
}

func (f *files) chmod(name string, mode uint32) error {
	if mode != 0 {
		if _, err := permission("chmod", name, mode, 0); err != nil {
			return err
		}
	}
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return failed("chmod", name, err)
	}
	defer p.close()
	if err = f.allow("chmod", p); err == nil {
		err = sys.ChmodAt(p.fd(), p.base, mode)
	}
	if err == nil {
		// gVisor answers success where the host refused.
		if st, e := sys.StatAt(p.fd(), p.base); e == nil && st.Mode&0o7777 != mode {
			err = syscall.EACCES
		}
	}
	return failed("chmod", name, err)
}

func (f *files) symlink(target []byte, name string) error {
	says := string(target)
	switch {
	case says == "":
		return invalid("symlink", name, "the target is empty")
	case len(says) > maxName:
		return invalid("symlink", name, fmt.Sprintf("the target is too long: %d bytes, at most %d", len(says), maxName))
	case strings.IndexByte(says, 0) >= 0:
		return invalid("symlink", name, "the target holds a NUL byte")
	}
	p, err := f.entry(name, search{})
	if err != nil {
		return failed("symlink", name, err)
	}
	defer p.close()
	if err = f.allow("link", p); err == nil {
		err = sys.SymlinkAt(says, p.fd(), p.base)
	}
	return failed("symlink", name, err)
}

// remove removes a file or an empty directory, with all also a full one and
// one that is not there.
func (f *files) remove(name string, all bool, stop func() error) error {
	p, err := f.entry(name, search{})
	if err == nil {
		defer p.close()
		if err = f.allow("remove", p); err == nil {
			err = sys.UnlinkAt(p.fd(), p.base)
		}
	}
	if err == syscall.EISDIR || err == syscall.EPERM {
		if rmdir := sys.RmdirAt(p.fd(), p.base); rmdir != syscall.ENOTDIR {
			err = rmdir
		}
	}
	if all {
		switch err {
		case syscall.ENOENT:
			return nil
		case syscall.ENOTEMPTY, syscall.EEXIST:
			return failed("remove", name, f.clear(p, stop))
		}
	}
	return failed("remove", name, err)
}
