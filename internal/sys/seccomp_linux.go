package sys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SeccompAll sets no_new_privs for all threads of this process, and installs a filter for them and
// everything that they start, for good.
func SeccompAll(filter []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel passes this thread's no_new_privs on with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	_, err := seccomp(filter, unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	return err
}

// SeccompThread installs a filter for the calling thread and everything it starts.
func SeccompThread(filter []unix.SockFilter) error {
	_, err := seccomp(filter, 0)
	return err
}

// SeccompListen installs a filter for the calling thread and everything that it starts. It returns
// the descriptor on which the kernel reports the system calls for which the filter returns
// USER_NOTIF.
func SeccompListen(filter []unix.SockFilter) (*os.File, error) {
	// With WAIT_KILLABLE_RECV (Linux 5.19) a signal does not interrupt a call
	// that was taken up already, so that none is done twice.
	return listen(filter, 0)
}

// SeccompListenAll is SeccompListen for all threads of this process.
func SeccompListenAll(filter []unix.SockFilter) (*os.File, error) {
	return listen(filter, unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
}

func listen(filter []unix.SockFilter, flags uintptr) (*os.File, error) {
	fd, err := seccomp(filter, flags|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "seccomp listener")
	// Linux 6.6: wake the other side on the same processor. Only speed.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0x40082104, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return f, nil
}

func seccomp(filter []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if e != 0 {
		return -1, fmt.Errorf("install system-call filter: %w", e)
	}
	return int(fd), nil
}

// A Notif is a reported system call that waits for an answer.
type Notif struct {
	ID    uint64
	PID   uint32 // thread that calls, as this process sees it; 0 if it cannot
	Flags uint32
	NR    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// Receive waits for the next reported system call. If the caller has died meanwhile, the error is
// ENOENT, and Receive can be called again.
func (n *Notif) Receive(listener int) error {
	*n = Notif{}
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

// NotifValid reports whether the caller still waits for the answer. Only if it does is it certain
// that what was read from its memory and descriptors was its own.
func NotifValid(listener int, id uint64) bool {
	return ioctl(listener, 0x40082102, unsafe.Pointer(&id)) == nil // SECCOMP_IOCTL_NOTIF_ID_VALID
}

type notifResponse struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// NotifAnswer ends a reported system call with a result or an error.
func NotifAnswer(listener int, id uint64, val int64, errno unix.Errno) error {
	r := notifResponse{id: id, val: val, err: -int32(errno)}
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// NotifContinue makes the kernel perform the call, with its arguments as they are in the caller's
// memory then. It must not be used as a decision: the caller may have changed the arguments. The
// caller's own rights still apply.
func NotifContinue(listener int, id uint64) error {
	r := notifResponse{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

type notifAddFD struct {
	id         uint64
	flags      uint32
	srcfd      uint32
	newfd      uint32
	newfdFlags uint32
}

// NotifGive ends a reported system call by giving the caller a descriptor.
//
// No signal may arrive meanwhile. If the kernel is interrupted, it takes the file back, but the
// call still returns descriptor 0. A Go runtime signals its own threads whenever it collects
// garbage.
func NotifGive(listener int, id uint64, fd int, cloexec bool) error {
	a := notifAddFD{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, srcfd: uint32(fd)}
	if cloexec {
		a.newfdFlags = unix.O_CLOEXEC
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, was unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &was); err != nil {
		return err
	}
	err := ioctl(listener, notifAddition, unsafe.Pointer(&a))
	return errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil))
}

// NotifAdd gives the caller of a reported system call a descriptor, and returns its number there. The
// call still waits for an answer.
func NotifAdd(listener int, id uint64, fd int, cloexec bool) (int, error) {
	a := notifAddFD{id: id, srcfd: uint32(fd)}
	if cloexec {
		a.newfdFlags = unix.O_CLOEXEC
	}
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifAddition, uintptr(unsafe.Pointer(&a)))
		switch e {
		case 0:
			return int(n), nil
		case unix.EINTR: // nothing was given
		default:
			return -1, e
		}
	}
}

const notifAddition = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD

func ioctl(fd int, req uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(arg))
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return e
		}
		return nil
	}
}

// ReadMemory copies from the memory of another process, at most len(buf) bytes and only as far as
// it is mapped.
func ReadMemory(pid int, addr uint64, buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	return unix.ProcessVMReadv(pid, local, remote, 0)
}

// FiltersOfThread returns how many system-call filters the calling thread is behind.
func FiltersOfThread() (int, error) { return filtersIn("/proc/thread-self/status") }

// FiltersBeyond returns how many filters the threads of all processes in sight have beyond own each, without
// the first process. One that several threads have in common counts for each.
func FiltersBeyond(own int) (int, error) {
	processes, err := numbersIn("/proc")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, process := range processes {
		if process == "1" {
			continue
		}
		threads, err := numbersIn("/proc/" + process + "/task")
		if err != nil {
			continue // it ended
		}
		for _, thread := range threads {
			if n, err := filtersIn("/proc/" + process + "/task/" + thread + "/status"); err == nil { // else it ended
				sum += max(n-own, 0)
			}
		}
	}
	return sum, nil
}

// numbersIn lists the names in a directory of /proc that are numbers.
func numbersIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return name[0] < '0' || name[0] > '9' }), nil
}

func filtersIn(status string) (int, error) {
	data, err := os.ReadFile(status)
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(data, []byte("\nSeccomp_filters:\t"))
	if !ok {
		return 0, unix.EIO
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.Atoi(string(line))
}
