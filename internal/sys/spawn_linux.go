package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // and for go:linkname

	"golang.org/x/sys/unix"
)

// A SpawnAttr describes how a process starts.
type SpawnAttr struct {
	Dir      string
	Env      []string
	Files    []*os.File // descriptors 0, 1, 2, …; it has no others that are closed on exec
	Terminal bool       // descriptor 0 becomes the controlling terminal
	User     int        // real, effective and saved
	Other    bool       // the user is another one than this process's commands have, and in the group GID alone
	GID      int
	Filter   []Instruction

	// Group, if any, is the cgroup.procs of a control group for it. Where Count,
	// its pids.current, then says more than Most it does not begin: EAGAIN.
	Group, Count *os.File
	Most         int

	// PIDs bounds the processes and threads of its user, for it and for everything that
	// it starts; none of them can raise that. Where there are so many already it does
	// not begin: EAGAIN. This process keeps its own bound. Zero is this process's.
	PIDs int
}

// Spawn starts a program in a new session. No signal is blocked in it, signals that this process
// ignores are ignored, and all others have the default action. It is in its control group, within
// its bound and behind its filter before its first instruction. The calling thread needs CAP_SETUID
// for a user that is not one of its own, CAP_SETGID for Other, and NoNewPrivs or CAP_SYS_ADMIN for
// a filter. Nobody may reap all children meanwhile. If somebody stops the new process before it
// executes the program, it is killed after some time, and can then be reaped.
//
// It replaces syscall.ForkExec, which has fewer features and makes a system call for each signal.
// If a filter refuses clone3, Spawn makes those calls too, and then no signal is ignored.
func Spawn(argv0 string, argv []string, attr *SpawnAttr) (pid int, err error) {
	c, err := newChild(argv0, argv, attr)
	if err != nil {
		return 0, err
	}
	// As syscall.ForkExec: a descriptor that somebody is about to close on exec is
	// not to be in the child.
	syscall.ForkLock.Lock()
	late := time.AfterFunc(patience, func() {
		if pid := atomic.LoadInt32(&c.pid); pid > 0 {
			_ = unix.Kill(int(pid), unix.SIGKILL)
		}
	})
	n, errno := fork(c)
	late.Stop()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(attr)
	if errno != 0 {
		return 0, fmt.Errorf("clone: %w", errno)
	}
	pid = int(n)
	if c.failed == 0 { // or it was killed, which is for whoever reaps it
		return pid, nil
	}
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return 0, c.failed
		}
	}
}

// patience is how long a process may take to begin: somebody stops it for ever.
const patience = 5 * time.Second

// A child is what a new process does until it executes its program. It has this
// process's memory then, but a stack of its own, and this thread stands still.
type child struct {
	clone        cloneArgs
	argv0, dir   *byte
	argv, env    []*byte
	files        []uintptr
	terminal     uintptr // 1 for yes
	user         uintptr
	other, gid   uintptr // 1 for yes
	filter       *unix.SockFprog
	group, count uintptr // none without most
	most         uintptr
	counted      bool
	bounded      bool // by bound
	bound        unix.Rlimit
	tried        bool        // whether there is room for it
	trial        unix.Rlimit // with room for one more

	older    bool     // it was made by clone, and has this process's signals
	unsignal [32]byte //nolint:unused // struct sigaction: the default; begin uses it
	blocked  uint64   // all signals
	was      uint64   // those that the calling thread blocks

	zero   [1]byte  // "0": whoever writes it
	text   [32]byte //nolint:unused // begin uses it
	mask   uint64   //nolint:unused // of signals that are blocked: none; begin uses it
	pid    int32    // as soon as there is one
	failed syscall.Errno
	stack  [8 << 10]byte
}

// cloneArgs is struct clone_args as it was first.
type cloneArgs struct {
	flags, _, _    uint64
	pid            uint64 // where to tell it
	exit           uint64 // signal
	stack, size, _ uint64
}

func newChild(argv0 string, argv []string, attr *SpawnAttr) (c *child, err error) {
	c = &child{zero: [1]byte{'0'}, user: uintptr(attr.User), most: uintptr(max(attr.Most, 0)), blocked: ^uint64(0)}
	c.clone = cloneArgs{
		flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_PARENT_SETTID,
		pid:   uint64(uintptr(unsafe.Pointer(&c.pid))), exit: uint64(unix.SIGCHLD),
		stack: uint64(uintptr(unsafe.Pointer(&c.stack))) &^ 15, size: uint64(len(c.stack)) - 16,
	}
	if c.argv0, err = unix.BytePtrFromString(argv0); err != nil {
		return nil, err
	}
	if c.argv, err = syscall.SlicePtrFromStrings(argv); err != nil {
		return nil, err
	}
	if c.env, err = syscall.SlicePtrFromStrings(attr.Env); err != nil {
		return nil, err
	}
	if attr.Dir != "" {
		if c.dir, err = unix.BytePtrFromString(attr.Dir); err != nil {
			return nil, err
		}
	}
	for _, f := range attr.Files {
		c.files = append(c.files, f.Fd())
	}
	if attr.Terminal {
		c.terminal = 1
	}
	if attr.Other {
		c.other, c.gid = 1, uintptr(attr.GID)
	}
	if len(attr.Filter) > 0 {
		c.filter = &unix.SockFprog{Len: uint16(len(attr.Filter)), Filter: &attr.Filter[0]}
	}
	if attr.Group != nil {
		c.group, c.count, c.counted = attr.Group.Fd(), attr.Count.Fd(), true
	}
	if n := uint64(max(attr.PIDs, 0)); n > 0 {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
			return nil, fmt.Errorf("getrlimit: %w", err)
		}
		c.bounded, c.bound = true, unix.Rlimit{Cur: min(n, now.Cur), Max: min(n, now.Max)}
		// Where this process has no higher bound, the kernel looks at that.
		c.tried, c.trial = now.Cur > n, unix.Rlimit{Cur: n + 1, Max: n + 1}
	}
	return c, nil
}

