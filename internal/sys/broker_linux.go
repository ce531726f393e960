package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is what the broker of a box needs to do a system call in the place
// of a process that may not do it itself. Names hold no slash and are not
// followed. Errors are plain errnos.

// Errno is an error number of the kernel.
type Errno = syscall.Errno

// ReadString reads a NUL-terminated string from the memory of another process. If the string has
// limit bytes or more, the error is ENAMETOOLONG.
func ReadString(pid int, addr uint64, limit int) (string, error) {
	var out []byte
	buf := make([]byte, 256)
	for len(out) < limit {
		// Never past the end of a page in one step: what follows may not be there.
		n := min(uint64(len(buf)), 4096-addr%4096)
		got, err := ReadMemory(pid, addr, buf[:n])
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(buf[:got], 0); i >= 0 {
			return string(append(out, buf[:i]...)), nil
		}
		if got == 0 {
			return "", unix.EFAULT
		}
		out = append(out, buf[:got]...)
		addr += uint64(got)
	}
	return "", unix.ENAMETOOLONG
}

// DirOf opens the directory that a thread means by a directory descriptor: its own descriptor fd,
// or its working directory for AT_FDCWD.
func DirOf(tid, fd int) (int, error) {
	if fd == unix.AT_FDCWD {
		return unix.Open("/proc/"+strconv.Itoa(tid)+"/cwd", unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	dir, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/fd/"+strconv.Itoa(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != unix.EACCES {
		return dir, err
	}
	// The directory /proc/TID/fd of a process that is not dumpable belongs to the host's root.
	return DescriptorOf(tid, fd)
}

// UmaskOf returns the umask of a thread.
func UmaskOf(tid int) (uint32, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(data, []byte("\nUmask:\t"))
	if !ok {
		return 0, unix.EIO
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(line), 8, 32)
	return uint32(mask), err
}

// Openat opens name in dir, without following a link at name.
func Openat(dir int, name string, flags int, mode uint32) (int, error) {
	return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
}

// Mknodat makes a regular file, a FIFO or a socket file.
func Mknodat(dir int, name string, mode uint32) error { return unix.Mknodat(dir, name, mode, 0) }

// Renameat2 renames a file with the flags of renameat2.
func Renameat2(fromDir int, from string, toDir int, to string, flags uint) error {
	return unix.Renameat2(fromDir, from, toDir, to, flags)
}

// Linkat makes a hard link. If from is a symbolic link, it links the symbolic link itself.
func Linkat(fromDir int, from string, toDir int, to string) error {
	return unix.Linkat(fromDir, from, toDir, to, 0)
}

// LinkFD makes a hard link to an open file.
func LinkFD(fd int, toDir int, to string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), toDir, to, unix.AT_SYMLINK_FOLLOW)
}

// Truncate sets the size of an open file.
func Truncate(fd int, size int64) error { return unix.Ftruncate(fd, size) }

// ChmodFile changes the mode of an open file, which may be open with O_PATH. If it is a symbolic
// link, the error is EOPNOTSUPP.
func ChmodFile(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EOPNOTSUPP
	}
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH) // Linux 6.6
	if err == unix.ENOSYS || err == unix.EINVAL || err == unix.EOPNOTSUPP {
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	}
	return err
}

// Close closes a descriptor and ignores errors.
func Close(fd int) { _ = unix.Close(fd) }

