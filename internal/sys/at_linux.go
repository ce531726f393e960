package sys

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The functions of this file work on one name in an open directory and never
// follow a symbolic link at that name, so that nothing can be swapped between
// looking and acting. Names hold no slash. Errors are plain [syscall.Errno]s.

// OpenDirAt opens the directory name in dir with O_PATH. If name is a symbolic link, the error is
// ENOTDIR.
func OpenDirAt(dir int, name string) (int, error) {
	return openAgain(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// OpenAt opens name in dir with flags of package syscall. It never waits for the other end of a
// FIFO, and never takes a controlling terminal.
func OpenAt(dir int, name string, flags int, mode uint32) (int, error) {
	return openAgain(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_LARGEFILE, mode)
}

func openAgain(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// StatAt returns the attributes of name in dir, without following a link. An empty name means dir
// itself.
func StatAt(dir int, name string) (FileStat, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return statAt(dir, name, flags)
}

// TargetAt is StatAt of what name leads to, also through a magic link of /proc.
func TargetAt(dir int, name string) (FileStat, error) { return statAt(dir, name, 0) }

func statAt(dir int, name string, flags int) (FileStat, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(dir, name, &st, flags) }); err != nil {
		return FileStat{}, err
	}
	return FileStat{
		Dev: st.Dev, Ino: st.Ino, Mode: st.Mode, Size: st.Size,
		Links:   uint64(st.Nlink), //nolint:unconvert // it has 32 bits on arm64
		ModTime: st.Mtim.Nano(), UID: st.Uid, GID: st.Gid,
		Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev),
	}, nil
}

// BornAt returns when name in dir was made, in nanoseconds since 1970, without following a link. It is zero where the file
// system does not know.
func BornAt(dir int, name string) (int64, error) {
	var st unix.Statx_t
	err := again(func() error { return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) })
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0, err
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec), nil
}

// ReadLinkAt returns the target of the symbolic link name in dir. If name is not a link, the error
// is EINVAL.
func ReadLinkAt(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err := again(func() (err error) { n, err = unix.Readlinkat(dir, name, buf); return err })
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// MkdirAt makes the directory name in dir.
func MkdirAt(dir int, name string, mode uint32) error {
	return again(func() error { return unix.Mkdirat(dir, name, mode) })
}

// SymlinkAt makes the symbolic link name in dir, which points to target.
func SymlinkAt(target string, dir int, name string) error {
	return again(func() error { return unix.Symlinkat(target, dir, name) })
}

// RenameAt renames a file or directory, and replaces an existing one.
func RenameAt(fromDir int, from string, toDir int, to string) error {
	return again(func() error { return unix.Renameat2(fromDir, from, toDir, to, 0) })
}

// RenameNew renames a file or directory to a path where nothing is. It replaces nothing.
func RenameNew(from, to string) error {
	return again(func() error { return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE) })
}

// UnlinkAt removes a file. If it is a directory, the error is EISDIR.
func UnlinkAt(dir int, name string) error {
	return again(func() error { return unix.Unlinkat(dir, name, 0) })
}

// RmdirAt removes an empty directory.
func RmdirAt(dir int, name string) error {
	return again(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// ChmodAt sets the mode of name in dir. If name is a symbolic link, the error is ELOOP.
func ChmodAt(dir int, name string, mode uint32) error {
	fd, err := openAgain(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := StatAt(fd, "")
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return syscall.ELOOP
	}
	err = again(func() error { return unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH) })
	if err == unix.EOPNOTSUPP || err == unix.EINVAL {
		// Before Linux 6.6 only the name in /proc reaches the file behind a
		// descriptor of this sort.
		err = again(func() error { return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0) })
	}
	return err
}

// PathOf returns the present path of the open file fd.
func PathOf(fd int) (string, error) {
	return ReadLinkAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd))
}

func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Owned reports whether a file belongs to the calling user and has none of the forbidden permission
// bits.
func Owned(st fs.FileInfo, forbidden fs.FileMode) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == uint32(os.Geteuid()) && st.Mode().Perm()&forbidden == 0
}

// OpenBeneath opens a path below dir with flags of package syscall. It follows no symbolic link on the way nor at the
// end, does not leave dir, and never waits for the other end of a FIFO.
func OpenBeneath(dir int, path string, flags int, mode uint32) (int, error) {
	how := &unix.OpenHow{
		Flags:   uint64(flags | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_LARGEFILE),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	return openat2(dir, path, how)
}

// OpenPlaceBeneath is OpenBeneath with O_PATH: whatever is there, also a symbolic link itself.
func OpenPlaceBeneath(dir int, path string) (int, error) {
	return openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// OpenDirBeneath is OpenPlaceBeneath of a directory. If something else is there, the error is ENOTDIR.
func OpenDirBeneath(dir int, path string) (int, error) {
	return openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// MoveAt renames a file or directory to a name where nothing is. If something is there, the error is EEXIST.
func MoveAt(fromDir int, from string, toDir int, to string) error {
	return again(func() error { return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE) })
}

// ExchangeAt exchanges two names.
func ExchangeAt(fromDir int, from string, toDir int, to string) error {
	return again(func() error { return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_EXCHANGE) })
}

// HandleOf returns the type and the bytes of the handle that a file system gives an open file, which stay the same for as
// long as the file exists, and are not given again.
func HandleOf(fd int) (kind int, handle []byte, err error) {
	h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return 0, nil, err
	}
	return int(h.Type()), h.Bytes(), nil
}
