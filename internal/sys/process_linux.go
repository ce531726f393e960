package sys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Namespace flags of a new process.
const (
	CloneUser   = unix.CLONE_NEWUSER
	CloneMount  = unix.CLONE_NEWNS
	ClonePID    = unix.CLONE_NEWPID
	CloneNet    = unix.CLONE_NEWNET
	CloneIPC    = unix.CLONE_NEWIPC
	CloneUTS    = unix.CLONE_NEWUTS
	CloneCgroup = unix.CLONE_NEWCGROUP
	CloneTime   = unix.CLONE_NEWTIME
)

// StartCaps returns the capabilities that the supervisor of gVisor needs in addition to BuildCaps.
func StartCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_CHROOT, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}
}

// BrokerCaps returns the capabilities that the init of a box on the host's kernel needs in addition to
// BuildCaps: to read the arguments of commands that are not dumpable.
func BrokerCaps() []uintptr { return []uintptr{unix.CAP_SYS_PTRACE} }

// BuildCaps returns the capabilities that a box needs while it is built, for
// syscall.SysProcAttr.AmbientCaps.
func BuildCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_RESOURCE, unix.CAP_NET_BIND_SERVICE}
}

// SealedFile returns an executable file in memory with this content, sealed so that nobody can
// change it.
func SealedFile(name string, data []byte) (*os.File, error) {
	return sealed(name, data, unix.MFD_EXEC)
}

// SealedData returns a file in memory that holds data, sealed so that nobody can change or execute
// it.
func SealedData(name string, data []byte) (*os.File, error) {
	return sealed(name, data, unix.MFD_NOEXEC_SEAL)
}

// sealed makes a file in memory. Before Linux 6.3 there is no flag that says whether it can be executed:
// all can.
func sealed(name string, data []byte, executable int) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|executable)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill memfd: %w", err)
	}
	if err := seal(f, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sealed reports whether a file is in memory, and sealed so that nobody can change it.
func Sealed(f *os.File) bool {
	const want = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && seals&want == want
}

// seal adds seals to a file in memory. The kernel answers EBUSY while anything holds a page of the
// file, also for its own housekeeping, and gives up after a sixth of a second. On a busy machine that
// is too early.
func seal(f *os.File, seals int) error {
	for try := 0; ; try++ {
		_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		if err == unix.EBUSY && try < 30 {
			continue
		}
		if err != nil {
			return fmt.Errorf("seal memfd: %w", err)
		}
		return nil
	}
}

// HighFile moves a file to a high descriptor. The start of a child rearranges low descriptors, as many as the child
// gets, before it executes a file, and does not touch high ones.
func HighFile(f *os.File) (*os.File, error) {
	defer f.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("move a descriptor: %w", err)
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, int(max(16, min(limit.Cur, 4096)-min(limit.Cur, 64))))
	if err != nil {
		return nil, fmt.Errorf("move a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// DropCapabilities empties the effective, permitted, inheritable and ambient capability sets of all
// threads of this process, for good. It does not change bounding sets: see [DropBounding].
func DropCapabilities() error {
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{})
}

// KeepOnlyPtrace is DropCapabilities, but keeps CAP_SYS_PTRACE for this process. What the process
// starts does not have it.
func KeepOnlyPtrace() error {
	bit := uint32(1) << unix.CAP_SYS_PTRACE
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{{Effective: bit, Permitted: bit}})
}

// DropThreadCapabilities empties the effective, permitted, inheritable and ambient capability sets of the
// calling thread, for good.
func DropThreadCapabilities() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// starting is what a thread needs that starts processes as another user: see Spawn.
const starting = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// ReserveStarting is DropCapabilities, but a thread can later take the right to change its user, by
// TakeStarting.
func ReserveStarting() error {
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{{Permitted: starting}})
}

