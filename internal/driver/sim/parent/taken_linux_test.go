package parent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	inside "github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// takenName is what this test is called as a child that was taken over: it does
// what a child does until it would obey, and then what an attacker would.
const takenName = "paddock-sim-taken"

// A brief tells a child that was taken over where to strike.
type brief struct {
	Mount, Secret string // a directory that is mounted, a file that is not
	Victim        int    // a process of the host's
	Leaked        int    // a descriptor of the secret that was left open
	Open          bool   // there is no wall: everything has to succeed
}

// An attempt is one thing that a child which was taken over tries. It gives nil
// where it did what it must not.
type attempt struct {
	name string
	try  func(b brief, mount int) error
}

// throwaway is an ordinary user that owns nothing.
const throwaway = 64102

// call makes a system call, and tells whether it was let through as far as its
// arguments.
func call(nr uintptr, args ...uintptr) error {
	a := [6]uintptr{}
	copy(a[:], args)
	_, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS {
		return e
	}
	return nil
}

const none = ^uintptr(0)

// attempts are what must fail in a child that was taken over, and does not
// where there is no wall.
func attempts() []attempt {
	opened := func(fd int, err error) error {
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
	list := []attempt{
		{"read a file of the host", func(b brief, _ int) error { return opened(unix.Open(b.Secret, unix.O_RDONLY, 0)) }},
		{"read one beside the mount", func(_ brief, m int) error { return opened(unix.Openat(m, "../secret", unix.O_RDONLY, 0)) }},
		{"read one by /proc", func(b brief, _ int) error { return opened(unix.Open("/proc/self/root"+b.Secret, unix.O_RDONLY, 0)) }},
		{"list a directory of the host", func(brief, int) error { return opened(unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)) }},
		{"read the environment of the host", func(brief, int) error {
			return opened(unix.Open(fmt.Sprintf("/proc/%d/environ", os.Getppid()), unix.O_RDONLY, 0))
		}},
		{"read own memory", func(brief, int) error { return opened(unix.Open("/proc/self/mem", unix.O_RDONLY, 0)) }},
		{"a descriptor that was left open", func(b brief, _ int) error {
			_, err := unix.Pread(b.Leaked, make([]byte, 10), 0)
			return err
		}},
		{"open for writing", func(_ brief, m int) error { return opened(unix.Openat(m, "file", unix.O_WRONLY, 0)) }},
		{"open for both", func(_ brief, m int) error { return opened(unix.Openat(m, "file", unix.O_RDWR, 0)) }},
		{"truncate", func(_ brief, m int) error { return opened(unix.Openat(m, "file", unix.O_RDONLY|unix.O_TRUNC, 0)) }},
		{"make a file", func(_ brief, m int) error { return opened(unix.Openat(m, "made", unix.O_RDONLY|unix.O_CREAT, 0o644)) }},
		{"make a file without a name", func(_ brief, m int) error { return opened(unix.Openat(m, ".", unix.O_WRONLY|unix.O_TMPFILE, 0o644)) }},
		{"make a directory", func(_ brief, m int) error { return unix.Mkdirat(m, "dir", 0o755) }},
		{"make a link", func(_ brief, m int) error { return unix.Symlinkat("x", m, "link") }},
		{"make a hard link", func(_ brief, m int) error { return unix.Linkat(m, "file", m, "hard", 0) }},
		{"make a FIFO", func(_ brief, m int) error { return unix.Mknodat(m, "fifo", unix.S_IFIFO|0o644, 0) }},
		{"move", func(_ brief, m int) error { return unix.Renameat(m, "file", m, "file") }},
		{"remove", func(_ brief, m int) error { return passed(unix.Unlinkat(m, "absent", 0)) }},
		{"change a mode", func(_ brief, m int) error { return unix.Fchmodat(m, "file", 0o644, 0) }},
		{"change an owner", func(_ brief, m int) error { return unix.Fchownat(m, "file", -1, -1, 0) }},
		{"change times", func(_ brief, m int) error { return unix.UtimesNanoAt(m, "file", nil, 0) }},
		{"extended attributes", func(b brief, _ int) error { return passed(unix.Setxattr(b.Mount+"/file", "user.x", []byte("x"), 0)) }},
		{"a lease", func(_ brief, m int) error { return command(m, "file", unix.F_SETLEASE, unix.F_RDLCK) }},
		{"a lock", func(_ brief, m int) error {
			fd, err := unix.Openat(m, "file", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
		}},
		{"notices of a directory", func(_ brief, m int) error { return command(m, ".", unix.F_NOTIFY, 2 /* DN_MODIFY */) }},
		{"a large pipe", func(brief, int) error {
			var p [2]int
			if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
				return err
			}
			_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 1<<18)
			return err
		}},
		{"kill by a pipe's signal", killByPipe},
		{"kill", func(b brief, _ int) error { return unix.Kill(b.Victim, 0) }},
		{"kill a thread", func(b brief, _ int) error { return unix.Tgkill(b.Victim, b.Victim, 0) }},
		{"go on by SIGCONT", func(brief, int) error { return unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGCONT) }},
		{"a process's descriptor", func(b brief, _ int) error { return opened(unix.PidfdOpen(b.Victim, 0)) }},
		{"limits of another process", func(b brief, _ int) error {
			return passed(unix.Prlimit(b.Victim, unix.RLIMIT_CORE, nil, &unix.Rlimit{}))
		}},
		{"memory of another process", func(b brief, _ int) error { return call(unix.SYS_PROCESS_VM_READV, uintptr(b.Victim), 0, 0, 0, 0, 0) }},
		{"shared memory", func(brief, int) error { return mapped(unix.MAP_SHARED | unix.MAP_ANON) }},
		{"memory of a growing stack", func(brief, int) error { return mapped(unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_GROWSDOWN) }},
		{"more memory than its limits", func(brief, int) error {
			b, err := unix.Mmap(-1, 0, 64<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				return err
			}
			return unix.Munmap(b)
		}},
		{"a core", func(brief, int) error {
			var l unix.Rlimit
			if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &l); err != nil || l.Max > 0 {
				return err
			}
			return errors.New("none is dumped")
		}},
		{"a process", func(brief, int) error {
			pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if e != 0 {
				return e
			}
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			return nil
		}},
		{"a namespace", func(brief, int) error { return call(unix.SYS_UNSHARE, 0) }},
		{"execute a file", func(brief, int) error { return call(unix.SYS_EXECVE, 0, 0, 0) }},
		{"execute a descriptor", func(brief, int) error { return call(unix.SYS_EXECVEAT, none, 0, 0, 0, 0) }},
		{"a file in memory", func(brief, int) error { return opened(unix.MemfdCreate("x", unix.MFD_CLOEXEC)) }},
	}
	for name, family := range map[string][2]int{
		"a TCP socket": {unix.AF_INET, unix.SOCK_STREAM}, "a UDP socket": {unix.AF_INET6, unix.SOCK_DGRAM}, "a Unix socket": {unix.AF_UNIX, unix.SOCK_STREAM}, "a netlink socket": {unix.AF_NETLINK, unix.SOCK_RAW},
	} {
		list = append(list, attempt{name, func(brief, int) error { return opened(unix.Socket(family[0], family[1], 0)) }})
	}
	// Their arguments are wrong: how far they come tells whether they are there.
	for name, nr := range map[string]uintptr{
		"io_uring": unix.SYS_IO_URING_SETUP, "ptrace": unix.SYS_PTRACE, "openat2": unix.SYS_OPENAT2, "ioctl": unix.SYS_IOCTL, "setsockopt": unix.SYS_SETSOCKOPT, "bind": unix.SYS_BIND,
		"connect": unix.SYS_CONNECT, "inotify": unix.SYS_INOTIFY_ADD_WATCH, "keys": unix.SYS_KEYCTL, "shared memory segments": unix.SYS_SHMCTL, "message queues": unix.SYS_MSGCTL,
		"splice": unix.SYS_SPLICE, "setns": unix.SYS_SETNS, "seccomp": unix.SYS_SECCOMP, "Landlock": unix.SYS_LANDLOCK_ADD_RULE, "timers": unix.SYS_TIMER_CREATE,
		"priorities": unix.SYS_SETPRIORITY, "processors": unix.SYS_SCHED_SETAFFINITY, "identity": unix.SYS_SETRESUID, "capabilities": unix.SYS_CAPSET,
	} {
		list = append(list, attempt{name, func(brief, int) error { return call(nr, none, none, none, none, none, none) }})
	}
	slices.SortFunc(list, func(a, b attempt) int { return strings.Compare(a.name, b.name) })
	return list
}

