package sys

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// An Attr has all attributes that a file system reports about a file.
type Attr struct {
	Dev, Ino            uint64
	Size, Blocks        uint64
	Access, Mod, Change Time
	Mode, Links         uint32
	UID, GID            uint32
	Rdev                uint64
	BlockSize           uint32
}

// A Time is a number of seconds since 1970, and nanoseconds.
type Time struct {
	Sec  int64
	Nsec uint32
}

// Nanoseconds of a Time that mean something else to SetTimesAt.
const (
	TimeNow  = unix.UTIME_NOW
	TimeOmit = unix.UTIME_OMIT
)

// AttrAt returns the attributes of name in dir, without following a link. An empty name means dir
// itself.
func AttrAt(dir int, name string) (Attr, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(dir, name, &st, flags) }); err != nil {
		return Attr{}, err
	}
	at := func(t unix.Timespec) Time { return Time{t.Sec, uint32(t.Nsec)} }
	return Attr{
		Dev: st.Dev, Ino: st.Ino, Size: uint64(st.Size), Blocks: uint64(st.Blocks),
		Access: at(st.Atim), Mod: at(st.Mtim), Change: at(st.Ctim),
		Mode: st.Mode, Links: uint32(st.Nlink), UID: st.Uid, GID: st.Gid,
		Rdev: st.Rdev, BlockSize: uint32(st.Blksize),
	}, nil
}

// SetTimesAt sets the times of name in dir, without following a link. An empty name means dir
// itself, which may be open with O_PATH.
func SetTimesAt(dir int, name string, access, mod Time) error {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	ts := []unix.Timespec{{Sec: access.Sec, Nsec: int64(access.Nsec)}, {Sec: mod.Sec, Nsec: int64(mod.Nsec)}}
	return again(func() error { return unix.UtimesNanoAt(dir, name, ts, flags) })
}

// What AccessAt checks.
const (
	MayRead    uint32 = unix.R_OK
	MayExecute uint32 = unix.X_OK // of a directory: look up names in it
)

// AccessAt checks whether this process may use name in dir. The mask is that of access(2).
func AccessAt(dir int, name string, mask uint32) error {
	return again(func() error { return unix.Faccessat(dir, name, mask, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EACCESS) })
}

// OpenPlaceAt opens name in dir with O_PATH, whatever its type, without following a link.
func OpenPlaceAt(dir int, name string) (int, error) {
	return openAgain(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// AppendTo writes at the present end of an open file.
func AppendTo(fd int, data []byte) (int, error) {
	for {
		n, err := unix.Pwritev2(fd, [][]byte{data}, 0, unix.RWF_APPEND)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// CopyRange copies bytes between open files by copy_file_range.
func CopyRange(from int, fromOff int64, to int, toOff int64, n int) (int, error) {
	for {
		got, err := unix.CopyFileRange(from, &fromOff, to, &toOff, n, 0)
		if err != unix.EINTR {
			return got, err
		}
	}
}

// StatFS describes the file system of an open file, which may be open with O_PATH.
func StatFS(fd int) (syscall.Statfs_t, error) {
	var st syscall.Statfs_t
	err := again(func() error { return syscall.Fstatfs(fd, &st) })
	return st, err
}
