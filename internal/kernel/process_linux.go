package kernel

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

// StartCaps are those that the starter of a kernel in software needs besides.
func StartCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_CHROOT, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}
}

// BuildCaps are the capabilities that a box needs while it is built, for
// syscall.SysProcAttr.AmbientCaps.
func BuildCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
}

// SealedFile gives an executable in memory that nobody can change any more.
func SealedFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 there is no MFD_EXEC: all are executable
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill memfd: %w", err)
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal memfd: %w", err)
	}
	return f, nil
}

// HighFile moves a file to a descriptor that the start of a child, which
// rearranges the low ones before it executes a file, leaves alone.
func HighFile(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 16)
	if err != nil {
		return nil, fmt.Errorf("move a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// DropCapabilities empties the effective, permitted, inheritable and ambient
// capability sets of all threads of this process for good. What it starts is a
// thread's own matter: see [DropBounding].
func DropCapabilities() error {
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{})
}

// KeepOnlyPtrace is DropCapabilities but for CAP_SYS_PTRACE, which then counts
// in this process alone: what it starts has none.
func KeepOnlyPtrace() error {
	bit := uint32(1) << unix.CAP_SYS_PTRACE
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{{Effective: bit, Permitted: bit}})
}

// starting is what a thread needs that starts processes as another user: see Spawn.
const starting = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// ReserveStarting is DropCapabilities, but that a thread may still take up, for
// what it does itself, the right to be another user: see TakeStarting.
func ReserveStarting() error {
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{{Permitted: starting}})
}

// TakeStarting gives the calling thread that right. What it executes does not
// have it.
func TakeStarting() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: starting, Permitted: starting}}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// SignalAs sends a signal as another user does, to a process or, where pid is
// negative, a group. The calling thread, which has what TakeStarting gives, is that
// user meanwhile in nothing but what it may do to others: who may do something to it is
// decided by its real and its saved user, see OutOfReach.
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

// OutOfReach gives this process a real and a saved user that nobody else has, so
// that who runs as its effective user, which stays, can send none of its threads
// a signal, nor trace it or limit it.
func OutOfReach(uid int) error {
	if err := syscall.Setresuid(uid, -1, uid); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// keepOverUsers is SECBIT_NO_SETUID_FIXUP.
const keepOverUsers = 1 << 2

// KeepOverUsers lets the calling thread, and what it starts, keep capabilities
// when it becomes another user: see Become.
func KeepOverUsers() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, keepOverUsers, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	return nil
}

// Become makes this process, which was started with KeepOverUsers, one of another
// user, in one group. It keeps its capabilities, but not for the next time.
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

// NoRoot takes its meaning from user 0, for this thread and every process it
// starts: none of them gets a capability for its number.
func NoRoot() error {
	const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE with their locks; KEEP_CAPS_LOCKED
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	return nil
}

// DropBounding empties the bounding capability set of this thread, and so of
// every process it starts: none of them ever gets a capability by executing a
// file.
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

// NotDumpable keeps this process's memory, descriptors and /proc entries from
// everybody who is not privileged over its user namespace.
func NotDumpable() error {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// DieWithParent has this process killed when the thread that made it ends.
func DieWithParent() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// UsualSlack is the slack of a process whose parents did not change theirs.
const UsualSlack = 50 * time.Microsecond

// TimerSlack says how much later than asked the calling thread may be woken, so
// that timers expire together. Threads and processes that it makes have the same.
// Where the kernel knows of no slack (gVisor's) there is none.
func TimerSlack(d time.Duration) error {
	err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0)
	if err == unix.EINVAL {
		return nil
	}
	return err
}

// RelaxTimers gives the same to every thread of this process, also to one that is seen
// later, as who made it had it not yet. It needs /proc.
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

// NoNewPrivs forbids the calling thread, and what it starts, to gain privileges
// by executing a file.
func NoNewPrivs() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// NewSessionKeyring gives this thread, and what it starts, a fresh session
// keyring that is not shared with the host.
func NewSessionKeyring() error {
	// Without a name (a null pointer, which unix.KeyctlJoinSessionKeyring
	// cannot pass) it is anonymous: nobody else can join it.
	_, _, e := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if e != 0 && e != unix.ENOSYS { // a kernel without keyrings has none to leak
		return fmt.Errorf("join a new session keyring: %w", e)
	}
	return nil
}

