//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// setID is A14: files with set-id bits or file capabilities in the workspace.
func setID() []probe {
	const modes = unix.S_ISUID | 0o755
	onScratch := func(f func(p string) error) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			s, err := scratch(b)
			if err != nil {
				return refused(err)
			}
			return hasSetID(s, f(s))
		}
	}
	onNew := func(f func(p string) error) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			p := fmt.Sprintf("%s/setid-%d-%d", b.Work, os.Getpid(), scratchCount())
			return hasSetID(p, f(p))
		}
	}
	closed := func(fd int, err error) error {
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	ps := []probe{
		{"chmod u+s", onScratch(func(p string) error { return unix.Chmod(p, modes) })},
		{"chmod g+s", onScratch(func(p string) error { return unix.Chmod(p, unix.S_ISGID|0o755) })},
		{"chmod u+s,g+s,+t", onScratch(func(p string) error { return unix.Chmod(p, 0o7777) })},
		{"chmod with high bits", onScratch(func(p string) error {
			s, _ := unix.BytePtrFromString(p)
			return chmodRaw(unsafe.Pointer(s), 0xffff0000|modes)
		})},
		{"fchmod", onScratch(func(p string) error {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Fchmod(fd, modes)
		})},
		{"fchmodat", onScratch(func(p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Fchmodat(d, base, modes, 0) })
		})},
		{"fchmodat2", onScratch(func(p string) error { return fchmodat2(unix.AT_FDCWD, p, modes, unix.AT_SYMLINK_NOFOLLOW) })},
		{"fchmodat2 AT_EMPTY_PATH", onScratch(func(p string) error {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return fchmodat2(fd, "", modes, unix.AT_EMPTY_PATH)
		})},
		{"chmod /proc/self/fd", onScratch(func(p string) error {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), modes)
		})},
		{"open with a mode", onNew(func(p string) error { return closed(unix.Open(p, creat, modes)) })},
		{"open with a mode, set-gid", onNew(func(p string) error { return closed(unix.Open(p, creat, unix.S_ISGID|0o755)) })},
		{"open with O_TMPFILE and a mode", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.Open(b.Work, unix.O_TMPFILE|unix.O_RDWR, modes)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			p := fmt.Sprintf("%s/setid-%d", b.Work, scratchCount())
			err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
			return hasSetID(p, err)
		}},
		{"openat with a mode", onNew(func(p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return closed(unix.Openat(d, base, creat, modes)) })
		})},
		{"openat2 with a mode", onNew(func(p string) error {
			return closed(unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: creat, Mode: modes}))
		})},
		{"creat with a mode", onNew(func(p string) error { return closed(creatCall(p, modes)) })},
		{"mkdir with a mode", onNew(func(p string) error { return unix.Mkdir(p, unix.S_ISGID|0o755) })},
		{"mkdirat with a mode", onNew(func(p string) error { return unix.Mkdirat(unix.AT_FDCWD, p, unix.S_ISUID|0o755) })},
		{"mknod with a mode", onNew(func(p string) error { return unix.Mknod(p, unix.S_IFREG|modes, 0) })},
		{"mknodat with a mode", onNew(func(p string) error { return unix.Mknodat(unix.AT_FDCWD, p, unix.S_IFREG|modes, 0) })},
		{"file capabilities", onScratch(func(p string) error {
			// cap_setuid, effective, revision 2
			v := []byte{1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
			if err := unix.Setxattr(p, "security.capability", v, 0); err != nil {
				return err
			}
			return errSetID
		})},
		{"link to a set-id program", func(b *protocol.Brief) protocol.Try {
			programs := setIDPrograms()
			if len(programs) == 0 {
				return absent("no set-id program is visible")
			}
			p := b.Work + "/linked-" + filepath.Base(programs[0])
			if err := unix.Link(programs[0], p); err != nil {
				return refused(err)
			}
			return hasSetID(p, nil)
		}},
		{"int 0x80 chmod", onScratch(func(p string) error { return foreignChmod(p, modes) })},
		{"io_uring open with a mode", onNew(func(p string) error { return closed(uringOpen(p, creat, modes)) })},
		{"io_uring mkdir with a mode", onNew(func(p string) error { return uringMkdir(p, unix.S_ISGID|0o755) })},
		{"race of a mode in memory", raceMode},
		{"move a set-id file in", func(b *protocol.Brief) protocol.Try {
			s := fmt.Sprintf("/tmp/s%d", scratchCount())
			if err := os.WriteFile(s, []byte(payload), 0o755); err != nil {
				return refused(err)
			}
			if err := unix.Chmod(s, modes); err != nil {
				return refused(err)
			}
			return inside("made one in /tmp")
		}},
	}
	return ps
}

type setIDError struct{}

func (setIDError) Error() string { return "it was allowed" }

// errSetID reports a set bit that hasSetID cannot see.
var errSetID = setIDError{}

func hasSetID(p string, err error) protocol.Try {
	if errors.Is(err, errSetID) {
		return reached("%s has file capabilities", p)
	}
	var st unix.Stat_t
	if unix.Lstat(p, &st) == nil && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return reached("%s has mode %o", p, st.Mode)
	}
	if err != nil {
		return refused(err)
	}
	return protocol.Try{Outcome: protocol.Denied, Errno: "stripped", Detail: "the bits were taken away"}
}

