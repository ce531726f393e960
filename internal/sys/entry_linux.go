package sys

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The functions of this file are as those of at_linux.go; the empty name is the
// directory itself. That of attributes needs /proc.

// MakeAt makes a device, a FIFO or a socket file. The mode has its type and its permission bits, as
// in stat(2).
func MakeAt(dir int, name string, mode, major, minor uint32) error {
	return again(func() error { return unix.Mknodat(dir, name, mode, int(unix.Mkdev(major, minor))) })
}

// LinkAt makes a hard link to a file.
func LinkAt(fromDir int, from string, toDir int, to string) error {
	return again(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
}

// ChownAt sets the owner of name in dir, without following a link.
func ChownAt(dir int, name string, uid, gid int) error {
	return again(func() error { return unix.Fchownat(dir, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) })
}

// TouchAt sets the modification time of name in dir, without following a link.
func TouchAt(dir int, name string, at time.Time) error {
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(at.UnixNano())}
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return again(func() error { return unix.UtimesNanoAt(dir, name, ts, flags) })
}

// AttributesAt returns the extended attributes of name in dir. The result is nil if the file system
// has none.
func AttributesAt(dir int, name string) (map[string]string, error) {
	path, buf := entryPath(dir, name), make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err == unix.EOPNOTSUPP || n <= 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "listxattr", Path: name, Err: err}
	}
	all := map[string]string{}
	value := make([]byte, 64<<10)
	for key := range strings.SplitSeq(strings.TrimRight(string(buf[:n]), "\x00"), "\x00") {
		n, err := unix.Lgetxattr(path, key, value)
		if err == unix.ENODATA {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "getxattr " + key, Path: name, Err: err}
		}
		all[key] = string(value[:n])
	}
	return all, nil
}

// SetAttributeAt sets an extended attribute of name in dir.
func SetAttributeAt(dir int, name, key, value string) error {
	if err := unix.Lsetxattr(entryPath(dir, name), key, []byte(value), 0); err != nil {
		return &os.PathError{Op: "setxattr " + key, Path: name, Err: err}
	}
	return nil
}

// Attribute returns an extended attribute of an open file.
func Attribute(f *os.File, key string) (string, error) {
	value := make([]byte, 256)
	n, err := unix.Fgetxattr(int(f.Fd()), key, value)
	if err != nil {
		return "", &os.PathError{Op: "getxattr " + key, Path: f.Name(), Err: err}
	}
	return string(value[:n]), nil
}

// SetAttribute sets an extended attribute of an open file.
func SetAttribute(f *os.File, key, value string) error {
	if err := unix.Fsetxattr(int(f.Fd()), key, []byte(value), 0); err != nil {
		return &os.PathError{Op: "setxattr " + key, Path: f.Name(), Err: err}
	}
	return nil
}

// RemoveAttribute removes an extended attribute of an open file.
func RemoveAttribute(f *os.File, key string) error {
	if err := unix.Fremovexattr(int(f.Fd()), key); err != nil {
		return &os.PathError{Op: "removexattr " + key, Path: f.Name(), Err: err}
	}
	return nil
}

// Unwritten fails unless the caller owns a file, has it open for reading, and nobody has
// it open or mapped for writing. Still fails if somebody has opened it for that since.
func Unwritten(f *os.File) (still func() error, err error) {
	if err := Lease(f); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(Leased(f), EndLease(f)) }, nil
}

// Lease takes a read lease on a file, which the caller owns and has open for reading. It fails with EAGAIN if somebody
// has the file open or mapped for writing. Whoever opens it for that breaks the lease, and waits for its end. The lease
// belongs to the open file: it goes with the descriptor to other processes, and ends when the last of them closes it.
func Lease(f *os.File) error { return setLease(f, unix.F_RDLCK) }

// Leased fails if the lease of a file was broken, or was never taken.
func Leased(f *os.File) error {
	now, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	if err == nil && now != unix.F_RDLCK {
		err = unix.EAGAIN
	}
	if err != nil {
		return &os.PathError{Op: "lease", Path: f.Name(), Err: err}
	}
	return nil
}

// EndLease gives the lease of a file back.
func EndLease(f *os.File) error { return setLease(f, unix.F_UNLCK) }

func setLease(f *os.File, kind int) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind); err != nil {
		return &os.PathError{Op: "lease", Path: f.Name(), Err: err}
	}
	return nil
}

// entryPath names an entry for the calls that take no descriptor of a place. The
// dot keeps the link of /proc from being the last name.
func entryPath(dir int, name string) string {
	if name == "" {
		name = "."
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)
}

// An Extent is a range of a file.
type Extent struct{ Offset, Length int64 }

// Extents returns the ranges of a file that are not holes, at most the given number. If there are
// more, the last range extends to the end of the file.
func Extents(f *os.File, size int64, most int) ([]Extent, error) {
	fd, err := Descriptor(f)
	if err != nil {
		return nil, err
	}
	var list []Extent
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && data >= size {
			return list, nil
		}
		if err != nil {
			return nil, &os.PathError{Op: "seek", Path: f.Name(), Err: err}
		}
		end, err := unix.Seek(fd, data, unix.SEEK_HOLE)
		if err != nil {
			return nil, &os.PathError{Op: "seek", Path: f.Name(), Err: err}
		}
		if len(list) == most-1 {
			end = size
		}
		end = min(end, size)
		list = append(list, Extent{data, end - data})
		at = end
	}
	return list, nil
}

// DeviceNumber returns the number of a device, as in FileStat.Dev.
func DeviceNumber(major, minor uint32) uint64 { return unix.Mkdev(major, minor) }
