package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// up leads from anywhere to the top of the visible tree.
var up = strings.Repeat("../", 40)

// attempts tries every technique that needs no more knowledge than b has.
func attempts(b *brief) []attempt {
	list := onFiles(b)
	try := tryer(b.Stage, &list)
	for _, k := range calls(b) {
		if !b.Bare || !k.harms {
			try(k.name, k.do())
		}
	}
	return list
}

// tryer returns a function that notes the result of a technique.
func tryer(prefix string, list *[]attempt) func(name string, err error) {
	return func(name string, err error) {
		a := attempt{Name: prefix + name, Reached: err == nil}
		if err != nil {
			a.Detail = err.Error()
		}
		*list = append(*list, a)
	}
}

// onFiles tries techniques on files.
func onFiles(b *brief) []attempt {
	var list []attempt
	try := tryer(b.Stage, &list)
	for path, content := range b.Secrets {
		base := filepath.Base(path)
		try("read "+base+" by its path", readAt(unix.AT_FDCWD, path, content))
		try("read "+base+" from a directory that was given", anyRoom(b, func(fd int) error { return readAt(fd, up+path, content) }))
		try("read "+base+" through /proc", throughProc(func(root string) error { return readAt(unix.AT_FDCWD, root+path, content) }))
	}
	for _, name := range b.Read {
		try("read "+name+", which is denied", anyRoom(b, func(fd int) error { return readAt(fd, name, "denied") }))
	}
	for _, w := range ways() {
		names := b.Keep
		if w.fresh {
			names = b.Make
		}
		for _, name := range names {
			b.stage()
			try(w.name+" "+name, workRoom(b, func(fd int) error { return w.do(fd, name) }))
		}
	}
	try("make a file that may be made", workRoom(b, func(fd int) error { return create(fd, "free") }))
	return list
}

var errNothing = errors.New("nothing to try it on")

// anyRoom tries f on each directory, until one succeeds.
func anyRoom(b *brief, f func(fd int) error) error {
	err := errNothing
	for _, fd := range b.Rooms {
		if err = f(fd); err == nil {
			return nil
		}
	}
	return err
}

// workRoom tries f on the workspace.
func workRoom(b *brief, f func(fd int) error) error {
	for _, fd := range b.Rooms {
		if unix.Faccessat(fd, ".git/HEAD", unix.F_OK, 0) == nil {
			return f(fd)
		}
	}
	return errors.New("it was given none")
}

func throughProc(f func(root string) error) error {
	err := errNothing
	for _, pattern := range []string{"/proc/[0-9]*/root", "/proc/[0-9]*/cwd", "/proc/[0-9]*/task/*/root", "/proc/[0-9]*/fd/*"} {
		found, _ := filepath.Glob(pattern)
		for _, root := range found {
			if err = f(root); err == nil {
				return nil
			}
			if err = f(root + "/" + up); err == nil {
				return nil
			}
		}
	}
	return err
}