// fork makes the child, and comes back when that has executed its program or
// ended. Others go on meanwhile: somebody may stop a child.
//
// A filter that cannot see what clone3 is asked for refuses it with ENOSYS. A child of
// clone begins with this process's signal handlers, which must not run in it: so all
// signals are blocked until it has taken them away.
//
//go:nosplit
//go:norace
func fork(c *child) (pid uintptr, errno syscall.Errno) {
	entersyscall()
	pid, errno = vfork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&c.clone)), unsafe.Sizeof(c.clone), 0, c)
	if errno == unix.ENOSYS {
		c.older = true
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.blocked)), uintptr(unsafe.Pointer(&c.was)), unsafe.Sizeof(c.was), 0, 0)
		pid, errno = vfork(unix.SYS_CLONE, uintptr(c.clone.flags&^unix.CLONE_CLEAR_SIGHAND|c.clone.exit), uintptr(c.clone.stack+c.clone.size), uintptr(c.clone.pid), c)
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.was)), 0, unsafe.Sizeof(c.was), 0, 0)
	}
	exitsyscall()
	return pid, errno
}

// begin is the child. It may not return, grow the stack, allocate or be preempted:
// it calls nothing but the kernel, and its signals have no handlers.
//
// The order is that of who may do what. The group's files are those of whoever
// opened them, and the group is first, so that what fails later was counted. Until
// the child has its user nobody can send it a signal, and then it executes at once.
// Its memory is out of reach for all, as this process's is.
//
//nolint:unused // vfork calls it
//go:nosplit
//go:norace
func begin(c *child) {
	var (
		n, digits, fd uintptr
		i             int
		e             syscall.Errno
	)
	if c.counted {
		if _, _, e = syscall.RawSyscall(unix.SYS_WRITE, c.group, uintptr(unsafe.Pointer(&c.zero)), 1); e != 0 {
			goto failed
		}
		if n, _, e = syscall.RawSyscall6(unix.SYS_PREAD64, c.count, uintptr(unsafe.Pointer(&c.text)), unsafe.Sizeof(c.text), 0, 0, 0); e != 0 {
			goto failed
		}
		for i = 0; i < int(n) && i < len(c.text) && c.text[i] >= '0' && c.text[i] <= '9'; i++ {
			digits = digits*10 + uintptr(c.text[i]-'0')
		}
		if i == 0 || digits > c.most {
			e = unix.EAGAIN
			goto failed
		}
	}
	if c.tried {
		// The kernel looks at a bound where a process is made, and this one was made
		// within another. So one more is made, which ends at once, with room for it.
		if _, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&c.trial)), 0, 0, 0); e != 0 {
			goto failed
		}
		if n, e = tryFork(); e != 0 {
			goto failed
		}
		_, _, _ = syscall.RawSyscall6(unix.SYS_WAIT4, n, 0, unix.WALL, 0, 0, 0)
	}
	if c.bounded {
		if _, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&c.bound)), 0, 0, 0); e != 0 {
			goto failed
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		goto failed
	}
	if c.dir != nil {
		if _, _, e = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0); e != 0 {
			goto failed
		}
	}

	// A descriptor that another one will overwrite moves out of the way.
	for i = range c.files {
		if c.files[i] >= uintptr(i) {
			continue
		}
		if fd, _, e = syscall.RawSyscall(unix.SYS_FCNTL, c.files[i], unix.F_DUPFD_CLOEXEC, uintptr(len(c.files))); e != 0 {
			goto failed
		}
		c.files[i] = fd
	}
	for i = range c.files {
		if c.files[i] == uintptr(i) {
			_, _, e = syscall.RawSyscall(unix.SYS_FCNTL, uintptr(i), unix.F_SETFD, 0)
		} else {
			_, _, e = syscall.RawSyscall(unix.SYS_DUP3, c.files[i], uintptr(i), 0)
		}
		if e != 0 {
			goto failed
		}
	}
	for i = len(c.files); i < 3; i++ {
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(i), 0, 0)
	}
	if c.terminal != 0 {
		if _, _, e = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0); e != 0 {
			goto failed
		}
	}

	if c.older {
		for i = 1; i <= 64; i++ {
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(i), uintptr(unsafe.Pointer(&c.unsignal)), 0, unsafe.Sizeof(c.mask), 0, 0)
		}
	}
	if _, _, e = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, unsafe.Sizeof(c.mask), 0, 0); e != 0 {
		goto failed
	}
	if c.filter != nil {
		if _, _, e = syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(c.filter))); e != 0 {
			goto failed
		}
	}
	if c.other != 0 {
		if _, _, e = syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
			goto failed
		}
		if _, _, e = syscall.RawSyscall(unix.SYS_SETRESGID, c.gid, c.gid, c.gid); e != 0 {
			goto failed
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESUID, c.user, c.user, c.user); e != 0 {
		goto failed
	}
	_, _, e = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.argv0)), uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0])))
failed:
	c.failed = e
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
	}
}

// vfork is clone3 or clone with these arguments. The child does begin.
func vfork(call, one, two, three uintptr, c *child) (pid uintptr, errno syscall.Errno)

// tryFork makes a process that ends at once. It sends no signal.
//
//nolint:unused // begin calls it
func tryFork() (pid uintptr, errno syscall.Errno)

// What the runtime does around a call that may take long.
//
//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
