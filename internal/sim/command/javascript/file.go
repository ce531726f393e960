package javascript

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	"path"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func (p *program) fileEntries() []entry {
	v := &p.t.View
	// plain is a call on one path whose only answer is an error.
	plain := func(name, call string, f func(path string, a args) error) entry {
		return entry{name, func(a args) (any, error) {
			path := a.str(0)
			return nil, failed(f(path, a), call, path, "")
		}}
	}
	// pair is the same for two paths.
	pair := func(name, call string, f func(from, to string) error) entry {
		return entry{name, func(a args) (any, error) {
			from, to := a.str(0), a.str(1)
			return nil, failed(f(from, to), call, from, to)
		}}
	}
	return []entry{
		{"readText", func(a args) (any, error) {
			b, err := p.contents(a.value(0), 0)
			return string(b), err
		}},
		{"readFile", func(a args) (any, error) { return p.contents(a.value(0), a.int(1)) }},
		{"writeFile", p.writeFile},
		{"open", func(a args) (any, error) {
			d, err := p.t.Open(a.str(0), a.int(1), uint32(a.int(2))&0o7777)
			if err != nil {
				return nil, failed(err, "open", a.str(0), "")
			}
			fd, err := p.t.AddFD(d, 3, true)
			if err != nil {
				d.Drop()
			}
			return fd, failed(err, "open", a.str(0), "")
		}},
		{"close", func(a args) (any, error) { return nil, failed(p.t.CloseFD(a.int(0)), "close", "", "") }},
		{"read", p.readFD},
		{"write", p.writeFD},
		{"input", func(args) (any, error) {
			b := make([]byte, 64<<10)
			if err := p.t.Flush(); err != nil {
				return nil, failed(err, "write", "", "")
			}
			n, err := p.retry(func() (int, error) { return p.t.Read(0, b) })
			if err == io.EOF || err == linux.EBADF || n == 0 && err == nil {
				return nil, nil
			}
			return b[:n], failed(err, "read", "", "")
		}},
		{"stat", func(a args) (any, error) {
			name, call := a.str(0), "stat"
			f := v.Stat
			if !a.truth(1) {
				f, call = v.Lstat, "lstat"
			}
			i, err := f(name)
			if a.truth(2) && (errors.Is(err, linux.ENOENT) || errors.Is(err, linux.ENOTDIR)) {
				return nil, nil
			}
			if err != nil {
				return nil, failed(err, call, name, "")
			}
			return stats(i), nil
		}},
		{"fstat", func(a args) (any, error) {
			d := p.t.FD(a.int(0))
			if d == nil {
				return nil, failed(linux.EBADF, "fstat", "", "")
			}
			i, err := d.File.Info()
			return stats(i), failed(err, "fstat", "", "")
		}},
		plain("access", "access", func(name string, a args) error { return v.Access(name, uint32(a.int(1))&7) }),
		{"readdir", p.readDir},
		{"mkdir", p.mkdir},
		{"mkdtemp", func(a args) (any, error) {
			const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			for range 100 {
				b := make([]byte, 6)
				_, _ = rand.Read(b) // it never fails
				for i := range b {
					b[i] = letters[int(b[i])%len(letters)]
				}
				name := a.str(0) + string(b)
				if err := v.Mkdir(name, 0o700); err != linux.EEXIST {
					return name, failed(err, "mkdtemp", a.str(0)+"XXXXXX", "")
				}
			}
			return nil, failed(linux.EEXIST, "mkdtemp", a.str(0)+"XXXXXX", "")
		}},
		plain("rmdir", "rmdir", func(name string, _ args) error { return v.Rmdir(name) }),
		{"rm", p.remove},
		plain("unlink", "unlink", func(name string, _ args) error { return v.Unlink(name) }),
		pair("rename", "rename", v.Rename),
		pair("link", "link", v.Link),
		pair("symlink", "symlink", v.Symlink),
		{"copyFile", p.copyFile},
		{"readlink", func(a args) (any, error) {
			s, err := v.Readlink(a.str(0))
			return s, failed(err, "readlink", a.str(0), "")
		}},
		{"realpath", func(a args) (any, error) {
			if _, err := v.Stat(a.str(0)); err != nil {
				return nil, failed(err, "realpath", a.str(0), "")
			}
			s, err := v.Realpath(a.str(0))
			return s, failed(err, "realpath", a.str(0), "")
		}},
		plain("chmod", "chmod", func(name string, a args) error { return v.Chmod(name, uint32(a.int(1))&0o7777) }),
		plain("chown", "chown", func(name string, a args) error { return v.Chown(name, a.int(1), a.int(2), a.truth(3)) }),
		plain("utimes", "utime", func(name string, a args) error {
			return v.Chtimes(name, moment(a.float(1)), moment(a.float(2)), a.truth(3))
		}),
		plain("truncate", "open", func(name string, a args) error { return v.Truncate(name, int64(a.int(1))) }),
		{"ftruncate", func(a args) (any, error) {
			d := p.t.FD(a.int(0))
			if d == nil {
				return nil, failed(linux.EBADF, "ftruncate", "", "")
			}
			f, ok := d.VFS()
			if !ok {
				return nil, failed(linux.EINVAL, "ftruncate", "", "")
			}
			return nil, failed(f.Truncate(int64(a.int(1))), "ftruncate", "", "")
		}},
	}
}

