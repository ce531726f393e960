package javascript

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// An entry is a function that the library finds in its object host.
type entry struct {
	name string
	f    func(a args) (any, error)
}

// args are the arguments of a call from the library.
type args struct {
	e *quickjs.Engine
	v []quickjs.Value
}

func (a args) value(i int) quickjs.Value {
	if i >= len(a.v) {
		return quickjs.Undefined()
	}
	return a.v[i]
}

func (a args) str(i int) string { return a.e.String(a.value(i)) }

func (a args) int(i int) int { return a.e.Int(a.value(i)) }

func (a args) float(i int) float64 { return a.e.Float(a.value(i)) }

func (a args) truth(i int) bool { return a.e.Bool(a.value(i)) }

func (a args) none(i int) bool { return quickjs.IsNone(a.value(i)) }

// bytes shows a buffer that is given as buffer, offset and length.
func (a args) bytes(i int) []byte { return a.e.View(a.value(i), a.int(i+1), a.int(i+2)) }

// host makes the object through which the library reaches the computer.
func (p *program) host() quickjs.Value {
	o := p.e.Make([]string{}) // an array is an object too; it is never listed
	for _, list := range [][]entry{p.processEntries(), p.fileEntries(), p.dataEntries(), p.childEntries()} {
		for _, x := range list {
			p.e.Set(o, x.name, p.e.Function(x.name, 0, func(v []quickjs.Value) (any, error) {
				p.t.Step(4)
				return x.f(args{p.e, v})
			}))
		}
	}
	return o
}

func (p *program) processEntries() []entry {
	t := p.t
	return []entry{
		{"library", func(a args) (any, error) { return p.lib.run(p.e, a.str(0)) }},
		{"print", func(a args) (any, error) { return nil, p.print(a.int(0), a.str(1)) }},
		{"cwd", func(args) (any, error) {
			dir, err := t.View.Getwd()
			return dir, failed(err, "uv_cwd", "", "")
		}},
		{"chdir", func(a args) (any, error) { return nil, failed(t.View.Chdir(a.str(0)), "chdir", a.str(0), "") }},
		{"umask", func(a args) (any, error) {
			old := t.View.Umask
			if n := a.int(0); n >= 0 {
				t.View.Umask = uint32(n) & 0o777
			}
			return int(old), nil
		}},
		{"now", func(args) (any, error) { return float64(time.Since(p.began).Nanoseconds()) / 1e6, nil }},
		{"exit", func(a args) (any, error) { panic(exit{a.int(0) & 0xff}) }},
		{"memory", func(args) (any, error) { return p.e.Used(), nil }},
		{"kill", func(a args) (any, error) {
			err := t.Kill(a.int(0), linux.Signal(a.int(1)))
			t.Check()
			return nil, failed(err, "kill", "", "")
		}},
		{"catch", func(a args) (any, error) {
			action := kernel.Default
			if a.truth(1) {
				action = kernel.Catch
			}
			t.On(linux.Signal(a.int(0)), action)
			return nil, nil
		}},
		{"hostname", func(args) (any, error) { return t.K.Hostname, nil }},
		{"terminal", func(a args) (any, error) {
			if d := t.FD(a.int(0)); d != nil {
				if term, ok := d.File.(kernel.Terminal); ok {
					rows, cols := term.Terminal()
					return []float64{float64(rows), float64(cols)}, nil
				}
			}
			return nil, nil
		}},
		{"resolve", func(a args) (any, error) { return p.resolve(a.str(0), a.str(1), a.truth(2)) }},
		{"compile", func(a args) (any, error) { return p.compile(a.str(0)) }},
		{"proxied", func(a args) (any, error) { return p.e.ProxyTarget(a.value(0)), nil }},
		{"promise", func(a args) (any, error) {
			state, result := p.e.Promise(a.value(0))
			return []quickjs.Value{p.e.Make(state), result}, nil
		}},
		{"random", func(a args) (any, error) {
			b := make([]byte, p.bounded(a.int(0)))
			_, err := rand.Read(b)
			return b, err
		}},
		{"refused", func(a args) (any, error) {
			if t.K.Refused != nil {
				t.K.Refused("network", a.str(0), "there is no network")
			}
			return nil, nil
		}},
		{"tool", func(a args) (any, error) { return p.callTool(a.str(0), a.str(1)) }},
	}
}

