package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Attributes of a mount, for [SetMountAttr].
const (
	ReadOnly = unix.MOUNT_ATTR_RDONLY
	NoSUID   = unix.MOUNT_ATTR_NOSUID
	NoDev    = unix.MOUNT_ATTR_NODEV
	NoExec   = unix.MOUNT_ATTR_NOEXEC
)

// CloneTree returns a detached copy of the mount at path, with all mounts below it if recursive. An
// empty path means the descriptor dir itself. The copies are private: otherwise what is mounted on a
// copy of a shared mount, as systemd makes all mounts, would also appear on the original. Before
// Linux 6.15 a mount that is not attached cannot be copied.
func CloneTree(dir int, path string, recursive bool) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	attr := &unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", flags&unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, attr); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "mount_setattr private", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// CloneReal is CloneTree, recursive, for an absolute path on which it follows no symbolic link. So
// what is cloned is what the caller has checked before.
func CloneReal(path string) (*os.File, error) {
	fd, err := openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return CloneTree(fd, "", true)
}

// AtCWD is the directory descriptor that means the working directory.
const AtCWD = unix.AT_FDCWD

// SetMountAttr sets attributes of a mount, or of a whole tree of mounts. It sets all of them or
// none.
func SetMountAttr(mount *os.File, set uint64, recursive bool) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	if err := unix.MountSetattr(int(mount.Fd()), "", flags, &unix.MountAttr{Attr_set: set}); err != nil {
		return &os.PathError{Op: "mount_setattr", Path: mount.Name(), Err: err}
	}
	return nil
}

// IDMap maps the owners of files in a detached mount by a user namespace. A file that belongs to x
// on disk appears to belong to the user that ns maps x to.
func IDMap(mount, ns *os.File, recursive bool) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(int(mount.Fd()), "", flags, attr); err != nil {
		return &os.PathError{Op: "mount_setattr idmap", Path: mount.Name(), Err: err}
	}
	return nil
}