func moment(seconds float64) time.Time {
	if math.IsNaN(seconds) || math.Abs(seconds) > 1e12 {
		return time.Unix(0, 0)
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

func stats(i vfs.Info) []float64 {
	ms := func(t time.Time) float64 { return float64(t.UnixNano()/1000) / 1000 }
	return []float64{
		float64(i.Dev), float64(i.Mode), float64(i.Nlink), float64(i.UID), float64(i.GID), float64(i.Rdev), float64(i.Ino), float64(i.Size),
		float64(i.Blocks), ms(i.Atime), ms(i.Mtime), ms(i.Ctime),
	}
}

// desc opens what a script names: a path, or the number of a descriptor.
func (p *program) desc(v quickjs.Value, flags int, mode uint32) (d *kernel.Desc, name string, err error) {
	if !quickjs.IsString(v) {
		if d = p.t.FD(p.e.Int(v)); d == nil {
			return nil, "", failed(linux.EBADF, "read", "", "")
		}
		return d.Hold(), "", nil
	}
	name = p.e.String(v)
	opened, err := p.t.Open(name, flags, mode)
	if err != nil {
		return nil, name, failed(err, "open", name, "")
	}
	return opened.Hold(), name, nil
}

// contents reads a whole file.
func (p *program) contents(v quickjs.Value, flags int) ([]byte, error) {
	d, _, err := p.desc(v, flags, 0o666)
	if err != nil {
		return nil, err
	}
	defer d.Drop()
	if err := p.t.Flush(); err != nil {
		return nil, failed(err, "write", "", "")
	}
	// What is read is copied into the engine, which must hold it.
	if i, err := d.File.Info(); err == nil && i.IsRegular() {
		p.t.Bound("script_heap", i.Size, p.t.K.Limits.ScriptHeap)
	}
	b, err := p.readDesc(d, min(p.t.K.Limits.Input, p.t.K.Limits.ScriptHeap))
	return b, failed(err, "read", "", "")
}

func (p *program) writeFile(a args) (any, error) {
	var data []byte
	if quickjs.IsString(a.value(3)) {
		data = []byte(a.str(3))
	} else {
		data = a.bytes(3)
	}
	d, _, err := p.desc(a.value(0), a.int(1), uint32(a.int(2))&0o7777)
	if err != nil {
		return nil, err
	}
	defer d.Drop()
	_, err = p.put(d, data)
	return nil, failed(err, "write", "", "")
}

// put writes to a descriptor; what was printed goes before it.
func (p *program) put(d *kernel.Desc, b []byte) (int, error) {
	if err := p.t.Flush(); err != nil {
		return 0, err
	}
	p.t.Step(1 + len(b)/256)
	n, err := d.File.Write(p.t, b)
	if err == linux.EPIPE {
		p.t.Signal(linux.SIGPIPE)
		p.t.Check()
	}
	return n, err
}

// retry repeats what a caught signal interrupts.
func (p *program) retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != linux.EINTR {
			return n, err
		}
		p.takeSignals()
	}
}

func (p *program) readFD(a args) (any, error) {
	d := p.t.FD(a.int(0))
	if d == nil {
		return nil, failed(linux.EBADF, "read", "", "")
	}
	want := len(a.bytes(1))
	b := make([]byte, want) // reading may run other tasks, and they this engine never; but a buffer of its own is safe
	at := a.int(4)
	if err := p.t.Flush(); err != nil {
		return nil, failed(err, "write", "", "")
	}
	n, err := p.retry(func() (int, error) {
		if f, ok := d.VFS(); ok && at >= 0 {
			return f.ReadAt(b, int64(at))
		}
		p.t.Step(1)
		return d.File.Read(p.t, b)
	})
	if err == io.EOF {
		err = nil
	}
	copy(a.bytes(1), b[:n])
	return n, failed(err, "read", "", "")
}