// CloseFrom closes the descriptors from first on that this process was started
// with. Those that the Go runtime opened for itself stay.
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

// Leader tells whether the calling thread is its process's first one, which
// stands for the process where the kernel asks about that.
func Leader() bool { return unix.Gettid() == unix.Getpid() }

// OpenAcrossExec hands a descriptor on to what this process executes.
func OpenAcrossExec(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	return err
}

// CloseOnExec keeps a descriptor from what this process executes.
func CloseOnExec(fd int) { unix.CloseOnExec(fd) }

// KeepSignals has this process live on after every signal that can be caught,
// while what it executes begins with the default actions. Ignoring them would
// be inherited.
func KeepSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGVTALRM, syscall.SIGCONT, syscall.SIGWINCH,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGIO, syscall.SIGPWR, syscall.SIGSTKFLT, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS)
}

// A Resource is a limit of setrlimit.
type Resource int

const (
	ResourceFiles Resource = unix.RLIMIT_NOFILE
	ResourcePIDs  Resource = unix.RLIMIT_NPROC
	ResourceCore  Resource = unix.RLIMIT_CORE
	ResourceData  Resource = unix.RLIMIT_DATA  // bytes of private memory that can be written
	ResourceSize  Resource = unix.RLIMIT_FSIZE // bytes of a file that is written
)

// SetResource lowers a limit, soft and hard, to n; a hard limit that is lower
// already stays. It tells what holds now.
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

// ReserveThreads has the Go runtime make threads until this process has n of them. They
// stay, and wait. The runtime takes one that waits before it makes another, and ends the
// process where it cannot make one.
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

// threads counts this process's.
func threads() (int, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/task", &st); err != nil {
		return 0, fmt.Errorf("count the threads: %w", err)
	}
	return int(st.Nlink) - 2, nil
}

// Umask sets the mask for new files.
func Umask(mask int) int { return unix.Umask(mask) }

// Pair gives the two ends of a connected pair of Unix sockets, a stream, both
// closed on exec.
func Pair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair"), nil
}

// EventPair gives the two ends of a connected pair of Unix sockets that carry
// packets. Neither end waits: what finds no room is the sender's to count.
func EventPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	_ = unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20) // the kernel gives less where that is its limit
	return os.NewFile(uintptr(fds[0]), "events"), os.NewFile(uintptr(fds[1]), "events"), nil
}

// PacketPair gives the two ends of a connected pair of Unix sockets that carry
// packets, with room for so many bytes on their way in each direction, where
// the host allows. The first end is a plain descriptor, for whoever reads it
// by itself.
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

// GrowTable makes this process's table of descriptors as large as a few hundred
// need it. Where it cannot, the table grows later.
func GrowTable() {
	if fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 500); err == nil {
		unix.Close(fd)
	}
}

// LockDir waits until nobody else has locked a directory, and locks it. It is
// locked until the file is closed, by this process and by each that was given a
// copy; their end does that too.
func LockDir(ctx context.Context, path string) (lock *os.File, err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return d, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(5 * time.Millisecond):
			continue
		}
		break
	}
	d.Close()
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Named gives an open file another name.
func Named(f *os.File, name string) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 16)
	if err != nil {
		return f
	}
	f.Close()
	return os.NewFile(uintptr(fd), name)
}

// Release is the kernel's release, as uname -r.
func Release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// OpenProcess gives a descriptor of a child, which becomes readable when the
// child ends.
func OpenProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	return os.NewFile(uintptr(fd), "process"), nil
}

// TraceNobody asks to trace a process that there cannot be. ESRCH is the answer of
// a kernel that lets processes be traced at all.
func TraceNobody() error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1<<30, 0, 0, 0, 0)
	return errno
}

// SealedData gives a file in memory that holds data, and that nobody can change
// or execute.
func SealedData(name string, data []byte) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
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
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal memfd: %w", err)
	}
	return f, nil
}

// Duplicate gives another descriptor of an open file, and leaves the file as it is.
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
