//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// Bounds that a sandbox has. A technique takes one more than that.
const (
	mostSignals   = 1024
	mostTerminals = 64
	mostQueues    = 4
)

// spend is P34. What a technique takes, it gives back when it ends.
func spend() []probe {
	const realTime = 40 // a signal that queues
	return []probe{
		{"instances of inotify", func(*protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
			if err != nil {
				return absent("%v", err)
			}
			all, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				return absent("%v", err)
			}
			return beyond(all/4, func(int) error {
				_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
				return err
			})
		}},
		{"contexts of asynchronous I/O", func(*protocol.Brief) protocol.Try {
			return beyond(0, func(int) error {
				var context uintptr
				return try0(unix.Syscall(unix.SYS_IO_SETUP, 1000, uintptr(unsafe.Pointer(&context)), 0))
			})
		}},
		{"timers", func(*protocol.Brief) protocol.Try {
			return beyond(mostSignals, func(int) error {
				var id int32
				return try0(unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&id))))
			})
		}},
		{"queued signals", func(*protocol.Brief) protocol.Try {
			runtime.LockOSThread()
			blocked := uint64(1) << (realTime - 1)
			if err := try0(unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&blocked)), 0, 8, 0, 0)); err != nil {
				return refused(err)
			}
			info := [128]byte{0: realTime, 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // si_code is SI_QUEUE
			return beyond(mostSignals, func(int) error {
				return try0(unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()), realTime, uintptr(unsafe.Pointer(&info[0])), 0, 0))
			})
		}},
		{"terminals", func(*protocol.Brief) protocol.Try {
			return beyond(mostTerminals, func(int) error {
				_, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
				return err
			})
		}},
		{"message queues", func(b *protocol.Brief) protocol.Try {
			defer func() {
				for n := range mostQueues + 1 {
					if name, err := unix.BytePtrFromString(b.Marker + strconv.Itoa(n)); err == nil {
						_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
					}
				}
			}()
			return beyond(mostQueues, func(n int) error {
				name, err := unix.BytePtrFromString(b.Marker + strconv.Itoa(n))
				if err != nil {
					return err
				}
				return try0(unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0))
			})
		}},
	}
}

// beyond takes one more than a sandbox may have.
func beyond(bound int, one func(n int) error) protocol.Try {
	for n := range bound + 1 {
		if err := one(n); err != nil {
			return refused(err)
		}
	}
	return reached("took %d with a bound of %d", bound+1, bound)
}

// stall is P35.
func stall() []probe {
	own := func(b *protocol.Brief, name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(b.Work, b.Marker+name), os.O_CREATE|os.O_RDONLY, 0o600)
	}
	return []probe{
		{"lease on a file of the workspace", func(b *protocol.Brief) protocol.Try {
			f, err := own(b, "-lease")
			if err != nil {
				return refused(err)
			}
			defer os.Remove(f.Name())
			defer f.Close()
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			return done(err, "whoever opens the file to write waits")
		}},
		{"signals about a directory", func(b *protocol.Brief) protocol.Try {
			f, err := os.Open(b.Work)
			if err != nil {
				return refused(err)
			}
			defer f.Close()
			_, err = unix.FcntlInt(f.Fd(), unix.F_NOTIFY, 4) // DN_CREATE
			return done(err, "the kernel sends a signal for each new file")
		}},
		{"lock on what is shown", onShown(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })},
		{"shared lock on what is shown", onShown(func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })},
		{"lock on what is shown, swapped while it is judged", swapped},
		{"read: lock of a process on what is shown", func(b *protocol.Brief) protocol.Try {
			try := onShown(func(fd int) error {
				return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
			})(b)
			if try.Outcome == protocol.Reached && b.Kernel {
				return inside("the sandbox's own kernel took it")
			}
			return try
		}},
		{"watch what is shown", func(*protocol.Brief) protocol.Try {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return each(shown(), func(name string) protocol.Try {
				_, err := unix.InotifyAddWatch(fd, name, unix.IN_ALL_EVENTS)
				return done(err, "it tells what the host does with it")
			})
		}},
		{"watch what is shown by its descriptor", func(*protocol.Brief) protocol.Try {
			instance, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(instance)
			return each(shown(), func(name string) protocol.Try {
				fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				_, err = unix.InotifyAddWatch(instance, fmt.Sprintf("/proc/self/fd/%d", fd), unix.IN_ALL_EVENTS)
				return done(err, "it tells what the host does with it")
			})
		}},
	}
}

// shown returns files of the host that sandboxes see.
func shown() []string { return []string{"/usr/bin/env", "/usr/bin", "/usr/lib", "/dev/null"} }

// onShown tries a lock on each file of the host that is visible, and on one in a mount that may only be read.
func onShown(lock func(fd int) error) func(*protocol.Brief) protocol.Try {
	return func(b *protocol.Brief) protocol.Try {
		return each(append(shown(), b.Self), func(name string) protocol.Try {
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return done(lock(fd), "others wait for it")
		})
	}
}

// swapped locks a descriptor while another thread makes it now a file of its own, now one that is shown.
func swapped(b *protocol.Brief) protocol.Try {
	mine, err := os.Create(filepath.Join("/tmp", b.Marker+"-swap"))
	if err != nil {
		return refused(err)
	}
	defer os.Remove(mine.Name())
	defer mine.Close()
	other, err := os.Open(shown()[0])
	if err != nil {
		return refused(err)
	}
	defer other.Close()
	const fd = 500
	stop := make(chan struct{})
	defer close(stop)
	if err := unix.Dup3(int(mine.Fd()), fd, unix.O_CLOEXEC); err != nil {
		return refused(err)
	}
	go func() {
		for {
			for _, f := range []*os.File{other, mine} {
				select {
				case <-stop:
					return
				default:
					_ = unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC)
				}
			}
		}
	}()
	last := protocol.Try{}
	for range 2000 {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			last = refused(err)
		}
	}
	if isLocked(int(other.Fd())) {
		return reached("the shown file is locked")
	}
	if last.Outcome == "" {
		return inside("no attempt met the shown file")
	}
	return last
}

// isLocked reports whether the open file has a lock, as the kernel shows it.
func isLocked(fd int) bool {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	return err == nil && strings.Contains(string(info), "lock:")
}