func (p *program) writeFD(a args) (any, error) {
	d := p.t.FD(a.int(0))
	if d == nil {
		return nil, failed(linux.EBADF, "write", "", "")
	}
	b, at := a.bytes(1), a.int(4)
	if f, ok := d.VFS(); ok && at >= 0 {
		n, err := f.WriteAt(b, int64(at))
		return n, failed(err, "write", "", "")
	}
	n, err := p.put(d, b)
	return n, failed(err, "write", "", "")
}

func (p *program) readDir(a args) (any, error) {
	name := a.str(0)
	list, err := p.t.View.ReadDir(name)
	if err != nil {
		return nil, failed(err, "scandir", name, "")
	}
	p.t.Traverse(len(list))
	out := make([]string, 0, 2*len(list))
	for i := range list {
		out = append(out, list[i].Name, kindDigits(list[i].Info.Mode&linux.S_IFMT))
	}
	return out, nil
}

func kindDigits(mode uint32) string {
	switch mode {
	case linux.S_IFDIR:
		return "16384"
	case linux.S_IFLNK:
		return "40960"
	case linux.S_IFIFO:
		return "4096"
	case linux.S_IFCHR:
		return "8192"
	case linux.S_IFBLK:
		return "24576"
	case linux.S_IFSOCK:
		return "49152"
	}
	return "32768"
}

// mkdir answers, with parents, with the first directory that was made.
func (p *program) mkdir(a args) (any, error) {
	name, mode := a.str(0), uint32(a.int(1))&0o7777
	v := &p.t.View
	if !a.truth(2) {
		return nil, failed(v.Mkdir(name, mode), "mkdir", name, "")
	}
	full := p.absolute(name)
	first := ""
	for dir := full; dir != "/"; dir = path.Dir(dir) {
		i, err := v.Stat(dir)
		if err == nil && !i.IsDir() {
			no := linux.ENOTDIR
			if dir == full {
				no = linux.EEXIST
			}
			return nil, failed(no, "mkdir", name, "")
		}
		if err == nil {
			break
		}
		first = dir
	}
	if err := v.MkdirAll(full, mode); err != nil {
		return nil, failed(err, "mkdir", name, "")
	}
	if first == "" {
		return nil, nil
	}
	return first, nil
}

func (p *program) remove(a args) (any, error) {
	name, v := a.str(0), &p.t.View
	i, err := v.Lstat(name)
	if err != nil {
		if a.truth(2) && errors.Is(err, linux.ENOENT) {
			return nil, nil
		}
		return nil, failed(err, "lstat", name, "")
	}
	switch {
	case !i.IsDir():
		return nil, failed(v.Unlink(name), "unlink", name, "")
	case !a.truth(1):
		return nil, &quickjs.Thrown{Message: "Path is a directory: rm returned EISDIR (is a directory) " + name, Code: "ERR_FS_EISDIR", Errno: -int(linux.EISDIR), Syscall: "rm", Path: name}
	}
	p.t.Step(16)
	return nil, failed(v.RemoveAll(name), "rm", name, "")
}

func (p *program) copyFile(a args) (any, error) {
	from, to := a.str(0), a.str(1)
	in, err := p.t.Open(from, linux.O_RDONLY, 0)
	if err != nil {
		return nil, failed(err, "copyfile", from, to)
	}
	in.Hold()
	defer in.Drop()
	i, err := in.File.Info()
	if err == nil && i.IsDir() {
		err = linux.EISDIR
	}
	if err != nil {
		return nil, failed(err, "copyfile", from, to)
	}
	flags := linux.O_WRONLY | linux.O_CREAT | linux.O_TRUNC
	if a.truth(2) {
		flags |= linux.O_EXCL
	}
	if j, err := p.t.View.Stat(to); err == nil && j.Ino == i.Ino && j.Dev == i.Dev {
		return nil, nil
	}
	out, err := p.t.Open(to, flags, i.Mode&0o777)
	if err != nil {
		return nil, failed(err, "copyfile", from, to)
	}
	out.Hold()
	defer out.Drop()
	b := make([]byte, 64<<10)
	for {
		p.t.Step(16)
		n, err := in.File.Read(p.t, b)
		if n > 0 {
			if _, err := out.File.Write(p.t, b[:n]); err != nil {
				return nil, failed(err, "copyfile", from, to)
			}
		}
		if err == io.EOF || n == 0 && err == nil {
			return nil, nil
		}
		if err != nil {
			return nil, failed(err, "copyfile", from, to)
		}
	}
}