// passed is nil for an error of a call that was let through.
func passed(err error) error {
	if err == unix.EPERM || err == unix.EACCES || err == unix.ENOSYS {
		return err
	}
	return nil
}

func command(m int, name string, cmd, arg int) error {
	fd, err := unix.Openat(m, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), cmd, arg)
	return err
}

func mapped(flags int) error {
	b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return err
	}
	return unix.Munmap(b)
}

// killByPipe has a descriptor's readiness end a process.
func killByPipe(b brief, _ int) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	flags, err := unix.FcntlInt(uintptr(p[0]), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	const setSignal = 10
	for _, f := range [][2]int{{unix.F_SETOWN, b.Victim}, {setSignal, int(unix.SIGKILL)}, {unix.F_SETFL, flags | unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(p[0]), f[0], f[1]); err != nil {
			return err
		}
	}
	_, err = unix.Write(p[1], []byte("x"))
	return err
}

// taken is the child's part.
func taken() error {
	var b brief
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return err
	}
	if !b.Open {
		if err := sys.CloseFrom(protocol.ControlFD + 1); err != nil {
			return err
		}
	}
	mount, err := unix.Open(b.Mount, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if !b.Open {
		d, err := sim.New(sim.Options{Walls: protocol.Findings(sys.LandlockABI())})
		if err != nil {
			return err
		}
		spec := paddock.Spec{ID: "taken", Mounts: []paddock.Mount{{Source: b.Mount, Overlay: true}}}
		if _, err := (&inside.Served{Driver: d}).Create(protocol.Order{Op: "create", Spec: spec, Landlock: true}); err != nil {
			return err
		}
	}
	got := map[string]string{}
	for _, a := range attempts() {
		got[a.name] = ""
		if err := a.try(b, mount); err != nil {
			got[a.name] = err.Error()
		}
	}
	if !b.Open {
		for name, err := range strangers() {
			got[name] = err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

// strangers makes every system call by its number that the list of allowed ones
// does not have, with arguments that are wrong, and gives those that answer.
func strangers() map[string]string {
	got := map[string]string{}
	allowed := sys.RuntimeCalls()
	for nr := range uint32(600) {
		// Two are for the kernel's own probes: they end who calls them from
		// anywhere else, and filters are not asked.
		if slices.Contains(allowed, nr) || nr == 335 || nr == 336 {
			continue
		}
		for _, table := range []uint32{0, 0x40000000} {
			_, _, e := unix.RawSyscall6(uintptr(nr|table), none, none, none, none, none, none)
			if e != unix.EPERM && (e != unix.ENOSYS || nr != unix.SYS_CLONE3) {
				got[fmt.Sprintf("system call %d of table %#x", nr, table)] = ""
			}
		}
	}
	return got
}

// strike starts a child that was taken over, as user or as whoever tests.
func strike(t *testing.T, b brief, user int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	b.Mount, b.Secret = dir+"/mount", dir+"/secret"
	err := errors.Join(os.Mkdir(b.Mount, 0o755), os.WriteFile(b.Mount+"/file", []byte("text\n"), 0o644), os.WriteFile(b.Secret, []byte("a secret\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	credential := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()), NoSetGroups: true}
	if user != 0 {
		credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		for p := dir; len(p) > len(os.TempDir()); p = filepath.Dir(p) {
			if err := os.Chmod(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Chown(b.Mount, user, user), os.Chown(b.Mount+"/file", user, user), os.Chown(b.Secret, user, user)); err != nil {
			t.Fatal(err)
		}
	}
	victim := exec.CommandContext(t.Context(), "sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan struct{})
	go func() {
		_ = victim.Wait() // it is killed
		close(died)
	}()
	defer func() {
		_ = victim.Process.Kill()
		<-died
	}()
	b.Victim = victim.Process.Pid
	leaked, err := os.Open(b.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	b.Leaked = 7
	in, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var out, errs bytes.Buffer
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{takenName}, Env: []string{}, Dir: "/", Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs,
		// What a child has at 3 and 4, and then what it should not.
		ExtraFiles: []*os.File{null, null, null, null, leaked}, SysProcAttr: &syscall.SysProcAttr{Credential: credential, Setsid: true},
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	got := map[string]string{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s\n%s", err, &out, &errs)
	}
	if b.Open {
		select {
		case <-died:
		case <-time.After(patience):
			t.Error("the other process lives, so that it is not killed proves nothing")
		}
	}
	select {
	case <-died:
		if !b.Open {
			t.Error("the other process was killed")
		}
	default:
	}
	return got
}

// callers are root, where this test is, and an ordinary user.
func callers(t *testing.T, do func(t *testing.T, user int)) {
	t.Helper()
	if os.Geteuid() != 0 {
		do(t, 0)
		return
	}
	for _, user := range []int{0, throwaway} {
		t.Run("uid "+strconv.Itoa(user), func(t *testing.T) { do(t, user) })
	}
}

func TestAChildThatWasTakenOverReachesNothing(t *testing.T) {
	callers(t, func(t *testing.T, user int) {
		for name, err := range strike(t, brief{}, user) {
			if err == "" {
				t.Errorf("%s: it succeeds", name)
			}
		}
	})
}

// An attempt that fails everywhere shows nothing.
func TestWithoutTheWallEachAttemptSucceeds(t *testing.T) {
	worked := map[string]bool{}
	callers(t, func(t *testing.T, user int) {
		for name, err := range strike(t, brief{Open: true}, user) {
			if worked[name] = worked[name] || err == ""; err != "" {
				t.Logf("%s: %s", name, err)
			}
		}
	})
	for _, a := range attempts() {
		if !worked[a.name] {
			t.Errorf("%s: it fails without a wall too", a.name)
		}
	}
}

// holderName is what this test is called as a child that has its standard error outlive it.
const holderName = "paddock-sim-holder"

// hold sends the process's standard error over both sockets, where nobody reads it, and waits.
func hold() error {
	for _, fd := range []int{protocol.ControlFD, protocol.GuestFD} {
		if err := unix.Sendmsg(fd, []byte{0}, unix.UnixRights(2), nil, 0); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "panic: sent")
	_, err := unix.Read(protocol.GuestFD, make([]byte, 1)) // until it is killed
	return err
}

// holding returns a sandbox whose child runs hold, and a writing end of the child's standard error.
func holding(t *testing.T, d *Driver, id paddock.ID) (*sandbox, int) {
	t.Helper()
	var fds [3][2]int
	for i := range 2 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = pair
	}
	if err := unix.Pipe2(fds[2][:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[2][0], true); err != nil { // as spawn does
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{holderName}, &syscall.ProcAttr{Dir: "/", Env: []string{}, Files: []uintptr{
		uintptr(fds[2][1]), uintptr(fds[2][1]), uintptr(fds[2][1]), protocol.GuestFD: uintptr(fds[0][1]), protocol.ControlFD: uintptr(fds[1][1]),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fds[0][1])
	_ = unix.Close(fds[1][1])
	c, err := adopt(started{PID: pid, Guest: fds[0][0], Control: fds[1][0], Stderr: fds[2][0]}, make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	sb := &sandbox{child: c, d: d, spec: paddock.Spec{ID: id}, asking: make(chan struct{}, 1), link: protocol.Link{Conn: c.control}}
	sb.begin()
	if err := errors.Join(d.boxes.Reserve(id), d.boxes.Add(sb)); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(c.last.String(), "sent") { // it has sent them
		select {
		case <-c.ended:
			t.Fatalf("the child ended: %v: %s", c.state, &c.last)
		default:
			runtime.Gosched()
		}
	}
	return sb, fds[2][1]
}

func TestAChildWhoseStandardErrorOutlivesItEndsAllTheSame(t *testing.T) {
	for name, row := range map[string]struct {
		kept bool // somebody on the host has the writing end, too
		end  func(*Driver, *sandbox) error
	}{
		"removed":              {false, func(_ *Driver, s *sandbox) error { return s.Remove(context.Background()) }},
		"its driver is closed": {false, func(d *Driver, _ *sandbox) error { return d.Close() }},
		"killed": {true, func(_ *Driver, s *sandbox) error {
			if err := s.process.Kill(); err != nil {
				return err
			}
			<-s.ended
			st, err := s.Status(context.Background())
			if err == nil && (st.State != paddock.Dead || !strings.Contains(st.Reason, "sent")) {
				err = fmt.Errorf("it is %v: %s", st.State, st.Reason)
			}
			return err
		}},
		"removed, and somebody has the other end": {true, func(_ *Driver, s *sandbox) error { return s.Remove(context.Background()) }},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			sb, w := holding(t, d, "holder")
			if !row.kept {
				_ = unix.Close(w)
			}
			over := make(chan error, 1)
			go func() { over <- row.end(d, sb) }()
			select {
			case err := <-over:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(3 * time.Minute):
				t.Fatal("it is waited for without end")
			}
			if row.kept {
				_ = unix.Close(w)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
