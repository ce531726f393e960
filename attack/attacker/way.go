//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A way makes, changes or removes the file p. It returns nil if every call that it made was
// allowed.
type way struct {
	name string
	run  func(b *protocol.Brief, p string) error
}

// needs returns what must exist at p for the way to work: "" nothing, "file" a file, "dir"
// an empty directory.
func (w way) needs() string {
	switch w.name {
	case "open O_RDONLY|O_TRUNC", "renameat2 EXCHANGE", "renameat2 EXCHANGE the other way", "rename away", "truncate", "unlink", "unlinkat",
		"chmod", "metadata: utimensat", "reopen /proc/self/fd", "reopen O_PATH", "hard link and write", "mmap shared",
		"int 0x80 unlink", "io_uring unlink":
		return "file"
	case "rmdir":
		return "dir"
	}
	if w.attributes() {
		return "file"
	}
	return ""
}

// stage puts at p what a way needs, if that is allowed. In the run without a sandbox, one
// way would otherwise spoil it for the next.
func (w way) stage(b *protocol.Brief, p string) {
	if !b.Unconfined {
		return
	}
	_ = os.RemoveAll(p)
	switch w.needs() {
	case "file":
		_ = os.WriteFile(p, []byte("staged by the control run, long enough\n"), 0o755)
		_ = unix.Setxattr(p, protocol.Kept, []byte("x"), 0)
	case "dir":
		_ = os.Mkdir(p, 0o755)
	}
}

// once reports that a way spoils its process, so that only one case tries it.
func (w way) once() bool {
	return w.name == "core dump" || w.name == "own seccomp listener says continue" || w.foreign()
}

// foreign reports that a way uses another system call table. If that is refused by a
// signal, the process ends.
func (w way) foreign() bool {
	return strings.HasPrefix(w.name, "int 0x80") || strings.HasPrefix(w.name, "x32")
}

const payload = "#!/bin/sh\necho planted by attacker\n"

// scratch makes a file of the attacker in the workspace.
func scratch(b *protocol.Brief) (string, error) {
	p := fmt.Sprintf("%s/scratch-%d-%d", b.Work, os.Getpid(), scratchCount())
	return p, os.WriteFile(p, []byte(payload), 0o755)
}

// scratchCount distinguishes scratch files of one process by the clock.
func scratchCount() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func write(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(payload))
	return err
}

const creat = unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC

// fromScratch calls f with a scratch file and removes what is left of it.
func fromScratch(b *protocol.Brief, f func(s string) error) error {
	s, err := scratch(b)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s)
	return f(s)
}

