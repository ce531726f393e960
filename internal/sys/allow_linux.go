package sys

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// ConfineRuntime installs an allow-list of system calls for all threads of the process, for good.
// Allowed is what a Go program needs that computes, talks over sockets that it already has, and
// reads the files that Landlock lets it open. Every other call fails with EPERM. The process can
// execute nothing, start no process, make no socket and change no file.
func ConfineRuntime() error { return confineAll(allowList(unconditional(), uint32(os.Getpid()))) }

// ConfineDialer is ConfineRuntime for a program that also dials. It may make sockets of IPv4 and
// IPv6, sockets that list the addresses of this host, and pairs of sockets, and it may keep a TUN
// interface alive. It cannot listen, and cannot reach a socket of another process by a path.
func ConfineDialer() error { return confineAll(dialerFilter()) }

func dialerFilter() []unix.SockFilter {
	calls := append(unconditional(), unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_SETSOCKOPT, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG, unix.SYS_SPLICE)
	const all = 0xffffffff
	return allowList(calls, uint32(os.Getpid()),
		// Of all devices' requests the one of KeepTUN.
		argument{call: unix.SYS_IOCTL, index: 1, mask: all, values: []uint32{unix.TUNSETPERSIST}},
		argument{call: unix.SYS_SOCKET, index: 0, mask: all, values: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}},
		argument{call: unix.SYS_SOCKETPAIR, index: 0, mask: all, values: []uint32{unix.AF_UNIX}, more: true},
		// Not of datagrams: one of those can be connected again, to a path.
		argument{call: unix.SYS_SOCKETPAIR, index: 1, mask: all &^ (unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK), values: []uint32{unix.SOCK_STREAM}})
}

// ConfineFiles is ConfineRuntime for a program that serves files by name. It may look at, make,
// change, move and remove files, within the bounds of its tree, its user and the broker to which
// its calls are reported.
func ConfineFiles() error { return confineAll(filesFilter()) }

func filesFilter() []unix.SockFilter {
	calls := append(unconditional(), unix.SYS_OPENAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
		unix.SYS_PWRITE64, unix.SYS_PWRITEV2, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_COPY_FILE_RANGE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
		unix.SYS_MKDIRAT, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2,
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT)
	return allowList(calls, uint32(os.Getpid()), // and of what is no file, only FIFOs and sockets
		argument{call: unix.SYS_MKNODAT, index: 2, mask: unix.S_IFMT, values: []uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK}})
}