func fchmodat2(dir int, p string, mode uintptr, flags uintptr) error {
	s, err := unix.BytePtrFromString(p)
	if err != nil {
		return err
	}
	return try0(syscall.Syscall6(unix.SYS_FCHMODAT2, uintptr(dir), uintptr(unsafe.Pointer(s)), mode, flags, 0, 0))
}

// raceMode changes the mode in an open_how while a supervisor checks openat2.
func raceMode(b *protocol.Brief) protocol.Try {
	how := &unix.OpenHow{Flags: creat, Mode: 0o755}
	f := newFlip(func(i int) {
		if i%2 == 0 {
			how.Mode = unix.S_ISUID | 0o755
		} else {
			how.Mode = 0o755
		}
	})
	defer f.end()
	var last error
	p := fmt.Sprintf("%s/racemode-%d", b.Work, scratchCount())
	s, err := unix.BytePtrFromString(p)
	if err != nil {
		return refused(err)
	}
	for range 4000 {
		cwd := unix.AT_FDCWD
		fd, err := tryFD(syscall.Syscall6(unix.SYS_OPENAT2, uintptr(cwd), uintptr(unsafe.Pointer(s)), uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how), 0, 0))
		if err != nil {
			last = err
			continue
		}
		unix.Close(fd)
		if t := hasSetID(p, nil); t.Outcome == protocol.Reached {
			return t
		}
		_ = unix.Unlink(p)
	}
	if last == nil {
		return protocol.Try{Outcome: protocol.Denied, Errno: "stripped", Detail: "the bits were taken away"}
	}
	return refused(last)
}

// setIDPrograms finds programs that run as another user.
func setIDPrograms() []string {
	var out []string
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/sbin"} {
		for _, n := range names(dir) {
			var st unix.Stat_t
			if unix.Lstat(dir+"/"+n, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&unix.S_ISUID != 0 && st.Uid == 0 {
				out = append(out, dir+"/"+n)
			}
		}
	}
	return out
}

// makeDevice is A15.
func makeDevice() []probe {
	node := func(typ uint32, major, minor uint32, open bool) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			p := fmt.Sprintf("%s/dev-%d", b.Work, scratchCount())
			if err := unix.Mknod(p, typ|0o666, int(unix.Mkdev(major, minor))); err != nil {
				return refused(err)
			}
			defer unix.Unlink(p)
			if !open {
				return reached("made a device")
			}
			fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				return inside("made a device, cannot open it: %v", err)
			}
			unix.Close(fd)
			return reached("made a device and opened it")
		}
	}
	return []probe{
		{"character device", node(unix.S_IFCHR, 1, 5, false)},
		{"character device, opened", node(unix.S_IFCHR, 1, 5, true)},
		{"kernel log", node(unix.S_IFCHR, 1, 11, true)},
		{"block device", node(unix.S_IFBLK, 254, 0, false)},
		{"loop device", node(unix.S_IFBLK, 7, 0, false)},
		{"in /tmp", func(*protocol.Brief) protocol.Try {
			p := fmt.Sprintf("/tmp/dev-%d", scratchCount())
			defer unix.Unlink(p)
			return done(unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))), "made a device")
		}},
		{"in /dev", func(*protocol.Brief) protocol.Try {
			p := fmt.Sprintf("/dev/dev-%d", scratchCount())
			defer unix.Unlink(p)
			return done(unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))), "made a device")
		}},
		{"mknodat", func(b *protocol.Brief) protocol.Try {
			return fromDirTry(b.Work+"/dev-at", func(d int, base string) error {
				defer unix.Unlinkat(d, base, 0)
				return unix.Mknodat(d, base, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
			})
		}},
		{"int 0x80 mknod", func(b *protocol.Brief) protocol.Try {
			p := fmt.Sprintf("%s/dev-%d", b.Work, scratchCount())
			defer unix.Unlink(p)
			return done(foreignMknod(p, unix.S_IFCHR|0o666, unix.Mkdev(1, 5)), "made a device")
		}},
		{"disks that are there", func(*protocol.Brief) protocol.Try {
			var devs []string
			for _, pat := range []string{"/dev/sd*", "/dev/vd*", "/dev/nvme*", "/dev/loop*", "/dev/dm-*", "/dev/mapper/*"} {
				m, _ := filepath.Glob(pat)
				devs = append(devs, m...)
			}
			if len(devs) == 0 {
				return refused(unix.ENOENT)
			}
			return each(devs, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK, 0)
				if err == nil {
					unix.Close(fd)
				}
				return done(err, "opened a disk")
			})
		}},
		{"devices that reach the kernel", func(*protocol.Brief) protocol.Try {
			return each([]string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/vsock", "/dev/vhost-vsock", "/dev/vhost-net", "/dev/net/tun", "/dev/loop-control", "/dev/mapper/control", "/dev/uinput", "/dev/userfaultfd", "/dev/btrfs-control", "/dev/autofs", "/dev/snapshot"}, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDWR|unix.O_NONBLOCK, 0)
				if err == nil {
					unix.Close(fd)
				}
				return done(err, "opened it")
			})
		}},
	}
}

func fromDirTry(p string, f func(d int, base string) error) protocol.Try {
	return done(fromDir(p, unix.O_PATH, f), "it was allowed")
}
