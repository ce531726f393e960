package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A deed is a technique that does not concern files.
type deed struct {
	name  string
	harms bool // harms the machine if it succeeds
	do    func() error
}

// calls returns techniques on processes, sockets, mounts and the kernel.
func calls(b *brief) []deed {
	return []deed{
		{"see the process that started this one", false, func() error {
			if pid := os.Getppid(); pid == 0 || pid == 1 && os.Getpid() == 1 {
				return errors.New("it has no number here")
			}
			return nil
		}},
		{"read memory of the process that started this one", false, func() error { return readMemory(os.Getppid()) }},
		{"signal whoever is at the other end of a socket", false, acquainted(b, func(pidfd int) error { return unix.PidfdSendSignal(pidfd, 0, nil, 0) })},
		{"take a descriptor of whoever is at the other end of a socket", false, acquainted(b, func(pidfd int) error {
			fd, err := unix.PidfdGetfd(pidfd, 0, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})},
		{"join namespaces of whoever is at the other end of a socket", false, acquainted(b, func(pidfd int) error { return unix.Setns(pidfd, unix.CLONE_NEWUTS) })},
		{"connect to a port of the host's", false, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Connect(fd, &unix.SockaddrInet4{Port: b.Port, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"connect to an abstract socket of the host's", false, func() error { return dial("\x00" + b.Abstract) }},
		{"connect to the guard once more", false, func() error {
			err := errNothing
			for _, path := range []string{guardPath, "/root" + guardPath, "/proc/1/root" + guardPath} {
				if err = dial(path); err == nil {
					return nil
				}
			}
			for _, fd := range b.Rooms {
				if err = dial(self(fd) + up[:18] + guardPath); err == nil {
					return nil
				}
			}
			return err
		}},
		{"lock a directory that others lock", false, anyRoomOf(b, func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })},
		{"lock a directory for its process", false, anyRoomOf(b, func(fd int) error {
			return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
		})},
		{"lock a directory for its open file", false, anyRoomOf(b, func(fd int) error {
			const setOpenLock = 37
			return unix.FcntlFlock(uintptr(fd), setOpenLock, &unix.Flock_t{Type: unix.F_RDLCK})
		})},
		{"ask for signals about a directory", false, anyRoomOf(b, func(fd int) error {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, 4) // DN_CREATE
			return err
		})},
		{"watch a directory", false, anyRoomOf(b, func(fd int) error {
			instance, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(instance)
			_, err = unix.InotifyAddWatch(instance, self(fd), unix.IN_CREATE)
			return err
		})},
		{"take a context of asynchronous I/O", false, func() error {
			var context uintptr
			if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)), 0); e != 0 {
				return e
			}
			_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, context, 0, 0)
			return nil
		}},
		{"send a datagram by name", false, func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"open a raw socket", false, socketOf(unix.AF_PACKET, unix.SOCK_RAW)},
		{"open a socket to the machine's monitor", false, socketOf(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"mount", true, func() error { return unix.Mount("none", "/", "tmpfs", 0, "") }},
		{"mount by the newer calls", true, func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"use the ring that does system calls", false, call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&ringParams)))},
		{"load a program into the kernel", false, call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&mapParams)), 72)},
		{"read performance counters", false, call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&counterParams)), 0, ^uintptr(0), ^uintptr(0), 0)},
		{"add a key", true, func() error {
			_, err := unix.AddKey("user", "paddock", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
			return err
		}},
		{"answer its own system calls", false, call(unix.SYS_SECCOMP, 1, 8, uintptr(unsafe.Pointer(&filterProgram)))},
		{"set the machine's name", true, func() error { return unix.Sethostname([]byte("taken")) }},
		{"make namespaces of its own, and look from there", false, func() error { return nested(b) }},
	}
}

var guardPath = "/state/guard"

// Arguments of calls. The kernel reads them, and one call writes.
var (
	ringParams    [128]byte
	mapParams     = [72]byte{0: 2, 4: 4, 8: 4, 12: 1} // an array of one number
	counterParams = [112]byte{0: 1, 4: 112}           // time of this process
)