// bounded gives a length that a script asks for, if the engine could hold it.
func (p *program) bounded(n int) int {
	p.t.Bound("script_heap", int64(n), p.t.K.Limits.ScriptHeap)
	return max(n, 0)
}

// print writes text to a standard stream.
func (p *program) print(fd int, s string) error {
	if fd == 1 {
		p.t.Step(1 + len(s)/256)
		if _, err := p.t.Out().WriteString(s); err != nil {
			return failed(err, "write", "", "")
		}
		if d := p.t.FD(1); d != nil {
			if _, ok := d.File.(kernel.Terminal); ok {
				return failed(p.t.Flush(), "write", "", "")
			}
		}
		return nil
	}
	if err := p.t.Flush(); err != nil {
		return failed(err, "write", "", "")
	}
	_, err := p.t.Write(fd, []byte(s))
	return failed(err, "write", "", "")
}

func (p *program) callTool(name, input string) (any, error) {
	result, err := p.tools(p.t, name, json.RawMessage(input), p.takeSignals)
	if err != nil {
		return nil, &quickjs.Thrown{Message: err.Error(), Code: "ERR_TOOL"}
	}
	if len(result) == 0 {
		return nil, nil
	}
	return string(result), nil
}

// takeSignals keeps signals that were caught while something else waits.
func (p *program) takeSignals() {
	for sig := p.t.Caught(); sig != 0; sig = p.t.Caught() {
		p.caught = append(p.caught, sig)
	}
}

// failed makes an error of the file system what node throws; nil stays nil.
func failed(err error, call, name, dest string) error {
	if err == nil {
		return nil
	}
	var no linux.Errno
	if !errors.As(err, &no) {
		return &quickjs.Thrown{Message: err.Error()}
	}
	code, words := errnoName(no)
	text := code + ": " + words + ", " + call
	if name != "" {
		text += " '" + name + "'"
	}
	if dest != "" {
		text += " -> '" + dest + "'"
	}
	return &quickjs.Thrown{Message: text, Code: code, Errno: int(no), Syscall: call, Path: name, Dest: dest}
}

// errnoName gives an error's name and the words that node has for it.
func errnoName(no linux.Errno) (code, words string) {
	switch no {
	case linux.ENOENT:
		return "ENOENT", "no such file or directory"
	case linux.EEXIST:
		return "EEXIST", "file already exists"
	case linux.EISDIR:
		return "EISDIR", "illegal operation on a directory"
	case linux.ENOTDIR:
		return "ENOTDIR", "not a directory"
	case linux.ENOTEMPTY:
		return "ENOTEMPTY", "directory not empty"
	case linux.EACCES:
		return "EACCES", "permission denied"
	case linux.EPERM:
		return "EPERM", "operation not permitted"
	case linux.EROFS:
		return "EROFS", "read-only file system"
	case linux.EINVAL:
		return "EINVAL", "invalid argument"
	case linux.EBADF:
		return "EBADF", "bad file descriptor"
	case linux.ELOOP:
		return "ELOOP", "too many symbolic links encountered"
	case linux.ENOSPC:
		return "ENOSPC", "no space left on device"
	case linux.EMFILE:
		return "EMFILE", "too many open files"
	case linux.ENAMETOOLONG:
		return "ENAMETOOLONG", "name too long"
	case linux.EXDEV:
		return "EXDEV", "cross-device link not permitted"
	case linux.EFBIG:
		return "EFBIG", "file too large"
	case linux.ESRCH:
		return "ESRCH", "no such process"
	case linux.EPIPE:
		return "EPIPE", "broken pipe"
	case linux.ENXIO:
		return "ENXIO", "no such device or address"
	case linux.EBUSY:
		return "EBUSY", "resource busy or locked"
	case linux.EAGAIN:
		return "EAGAIN", "resource temporarily unavailable"
	case linux.ESPIPE:
		return "ESPIPE", "invalid seek"
	case linux.E2BIG:
		return "E2BIG", "argument list too long"
	case linux.EMLINK:
		return "EMLINK", "too many links"
	case linux.EIO:
		return "EIO", "i/o error"
	case linux.ENOEXEC:
		return "ENOEXEC", "exec format error"
	}
	return "UNKNOWN", vfs.Message(no)
}