// TakeStarting gives the calling thread the right to change its user, which ReserveStarting has
// kept. A program that the thread executes does not have it.
func TakeStarting() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: starting, Permitted: starting}}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// SignalAs sends a signal with the rights of another user, to a process or, if pid is negative, to
// a process group. The calling thread must have called TakeStarting. Meanwhile only its effective
// user is the other one. Other processes' rights over the thread depend on its real and saved user:
// see OutOfReach.
func SignalAs(uid, pid int, sig syscall.Signal) error {
	own := os.Geteuid()
	if err := effective(uid); err != nil {
		return err
	}
	err := syscall.Kill(pid, sig)
	return errors.Join(err, effective(own))
}

// effective changes the calling thread's effective user. A thread that is not user 0
// any more would lose all capabilities, if it did not ask to keep them, and none count
// then before they are taken up.
func effective(uid int) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	const same = ^uintptr(0)
	var err error
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same); e != 0 {
		err = fmt.Errorf("setresuid: %w", e)
	}
	return errors.Join(err, TakeStarting(), unix.Prctl(unix.PR_SET_KEEPCAPS, 0, 0, 0, 0))
}

// OutOfReach sets the real and the saved user of this process to a user ID that nobody else has.
// Its effective user stays. So processes of the effective user can neither signal, trace nor limit
// its threads.
func OutOfReach(uid int) error {
	if err := syscall.Setresuid(uid, -1, uid); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// keepOverUsers is SECBIT_NO_SETUID_FIXUP.
const keepOverUsers = 1 << 2

// KeepOverUsers makes the calling thread, and what it starts, keep their capabilities when they
// change their user: see Become.
func KeepOverUsers() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, keepOverUsers, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	return nil
}

// Become changes the user and group of this process, which must have been started with
// KeepOverUsers. The process keeps its capabilities this time, but not at a later change.
func Become(uid, gid int) error {
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become user %d: %w", uid, err)
		}
	}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 0, 0); e != 0 {
		return fmt.Errorf("set securebits: %w", e)
	}
	return nil
}

// NoRoot takes the special meaning from user 0, for this thread and every process that it starts:
// user ID 0 gives them no capability.
func NoRoot() error {
	const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE with their locks; KEEP_CAPS_LOCKED
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	return nil
}

// DockerCaps returns the capabilities that Docker gives containers by default.
func DockerCaps() []uintptr {
	return []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
		unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP, unix.CAP_MKNOD, unix.CAP_NET_RAW}
}

