//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func int80(nr, a, b, c, d, e uintptr) int32

// System call numbers of the i386 table.
const (
	i386Open    = 5
	i386Creat   = 8
	i386Link    = 9
	i386Unlink  = 10
	i386Mknod   = 14
	i386Chmod   = 15
	i386Getpid  = 20
	i386Umount  = 22
	i386Rename  = 38
	i386Mkdir   = 39
	i386Symlink = 83
	i386Socket  = 102
	i386Unshare = 310
)

// x32 is the bit that marks numbers of the x32 table.
const x32 = 0x40000000

// low copies strings to memory that the i386 entry can address.
func low(ss ...string) ([]uintptr, error) {
	m, err := tryAddr(syscall.Syscall6(unix.SYS_MMAP, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_32BIT, ^uintptr(0), 0))
	if err != nil {
		return nil, err
	}
	mem := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&m))), 64<<10)
	out := make([]uintptr, 0, len(ss))
	n := 0
	for _, s := range ss {
		out = append(out, m+uintptr(n))
		n += copy(mem[n:], s+"\x00")
	}
	return out, nil
}

func tryAddr(r, _ uintptr, e syscall.Errno) (uintptr, error) {
	if e != 0 {
		return 0, e
	}
	return r, nil
}

func call80(nr uintptr, args ...uintptr) (int, error) {
	var a [5]uintptr
	copy(a[:], args)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := int80(nr, a[0], a[1], a[2], a[3], a[4])
	if r < 0 && r > -4096 {
		return -1, syscall.Errno(-r)
	}
	return int(r), nil
}

// path80 makes an i386 call with a path as its first argument.
func path80(nr uintptr, p string, args ...uintptr) (int, error) {
	s, err := low(p)
	if err != nil {
		return -1, err
	}
	return call80(nr, append([]uintptr{s[0]}, args...)...)
}

func err80(_ int, err error) error { return err }

func foreignOpen(p string, flags int, mode uintptr) (int, error) {
	return path80(i386Open, p, uintptr(flags), mode)
}

func foreignChmod(p string, mode uintptr) error { return err80(path80(i386Chmod, p, mode)) }

func foreignMknod(p string, mode uint32, dev uint64) error {
	return err80(path80(i386Mknod, p, uintptr(mode), uintptr(dev)))
}

func foreignUmount(p string) error { return err80(path80(i386Umount, p)) }

func foreignUnshare(flags uintptr) error { return err80(call80(i386Unshare, flags)) }

// foreignWays are ways through other system call tables.
func foreignWays() []way {
	two := func(nr uintptr, from func(*protocol.Brief) (string, error)) func(*protocol.Brief, string) error {
		return func(b *protocol.Brief, p string) error {
			s, err := from(b)
			if err != nil {
				return err
			}
			a, err := low(s, p)
			if err != nil {
				return err
			}
			return err80(call80(nr, a[0], a[1]))
		}
	}
	return []way{
		{"int 0x80 open", func(_ *protocol.Brief, p string) error { return write(foreignOpen(p, creat, 0o755)) }},
		{"int 0x80 creat", func(_ *protocol.Brief, p string) error { return write(path80(i386Creat, p, 0o755)) }},
		{"int 0x80 mkdir", func(_ *protocol.Brief, p string) error { return err80(path80(i386Mkdir, p, 0o755)) }},
		{"int 0x80 unlink", func(_ *protocol.Brief, p string) error { return err80(path80(i386Unlink, p)) }},
		{"int 0x80 rename", two(i386Rename, scratch)},
		{"int 0x80 link", two(i386Link, scratch)},
		{"int 0x80 symlink", two(i386Symlink, scratch)},
		{"x32 open", func(_ *protocol.Brief, p string) error {
			s, _ := unix.BytePtrFromString(p)
			return write(tryFD(syscall.Syscall(x32|unix.SYS_OPEN, uintptr(unsafe.Pointer(s)), creat, 0o755)))
		}},
	}
}

// foreignCalls is P09.
func foreignCalls() []probe {
	return []probe{
		{"int 0x80 getpid", func(*protocol.Brief) protocol.Try {
			pid, err := call80(i386Getpid)
			if err != nil {
				return refused(err)
			}
			return reached("the i386 table answers, pid %d", pid)
		}},
		{"int 0x80 open", func(b *protocol.Brief) protocol.Try {
			fd, err := foreignOpen(b.DenyReadFile, 0, 0)
			return readFD(fd, err)
		}},
		{"int 0x80 socket", func(*protocol.Brief) protocol.Try {
			fd, err := call80(359, unix.AF_PACKET, unix.SOCK_RAW, 0)
			return closeTry(fd, err, "made a packet socket")
		}},
		{"int 0x80 unshare", func(*protocol.Brief) protocol.Try { return done(foreignUnshare(unix.CLONE_NEWUTS), "unshared") }},
		{"x32 getpid", func(*protocol.Brief) protocol.Try {
			_, err := tryFD(syscall.Syscall(x32|unix.SYS_GETPID, 0, 0, 0))
			return done(err, "the x32 table answers")
		}},
		{"x32 unshare", func(*protocol.Brief) protocol.Try {
			_, err := tryFD(syscall.Syscall(x32|unix.SYS_UNSHARE, unix.CLONE_NEWUTS, 0, 0))
			return done(err, "unshared")
		}},
		{"32-bit program", func(b *protocol.Brief) protocol.Try {
			p := filepath.Join(b.Work, fmt.Sprintf("elf32-%d", scratchCount()))
			if err := os.WriteFile(p, elf32(), 0o755); err != nil {
				return refused(err)
			}
			defer os.Remove(p)
			err := exec.Command(p).Run()
			// The process that made the file may still have it open for a moment.
			for i := 0; i < 1000 && errors.Is(err, unix.ETXTBSY); i++ {
				err = exec.Command(p).Run()
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if exit.ExitCode() == 42 {
					return reached("a 32-bit program ran")
				}
				ws, _ := exit.Sys().(syscall.WaitStatus)
				return protocol.Try{Outcome: protocol.Denied, Errno: signalName(ws.Signal()), Detail: "the program was killed"}
			}
			if err != nil {
				return refused(err)
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "wrong", Detail: "the program did not do its call"}
		}},
	}
}

// elf32 is an i386 program that calls exit(42).
func elf32() []byte {
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80}
	const base, head = 0x08048000, 52 + 32
	w := func(v ...uint32) []byte {
		var b []byte
		for _, x := range v {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return b
	}
	b := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0}
	b = append(b, w(1, base+head, 52, 0, 0)...)
	b = append(b, 52, 0, 32, 0, 1, 0, 40, 0, 0, 0, 0, 0)
	n := uint32(head + len(code))
	b = append(b, w(1, 0, base, base, n, n, 5, 0x1000)...)
	return append(b, code...)
}

func creatRaw(p unsafe.Pointer, mode uintptr) (int, error) {
	return tryFD(syscall.Syscall(unix.SYS_CREAT, uintptr(p), mode, 0))
}

func chmodRaw(p unsafe.Pointer, mode uintptr) error {
	return try0(syscall.Syscall(unix.SYS_CHMOD, uintptr(p), mode, 0))
}

func foreignAddKey(desc string) protocol.Try {
	a, err := low("user", desc, "planted")
	if err != nil {
		return refused(err)
	}
	const i386AddKey = 286
	ring := int32(unix.KEY_SPEC_USER_KEYRING)
	if _, err := call80(i386AddKey, a[0], a[1], a[2], 7, uintptr(uint32(ring))); err != nil {
		return refused(err)
	}
	return inside("planted a key")
}