var filterProgram = unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: 6, K: 0x7fff0000}}

func call(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		fd, _, e := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if e != 0 {
			return e
		}
		unix.Close(int(fd))
		return nil
	}
}

func socketOf(family, kind int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func dial(name string) error {
	if name[0] == 0 {
		name = "@" + name[1:]
	}
	var err error
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		unix.Close(fd)
		if err == nil {
			return nil
		}
	}
	return err
}

// acquainted tries f on the process at the other end of a socket.
func acquainted(b *brief, f func(pidfd int) error) func() error {
	return func() error {
		err := errNothing
		for _, fd := range b.Acquainted {
			// A peer that has a PID here is the sentry's own process.
			if cred, e := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); e != nil || cred.Pid != 0 && !b.Bare {
				continue
			}
			pidfd, e := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
			if e != nil {
				err = fmt.Errorf("who it is: %w", e)
				continue
			}
			e = f(pidfd)
			unix.Close(pidfd)
			if e == nil {
				return nil
			}
			err = e
		}
		return err
	}
}

func readMemory(pid int) error {
	if pid == 0 {
		return errors.New("it has no number here")
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	return f.Close()
}

// nested makes a process in its own user and mount namespaces, where it has every
// capability, and tries to reach the host from there. The host's kernel owns its mounts and
// namespaces.
func nested(b *brief) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	cmd := exec.Command(selfExecutable)
	cmd.Args[0] = nestedArgv0
	cmd.Stdin = bytes.NewReader(data)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, &out)
	}
	return nil
}

const nestedArgv0 = "paddock-test-nested"

// selfExecutable is this program, even without a file tree.
var selfExecutable = "/proc/self/exe"

// garbage sends unexpected data to the other end of a socket.
func garbage(fds []int) {
	packets := [][]byte{nil, {0}, bytes.Repeat([]byte{0xff}, 8), bytes.Repeat([]byte{8, 0, 3, 0}, 4<<10), bytes.Repeat([]byte{0x45, 0, 0, 20, 0xff, 6, 1}, 9000),
		[]byte(`{"err":"","result":{"`), []byte(strings.Repeat(`[`, 60<<10))}
	for _, fd := range fds {
		for range 200 {
			for _, p := range packets {
				_ = unix.Sendto(fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
				_ = unix.Sendmsg(fd, p, unix.UnixRights(0), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			}
		}
	}
}

// inNested exits with status 0 if the host can be reached.
func inNested() {
	var b brief
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	reached := false
	try := func(what string, err error) {
		fmt.Printf("%s: %v; ", what, err)
		reached = reached || err == nil
	}
	for path, content := range b.Secrets {
		try("read", readAt(unix.AT_FDCWD, path, content))
	}
	at := "/tmp"
	if err := unix.Mount("none", "/", "tmpfs", 0, ""); err == nil {
		at = "/"
	}
	for _, kind := range []string{"cgroup2", "cgroup", "sysfs", "debugfs", "tracefs", "securityfs", "bpf", "mqueue"} {
		if err := unix.Mount(kind, at, kind, 0, ""); err != nil {
			fmt.Printf("mount %s: %v; ", kind, err)
			continue
		}
		// Seeing a control group is no escape, but changing it is. This process is already
		// in it.
		for _, name := range []string{"cgroup.procs", "tasks"} {
			if f, err := os.OpenFile(filepath.Join(at, name), os.O_WRONLY, 0); err == nil {
				_, err = f.WriteString("0")
				f.Close()
				try("write "+kind+"/"+name, err)
			}
		}
	}
	if !reached {
		os.Exit(1)
	}
}

// anyRoomOf returns a function that tries f on each directory that was given, opened anew to be read,
// until one succeeds.
func anyRoomOf(b *brief, f func(fd int) error) func() error {
	return func() error {
		return anyRoom(b, func(room int) error {
			fd, err := unix.Openat(room, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return f(fd)
		})
	}
}
