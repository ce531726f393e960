//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// mountOver is A19: remove a mount, or mount another over it.
func mountOver() []probe {
	umount := func(path func(*protocol.Brief) string, flags int) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			// EINVAL means "no mount there", and comes after the permission check.
			return passed(unix.Unmount(path(b), flags), unix.EINVAL)
		}
	}
	return []probe{
		{"umount the denied directory", umount(func(b *protocol.Brief) string { return b.DenyReadDir }, unix.MNT_DETACH)},
		{"umount the denied file", umount(func(b *protocol.Brief) string { return b.DenyReadFile }, unix.MNT_DETACH)},
		{"umount the write-denied directory", umount(func(b *protocol.Brief) string { return b.DenyWriteDir }, unix.MNT_DETACH)},
		{"umount the hooks", umount(func(b *protocol.Brief) string { return b.Work + "/.git/hooks" }, 0)},
		{"oldumount", func(b *protocol.Brief) protocol.Try {
			return passed(foreignUmount(b.DenyReadDir), unix.EINVAL)
		}},
		{"remount the root for writing", func(*protocol.Brief) protocol.Try {
			return done(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""), "remounted")
		}},
		{"remount /usr for writing", func(*protocol.Brief) protocol.Try {
			return passed(unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EINVAL)
		}},
		{"mount_setattr", func(*protocol.Brief) protocol.Try {
			return passed(unix.MountSetattr(unix.AT_FDCWD, "/usr", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}), unix.EINVAL)
		}},
		{"bind over", func(b *protocol.Brief) protocol.Try {
			if err := unix.Mount(b.Work+"/mnt", b.DenyReadDir, "", unix.MS_BIND, ""); err != nil {
				return refused(err)
			}
			_ = unix.Unmount(b.DenyReadDir, unix.MNT_DETACH)
			return reached("bound a directory over a denied one")
		}},
		{"bind the root elsewhere", func(b *protocol.Brief) protocol.Try {
			if err := unix.Mount("/", b.Work+"/mnt", "", unix.MS_BIND, ""); err != nil {
				return refused(err)
			}
			t := readName(b.Work + "/mnt" + b.Secret)
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			if t.Outcome != protocol.Reached {
				return reached("bound the root without what lies over it")
			}
			return t
		}},
		{"overlay", func(b *protocol.Brief) protocol.Try {
			for _, d := range []string{"up", "wk"} {
				_ = os.MkdirAll("/tmp/"+d, 0o755)
			}
			err := unix.Mount("overlay", b.Work+"/mnt", "overlay", 0, "lowerdir=/usr,upperdir=/tmp/up,workdir=/tmp/wk")
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			return passed(err, unix.EINVAL)
		}},
		{"tmpfs over", func(b *protocol.Brief) protocol.Try {
			err := unix.Mount("tmpfs", b.Work+"/mnt", "tmpfs", 0, "size=4k")
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			return done(err, "mounted")
		}},
		{"new proc", func(b *protocol.Brief) protocol.Try {
			err := unix.Mount("proc", b.Work+"/mnt", "proc", 0, "")
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			return done(err, "mounted")
		}},
	}
}

// namespaceFlags are the flags of every kind of namespace.
var namespaceFlags = []struct {
	name string
	flag uintptr
}{
	{"user", unix.CLONE_NEWUSER}, {"mount", unix.CLONE_NEWNS}, {"pid", unix.CLONE_NEWPID}, {"net", unix.CLONE_NEWNET},
	{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"cgroup", unix.CLONE_NEWCGROUP}, {"time", unix.CLONE_NEWTIME},
}

