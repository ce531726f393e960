package agentprofile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// put writes a file below an open directory, in the place of what is there, and makes directories on the way. It follows
// no link.
func put(top int, name string, data []byte, mode uint32) error {
	dir, err := makeBeneath(top, path.Dir(name), false)
	if err != nil {
		return fmt.Errorf("~/%s: %w", name, err)
	}
	defer sys.Close(dir)
	return putIn(dir, name, data, func(f *os.File) error { return f.Chmod(os.FileMode(mode)) })
}

// replace does what put does, for whoever owns what is there: the owner and the mode of a file stay, and what is new belongs to
// the owner of the directory that it is in. Root may do this in the home of another user, whose agent must still read it.
func replace(top int, name string, data []byte, exec bool) error {
	dir, err := makeBeneath(top, path.Dir(name), true)
	if err != nil {
		return fmt.Errorf("~/%s: %w", name, err)
	}
	defer sys.Close(dir)
	was, err := sys.StatAt(dir, path.Base(name))
	switch {
	case errors.Is(err, syscall.ENOENT):
		if was, err = sys.StatAt(dir, ""); err != nil {
			return fmt.Errorf("~/%s: %w", name, err)
		}
		was.Mode = 0o600
	case err != nil:
		return fmt.Errorf("~/%s: %w", name, err)
	case was.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return fmt.Errorf("~/%s is no file: %w", name, paddock.Denied)
	}
	return putIn(dir, name, data, func(f *os.File) error { return become(f, was, exec) })
}

// become gives a new file of this process the owner and the mode of another one.
func become(f *os.File, was sys.FileStat, exec bool) error {
	mode := was.Mode & 0o666
	if exec {
		mode |= 0o100 | mode&0o044>>2
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && now.Uid == was.UID && now.Gid == was.GID:
	case ok && now.Uid == was.UID:
		if err := f.Chown(-1, int(was.GID)); err != nil { // it is of a group that this user is not in
			mode &^= 0o070
		}
	case os.Geteuid() != 0:
		return fmt.Errorf("it belongs to another user, so take it over as that user: %w", paddock.Denied)
	default:
		if err := f.Chown(int(was.UID), int(was.GID)); err != nil {
			return err
		}
	}
	return f.Chmod(os.FileMode(mode))
}

// putIn writes a file in an open directory. Ready makes it what it has to be before it takes its place.
func putIn(dir int, name string, data []byte, ready func(*os.File) error) error {
	fresh := fmt.Sprintf(".paddock-%d-%d", os.Getpid(), time.Now().UnixNano())
	fd, err := sys.OpenAt(dir, fresh, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("~/%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if err == nil {
		err = ready(f)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = sys.RenameAt(dir, fresh, dir, path.Base(name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("~/%s: %w", name, err), sys.UnlinkAt(dir, fresh))
	}
	return nil
}

// makeBeneath opens a directory below another one, and makes what is missing. A link on the way is an error. With given, what it
// makes is given to the owner of the directory that it is in.
func makeBeneath(top int, name string, given bool) (int, error) {
	if name == "." {
		return sys.OpenDirBeneath(top, ".")
	}
	up, err := makeBeneath(top, path.Dir(name), given)
	if err != nil {
		return -1, err
	}
	defer sys.Close(up)
	missing := sys.MkdirAt(up, path.Base(name), 0o700)
	if missing != nil && !errors.Is(missing, syscall.EEXIST) {
		return -1, missing
	}
	dir, err := sys.OpenDirAt(up, path.Base(name))
	if err != nil || missing != nil || !given {
		return dir, err
	}
	if err := give(dir, up); err != nil {
		sys.Close(dir)
		return -1, err
	}
	return dir, nil
}

// give gives a directory that was just made to the owner of the one that it is in, who could have put another one in its place
// meanwhile. An empty one of this user's own is nothing that the owner must not have.
func give(dir, up int) error {
	to, err := sys.StatAt(up, "")
	if err != nil {
		return err
	}
	if int(to.UID) == os.Geteuid() {
		return nil
	}
	is, err := sys.StatAt(dir, "")
	if err != nil {
		return err
	}
	fd, err := sys.OpenAt(dir, ".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	if names, err := f.Readdirnames(1); !errors.Is(err, io.EOF) || len(names) > 0 || int(is.UID) != os.Geteuid() {
		return fmt.Errorf("a directory was exchanged while it was made: %w", paddock.Conflict)
	}
	return f.Chown(int(to.UID), int(to.GID))
}