// fromDir opens p's directory with flags and calls f with it and p's base name.
func fromDir(p string, flags int, f func(dir int, base string) error) error {
	dir, err := unix.Open(filepath.Dir(p), flags|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(dir, filepath.Base(p))
}

// ways returns every known way to change what the name p stands for.
func ways() []way {
	ws := []way{
		{"open O_CREAT", func(_ *protocol.Brief, p string) error { return write(unix.Open(p, creat, 0o755)) }},
		{"open O_EXCL", func(_ *protocol.Brief, p string) error { return write(unix.Open(p, creat|unix.O_EXCL, 0o755)) }},
		{"open O_TRUNC", func(_ *protocol.Brief, p string) error { return write(unix.Open(p, creat|unix.O_TRUNC, 0o755)) }},
		{"open O_APPEND", func(_ *protocol.Brief, p string) error { return write(unix.Open(p, creat|unix.O_APPEND, 0o755)) }},
		{"open O_RDWR", func(_ *protocol.Brief, p string) error {
			return write(unix.Open(p, unix.O_RDWR|unix.O_CREAT, 0o755))
		}},
		{"open O_RDONLY|O_CREAT", func(_ *protocol.Brief, p string) error {
			fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL, 0o755)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"open O_RDONLY|O_TRUNC", func(_ *protocol.Brief, p string) error {
			fd, err := unix.Open(p, unix.O_RDONLY|unix.O_TRUNC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"creat", func(_ *protocol.Brief, p string) error {
			return write(creatCall(p, 0o755))
		}},
		{"openat dirfd", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_RDONLY, func(d int, base string) error { return write(unix.Openat(d, base, creat, 0o755)) })
		}},
		{"openat O_PATH dirfd", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return write(unix.Openat(d, base, creat, 0o755)) })
		}},
		{"openat2", func(_ *protocol.Brief, p string) error {
			return write(unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: creat, Mode: 0o755}))
		}},
		{"openat2 RESOLVE_IN_ROOT", func(b *protocol.Brief, p string) error {
			d, err := unix.Open(b.Work, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(d)
			rel, err := filepath.Rel(b.Work, p)
			if err != nil {
				return err
			}
			return write(unix.Openat2(d, "/"+rel, &unix.OpenHow{Flags: creat, Mode: 0o755, Resolve: unix.RESOLVE_IN_ROOT}))
		}},
		{"chdir and relative", func(_ *protocol.Brief, p string) error {
			if err := unix.Chdir(filepath.Dir(p)); err != nil {
				return err
			}
			return write(unix.Open("./"+filepath.Base(p), creat, 0o755))
		}},
		{"fchdir and relative", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error {
				if err := unix.Fchdir(d); err != nil {
					return err
				}
				return write(unix.Open(base, creat, 0o755))
			})
		}},
		{"dots and slashes", func(_ *protocol.Brief, p string) error {
			d := filepath.Dir(p)
			return write(unix.Open(d+"//.///../"+filepath.Base(d)+"/./"+filepath.Base(p), creat, 0o755))
		}},
		{"/proc/self/root", func(_ *protocol.Brief, p string) error { return write(unix.Open("/proc/self/root"+p, creat, 0o755)) }},
		{"/proc/self/cwd", func(_ *protocol.Brief, p string) error {
			if err := unix.Chdir(filepath.Dir(p)); err != nil {
				return err
			}
			return write(unix.Open("/proc/self/cwd/"+filepath.Base(p), creat, 0o755))
		}},
		{"/proc/self/fd directory", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error {
				return write(unix.Open("/proc/self/fd/"+strconv.Itoa(d)+"/"+base, creat, 0o755))
			})
		}},
		{"/proc/thread-self/fd directory", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error {
				return write(unix.Open("/proc/thread-self/fd/"+strconv.Itoa(d)+"/"+base, creat, 0o755))
			})
		}},
		{"/proc/1/root", func(_ *protocol.Brief, p string) error { return write(unix.Open("/proc/1/root"+p, creat, 0o755)) }},
		{"link to directory", func(b *protocol.Brief, p string) error {
			l := fmt.Sprintf("%s/l%d", b.Work, scratchCount())
			if err := unix.Symlink(filepath.Dir(p), l); err != nil {
				return err
			}
			defer unix.Unlink(l)
			return write(unix.Open(l+"/"+filepath.Base(p), creat, 0o755))
		}},
		{"dangling link", func(b *protocol.Brief, p string) error {
			l := fmt.Sprintf("%s/l%d", b.Work, scratchCount())
			if err := unix.Symlink(p, l); err != nil {
				return err
			}
			defer unix.Unlink(l)
			return write(unix.Open(l, creat, 0o755))
		}},
		{"relative link chain", func(b *protocol.Brief, p string) error {
			rel, err := filepath.Rel(b.Work, p)
			if err != nil {
				return err
			}
			l := fmt.Sprintf("%s/l%d", b.Work, scratchCount())
			if err := errors.Join(unix.Symlink("./"+rel, l), unix.Symlink(filepath.Base(l), l+"b")); err != nil {
				return err
			}
			defer unix.Unlink(l)
			defer unix.Unlink(l + "b")
			return write(unix.Open(l+"b", creat, 0o755))
		}},
		{"mkdir", func(_ *protocol.Brief, p string) error { return unix.Mkdir(p, 0o755) }},
		{"mkdirat", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Mkdirat(d, base, 0o755) })
		}},
		{"mkdir with trailing slash", func(_ *protocol.Brief, p string) error { return unix.Mkdir(p+"/", 0o755) }},
		{"mknod file", func(_ *protocol.Brief, p string) error { return unix.Mknod(p, unix.S_IFREG|0o755, 0) }},
		{"mknod fifo", func(_ *protocol.Brief, p string) error { return unix.Mknod(p, unix.S_IFIFO|0o755, 0) }},
		{"mknodat", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Mknodat(d, base, unix.S_IFREG|0o755, 0) })
		}},
		{"symlink", func(b *protocol.Brief, p string) error { return unix.Symlink(b.Work+"/README.md", p) }},
		{"symlinkat", func(b *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Symlinkat(b.Work+"/README.md", d, base) })
		}},
		{"link", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error { return unix.Link(s, p) })
		}},
		{"linkat", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Linkat(unix.AT_FDCWD, s, d, base, 0) })
			})
		}},
		{"linkat /proc/self/fd", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				fd, err := unix.Open(s, unix.O_PATH, 0)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
			})
		}},
		{"O_TMPFILE and linkat", func(b *protocol.Brief, p string) error {
			fd, err := unix.Open(b.Work, unix.O_TMPFILE|unix.O_RDWR, 0o755)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if _, err := unix.Write(fd, []byte(payload)); err != nil {
				return err
			}
			return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
		}},
		{"O_TMPFILE and AT_EMPTY_PATH", func(b *protocol.Brief, p string) error {
			fd, err := unix.Open(b.Work, unix.O_TMPFILE|unix.O_RDWR, 0o755)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(fd, "", unix.AT_FDCWD, p, unix.AT_EMPTY_PATH)
		}},
		{"rename", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error { return unix.Rename(s, p) })
		}},
		{"renameat", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Renameat(unix.AT_FDCWD, s, d, base) })
			})
		}},
		{"renameat2 NOREPLACE", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return unix.Renameat2(unix.AT_FDCWD, s, unix.AT_FDCWD, p, unix.RENAME_NOREPLACE)
			})
		}},
		{"renameat2 EXCHANGE", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return unix.Renameat2(unix.AT_FDCWD, s, unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
			})
		}},
		{"renameat2 EXCHANGE the other way", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, s, unix.RENAME_EXCHANGE)
			})
		}},
		{"renameat2 WHITEOUT", func(b *protocol.Brief, p string) error {
			return fromScratch(b, func(s string) error {
				return unix.Renameat2(unix.AT_FDCWD, s, unix.AT_FDCWD, p, unix.RENAME_WHITEOUT)
			})
		}},
		{"rename away", func(b *protocol.Brief, p string) error {
			s := fmt.Sprintf("%s/away%d", b.Work, scratchCount())
			return unix.Rename(p, s)
		}},
		{"rename directory over", func(b *protocol.Brief, p string) error {
			s := fmt.Sprintf("%s/d%d", b.Work, scratchCount())
			if err := unix.Mkdir(s, 0o755); err != nil {
				return err
			}
			defer os.RemoveAll(s)
			return unix.Rename(s, p)
		}},
		{"bind unix socket", bindSocket},
		{"truncate", func(_ *protocol.Brief, p string) error { return unix.Truncate(p, 0) }},
		{"unlink", func(_ *protocol.Brief, p string) error { return unix.Unlink(p) }},
		{"unlinkat", func(_ *protocol.Brief, p string) error {
			return fromDir(p, unix.O_PATH, func(d int, base string) error { return unix.Unlinkat(d, base, 0) })
		}},
		{"rmdir", func(_ *protocol.Brief, p string) error { return unix.Rmdir(p) }},
		{"chmod", func(_ *protocol.Brief, p string) error { return unix.Chmod(p, 0o777) }},
		{"metadata: utimensat", func(_ *protocol.Brief, p string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		}},
		{"reopen /proc/self/fd", reopen(unix.O_RDONLY)},
		{"reopen O_PATH", reopen(unix.O_PATH)},
		{"hard link and write", func(b *protocol.Brief, p string) error {
			s := fmt.Sprintf("%s/h%d", b.Work, scratchCount())
			if err := unix.Link(p, s); err != nil {
				return err
			}
			defer unix.Unlink(s)
			return write(unix.Open(s, unix.O_WRONLY|unix.O_APPEND, 0))
		}},
		{"mmap shared", func(_ *protocol.Brief, p string) error {
			fd, err := unix.Open(p, unix.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			m, err := unix.Mmap(fd, 0, 16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			m[0] ^= 1
			return unix.Munmap(m)
		}},
		{"core dump", coreDump},
		{"own seccomp listener says continue", ownListener},
	}
	ws = append(ws, attributeWays()...)
	ws = append(ws, foreignWays()...)
	return append(ws, uringWays()...)
}

