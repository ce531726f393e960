package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// take takes what it can of the kernel's quotas. Each argument but the last is KIND=N, and N is the
// most that it takes of a kind. It prints how much it got of each, makes the file that the last
// argument names, and holds everything until the file is gone.
func take(args []string) error {
	file := args[len(args)-1]
	runtime.LockOSThread() // signals that this thread blocks stay queued for it
	kinds := takers()
	for _, arg := range args[:len(args)-1] {
		kind, number, _ := strings.Cut(arg, "=")
		most, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		one := kinds[kind]
		if one == nil {
			return fmt.Errorf("there is no quota %q", kind)
		}
		n := 0
		for err == nil && n < most {
			if err = one(n); err == nil {
				n++
			}
		}
		fmt.Println(kind, n, err)
	}
	return holdUntilGone(file)
}

// takers returns the functions that take one more of a quota, the n-th. Nothing is given back.
func takers() map[string]func(n int) error {
	const realTime = 40 // a signal that queues
	return map[string]func(int) error{
		"inotify": func(int) error {
			_, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
			return err
		},
		"aio": func(int) error {
			var context uintptr
			return call(syscall.SYS_IO_SETUP, 1000, uintptr(unsafe.Pointer(&context)), 0, 0)
		},
		"timers": func(int) error {
			var id int32
			return call(syscall.SYS_TIMER_CREATE, 1, 0, uintptr(unsafe.Pointer(&id)), 0) // CLOCK_MONOTONIC, SIGALRM
		},
		"signals": func(n int) error {
			if n == 0 {
				blocked := uint64(1) << (realTime - 1)
				if err := call(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&blocked)), 0, 8); err != nil {
					return err
				}
			}
			info := [128]byte{0: realTime, 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // si_code is SI_QUEUE
			return call(syscall.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(syscall.Gettid()), realTime, uintptr(unsafe.Pointer(&info[0])))
		},
		"terminals": func(int) error {
			_, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
			return err
		},
		"netlink": func(int) error {
			_, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
			return err
		},
		"datagrams": func(int) error {
			_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
			return err
		},
		"streams": func(int) error {
			_, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			return err
		},
		"mptcp": func(int) error { // stands for the protocols that may be in a module of the kernel
			_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 262)
			return err
		},
		"gro": func(int) error {
			fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			const gro, udpLite = 104, 136 // a socket of UDP has the options of both
			if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_UDP, gro, 1); err == nil {
				return nil
			}
			return syscall.SetsockoptInt(fd, udpLite, gro, 1)
		},
		"labels": func(n int) error {
			fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			const exclusive, create = 1, 1
			request := [32]byte{0: 0xfd, 15: 1, 21: exclusive} // struct in6_flowlabel_req to get a label for fd00::1
			binary.BigEndian.PutUint32(request[16:], uint32(n+1))
			binary.NativeEndian.PutUint16(request[22:], create)
			return setsockopt(fd, syscall.IPPROTO_IPV6, 32, request[:]) // IPV6_FLOWLABEL_MGR
		},
		"groups": groups(),
		"secret": func(int) error { return call(447, 0, 0, 0, 0) }, // memfd_secret
		"filters": func(n int) error {
			const (
				noNewPrivs, setSeccomp, modeFilter = 38, 22, 2
				returns, allow                     = 6, 0x7fff0000
			)
			if err := call(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0); n == 0 && err != nil {
				return err
			}
			filter := syscall.SockFilter{Code: returns, K: allow}
			program := syscall.SockFprog{Len: 1, Filter: &filter}
			return call(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&program)), 0)
		},
		"queues": func(n int) error {
			name, err := syscall.BytePtrFromString("paddock-drivertest-" + strconv.Itoa(n))
			if err != nil {
				return err
			}
			return call(syscall.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), syscall.O_CREAT|syscall.O_RDWR, 0o600, 0)
		},
	}
}

// groups returns a function that joins one more group of IPv6, on the loopback interface.
func groups() func(n int) error {
	const each = 256 // that a socket joins
	fd := -1
	return func(n int) (err error) {
		if n%each == 0 {
			if fd, err = syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
		}
		request := [20]byte{0: 0xff, 1: 0x01} // struct ipv6_mreq
		binary.BigEndian.PutUint32(request[12:], uint32(n+0x10000))
		binary.NativeEndian.PutUint32(request[16:], 1) // the loopback interface
		return setsockopt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_JOIN_GROUP, request[:])
	}
}

// stamps switches time stamps of a socket on and off, often. The kernel does that a moment later.
func stamps(number string) error {
	n, err := strconv.Atoi(number)
	for range n {
		var fd int
		if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0); err != nil {
			break
		}
		if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMP, 1); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
		if err = syscall.Close(fd); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// spread sends datagrams to many addresses of IPv6: of all kinds, and on the link where there is one. It waits for no
// room, because gVisor may then send one for ever (docs/LIMITS.md).
func spread(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	sent := 0
	for _, prefix := range []string{"\x20\x01\x0d\xb8", "\xff\x0e", "\xff\x02", "\xfe\x80"} {
		to := syscall.SockaddrInet6{Port: 9}
		copy(to.Addr[:], prefix)
		if prefix[1]&0x0f != 1 && prefix[0] >= 0xfe { // of a link
			to.ZoneId = uint32(links[len(links)-1].Index)
		}
		for i := range n {
			binary.BigEndian.PutUint32(to.Addr[12:], uint32(i+1))
			if err = syscall.Sendto(fd, []byte("x"), syscall.MSG_DONTWAIT, &to); err == nil {
				sent++
			}
		}
	}
	_, _ = fmt.Println("sent", sent, err)
	return nil
}

