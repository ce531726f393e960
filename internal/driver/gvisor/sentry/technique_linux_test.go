package sentry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// up leads from anywhere to the top of what can be seen from there.
var up = strings.Repeat("../", 40)

// attempts tries everything that a process can which knows no more than b.
func attempts(b *brief) []attempt {
	list := onFiles(b)
	try := tryer(b.Stage, &list)
	for _, k := range calls(b) {
		if !b.Bare || !k.harms {
			try(k.name, k.do())
		}
	}
	return list
}

// tryer notes what comes of techniques.
func tryer(prefix string, list *[]attempt) func(name string, err error) {
	return func(name string, err error) {
		a := attempt{Name: prefix + name, Reached: err == nil}
		if err != nil {
			a.Detail = err.Error()
		}
		*list = append(*list, a)
	}
}

// onFiles tries what is about files.
func onFiles(b *brief) []attempt {
	var list []attempt
	try := tryer(b.Stage, &list)
	for path, content := range b.Secrets {
		base := filepath.Base(path)
		try("read "+base+" by its path", readAt(unix.AT_FDCWD, path, content))
		try("read "+base+" from a directory that was given", anyRoom(b, func(fd int) error { return readAt(fd, up+path, content) }))
		try("read "+base+" through /proc", throughProc(func(root string) error { return readAt(unix.AT_FDCWD, root+path, content) }))
	}
	for _, name := range b.Read {
		try("read "+name+", which is denied", anyRoom(b, func(fd int) error { return readAt(fd, name, "denied") }))
	}
	for _, w := range ways() {
		names := b.Keep
		if w.fresh {
			names = b.Make
		}
		for _, name := range names {
			b.stage()
			try(w.name+" "+name, workRoom(b, func(fd int) error { return w.do(fd, name) }))
		}
	}
	try("make a file that may be made", workRoom(b, func(fd int) error { return create(fd, "free") }))
	return list
}

var errNothing = errors.New("nothing to try it on")

// anyRoom tries f on each directory, until it gets through.
func anyRoom(b *brief, f func(fd int) error) error {
	err := errNothing
	for _, fd := range b.Rooms {
		if err = f(fd); err == nil {
			return nil
		}
	}
	return err
}

// workRoom tries f on the workspace.
func workRoom(b *brief, f func(fd int) error) error {
	for _, fd := range b.Rooms {
		if unix.Faccessat(fd, ".git/HEAD", unix.F_OK, 0) == nil {
			return f(fd)
		}
	}
	return errors.New("it was given none")
}

func throughProc(f func(root string) error) error {
	err := errNothing
	for _, pattern := range []string{"/proc/[0-9]*/root", "/proc/[0-9]*/cwd", "/proc/[0-9]*/task/*/root", "/proc/[0-9]*/fd/*"} {
		found, _ := filepath.Glob(pattern)
		for _, root := range found {
			if err = f(root); err == nil {
				return nil
			}
			if err = f(root + "/" + up); err == nil {
				return nil
			}
		}
	}
	return err
}

