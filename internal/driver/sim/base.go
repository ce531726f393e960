package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// programs are the computer's, by name.
type programs map[string]command.Command

// newPrograms lists the built-in programs, and added ones, which win.
func newPrograms(o Options) programs {
	p := programs{}
	for _, c := range slices.Concat(builtin(o), o.Commands) {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			p[name] = c
		}
	}
	return p
}

func (p programs) find(name string) (kernel.Program, bool) {
	c, ok := p[name]
	return c.Run, ok
}

// base makes the tree that every computer begins with.
func (p programs) base() (*vfs.Snapshot, error) {
	fs := vfs.New(vfs.Options{})
	v := &vfs.View{FS: fs, Dir: vfs.Root}
	var errs []error
	try := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, dir := range []string{
		"/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/include", "/usr/share", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/local/share",
		"/etc", "/etc/profile.d", "/dev", "/dev/pts", "/home", "/opt", "/mnt", "/media", "/srv", "/sys", "/proc", "/run",
		"/var", "/var/cache", "/var/lib", "/var/log", "/var/spool",
	} {
		try(v.Mkdir(dir, 0o755))
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run/lock"} {
		try(v.Mkdir(dir, 0o777))
		try(v.Chmod(dir, 0o1777))
	}
	for link, target := range map[string]string{
		"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/var/run": "/run",
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
		"/etc/mtab": "/proc/self/mounts",
	} {
		try(v.Symlink(target, link))
	}
	for name, dev := range map[string]uint32{
		"null": kernel.DevNull, "zero": kernel.DevZero, "full": kernel.DevFull, "random": kernel.DevRandom, "urandom": kernel.DevURandom, "tty": kernel.DevTTY,
	} {
		try(v.Mknod("/dev/"+name, linux.S_IFCHR|0o666, dev))
	}
	for _, a := range accounts() {
		if a.name == "nobody" {
			continue
		}
		try(v.Mkdir(a.home, 0o700))
		try(v.Chmod(a.home, 0o755))
		try(v.Chown(a.home, a.uid, a.gid, true))
	}
	try(v.Chmod("/root", 0o700))
	for name, text := range etc() {
		try(write(v, "/etc/"+name, []byte(text), 0o644))
	}
	for name, c := range p {
		dir := c.Dir
		if dir == "" {
			dir = "/usr/bin"
		}
		try(write(v, dir+"/"+name, kernel.ProgramFile(name), 0o755))
	}
	try(fs.MountDynamic("/proc", kernel.Proc(), vfs.MountOptions{Name: "proc", Type: "proc"}))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("build the base system: %w", err)
	}
	return fs.Snapshot(), nil
}

func etc() map[string]string {
	var passwd, group strings.Builder
	for _, a := range accounts() {
		shell := "/bin/bash"
		if a.name == "nobody" {
			shell = "/usr/sbin/nologin"
		}
		fmt.Fprintf(&passwd, "%s:x:%d:%d::%s:%s\n", a.name, a.uid, a.gid, a.home, shell)
		fmt.Fprintf(&group, "%s:x:%d:\n", strings.Replace(a.name, "nobody", "nogroup", 1), a.gid)
	}
	return map[string]string{
		"passwd": passwd.String(),
		"group":  group.String(),
		"hosts":  "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
		"os-release": "PRETTY_NAME=\"Paddock simulated computer " + description.Version + "\"\nNAME=\"Paddock sim\"\nID=paddock-sim\nVERSION_ID=\"" +
			description.Version + "\"\n",
		"shells":        "/bin/sh\n/bin/bash\n",
		"profile":       "",
		"resolv.conf":   "",
		"fstab":         "",
		"timezone":      "Etc/UTC\n",
		"bash.bashrc":   "",
		"machine-id":    strings.Repeat("0", 32) + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
}

func write(v *vfs.View, name string, b []byte, mode uint32) error {
	f, err := v.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// furnish writes what differs from one computer to the next.
func (b *box) furnish(hostname string) error {
	v := &vfs.View{FS: b.fs, Dir: vfs.Root}
	return write(v, "/etc/hostname", []byte(hostname+"\n"), 0o644)
}
