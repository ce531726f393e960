package sys

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed tells whether a filter lets a call through.
func allowed(t *testing.T, filter []unix.SockFilter, call uint32, args ...uint32) bool {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, i := range filter {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter is no program")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	// The interpreter reads big-endian words, and each argument has its low one first.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[dataNumber:], call)
	binary.BigEndian.PutUint32(data[dataArch:], Arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], a)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got) == unix.SECCOMP_RET_ALLOW
}

func TestADialerMakesNoSocketThatReachesAPath(t *testing.T) {
	for _, tc := range []struct {
		name string
		call uint32
		args []uint32
		want bool
	}{
		{"a socket of IPv4", unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM}, true},
		{"a socket of Unix", unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, false},
		{"a pair of streams", unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, true},
		{"a pair of datagrams", unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, false},
		{"a pair of another family", unix.SYS_SOCKETPAIR, []uint32{unix.AF_TIPC, unix.SOCK_STREAM}, false},
		{"a TUN device that stays", unix.SYS_IOCTL, []uint32{3, unix.TUNSETPERSIST}, true},
		{"a TUN device of its own", unix.SYS_IOCTL, []uint32{3, unix.TUNSETIFF}, false},
		{"what a terminal is told to read", unix.SYS_IOCTL, []uint32{0, unix.TIOCSTI}, false},
		{"a call without conditions", unix.SYS_READ, nil, true},
		{"a call that it does not need", unix.SYS_EXECVE, nil, false},
	} {
		if got := allowed(t, dialerFilter(), tc.call, tc.args...); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestAServerOfFilesDoesNothingElse(t *testing.T) {
	for _, tc := range []struct {
		name string
		call uint32
		args []uint32
		want bool
	}{
		{"open to write", unix.SYS_OPENAT, []uint32{3, 0, unix.O_RDWR | unix.O_CREAT}, true},
		{"make a directory", unix.SYS_MKDIRAT, nil, true},
		{"make a FIFO", unix.SYS_MKNODAT, []uint32{3, 0, unix.S_IFIFO | 0o600}, true},
		{"make a socket", unix.SYS_MKNODAT, []uint32{3, 0, unix.S_IFSOCK | 0o600}, true},
		{"make a device", unix.SYS_MKNODAT, []uint32{3, 0, unix.S_IFCHR | 0o600}, false},
		{"write", unix.SYS_PWRITE64, nil, true},
		{"a thread", unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_THREAD}, true},
		{"a process", unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD)}, false},
		{"execute", unix.SYS_EXECVE, nil, false},
		{"a socket", unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, false},
		{"connect", unix.SYS_CONNECT, nil, false},
		{"trace", unix.SYS_PTRACE, nil, false},
		{"others' memory", unix.SYS_PROCESS_VM_READV, nil, false},
		{"signals", unix.SYS_KILL, nil, false},
		{"another directory", unix.SYS_FCHDIR, nil, false},
		{"another root", unix.SYS_CHROOT, nil, false},
		{"owners", unix.SYS_FCHOWNAT, nil, false},
		{"attributes", unix.SYS_FSETXATTR, nil, false},
		{"devices", unix.SYS_IOCTL, nil, false},
		{"handles", unix.SYS_OPEN_BY_HANDLE_AT, nil, false},
		{"locks", unix.SYS_FCNTL, []uint32{3, unix.F_SETLK}, false},
		{"leases", unix.SYS_FCNTL, []uint32{3, unix.F_SETLEASE}, false},
		{"other filters", unix.SYS_SECCOMP, nil, false},
		{"a mount", unix.SYS_MOUNT, nil, false},
	} {
		if got := allowed(t, filesFilter(), tc.call, tc.args...); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// SIGCONT would take back a stop, by which another process holds a limit or a pause.
func TestAProcessSendsItselfOnlySignalsThatEndItOrHaveItGiveWay(t *testing.T) {
	const pid = 4711
	filter := allowList(unconditional(), pid)
	want := []unix.Signal{unix.SIGURG, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS,
		unix.SIGFPE, unix.SIGSEGV, unix.SIGPIPE, unix.SIGTERM}
	for s := range uint32(65) {
		if got := allowed(t, filter, unix.SYS_TGKILL, pid, pid+1, s); got != slices.Contains(want, unix.Signal(s)) {
			t.Errorf("signal %d: %v", s, got)
		}
		if allowed(t, filter, unix.SYS_TGKILL, pid+1, pid+1, s) {
			t.Errorf("signal %d to another process", s)
		}
	}
	for name, filter := range map[string][]unix.SockFilter{"one that dials": dialerFilter(), "one that serves files": filesFilter()} {
		me := uint32(unix.Getpid())
		if !allowed(t, filter, unix.SYS_TGKILL, me, me, uint32(unix.SIGURG)) || allowed(t, filter, unix.SYS_TGKILL, me, me, uint32(unix.SIGCONT)) {
			t.Errorf("%s: its signals", name)
		}
	}
}
