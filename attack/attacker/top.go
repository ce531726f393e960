//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// workTop is A27: the mode and the access list of the workspace's own directory, by which programs of the host are shut out
// of it, or let in.
func workTop() []probe {
	onTop := func(f func(dir string) error) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			var before, after unix.Stat_t
			if err := unix.Stat(b.Work, &before); err != nil {
				return absent("%v", err)
			}
			lists := attributes(b.Work)
			err := f(b.Work)
			if e := unix.Stat(b.Work, &after); e != nil || after.Mode != before.Mode {
				undone := unix.Chmod(b.Work, before.Mode&0o7777) // for the next technique
				return reached("its mode was %o and is %o: %v", before.Mode, after.Mode, errors.Join(e, undone))
			}
			if attributes(b.Work) != lists {
				_ = unix.Removexattr(b.Work, "system.posix_acl_default") // it is seen by the next technique
				return reached("it has another access list")
			}
			return refusedOr(err)
		}
	}
	onOpen := func(flags int, f func(fd int) error) func(*protocol.Brief) protocol.Try {
		return onTop(func(dir string) error {
			fd, err := unix.Open(dir, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return f(fd)
		})
	}
	list := []byte{
		2, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 4, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 32, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,
	}
	return []probe{
		{"chmod", onTop(func(dir string) error { return unix.Chmod(dir, 0) })},
		{"chmod for all", onTop(func(dir string) error { return unix.Chmod(dir, 0o777) })},
		{"chmod of the point", onTop(func(dir string) error {
			if err := os.Chdir(dir); err != nil {
				return err
			}
			return unix.Chmod(".", 0)
		})},
		{"chmod from below", onTop(func(dir string) error {
			d := filepath.Join(dir, "top-"+strconv.FormatInt(scratchCount(), 10))
			if err := unix.Mkdir(d, 0o755); err != nil {
				return err
			}
			defer unix.Rmdir(d)
			return unix.Chmod(d+"/..", 0)
		})},
		{"chmod through a link", onTop(func(dir string) error {
			l := "/tmp/top-" + strconv.FormatInt(scratchCount(), 10)
			if err := unix.Symlink(dir, l); err != nil {
				return err
			}
			defer unix.Unlink(l)
			return unix.Chmod(l, 0)
		})},
		{"chmod /proc/self/fd", onOpen(unix.O_PATH, func(fd int) error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0) })},
		{"chmod /proc/self/cwd", onTop(func(dir string) error {
			if err := os.Chdir(dir); err != nil {
				return err
			}
			return unix.Chmod("/proc/self/cwd", 0)
		})},
		{"fchmod", onOpen(0, func(fd int) error { return unix.Fchmod(fd, 0) })},
		{"fchmodat", onOpen(unix.O_PATH, func(fd int) error { return unix.Fchmodat(fd, ".", 0, 0) })},
		{"fchmodat2 AT_EMPTY_PATH", onOpen(unix.O_PATH, func(fd int) error { return fchmodat2(fd, "", 0, unix.AT_EMPTY_PATH) })},
		{"int 0x80 chmod", onTop(func(dir string) error { return foreignChmod(dir, 0) })},
		{"access list", onTop(func(dir string) error { return unix.Setxattr(dir, "system.posix_acl_access", list, 0) })},
		{"default access list", onOpen(0, func(fd int) error { return unix.Fsetxattr(fd, "system.posix_acl_default", list, 0) })},
	}
}

// attributes lists the extended attributes of a file, of which access lists are two.
func attributes(p string) string {
	buf := make([]byte, 1024)
	n, _ := unix.Llistxattr(p, buf) // where it cannot be asked, there are none
	return string(buf[:max(n, 0)])
}