func readAt(fd int, path, content string) error {
	f, err := unix.Openat(fd, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	buf := make([]byte, 1<<16)
	n, err := unix.Read(f, buf)
	if err != nil {
		return err
	}
	if !bytes.Contains(buf[:n], []byte(content)) {
		return fmt.Errorf("it says something else: %.40q", buf[:n])
	}
	return nil
}

func create(fd int, name string) error {
	f, err := unix.Openat(fd, name, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	_, err = unix.Write(f, []byte("planted"))
	return err
}

// A way changes a name in a directory.
type way struct {
	name  string
	fresh bool // where there is nothing yet
	do    func(fd int, name string) error
}

// scratch makes a file that may be made.
func scratch(fd int) (string, error) {
	name := fmt.Sprintf("scratch-%d", time.Now().UnixNano())
	return name, create(fd, name)
}

func from(f func(fd int, scratch, name string) error) func(fd int, name string) error {
	return func(fd int, name string) error {
		s, err := scratch(fd)
		if err != nil {
			return err
		}
		return f(fd, s, name)
	}
}

func self(fd int) string { return fmt.Sprintf("/proc/self/fd/%d/", fd) }

func ways() []way {
	return []way{
		{"open to write", false, create},
		{"make", true, create},
		{"make, through /proc,", true, func(fd int, name string) error { return create(unix.AT_FDCWD, self(fd)+name) }},
		{"rename a scratch file to", true, from(func(fd int, s, name string) error { return unix.Renameat(fd, s, fd, name) })},
		{"rename, without the other's being there, to", true, from(func(fd int, s, name string) error {
			return unix.Renameat2(fd, s, fd, name, unix.RENAME_NOREPLACE)
		})},
		{"open to write, the long way, ", false, func(fd int, name string) error { return create(fd, ".git/.././"+name) }},
		{"open to write, through /proc,", false, func(fd int, name string) error { return create(unix.AT_FDCWD, self(fd)+name) }},
		{"open to write, by openat2,", false, func(fd int, name string) error {
			f, err := unix.Openat2(fd, name, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o755})
			if err == nil {
				unix.Close(f)
			}
			return err
		}},
		{"open to write again what was opened to read:", false, func(fd int, name string) error {
			f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return create(unix.AT_FDCWD, strings.TrimSuffix(self(f), "/"))
		}},
		{"change the mode of", false, func(fd int, name string) error { return unix.Fchmodat(fd, name, 0o777, 0) }},
		{"change the mode, by descriptor, of", false, func(fd int, name string) error {
			f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return unix.Fchmod(f, 0o777)
		}},
		{"rename to", false, from(func(fd int, s, name string) error { return unix.Renameat(fd, s, fd, name) })},
		{"exchange with", false, from(func(fd int, s, name string) error { return unix.Renameat2(fd, s, fd, name, unix.RENAME_EXCHANGE) })},
		{"rename through /proc to", false, from(func(fd int, s, name string) error {
			return unix.Renameat(unix.AT_FDCWD, self(fd)+s, unix.AT_FDCWD, self(fd)+name)
		})},
		{"rename away", false, func(fd int, name string) error { return unix.Renameat(fd, name, fd, "moved") }},
		{"link to", true, from(func(fd int, s, name string) error { return unix.Linkat(fd, s, fd, name, 0) })},
		{"link and write", false, func(fd int, name string) error {
			_ = unix.Unlinkat(fd, "alias", 0)
			if err := unix.Linkat(fd, name, fd, "alias", 0); err != nil {
				return err
			}
			return create(fd, "alias")
		}},
		{"link through a symbolic link and write", true, func(fd int, name string) error {
			_ = unix.Unlinkat(fd, "pointer", 0)
			_ = unix.Symlinkat(name, fd, "pointer")
			return create(fd, "pointer")
		}},
		{"make a symbolic link", true, func(fd int, name string) error { return unix.Symlinkat("/etc/passwd", fd, name) }},
		{"make a directory", true, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o755) }},
		{"make a device", true, func(fd int, name string) error { return unix.Mknodat(fd, name, unix.S_IFIFO|0o644, 0) }},
		{"remove", false, func(fd int, name string) error { return unix.Unlinkat(fd, name, 0) }},
		{"move its directory, of", false, func(fd int, name string) error {
			if filepath.Dir(name) == "." {
				return errors.New("it is the workspace itself")
			}
			return unix.Renameat(fd, filepath.Dir(name), fd, "elsewhere")
		}},
		{"cut short", false, func(fd int, name string) error { return unix.Truncate(self(fd)+name, 0) }},
		{"link a file without a name to", true, func(fd int, name string) error {
			f, err := unix.Openat(fd, ".", unix.O_TMPFILE|unix.O_WRONLY, 0o755)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return unix.Linkat(unix.AT_FDCWD, strings.TrimSuffix(self(f), "/"), fd, name, unix.AT_SYMLINK_FOLLOW)
		}},
		{"set an attribute of", false, func(fd int, name string) error {
			return unix.Setxattr(self(fd)+name, "user.paddock", []byte("x"), 0)
		}},
		{"give away", false, func(fd int, name string) error {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, 0); err != nil {
				return err
			}
			return unix.Fchownat(fd, name, int(st.Uid)+1, int(st.Gid), 0)
		}},
		{"by its handle, open to write", false, func(fd int, name string) error {
			h, _, err := unix.NameToHandleAt(fd, name, 0)
			if err != nil {
				return err
			}
			f, err := unix.OpenByHandleAt(fd, h, unix.O_WRONLY)
			if err == nil {
				unix.Close(f)
			}
			return err
		}},
	}
}

