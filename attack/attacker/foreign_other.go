//go:build linux && !amd64

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// Other architectures have only one system call table that this program can use.

func foreignOpen(string, int, uintptr) (int, error) { return -1, unix.ENOSYS }
func foreignChmod(string, uintptr) error            { return unix.ENOSYS }
func foreignMknod(string, uint32, uint64) error     { return unix.ENOSYS }
func foreignUmount(string) error                    { return unix.ENOSYS }
func foreignUnshare(uintptr) error                  { return unix.ENOSYS }
func foreignWays() []way                            { return nil }

func foreignCalls() []probe {
	return []probe{{"other table", func(*protocol.Brief) protocol.Try { return absent("this architecture has one table only") }}}
}

func creatRaw(p unsafe.Pointer, mode uintptr) (int, error) {
	cwd := unix.AT_FDCWD
	return tryFD(syscall.Syscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(p), creat|unix.O_TRUNC, mode, 0, 0))
}

func chmodRaw(p unsafe.Pointer, mode uintptr) error {
	cwd := unix.AT_FDCWD
	return try0(syscall.Syscall(unix.SYS_FCHMODAT, uintptr(cwd), uintptr(p), mode))
}

func foreignAddKey(string) protocol.Try { return absent("this architecture has one table only") }