// DescriptorOf returns a duplicate of a thread's descriptor fd. Threads of one process may have
// different tables of descriptors, and the first one may have ended.
func DescriptorOf(tid, fd int) (int, error) {
	pidfd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
	if err == unix.EINVAL { // before Linux 6.9
		return sharedDescriptor(tid, fd)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// sharedDescriptor takes a thread's descriptor from the table of the process's first thread. If the
// thread has another table, the error is EBADF. A kernel without kcmp does not tell, and then the
// descriptor may be one of another thread.
func sharedDescriptor(tid, fd int) (int, error) {
	tgid, err := ProcessOf(tid)
	if err != nil {
		return -1, err
	}
	if tid != tgid {
		const files = 2 // KCMP_FILES
		differ, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(tid), uintptr(tgid), files, 0, 0, 0)
		if e == 0 && differ != 0 {
			return -1, unix.EBADF
		}
	}
	pidfd, err := unix.PidfdOpen(tgid, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// ProcessOf returns the ID of the process that a thread belongs to.
func ProcessOf(tid int) (int, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(data, []byte("\nTgid:\t"))
	if !ok {
		return 0, unix.EIO
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.Atoi(string(line))
}

// Socket makes a socket. It is closed on exec.
func Socket(family, kind, protocol int) (int, error) {
	return unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
}

// OfStreams reports whether a kind of sockets, perhaps with flags, is that of connections.
func OfStreams(kind int) bool {
	const mask = 0xf // SOCK_TYPE_MASK
	return kind&mask == unix.SOCK_STREAM
}

// SocketsUsed returns the number of sockets of all kinds in this process's network namespace.
func SocketsUsed() (int, error) {
	data, err := os.ReadFile("/proc/self/net/sockstat")
	if err != nil {
		return 0, err
	}
	rest, ok := bytes.CutPrefix(data, []byte("sockets: used "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	if !ok {
		err = unix.EIO
	}
	return n, err
}

// Memberships returns the number of memberships of IPv6 groups in this process's network namespace.
// They include those of the kernel itself.
func Memberships() (int, error) {
	const users = 3 // the column that tells how many sockets joined
	data, err := os.ReadFile("/proc/self/net/igmp6")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // a kernel without IPv6
	}
	if err != nil {
		return 0, err
	}
	all := 0
	for line := range bytes.Lines(data) {
		words := bytes.Fields(line)
		if len(words) <= users {
			return 0, unix.EIO
		}
		n, err := strconv.Atoi(string(words[users]))
		if err != nil {
			return 0, unix.EIO
		}
		all += n
	}
	return all, nil
}

// SocketFamily returns the address family of an open socket.
func SocketFamily(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
}

// ConnectRaw connects a socket to an address in the kernel's own encoding.
func ConnectRaw(fd int, addr []byte) error {
	var p unsafe.Pointer
	if len(addr) > 0 {
		p = unsafe.Pointer(&addr[0])
	}
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(p), uintptr(len(addr)))
	if e != 0 {
		return e
	}
	return nil
}

// RawAddress returns an internet address that is in the kernel's own encoding.
func RawAddress(addr []byte) (netip.AddrPort, bool) {
	if len(addr) < 8 {
		return netip.AddrPort{}, false
	}
	port := binary.BigEndian.Uint16(addr[2:])
	switch family := binary.NativeEndian.Uint16(addr); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr[4:8])), port), true
	case family == unix.AF_INET6 && len(addr) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(addr[8:24])).Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// IsStream reports whether an open socket is one for connections.
func IsStream(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_STREAM
}

// ConnectFile connects a socket to the socket file that is open as file.
func ConnectFile(fd, file int) error {
	return unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)})
}

// Types of a file in its mode, and a flag of openat that package syscall lacks.
const (
	TypeMask    = unix.S_IFMT
	TypeRegular = unix.S_IFREG
	TypeDir     = unix.S_IFDIR
	TypeLink    = unix.S_IFLNK
	TypeFIFO    = unix.S_IFIFO
	TypeSocket  = unix.S_IFSOCK
	TypeChar    = unix.S_IFCHR
	TypeBlock   = unix.S_IFBLK
	SetIDs      = unix.S_ISUID | unix.S_ISGID

	OpenTmpfile     = unix.O_TMPFILE
	OpenPathOnly    = unix.O_PATH
	RenameWhiteout  = unix.RENAME_WHITEOUT
	RenameNoReplace = unix.RENAME_NOREPLACE
	RenameExchange  = unix.RENAME_EXCHANGE
	RemoveDir       = unix.AT_REMOVEDIR
	FollowLink      = unix.AT_SYMLINK_FOLLOW
	EmptyPath       = unix.AT_EMPTY_PATH
	NoFollow        = unix.AT_SYMLINK_NOFOLLOW
	LockNow         = unix.LOCK_NB
	FamilyUnix      = unix.AF_UNIX
	FamilyNetlink   = unix.AF_NETLINK
	SocketClosed    = unix.SOCK_CLOEXEC
)

// BindRaw binds a socket to an address in the kernel's own encoding.
func BindRaw(fd int, addr []byte) error {
	var p unsafe.Pointer
	if len(addr) > 0 {
		p = unsafe.Pointer(&addr[0])
	}
	_, _, e := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(p), uintptr(len(addr)))
	if e != 0 {
		return e
	}
	return nil
}

// BindUnix binds a socket to a new socket file, name in dir.
func BindUnix(fd, dir int, name string) error {
	return unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)})
}

// BindBelow binds a socket to an address in the kernel's own encoding that is a path. The kernel makes
// the socket file in the directory dir or below, or not at all, whatever the path leads to by then. A
// relative path begins at the directory start. mask is the umask. The process must have no_new_privs.
func BindBelow(fd int, addr []byte, start, dir int, mask uint32) error {
	return onOwnThread(func() error {
		if err := OwnFiles(); err != nil {
			return err
		}
		Umask(int(mask))
		if err := unix.Fchdir(start); err != nil {
			return err
		}
		if err := landlockSockets(dir); err != nil {
			return err
		}
		return BindRaw(fd, addr)
	})
}

