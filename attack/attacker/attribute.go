//go:build linux

package main

import (
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// System calls that are newer than the tables of numbers. They have the same number on
// every architecture.
const (
	sysSetxattrat    = 463
	sysRemovexattrat = 466
)

func itoa(n int) string { return strconv.Itoa(n) }

// accessList returns an access list by which everybody may read and write: version 2, then
// entries of tag, permission and identity (user::rwx user:65534:rwx group::r-x mask::rwx
// other::r-x).
func accessList() []byte {
	out := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, 7, ^uint32(0)}, {2, 7, 65534}, {4, 5, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 5, ^uint32(0)}} {
		out = append(out, byte(e[0]), 0, byte(e[1]), 0, byte(e[2]), byte(e[2]>>8), byte(e[2]>>16), byte(e[2]>>24))
	}
	return out
}

const planted = "user.planted"

func onOpen(p string, f func(fd int) error) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// xattrAt makes one of the newer calls for p.
func xattrAt(nr uintptr, p, name string, value []byte) error {
	path, err := unix.BytePtrFromString(p)
	if err != nil {
		return err
	}
	attr, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	cwd := unix.AT_FDCWD
	if nr == sysRemovexattrat {
		return try0(syscall.Syscall6(nr, uintptr(cwd), uintptr(unsafe.Pointer(path)), 0, uintptr(unsafe.Pointer(attr)), 0, 0))
	}
	args := struct {
		value       *byte
		size, flags uint32
	}{&value[0], uint32(len(value)), 0}
	return try0(syscall.Syscall6(nr, uintptr(cwd), uintptr(unsafe.Pointer(path)), 0, uintptr(unsafe.Pointer(attr)), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args)))
}

// subvolume makes an entry of a directory by ioctl, as on btrfs.
func subvolume(_ *protocol.Brief, p string) error {
	return fromDir(p, unix.O_RDONLY, func(dir int, base string) error {
		args := struct {
			fd   int64
			name [4088]byte
		}{}
		copy(args.name[:], base)
		const create = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE
		return try0(syscall.Syscall(unix.SYS_IOCTL, uintptr(dir), create, uintptr(unsafe.Pointer(&args))))
	})
}

// attributeWays change attributes of a file besides its content. An access list is another
// form of mode.
func attributeWays() []way {
	return []way{
		{"subvolume by ioctl", subvolume},
		{"setxattr", func(_ *protocol.Brief, p string) error { return unix.Setxattr(p, planted, []byte("x"), 0) }},
		{"lsetxattr", func(_ *protocol.Brief, p string) error { return unix.Lsetxattr(p, planted, []byte("x"), 0) }},
		{"fsetxattr", func(_ *protocol.Brief, p string) error {
			return onOpen(p, func(fd int) error { return unix.Fsetxattr(fd, planted, []byte("x"), 0) })
		}},
		{"setxattrat", func(_ *protocol.Brief, p string) error { return xattrAt(sysSetxattrat, p, planted, []byte("x")) }},
		{"removexattr", func(_ *protocol.Brief, p string) error { return unix.Removexattr(p, protocol.Kept) }},
		{"lremovexattr", func(_ *protocol.Brief, p string) error { return unix.Lremovexattr(p, protocol.Kept) }},
		{"fremovexattr", func(_ *protocol.Brief, p string) error {
			return onOpen(p, func(fd int) error { return unix.Fremovexattr(fd, protocol.Kept) })
		}},
		{"removexattrat", func(_ *protocol.Brief, p string) error { return xattrAt(sysRemovexattrat, p, protocol.Kept, nil) }},
		{"access list by setxattr", func(_ *protocol.Brief, p string) error {
			return unix.Setxattr(p, "system.posix_acl_access", accessList(), 0)
		}},
		{"access list by fsetxattr", func(_ *protocol.Brief, p string) error {
			return onOpen(p, func(fd int) error { return unix.Fsetxattr(fd, "system.posix_acl_access", accessList(), 0) })
		}},
		{"access list by setxattrat", func(_ *protocol.Brief, p string) error {
			return xattrAt(sysSetxattrat, p, "system.posix_acl_access", accessList())
		}},
		{"default access list of the directory", func(_ *protocol.Brief, p string) error {
			return unix.Setxattr(filepath.Dir(p), "system.posix_acl_default", accessList(), 0)
		}},
	}
}

// attributes reports whether a way needs an existing file with an attribute.
func (w way) attributes() bool {
	for _, a := range attributeWays() {
		if a.name == w.name && a.name != "subvolume by ioctl" {
			return true
		}
	}
	return false
}
