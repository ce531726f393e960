//go:build linux

package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A system-call filter does not see operations of io_uring.

type uringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	resv                                                                   [3]uint32
	sqOff                                                                  [10]uint32 // head tail mask entries flags dropped array resv user_addr×2
	cqOff                                                                  [10]uint32 // head tail mask entries overflow cqes …
}

type uringSQE struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	userData      uint64
	_             [3]uint64
}

// Operations.
const (
	uringOpOpenat    = 18
	uringOpOpenat2   = 28
	uringOpRenameat  = 35
	uringOpUnlinkat  = 36
	uringOpMkdirat   = 37
	uringOpSymlinkat = 38
	uringOpLinkat    = 39
)

// uringDo sets up a ring, submits one operation and returns its result.
func uringDo(sqe uringSQE) (int, error) {
	var p uringParams
	ring, err := tryFD(syscall.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0))
	if err != nil {
		return -1, err
	}
	defer unix.Close(ring)
	sq, err := unix.Mmap(ring, 0, int(p.sqOff[6]+p.sqEntries*4), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return -1, err
	}
	cq, err := unix.Mmap(ring, 0x8000000, int(p.cqOff[5]+p.cqEntries*16), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return -1, err
	}
	sqes, err := unix.Mmap(ring, 0x10000000, int(p.sqEntries)*64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return -1, err
	}
	*(*uringSQE)(unsafe.Pointer(&sqes[0])) = sqe
	*(*uint32)(unsafe.Pointer(&sq[p.sqOff[6]])) = 0
	*(*uint32)(unsafe.Pointer(&sq[p.sqOff[1]]))++
	if _, err := tryFD(syscall.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(ring), 1, 1, 1, 0, 0)); err != nil {
		return -1, err
	}
	res := *(*int32)(unsafe.Pointer(&cq[p.cqOff[5]+8]))
	if res < 0 {
		return -1, syscall.Errno(-res)
	}
	return int(res), nil
}

// uringPath keeps its strings in memory of its own, because a ring holds only their
// addresses.
func uringPath(op uint8, p string, f func(*uringSQE)) (int, error) {
	m, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Munmap(m) }()
	copy(m, p+"\x00")
	sqe := uringSQE{opcode: op, fd: unix.AT_FDCWD, addr: uint64(uintptr(unsafe.Pointer(&m[0])))}
	f(&sqe)
	return uringDo(sqe)
}

func uringOpen(p string, flags int, mode uint32) (int, error) {
	return uringPath(uringOpOpenat, p, func(s *uringSQE) { s.len, s.opFlags = mode, uint32(flags) })
}

func uringMkdir(p string, mode uint32) error {
	_, err := uringPath(uringOpMkdirat, p, func(s *uringSQE) { s.len = mode })
	return err
}

func uringWays() []way {
	two := func(op uint8) func(*protocol.Brief, string) error {
		return func(b *protocol.Brief, p string) error {
			s, err := scratch(b)
			if err != nil {
				return err
			}
			to := fmt.Sprintf("%s\x00", p)
			m, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Munmap(m) }()
			copy(m, to)
			_, err = uringPath(op, s, func(q *uringSQE) {
				q.off = uint64(uintptr(unsafe.Pointer(&m[0])))
				at := int32(unix.AT_FDCWD)
				if op != uringOpSymlinkat {
					q.len = uint32(at)
				}
			})
			return err
		}
	}
	return []way{
		{"io_uring open", func(_ *protocol.Brief, p string) error { return write(uringOpen(p, creat, 0o755)) }},
		{"io_uring mkdir", func(_ *protocol.Brief, p string) error { return uringMkdir(p, 0o755) }},
		{"io_uring unlink", func(_ *protocol.Brief, p string) error {
			_, err := uringPath(uringOpUnlinkat, p, func(*uringSQE) {})
			return err
		}},
		{"io_uring rename", two(uringOpRenameat)},
		{"io_uring link", two(uringOpLinkat)},
		{"io_uring symlink", two(uringOpSymlinkat)},
	}
}

// uring is P08.
func uring() []probe {
	return []probe{
		{"setup", func(*protocol.Brief) protocol.Try {
			var p uringParams
			fd, err := tryFD(syscall.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&p)), 0))
			return closeTry(fd, err, "a ring was made")
		}},
		{"open through a ring", func(*protocol.Brief) protocol.Try {
			fd, err := uringOpen("/etc/hostname", unix.O_RDONLY, 0)
			return closeTry(fd, err, "opened a file")
		}},
		{"register without a ring", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_IO_URING_REGISTER, ^uintptr(0), 0, 0, 0, 0, 0)), unix.EBADF, unix.EINVAL)
		}},
		{"enter without a ring", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_IO_URING_ENTER, ^uintptr(0), 0, 0, 0, 0, 0)), unix.EBADF, unix.EINVAL)
		}},
	}
}