// byGofer asks for what the sentry may ask its gofer.
func byGofer(b *brief, g gofer) []attempt {
	client, root := g.client, g.root
	ctx := context.Background()
	dir := func(name string) (lisafs.ClientFD, string, error) {
		at := client.NewFD(root.ControlFD)
		parts := strings.Split(name, "/")
		for _, p := range parts[:len(parts)-1] {
			in, err := at.Walk(ctx, p)
			if err != nil {
				return at, "", err
			}
			at = client.NewFD(in.ControlFD)
		}
		return at, parts[len(parts)-1], nil
	}
	var list []attempt
	try := func(what, name string, f func(at lisafs.ClientFD, base string) error) {
		at, base, err := dir(name)
		if err == nil {
			err = f(at, base)
		}
		a := attempt{Name: "by the gofer: " + what + " " + name, Reached: err == nil}
		if err != nil {
			a.Detail = err.Error()
		}
		list = append(list, a)
	}
	uid, gid := lisafs.UID(os.Getuid()), lisafs.GID(os.Getgid())
	for path, content := range b.Secrets {
		try("read", strings.TrimSuffix(up, "/")+path, func(at lisafs.ClientFD, base string) error {
			in, err := at.Walk(ctx, base)
			if err != nil {
				return err
			}
			fd := client.NewFD(in.ControlFD)
			_, host, err := fd.OpenAt(ctx, unix.O_RDONLY)
			if err != nil {
				return err
			}
			buf := make([]byte, 100)
			n, err := unix.Read(host, buf)
			if err == nil && !bytes.Contains(buf[:n], []byte(content)) {
				err = errors.New("it says something else")
			}
			return err
		})
	}
	top := client.NewFD(root.ControlFD)
	if _, err := top.Walk(ctx, ".git"); err != nil {
		return list // it is not the workspace
	}
	try("make", "free-by-gofer", func(at lisafs.ClientFD, base string) error {
		_, _, _, err := at.OpenCreateAt(ctx, base, unix.O_RDWR, linux.FileMode(0o755), uid, gid)
		return err
	})
	for _, name := range append(slices.Clone(b.Keep), b.Make...) {
		try("open to write", name, func(at lisafs.ClientFD, base string) error {
			in, err := at.Walk(ctx, base)
			if err != nil {
				return err
			}
			fd := client.NewFD(in.ControlFD)
			_, host, err := fd.OpenAt(ctx, unix.O_WRONLY|unix.O_TRUNC)
			if err == nil && host >= 0 {
				_, err = unix.Write(host, []byte("planted"))
			}
			return err
		})
		try("make", name, func(at lisafs.ClientFD, base string) error {
			_, _, _, err := at.OpenCreateAt(ctx, base, unix.O_RDWR, linux.FileMode(0o755), uid, gid)
			return err
		})
		try("make a directory", name, func(at lisafs.ClientFD, base string) error {
			_, err := at.MkdirAt(ctx, base, linux.FileMode(0o755), uid, gid)
			return err
		})
		try("make a symbolic link", name, func(at lisafs.ClientFD, base string) error {
			_, err := at.SymlinkAt(ctx, base, "/etc/passwd", uid, gid)
			return err
		})
		try("remove", name, func(at lisafs.ClientFD, base string) error { return at.UnlinkAt(ctx, base, 0) })
		try("rename", name, func(at lisafs.ClientFD, base string) error {
			return at.RenameAt(ctx, base, root.ControlFD, "moved-by-gofer", 0)
		})
		try("rename a scratch file to", name, func(at lisafs.ClientFD, base string) error {
			if _, _, _, err := top.OpenCreateAt(ctx, "scratch-by-gofer", unix.O_RDWR, linux.FileMode(0o755), uid, gid); err != nil {
				return err
			}
			return top.RenameAt(ctx, "scratch-by-gofer", at.ID(), base, 0)
		})
	}
	return list
}

// A deed is a technique that is about no file.
type deed struct {
	name  string
	harms bool // the machine, where there are no walls
	do    func() error
}

// calls are about processes, sockets, mounts and the kernel itself.
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

// What calls are given; the kernel reads, and one of them writes.
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

// acquainted tries f on whoever is at the other end of a socket.
func acquainted(b *brief, f func(pidfd int) error) func() error {
	return func() error {
		err := errNothing
		for _, fd := range b.Acquainted {
			// One that has a number here is the sentry's own.
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

// nested makes a process in user and mount namespaces of its own, where it has
// every capability, and looks for the host from there. What it mounts there it has
// from the host's kernel, which knows whose namespaces they are.
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

// selfExecutable is this program, also where there is no tree of files.
var selfExecutable = "/proc/self/exe"

// garbage sends what nobody has asked for to whoever is at the other end of a
// socket.
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

// inNested ends with status 0 where the host can be reached.
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
		// Seeing one is no escape; to change groups is. This process is there already.
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