// onOwnThread calls f on a thread that ends with it. That is never the process's first thread, which
// could not end.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // until the goroutine ends, and the thread with it
		if Leader() {
			done <- onOwnThread(f) // on another one, because this one is taken
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}

// OpenSocketFile opens a socket file with O_PATH, without following a link.
func OpenSocketFile(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	st, err := StatAt(fd, "")
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		err = unix.ENOTSOCK
	}
	if err != nil {
		Close(fd)
		return -1, err
	}
	return fd, nil
}

// Silent reports whether nobody listens at the socket file that is open as file, and nothing else than a
// socket of the same kind as fd can be bound there.
func Silent(fd, file int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return false
	}
	try, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(try)
	return ConnectFile(try, file) == unix.ECONNREFUSED
}

// DuplicateFD returns another descriptor of an open file.
func DuplicateFD(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }

// PacketsOf returns the two ends of a pair of sequenced-packet sockets with these flags.
func PacketsOf(flags int) ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|flags, 0)
}

// A Memory is the memory of another process. It stays that process's when its ID is used again.
type Memory struct{ file *os.File }

// OpenMemory opens the memory of the process of a thread, which must be dumpable.
func OpenMemory(tid int) (Memory, error) {
	f, err := os.OpenFile("/proc/"+strconv.Itoa(tid)+"/mem", os.O_RDWR, 0)
	return Memory{f}, err
}

// Close closes it and ignores errors.
func (m Memory) Close() { m.file.Close() }

// Check returns an error if there are not n bytes at an address.
func (m Memory) Check(addr uint64, n int) error {
	return m.at(addr, make([]byte, n), (*os.File).ReadAt)
}

// WriteNumbers writes numbers of 32 bits to an address.
func (m Memory) WriteNumbers(addr uint64, numbers []int32) error {
	var b []byte
	for _, n := range numbers {
		b = binary.NativeEndian.AppendUint32(b, uint32(n))
	}
	return m.at(addr, b, (*os.File).WriteAt)
}

// Write writes bytes to an address.
func (m Memory) Write(addr uint64, data []byte) error { return m.at(addr, data, (*os.File).WriteAt) }

func (m Memory) at(addr uint64, b []byte, do func(*os.File, []byte, int64) (int, error)) error {
	if addr > math.MaxInt64-uint64(len(b)) {
		return unix.EFAULT
	}
	_, err := do(m.file, b, int64(addr))
	return err
}

// Lock applies an operation of flock to an open file, and never waits: if somebody else has the lock,
// the error is EWOULDBLOCK. The lock belongs to all descriptors of the open file, whichever process has
// them.
func Lock(fd, operation int) error {
	return again(func() error { return unix.Flock(fd, operation|unix.LOCK_NB) })
}

// WatchFile adds a watch for the open file to an inotify instance, and returns the watch. mask is that
// of inotify_add_watch.
func WatchFile(instance, file int, mask uint32) (watch int, err error) {
	// The path leads to the file itself, also if that is a symbolic link.
	return unix.InotifyAddWatch(instance, "/proc/self/fd/"+strconv.Itoa(file), mask&^unix.IN_DONT_FOLLOW)
}

// WatchFollows reports whether inotify_add_watch follows a symbolic link with this mask.
func WatchFollows(mask uint32) bool { return mask&unix.IN_DONT_FOLLOW == 0 }

// Interrupted reports whether a thread has a signal to handle. certain means that no other thread can
// take the signal, so that the thread handles it when its call ends.
func Interrupted(tid int) (yes, certain bool, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return false, false, err
	}
	number := func(name string, base int) uint64 {
		_, rest, _ := bytes.Cut(data, []byte("\n"+name+":\t"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		n, e := strconv.ParseUint(string(line), base, 64)
		if e != nil {
			err = unix.EIO
		}
		return n
	}
	handled := ^(number("SigBlk", 16) | number("SigIgn", 16))
	own, shared := number("SigPnd", 16)&handled != 0, number("ShdPnd", 16)&handled != 0
	return own || shared, own || number("Threads", 10) == 1, err
}

// Restart is an answer to a reported call whose thread has a signal to handle. The kernel then does
// what it does with a call of its own: it makes the call again if the handler has SA_RESTART or if there
// is no handler, and else returns EINTR. Without a signal the program would see the number.
const Restart = Errno(512) // ERESTARTSYS

// ReopenFor opens an open file once more, with other flags, also if it has no name any more.
func ReopenFor(fd, flags int) (int, error) {
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// Blocking clears O_NONBLOCK of an open file.
func Blocking(fd int) error { return unix.SetNonblock(fd, false) }

// OwnFiles gives the calling thread its own root, working directory and umask, which it shared with
// the other threads before.
func OwnFiles() error { return unix.Unshare(unix.CLONE_FS) }