func readAt(fd int, path, content string) error {
	f, err := unix.Openat(fd, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	buf := make([]byte, 1<<16)
	n, err := unix.Read(f, buf)
	if err != nil {
		return err
	}
	if !bytes.Contains(buf[:n], []byte(content)) {
		return fmt.Errorf("it says something else: %.40q", buf[:n])
	}
	return nil
}

func create(fd int, name string) error {
	f, err := unix.Openat(fd, name, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	_, err = unix.Write(f, []byte("planted"))
	return err
}

// A way is a method of changing a name in a directory.
type way struct {
	name  string
	fresh bool // the name must not exist yet
	do    func(fd int, name string) error
}

// scratch makes a file that may be made.
func scratch(fd int) (string, error) {
	name := fmt.Sprintf("scratch-%d", time.Now().UnixNano())
	return name, create(fd, name)
}

func from(f func(fd int, scratch, name string) error) func(fd int, name string) error {
	return func(fd int, name string) error {
		s, err := scratch(fd)
		if err != nil {
			return err
		}
		return f(fd, s, name)
	}
}

func self(fd int) string { return fmt.Sprintf("/proc/self/fd/%d/", fd) }

func ways() []way {
	return []way{
		{"open to write", false, create},
		{"make", true, create},
		{"make, through /proc,", true, func(fd int, name string) error { return create(unix.AT_FDCWD, self(fd)+name) }},
		{"rename a scratch file to", true, from(func(fd int, s, name string) error { return unix.Renameat(fd, s, fd, name) })},
		{"rename, without the other's being there, to", true, from(func(fd int, s, name string) error {
			return unix.Renameat2(fd, s, fd, name, unix.RENAME_NOREPLACE)
		})},
		{"open to write, the long way, ", false, func(fd int, name string) error { return create(fd, ".git/.././"+name) }},
		{"open to write, through /proc,", false, func(fd int, name string) error { return create(unix.AT_FDCWD, self(fd)+name) }},
		{"open to write, by openat2,", false, func(fd int, name string) error {
			f, err := unix.Openat2(fd, name, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o755})
			if err == nil {
				unix.Close(f)
			}
			return err
		}},
		{"open to write again what was opened to read:", false, func(fd int, name string) error {
			f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return create(unix.AT_FDCWD, strings.TrimSuffix(self(f), "/"))
		}},
		{"change the mode of", false, func(fd int, name string) error { return unix.Fchmodat(fd, name, 0o777, 0) }},
		{"change the mode, by descriptor, of", false, func(fd int, name string) error {
			f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return unix.Fchmod(f, 0o777)
		}},
		{"rename to", false, from(func(fd int, s, name string) error { return unix.Renameat(fd, s, fd, name) })},
		{"exchange with", false, from(func(fd int, s, name string) error { return unix.Renameat2(fd, s, fd, name, unix.RENAME_EXCHANGE) })},
		{"rename through /proc to", false, from(func(fd int, s, name string) error {
			return unix.Renameat(unix.AT_FDCWD, self(fd)+s, unix.AT_FDCWD, self(fd)+name)
		})},
		{"rename away", false, func(fd int, name string) error { return unix.Renameat(fd, name, fd, "moved") }},
		{"link to", true, from(func(fd int, s, name string) error { return unix.Linkat(fd, s, fd, name, 0) })},
		{"link and write", false, func(fd int, name string) error {
			_ = unix.Unlinkat(fd, "alias", 0)
			if err := unix.Linkat(fd, name, fd, "alias", 0); err != nil {
				return err
			}
			return create(fd, "alias")
		}},
		{"link through a symbolic link and write", true, func(fd int, name string) error {
			_ = unix.Unlinkat(fd, "pointer", 0)
			_ = unix.Symlinkat(name, fd, "pointer")
			return create(fd, "pointer")
		}},
		{"make a symbolic link", true, func(fd int, name string) error { return unix.Symlinkat("/etc/passwd", fd, name) }},
		{"make a directory", true, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o755) }},
		{"make a device", true, func(fd int, name string) error { return unix.Mknodat(fd, name, unix.S_IFIFO|0o644, 0) }},
		{"remove", false, func(fd int, name string) error { return unix.Unlinkat(fd, name, 0) }},
		{"move its directory, of", false, func(fd int, name string) error {
			if filepath.Dir(name) == "." {
				return errors.New("it is the workspace itself")
			}
			return unix.Renameat(fd, filepath.Dir(name), fd, "elsewhere")
		}},
		{"cut short", false, func(fd int, name string) error { return unix.Truncate(self(fd)+name, 0) }},
		{"link a file without a name to", true, func(fd int, name string) error {
			f, err := unix.Openat(fd, ".", unix.O_TMPFILE|unix.O_WRONLY, 0o755)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			return unix.Linkat(unix.AT_FDCWD, strings.TrimSuffix(self(f), "/"), fd, name, unix.AT_SYMLINK_FOLLOW)
		}},
		{"set an attribute of", false, func(fd int, name string) error {
			return unix.Setxattr(self(fd)+name, "user.paddock", []byte("x"), 0)
		}},
		{"give away", false, func(fd int, name string) error {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, 0); err != nil {
				return err
			}
			return unix.Fchownat(fd, name, int(st.Uid)+1, int(st.Gid), 0)
		}},
		{"by its handle, open to write", false, func(fd int, name string) error {
			h, _, err := unix.NameToHandleAt(fd, name, 0)
			if err != nil {
				return err
			}
			f, err := unix.OpenByHandleAt(fd, h, unix.O_WRONLY)
			if err == nil {
				unix.Close(f)
			}
			return err
		}},
	}
}