// inNamespace starts this program again with flags, to do something inside.
func inNamespace(flags uintptr, mapped bool, args ...string) (string, error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if mapped {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.Output()
	return string(out), err
}

// newNamespaces is P10.
func newNamespaces() []probe {
	var ps []probe
	for _, ns := range namespaceFlags {
		ps = append(ps,
			probe{"unshare " + ns.name, func(*protocol.Brief) protocol.Try {
				runtime.LockOSThread()
				// CLONE_NEWUSER needs a single-threaded process.
				if ns.flag == unix.CLONE_NEWUSER || ns.flag == unix.CLONE_NEWTIME {
					return forkedCall(unix.SYS_UNSHARE, ns.flag)
				}
				return done(unix.Unshare(int(ns.flag)), "unshared")
			}},
			probe{"clone " + ns.name, func(*protocol.Brief) protocol.Try {
				if ns.flag == unix.CLONE_NEWTIME {
					return absent("clone has no such flag")
				}
				return done(cloneFlags(ns.flag), "cloned")
			}},
			probe{"clone3 " + ns.name, func(*protocol.Brief) protocol.Try {
				return done(clone3Flags(ns.flag), "cloned")
			}})
	}
	return append(ps,
		probe{"clone with high bits", func(*protocol.Brief) protocol.Try {
			return done(cloneFlags(unix.CLONE_NEWUSER|1<<40), "cloned")
		}},
		probe{"user namespace with a map", func(*protocol.Brief) protocol.Try {
			out, err := inNamespace(unix.CLONE_NEWUSER, true, "whoami")
			if err != nil {
				return refused(err)
			}
			return reached("root of a user namespace: %s", out)
		}},
		probe{"setns to our own user namespace", func(*protocol.Brief) protocol.Try {
			// EINVAL means "already in it", and comes after the filter.
			return each([]string{"user", "mnt", "pid", "net", "uts"}, func(ns string) protocol.Try {
				fd, err := unix.Open("/proc/self/ns/"+ns, unix.O_RDONLY, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				return done(unix.Setns(fd, 0), "joined")
			})
		}},
		probe{"int 0x80 unshare", func(*protocol.Brief) protocol.Try {
			return done(foreignUnshare(unix.CLONE_NEWUTS), "unshared")
		}},
		probe{"clone into init's namespaces", func(*protocol.Brief) protocol.Try {
			return each([]string{"user", "mnt", "pid", "net"}, func(ns string) protocol.Try {
				fd, err := unix.Open("/proc/1/ns/"+ns, unix.O_RDONLY, 0)
				if err != nil {
					return refused(err)
				}
				unix.Close(fd)
				return inside("opened init's namespace")
			})
		}},
	)
}

// userMount is A20: uses of a user namespace.
func userMount() []probe {
	act := func(name string) probe {
		return probe{name, func(b *protocol.Brief) protocol.Try {
			out, err := inNamespace(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, true, "whoami", name)
			if err != nil {
				return refused(err)
			}
			if len(out) > 0 && out[0] == '+' {
				return protocol.Try{Outcome: protocol.Reached, Detail: "in a user namespace", Loot: out}
			}
			return inside("a user namespace was made, the mount held: %s", out)
		}}
	}
	return []probe{act("umount"), act("remount"), act("bind"), act("pivot"), act("chroot"), act("proc")}
}

// whoami runs in a new user namespace or as a set-id program.
func whoami(args []string) error {
	if len(args) == 0 {
		fmt.Printf("uid %d euid %d", os.Getuid(), os.Geteuid())
		return nil
	}
	b, err := briefFromEnv()
	if err != nil {
		return err
	}
	var t protocol.Try
	switch args[0] {
	case "umount":
		t = each([]string{b.DenyReadDir, b.DenyReadFile, "/proc", "/tmp"}, func(p string) protocol.Try {
			return done(unix.Unmount(p, unix.MNT_DETACH), "unmounted")
		})
		if t.Outcome != protocol.Reached {
			// There may be nothing to unmount over it.
			t = readName(b.DenyReadDir + "/secret.txt")
		}
	case "remount":
		t = each([]string{"/usr", "/", "/etc"}, func(p string) protocol.Try {
			return done(unix.Mount("", p, "", unix.MS_REMOUNT|unix.MS_BIND, ""), "remounted")
		})
	case "bind":
		if err := unix.Mount("/", "/mnt", "", unix.MS_BIND, ""); err != nil {
			t = refused(err)
			if bind := unix.Mount(b.Work, "/mnt", "", unix.MS_BIND, ""); bind == nil {
				t = readName("/mnt/private/secret.txt")
			}
		} else {
			t = readName("/mnt" + b.DenyReadDir + "/secret.txt")
		}
	case "pivot":
		fd, _ := unix.Open("/", unix.O_PATH, 0)
		if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""); err != nil {
			t = refused(err)
			break
		}
		_ = os.Mkdir("/tmp/old", 0o755)
		if err := unix.PivotRoot("/tmp", "/tmp/old"); err != nil {
			t = refused(err)
			break
		}
		_ = unix.Fchdir(fd)
		t = readName("/old" + b.DenyReadDir + "/secret.txt")
	case "chroot":
		t = done(unix.Chroot(b.Work), "chroot")
	case "proc":
		t = done(unix.Mount("proc", "/proc", "proc", 0, ""), "mounted proc")
	case "uncover":
		t = uncover()
	case "groups":
		t = raiseGroups()
	}
	if t.Outcome == protocol.Reached {
		fmt.Printf("+%s %s", t.Detail, t.Loot)
		return nil
	}
	fmt.Printf("-%s", t.Errno)
	return nil
}

// mountCalls is P11: the mount system calls themselves.
func mountCalls() []probe {
	path := func(s string) uintptr {
		p, _ := unix.BytePtrFromString(s)
		return uintptr(unsafe.Pointer(p))
	}
	cwd := unix.AT_FDCWD
	return []probe{
		{"mount", func(b *protocol.Brief) protocol.Try {
			err := unix.Mount("none", b.Work+"/mnt", "tmpfs", 0, "")
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			return done(err, "mounted")
		}},
		{"umount2", func(b *protocol.Brief) protocol.Try { return passed(unix.Unmount(b.Work+"/mnt", 0), unix.EINVAL) }},
		{"fsopen", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Fsopen("tmpfs", 0)
			return closeTry(fd, err, "opened")
		}},
		{"fsopen proc", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Fsopen("proc", 0)
			return closeTry(fd, err, "opened")
		}},
		{"fspick", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Fspick(unix.AT_FDCWD, "/", 0)
			return closeTry(fd, err, "picked")
		}},
		{"fsmount", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Fsmount(-1, 0, 0)
			if err == nil {
				unix.Close(fd)
			}
			return passed(err, unix.EBADF)
		}},
		{"fsconfig", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_FSCONFIG, ^uintptr(0), 0, 0, 0, 0, 0)), unix.EBADF, unix.EINVAL)
		}},
		{"open_tree clone", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.OpenTree(unix.AT_FDCWD, b.Work, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
			return closeTry(fd, err, "cloned the tree")
		}},
		{"move_mount", func(b *protocol.Brief) protocol.Try {
			return passed(unix.MoveMount(unix.AT_FDCWD, b.Work+"/mnt", unix.AT_FDCWD, b.Work+"/scripts", 0), unix.EINVAL)
		}},
		{"mount_setattr", func(b *protocol.Brief) protocol.Try {
			return passed(unix.MountSetattr(unix.AT_FDCWD, b.Work+"/mnt", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOSUID}), unix.EINVAL)
		}},
		{"open_tree_attr", func(b *protocol.Brief) protocol.Try {
			attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NODEV}
			fd, err := tryFD(syscall.Syscall6(467, uintptr(cwd), path(b.Work), unix.OPEN_TREE_CLONE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0))
			return closeTry(fd, err, "cloned the tree")
		}},
		{"pivot_root", func(*protocol.Brief) protocol.Try {
			return passed(unix.PivotRoot(".", "."), unix.EINVAL, unix.EBUSY)
		}},
		{"chroot", func(b *protocol.Brief) protocol.Try { return done(unix.Chroot(b.Work), "chroot") }},
		{"setns by pidfd", func(*protocol.Brief) protocol.Try {
			fd, err := unix.PidfdOpen(1, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return done(unix.Setns(fd, unix.CLONE_NEWUTS|unix.CLONE_NEWIPC), "joined init's namespaces")
		}},
		{"statmount", func(*protocol.Brief) protocol.Try {
			// It only shows mounts of our own namespace.
			data, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				return refused(err)
			}
			return inside("%d bytes of our own mount table", len(data))
		}},
		{"swapon", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall(unix.SYS_SWAPON, path("/nonexistent"), 0, 0)), unix.ENOENT)
		}},
		{"quotactl", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_QUOTACTL, 0x800007<<8, path("/dev/nonexistent"), 0, 0, 0, 0)), unix.ENOENT, unix.ENODEV)
		}},
	}
}

func closeTry(fd int, err error, what string) protocol.Try {
	if err == nil {
		unix.Close(fd)
	}
	return done(err, what)
}