func creatCall(p string, mode uintptr) (int, error) {
	s, err := unix.BytePtrFromString(p)
	if err != nil {
		return -1, err
	}
	return creatRaw(unsafe.Pointer(s), mode)
}

func bindSocket(_ *protocol.Brief, p string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if len(p) > 100 {
		if err := unix.Chdir(filepath.Dir(p)); err != nil {
			return err
		}
		p = filepath.Base(p)
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: p})
}

// reopen opens p without write permission and asks for it afterwards.
func reopen(flags int) func(*protocol.Brief, string) error {
	return func(_ *protocol.Brief, p string) error {
		fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return write(unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_APPEND, 0))
	}
}

// state describes what the name p stands for, enough to detect any change.
func state(p string) string {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return errnoName(err)
	}
	var data []byte
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		data = content(p, st.Size)
	}
	attrs := make([]byte, 1024)
	n, _ := unix.Llistxattr(p, attrs)
	return fmt.Sprintf("%o %d %d %d %d.%d %q %q", st.Mode, st.Ino, st.Size, st.Nlink, st.Mtim.Sec, st.Mtim.Nsec, data, attrs[:max(n, 0)])
}

// content returns the content of a file; of a large one the beginning and the end.
func content(p string, size int64) []byte {
	const most = 64 << 10
	f, err := os.Open(p)
	if err != nil {
		return nil
	}
	defer f.Close()
	data := make([]byte, 2*most)
	n, _ := f.ReadAt(data[:most], 0)
	if size > most {
		m, _ := f.ReadAt(data[n:], max(size-most, int64(n)))
		n += m
	}
	return data[:n]
}