func confineAll(filter []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	_, err := seccomp(filter, unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	return err
}

// RuntimeCalls returns the numbers of the system calls that [ConfineRuntime] allows, including
// those that it allows with some arguments only.
func RuntimeCalls() []uint32 {
	return append(unconditional(), unix.SYS_OPENAT, unix.SYS_MMAP, unix.SYS_FCNTL, unix.SYS_CLONE, unix.SYS_TGKILL, unix.SYS_PRLIMIT64, unix.SYS_PRCTL)
}

// unconditional lists the calls that are allowed whatever their arguments are.
func unconditional() []uint32 {
	return append([]uint32{
		// memory
		unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MPROTECT, unix.SYS_BRK,
		// threads and time
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
		unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETTID, unix.SYS_GETPID,
		unix.SYS_GETCPU, unix.SYS_GETRUSAGE,
		// signals to itself
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		// what is open already
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_CLOSE,
		unix.SYS_FSTAT, unix.SYS_PIPE2, unix.SYS_EVENTFD2,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_PPOLL,
		unix.SYS_RECVFROM, unix.SYS_SENDTO, unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_SHUTDOWN,
		unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
		// looking at files
		unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FSTATFS,
		// harmless facts
		unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	}, archCalls()...)
}

// Opcodes and offsets of classic BPF over struct seccomp_data.
const (
	bpfLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfAnd    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfReturn = unix.BPF_RET | unix.BPF_K

	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// An argument of a call: masked, it must be one of the values.
type argument struct {
	call   uint32
	index  int
	mask   uint32
	values []uint32
	more   bool // the next one is about the same call
}

func allowList(calls []uint32, pid uint32, arguments ...argument) []unix.SockFilter {
	deny := uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	ret := func(action uint32) unix.SockFilter { return unix.SockFilter{Code: bpfReturn, K: action} }
	f := []unix.SockFilter{
		{Code: bpfLoad, K: dataArch},
		{Code: bpfEqual, Jt: 1, K: Arch},
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		{Code: bpfLoad, K: dataNumber},
	}
	slices.Sort(calls)
	for _, nr := range slices.Compact(calls) {
		f = append(f, unix.SockFilter{Code: bpfEqual, Jf: 1, K: nr}, ret(unix.SECCOMP_RET_ALLOW))
	}
	// A call with an argument: masked, it must be one of the values.
	restrict := func(then unix.SockFilter, nr uint32, arg int, mask uint32, values ...uint32) {
		n := uint8(len(values))
		f = append(f,
			unix.SockFilter{Code: bpfEqual, Jf: n + 4, K: nr},
			unix.SockFilter{Code: bpfLoad, K: uint32(dataArgs + 8*arg)},
			unix.SockFilter{Code: bpfAnd, K: mask},
		)
		for i, v := range values {
			f = append(f, unix.SockFilter{Code: bpfEqual, Jt: n - uint8(i), K: v})
		}
		f = append(f, ret(deny), then)
	}
	when := func(nr uint32, arg int, mask uint32, values ...uint32) {
		restrict(ret(unix.SECCOMP_RET_ALLOW), nr, arg, mask, values...)
	}
	number := unix.SockFilter{Code: bpfLoad, K: dataNumber} // the next condition is about the same call
	const change = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY
	const all = 0xffffffff
	when(unix.SYS_OPENAT, 2, change, 0)
	// Memory that no limit of the process counts: shared, a stack of its own
	// that grows, huge pages.
	when(unix.SYS_MMAP, 3, unix.MAP_SHARED|unix.MAP_GROWSDOWN|unix.MAP_HUGETLB, 0)
	// Not: whose signals a descriptor sends, and which (they end others'
	// processes), leases and notices, the size of pipes, locks.
	when(unix.SYS_FCNTL, 1, all, unix.F_GETFL, unix.F_SETFL, unix.F_GETFD, unix.F_SETFD, unix.F_DUPFD_CLOEXEC)
	when(unix.SYS_CLONE, 0, unix.CLONE_THREAD|unix.CLONE_VM|0x7e020000, unix.CLONE_THREAD|unix.CLONE_VM)
	// Signals to itself: those by which Go has a thread give way, and by which it ends the
	// process. Not SIGCONT: it would take back a stop before that takes effect.
	restrict(number, unix.SYS_TGKILL, 0, all, pid)
	when(unix.SYS_TGKILL, 2, all, uint32(unix.SIGURG), uint32(unix.SIGHUP), uint32(unix.SIGINT), uint32(unix.SIGQUIT), uint32(unix.SIGILL),
		uint32(unix.SIGTRAP), uint32(unix.SIGABRT), uint32(unix.SIGBUS), uint32(unix.SIGFPE), uint32(unix.SIGSEGV), uint32(unix.SIGPIPE), uint32(unix.SIGTERM))
	when(unix.SYS_PRLIMIT64, 0, all, 0)
	when(unix.SYS_PRCTL, 0, all, 0x53564d41 /* PR_SET_VMA: names for mappings */)
	for _, a := range arguments {
		then := ret(unix.SECCOMP_RET_ALLOW)
		if a.more {
			then = number
		}
		restrict(then, a.call, a.index, a.mask, a.values...)
	}
	f = append(f, unix.SockFilter{Code: bpfEqual, Jf: 1, K: unix.SYS_CLONE3}, ret(uint32(unix.SECCOMP_RET_ERRNO)|uint32(unix.ENOSYS)))
	return append(f, ret(deny))
}

// LandlockProcess restricts all threads of this process, for good. The process may read the files
// and directories below readable, which must be real paths. It may open nothing else and change
// nothing. It may bind and reach no port, if the kernel's Landlock supports that. Versions of
// Landlock before 3 do not refuse to truncate files; [ConfineRuntime] and [ConfineDialer] do. Every
// thread must already have no_new_privs. [ConfineRuntime] sets it too late, so the process has it
// from its start, or this function sets it.
func LandlockProcess(readable []string) error {
	return landlockProcess(readable, ll.AccessNetBindTCP|ll.AccessNetConnectTCP)
}

// LandlockDialer is LandlockProcess for a program that dials: it may reach any port, but bind none.
func LandlockDialer(readable []string) error {
	return landlockProcess(readable, ll.AccessNetBindTCP)
}

func landlockProcess(readable []string, ports uint64) error {
	return landlockVersion(LandlockABI(), readable, ports)
}

// landlockVersion is landlockProcess on a kernel with this version of Landlock; zero is none.
func landlockVersion(abi int, readable []string, ports uint64) error {
	if abi < 1 {
		return fmt.Errorf("landlock: this kernel has none, or it is not in use: %w", unix.ENOSYS)
	}
	attr := ll.RulesetAttr{HandledAccessFS: uint64(landlockRead | landlockWrite)}
	if abi < 2 {
		attr.HandledAccessFS &^= ll.AccessFSRefer // and it is always refused
	}
	if abi < 3 {
		attr.HandledAccessFS &^= ll.AccessFSTruncate
	}
	if abi >= 4 {
		attr.HandledAccessNet = ports
	}
	if abi >= 5 {
		attr.HandledAccessFS |= ll.AccessFSIoctlDev
	}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	ruleset, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	defer unix.Close(ruleset)
	for _, path := range readable {
		if err := landlockReal(ruleset, ll.AccessFSReadFile|ll.AccessFSReadDir, path); err != nil {
			return err
		}
	}
	// Where the program is linked with C, psx lists the threads itself.
	if err := landlockAllow(ruleset, ll.AccessFSReadDir, "/proc/self/task"); err != nil {
		return err
	}
	if _, _, e := psx.Syscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("set no_new_privs: %w", e)
	}
	if _, _, e := psx.Syscall3(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", e)
	}
	return nil
}