// MakePrivate makes every mount of this mount namespace private, so that it neither receives nor
// passes on mounts.
func MakePrivate() error {
	if err := propagate(unix.MS_PRIVATE); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// ShareMounts makes later mounts appear also in mount namespaces that are copied from this one,
// until they are made private.
func ShareMounts() error { return propagate(unix.MS_SHARED) }

// FollowMounts is for such a copy: it receives mounts from the original, but passes none on.
func FollowMounts() error { return propagate(unix.MS_SLAVE) }

func propagate(how uint64) error {
	attr := &unix.MountAttr{Propagation: how}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attr); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// EnterRoot makes a directory the root of the calling thread, and of all threads that share its
// root: all but those that have called OwnFiles.
func EnterRoot(dir string) error {
	err := unix.Chroot(dir)
	if err == nil {
		err = unix.Chdir("/")
	}
	if err != nil {
		return &os.PathError{Op: "chroot", Path: dir, Err: err}
	}
	return nil
}

// Attach mounts a detached mount on the directory or file that is open as at.
func Attach(mount *os.File, at *os.File) error {
	err := unix.MoveMount(int(mount.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return &os.PathError{Op: "move_mount", Path: at.Name(), Err: err}
	}
	return nil
}

// An Option is a mount option of a file system. One without a value is a flag.
type Option struct{ Key, Value string }

// NewMount makes a detached mount of a new file system.
func NewMount(fstype string, attrs int, options ...Option) (*os.File, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, &os.PathError{Op: "fsopen", Path: fstype, Err: err}
	}
	defer unix.Close(fs)
	for _, o := range options {
		if o.Value == "" {
			err = unix.FsconfigSetFlag(fs, o.Key)
		} else {
			err = unix.FsconfigSetString(fs, o.Key, o.Value)
		}
		if err != nil {
			return nil, &os.PathError{Op: "fsconfig", Path: fstype + " " + o.Key + "=" + o.Value, Err: err}
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, &os.PathError{Op: "create", Path: fstype, Err: err}
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return nil, &os.PathError{Op: "fsmount", Path: fstype, Err: err}
	}
	return os.NewFile(uintptr(fd), fstype), nil
}

// OpenPath opens a path with O_PATH. If strict, it refuses symbolic links on the way, and paths
// that leave dir.
func OpenPath(dir *os.File, path string, strict bool) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	at := unix.AT_FDCWD
	if dir != nil {
		at = int(dir.Fd())
	}
	if strict {
		how.Flags |= unix.O_NOFOLLOW
		how.Resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	}
	fd, err := openat2(at, path, how)
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ResolveDir opens a directory with O_PATH. It follows links with the caller's root, but no magic
// link of /proc.
func ResolveDir(dir int, path string) (int, error) {
	return openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
}

// openat2 is the call, again where a rename elsewhere disturbed the walk.
func openat2(dir int, path string, how *unix.OpenHow) (int, error) {
	for range 64 {
		fd, err := unix.Openat2(dir, path, how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// PivotInto makes the mount at dir the root of this mount namespace, and detaches the old root.
func PivotInto(dir *os.File) error {
	if err := unix.Fchdir(int(dir.Fd())); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach old root: %w", err)
	}
	return unix.Chdir("/")
}

// Detach unmounts path. Processes that still use the mount can go on.
func Detach(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return &os.PathError{Op: "umount", Path: path, Err: err}
	}
	return nil
}

// MountGroups mounts the control groups, version 2, at a directory.
func MountGroups(path string) error {
	if err := unix.Mount("none", path, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount the control groups: %w", err)
	}
	return nil
}

// MountEmpty covers a directory by an empty, read-only one.
func MountEmpty(path string) error {
	if err := unix.Mount("none", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=555,size=4096"); err != nil {
		return fmt.Errorf("mount an empty directory at %s: %w", path, err)
	}
	return nil
}

// LockMount makes one mount read-only, but not the mounts below it.
func LockMount(path string) error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, attr); err != nil {
		return &os.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	return nil
}

// CreateAt makes an empty file in an open directory.
func CreateAt(dir *os.File, name string, mode uint32) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// WriteAt makes a file with this content in an open directory.
func WriteAt(dir *os.File, name string, data []byte, mode uint32) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Reopen opens a regular file for reading that is open with O_PATH. Another type of file is an
// error.
func Reopen(place *os.File) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: place.Name(), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &os.PathError{Op: "open", Path: place.Name(), Err: unix.EINVAL}
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", place.Fd()))
}

// LoopbackUp brings up the loopback interface of this network namespace.
func LoopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}

// KeepTimestamps makes the kernel note the time of each packet that the machine receives, until this process ends. The
// kernel switches that on for the first socket that asks for it and off after the last one, and each time it rewrites its
// code and stops every processor. With a socket that stays, no other socket causes that.
func KeepTimestamps() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1) // it is never closed
}

// SetHostname sets the hostname of this UTS namespace.
func SetHostname(name string) error { return unix.Sethostname([]byte(name)) }

// An FSInfo describes a file system.
type FSInfo struct {
	Type  int64
	Flags int64
}

// TypeTmpfs is the type of a file system in memory.
const TypeTmpfs = unix.TMPFS_MAGIC

// FileSystemOf returns the type of an open file's file system, and the flags of its mount.
func FileSystemOf(f *os.File) (FSInfo, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return FSInfo{}, &os.PathError{Op: "fstatfs", Path: f.Name(), Err: err}
	}
	return FSInfo{Type: st.Type, Flags: st.Flags}, nil
}

// ResolveFile opens a path relative to dir with O_PATH. It follows links, but no magic link of
// /proc.
func ResolveFile(dir int, path string) (int, error) {
	return openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}

// ResolveLink is ResolveFile, but does not follow a link at the last component.
func ResolveLink(dir int, path string) (int, error) {
	return openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}

// ResolvePlain opens an absolute path with O_PATH. A link anywhere on the path is an error.
func ResolvePlain(path string) (int, error) {
	return openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
}