func setsockopt(fd, level, name int, value []byte) error {
	if _, _, e := syscall.Syscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value[0])), uintptr(len(value)), 0); e != 0 {
		return e
	}
	return nil
}

// call does a system call that returns no value of interest.
func call(nr, a, b, c, d uintptr) error {
	if _, _, e := syscall.Syscall6(nr, a, b, c, d, 0, 0); e != 0 {
		return e
	}
	return nil
}

// lease takes a lease on a file for reading, which makes everybody wait who opens it to write.
func lease(name, until string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	const setLease, readLock = 1024, 0
	// SIGIO says that somebody waits; it does nothing to this program, which keeps the lease.
	_, _, e := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, readLock)
	fmt.Println("lease", e == 0, e)
	return holdUntilGone(until)
}

// lock locks a file, without waiting.
func lock(name, until string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	fmt.Println("locked", err == nil, err)
	return holdUntilGone(until)
}

// threads locks files as a thread with a table of descriptors of its own, which signals interrupt. It
// prints "as the kernel" if all is as without a sandbox: the lock is on the thread's file, not on that of
// another thread with the same number, and a handler with SA_RESTART does not end the wait.
func threads(name string) error {
	first, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(first.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	other, err := os.Create(name + ".other")
	if err != nil {
		return err
	}
	const number = 500
	if err := syscall.Dup3(int(other.Fd()), number, syscall.O_CLOEXEC); err != nil {
		return err
	}
	signal.Notify(make(chan os.Signal, 100), syscall.SIGUSR1) // Go's handlers have SA_RESTART
	tid, ended := make(chan int), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		again, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err == nil {
			err = syscall.Unshare(syscall.CLONE_FILES)
		}
		if err == nil {
			err = syscall.Dup3(again, number, syscall.O_CLOEXEC)
		}
		tid <- syscall.Gettid()
		if err == nil {
			err = syscall.Flock(number, syscall.LOCK_EX)
		}
		ended <- err
	}()
	thread := <-tid
	for range 30 {
		if err := call(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(thread), uintptr(syscall.SIGUSR1), 0); err != nil {
			break // it has ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the wait ended early: %w", err)
	default:
	}
	if err := syscall.Flock(int(first.Fd()), syscall.LOCK_UN); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	if err := syscall.Flock(int(first.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		return fmt.Errorf("the thread's lock is not on its file: %w", err)
	}
	_, err = fmt.Println("as the kernel")
	return err
}

// watch watches a file or directory, and prints whether there was any event.
func watch(name, until string) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return err
	}
	_, err = syscall.InotifyAddWatch(fd, name, syscall.IN_ALL_EVENTS)
	fmt.Println("watching", err == nil, err)
	if err := holdUntilGone(until); err != nil {
		return err
	}
	n, _ := syscall.Read(fd, make([]byte, 4096))
	fmt.Println("told", n > 0)
	return nil
}

// events prints what happens to files and directories, until none of them is there any more: for each event the
// last part of the watched path, the kind, and the name in the directory.
func events(paths []string) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	watched := map[uint32]string{}
	for _, path := range paths {
		wd, err := syscall.InotifyAddWatch(fd, path, syscall.IN_ALL_EVENTS&^(syscall.IN_OPEN|syscall.IN_ACCESS|syscall.IN_CLOSE_NOWRITE))
		if err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
		watched[uint32(wd)] = filepath.Base(path)
	}
	fmt.Println("watching")
	for buf := make([]byte, 16<<10); len(watched) > 0; {
		n, err := syscall.Read(fd, buf)
		if err != nil {
			return err
		}
		for data := buf[:n]; len(data) >= syscall.SizeofInotifyEvent; {
			wd, mask := binary.NativeEndian.Uint32(data), binary.NativeEndian.Uint32(data[4:])
			end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(data[12:]))
			name, _, _ := bytes.Cut(data[syscall.SizeofInotifyEvent:end], []byte{0})
			fmt.Printf("%s %s %s\n", watched[wd], eventNames(mask), name)
			if mask&syscall.IN_IGNORED != 0 {
				delete(watched, wd)
			}
			data = data[end:]
		}
	}
	return nil
}

func eventNames(mask uint32) string {
	var list []string
	for _, e := range []struct {
		bit  uint32
		name string
	}{
		{syscall.IN_MODIFY, "modify"}, {syscall.IN_ATTRIB, "attrib"}, {syscall.IN_CLOSE_WRITE, "close_write"},
		{syscall.IN_MOVED_FROM, "moved_from"}, {syscall.IN_MOVED_TO, "moved_to"}, {syscall.IN_CREATE, "create"},
		{syscall.IN_DELETE, "delete"}, {syscall.IN_DELETE_SELF, "delete_self"}, {syscall.IN_MOVE_SELF, "move_self"},
		{syscall.IN_IGNORED, "ignored"}, {syscall.IN_Q_OVERFLOW, "overflow"}, {syscall.IN_ISDIR, "dir"},
	} {
		if mask&e.bit != 0 {
			list = append(list, e.name)
		}
	}
	return strings.Join(list, "|")
}

// holdUntilGone makes a file, and waits until somebody removes it.
func holdUntilGone(file string) error {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return untilGone(file)
}

// untilGone waits until a file is gone.
func untilGone(file string) error {
	for {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}