// changed runs one way against p and judges by p afterwards.
func changed(b *protocol.Brief, w way, p string) protocol.Try {
	w.stage(b, p)
	before := state(p)
	err := w.run(b, p)
	if after := state(p); after != before {
		if b.Kernel {
			return inside("%s changed %s, as this kernel shows it", w.name, p)
		}
		return reached("%s changed %s", w.name, p)
	}
	if errors.Is(err, errCore) {
		return reached("%v", err)
	}
	if err != nil {
		return refused(err)
	}
	return inside("%s: allowed, but %s is the same", w.name, p)
}

// throughAll tries every way against p in one process, for cases with many targets.
func throughAll(b *protocol.Brief, p string) protocol.Try {
	if err := unix.Chdir(b.Work); err != nil {
		return refused(err)
	}
	var tries []protocol.Try
	for _, w := range ways() {
		if w.once() || strings.HasPrefix(w.name, "metadata: ") {
			continue // C01, C02 and A06 try them one by one
		}
		t := changed(b, w, p)
		t.Detail = w.name + ": " + t.Detail
		tries = append(tries, t)
		_ = unix.Chdir(b.Work)
	}
	t := worst(tries...)
	if n := reachedCount(tries); n > 0 {
		t.Detail = fmt.Sprintf("%d ways, the first: %s", n, t.Detail)
	}
	return t
}

func reachedCount(tries []protocol.Try) int {
	n := 0
	for _, t := range tries {
		if t.Outcome == protocol.Reached {
			n++
		}
	}
	return n
}

// everyWay returns one technique for each way against the path.
func everyWay(path func(*protocol.Brief) string) []probe {
	var ps []probe
	for _, w := range ways() {
		ps = append(ps, probe{w.name, func(b *protocol.Brief) protocol.Try { return changed(b, w, path(b)) }})
	}
	return ps
}

// flip alternates a value until it is stopped.
type flip struct {
	stop atomic.Bool
	done chan struct{}
}

func newFlip(step func(i int)) *flip {
	f := &flip{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for i := 0; !f.stop.Load(); i++ {
			step(i)
		}
	}()
	return f
}

func (f *flip) end() {
	f.stop.Store(true)
	<-f.done
}