// DropBounding empties the bounding capability set of this thread, and so of every process that it
// starts. None of them can gain a capability by executing a file.
func DropBounding() error {
	_, set, err := Capabilities()
	if err != nil {
		return err
	}
	for ; set != 0; set &= set - 1 {
		c := uintptr(bits.TrailingZeros64(set))
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	return nil
}

type capHeader struct {
	version uint32
	pid     int32
}

// NotDumpable closes this process's memory, descriptors and /proc entries to every process that is
// not privileged in its user namespace.
func NotDumpable() error {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// DieWithParent makes the kernel kill this process when the thread that started it ends.
func DieWithParent() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// UsualSlack is the timer slack of a process if no ancestor has changed it.
const UsualSlack = 50 * time.Microsecond

// TimerSlack sets how late timers of the calling thread may expire, so that the kernel can let
// several expire together. Threads and processes that the thread makes inherit it. On a kernel
// without timer slack (gVisor) it does nothing.
func TimerSlack(d time.Duration) error {
	err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0)
	if err == unix.EINVAL {
		return nil
	}
	return err
}

// RelaxTimers sets the timer slack of every thread of this process, including threads that appear
// while it runs. It needs /proc.
func RelaxTimers(d time.Duration) error {
	given := map[string]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		fresh := false
		for _, t := range tasks {
			if given[t.Name()] {
				continue
			}
			err := os.WriteFile("/proc/"+t.Name()+"/timerslack_ns", strconv.AppendInt(nil, int64(d), 10), 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) { // a thread that ended
				return err
			}
			given[t.Name()], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
}

// NoNewPrivs forbids the calling thread, and what it starts, to gain privileges by executing a
// file.
func NoNewPrivs() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// NewSessionKeyring gives this thread, and what it starts, a new session keyring that is not shared
// with the host.
func NewSessionKeyring() error {
	// Without a name (a null pointer, which unix.KeyctlJoinSessionKeyring
	// cannot pass) it is anonymous: nobody else can join it.
	_, _, e := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if e != 0 && e != unix.ENOSYS { // a kernel without keyrings has none to leak
		return fmt.Errorf("join a new session keyring: %w", e)
	}
	return nil
}

// CloseFrom closes all descriptors from first on with which this process was started. Descriptors
// that the Go runtime has opened stay open.
func CloseFrom(first int) error {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, e := range dir {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		// The runtime's own are closed on exec; what comes through an exec
		// is not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// Leader reports whether the calling thread is the first thread of its process. For some checks the
// kernel uses that thread in place of the process.
func Leader() bool { return unix.Gettid() == unix.Getpid() }

// OpenAcrossExec keeps a descriptor open in programs that this process executes.
func OpenAcrossExec(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	return err
}

// CloseOnExec closes a descriptor in programs that this process executes.
func CloseOnExec(fd int) { unix.CloseOnExec(fd) }

// KeepSignals makes this process survive every signal that can be caught. Programs that it executes
// still begin with the default actions, which they would not if the signals were ignored.
func KeepSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGVTALRM, syscall.SIGCONT, syscall.SIGWINCH,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGIO, syscall.SIGPWR, syscall.SIGSTKFLT, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS)
}

// InitSignals protects the first process of a PID namespace, or of a machine, from signals of the
// other processes in it. The kernel discards a signal that is sent to the first process from inside
// if its action is the default one. Go's runtime has a handler for each signal, and for some of
// them, such as SIGSEGV, the handler ends the process whoever is the sender. So every signal gets
// its default action, except for those that the runtime needs and survives. A fault of this process
// itself then ends it by its signal, without a panic.
func InitSignals() error {
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, threadSignal:
			continue
		}
		// A zero struct sigaction is SIG_DFL without flags.
		var action [32]byte
		_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		if e != 0 {
			return fmt.Errorf("default action of signal %d: %w", sig, e)
		}
	}
	return nil
}

const (
	lastSignal   = syscall.Signal(64)
	threadSignal = syscall.Signal(33) // by which Go's runtime makes a system call in all threads
)

// A Resource is a resource of setrlimit.
type Resource int

const (
	ResourceFiles   Resource = unix.RLIMIT_NOFILE
	ResourcePIDs    Resource = unix.RLIMIT_NPROC
	ResourceCore    Resource = unix.RLIMIT_CORE
	ResourceData    Resource = unix.RLIMIT_DATA       // bytes of private memory that can be written
	ResourceSize    Resource = unix.RLIMIT_FSIZE      // bytes of a file that is written
	ResourceSignals Resource = unix.RLIMIT_SIGPENDING // queued signals and POSIX timers
	ResourceQueues  Resource = unix.RLIMIT_MSGQUEUE   // bytes of POSIX message queues
	ResourceLocked  Resource = unix.RLIMIT_MEMLOCK    // bytes of memory that cannot be swapped
	ResourceNice    Resource = unix.RLIMIT_NICE       // how far a process may raise its priority: 20 minus the niceness
	ResourceUrgent  Resource = unix.RLIMIT_RTPRIO     // the highest priority of real-time scheduling
)

// SetResource lowers the soft and the hard limit of a resource to n. A hard limit that is already
// lower stays. It returns the limit that is now in force.
func SetResource(r Resource, n uint64) (uint64, error) {
	var now unix.Rlimit
	if err := unix.Getrlimit(int(r), &now); err != nil {
		return 0, fmt.Errorf("getrlimit %d: %w", r, err)
	}
	n = min(n, now.Max)
	// syscall.Setrlimit, not unix's: for open files the runtime would else
	// put its own earlier value back in every child.
	if err := syscall.Setrlimit(int(r), &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return 0, fmt.Errorf("setrlimit %d: %w", r, err)
	}
	return n, nil
}

// ReserveThreads makes the Go runtime start threads until this process has n of them. The threads
// stay and wait. The runtime uses a waiting thread before it starts another one, and it ends the
// process if it cannot start one.
func ReserveThreads(n int) error {
	var held sync.WaitGroup
	release := make(chan struct{})
	defer held.Wait()
	defer close(release)
	for range n {
		have, err := threads()
		if err != nil || have >= n {
			return err
		}
		holds := make(chan struct{})
		held.Go(func() {
			runtime.LockOSThread() // which no other goroutine has meanwhile
			defer runtime.UnlockOSThread()
			close(holds)
			<-release
		})
		<-holds
	}
	return nil
}

// threads returns the number of threads of this process.
func threads() (int, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/task", &st); err != nil {
		return 0, fmt.Errorf("count the threads: %w", err)
	}
	return int(st.Nlink) - 2, nil
}

// Umask sets the process's umask and returns the old one.
func Umask(mask int) int { return unix.Umask(mask) }

// Pair returns the two ends of a pair of connected stream sockets. Both are closed on exec.
func Pair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair"), nil
}

// EventPair returns the two ends of a pair of connected packet sockets. Neither end blocks: if the
// buffer is full, a send fails, and the sender must count the loss.
func EventPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	_ = unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20) // the kernel gives less where that is its limit
	return os.NewFile(uintptr(fds[0]), "events"), os.NewFile(uintptr(fds[1]), "events"), nil
}

// PacketPair returns the two ends of a pair of connected packet sockets. Each direction has a
// buffer of the given number of bytes, if the host allows it. The first end is a plain descriptor,
// which the Go runtime does not poll.
func PacketPair(buffer int) (int, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("socketpair: %w", err)
	}
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer) // only speed
	}
	return fds[0], os.NewFile(uintptr(fds[1]), "link"), nil
}

// GrowTable enlarges this process's descriptor table for a few hundred descriptors, so that it need
// not grow later. If that fails, the table grows when needed.
func GrowTable() {
	if fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 500); err == nil {
		unix.Close(fd)
	}
}

// LockDir locks a directory, and waits until nobody else has it locked, or until ctx ends. The lock
// ends when this process, and every process that has a copy of the file, has closed it or ended. If
// another directory has got the path while this waited, that one is locked.
func LockDir(ctx context.Context, path string) (lock *os.File, err error) {
	for {
		if lock, err = TryLockDir(path); err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TryLockDir is LockDir, but fails at once, with EWOULDBLOCK, if somebody else has the directory locked.
func TryLockDir(path string) (*os.File, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		var now, there os.FileInfo
		now, err = d.Stat()
		if err == nil {
			there, err = os.Stat(path)
		}
		if err == nil && os.SameFile(now, there) {
			return d, nil
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = unix.EWOULDBLOCK // the next try says what is there
		}
	}
	if err == unix.EINTR {
		err = unix.EWOULDBLOCK
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), d.Close())
}

// Named returns a file for the same descriptor with another name.
func Named(f *os.File, name string) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 16)
	if err != nil {
		return f
	}
	f.Close()
	return os.NewFile(uintptr(fd), name)
}

// Release returns the kernel's release, as uname -r prints it.
func Release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// OpenProcess returns a pidfd of a child, which becomes readable when the child ends.
func OpenProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	return os.NewFile(uintptr(fd), "process"), nil
}

// TraceNobody tries to trace a process that cannot exist. If the error is ESRCH, the kernel allows
// tracing.
func TraceNobody() error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1<<30, 0, 0, 0, 0)
	return errno
}

// DuplicateTo makes target another descriptor of an open file. Whatever had the number is closed.
func DuplicateTo(f *os.File, target int) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Dup3(int(fd), target, unix.O_CLOEXEC) })
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("copy a descriptor to %d: %w", target, err)
	}
	return os.NewFile(uintptr(target), f.Name()), nil
}

// Duplicate returns another descriptor of an open file. It does not change the file's mode.
func Duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	copied, failed := -1, error(nil)
	err = raw.Control(func(fd uintptr) { copied, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 16) })
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("copy a descriptor: %w", err)
	}
	return os.NewFile(uintptr(copied), f.Name()), nil
}
