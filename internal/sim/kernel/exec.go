package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Marker begins a file that stands for a program of this computer; its name
// follows, up to a newline. A copy of such a file is the same program.
const Marker = "\x7fPADDOCK program\n"

// ProgramFile returns the contents of a file that stands for a program.
func ProgramFile(name string) []byte { return []byte(Marker + name + "\n") }

// A Script error is a file that is no program but can be read: a shell runs
// it as a script of its own.
type Script struct{ Path string }

func (e *Script) Error() string { return e.Path + ": Exec format error" }

// Unwrap returns ENOEXEC.
func (e *Script) Unwrap() error { return linux.ENOEXEC }

// A Command is a program to start.
type Command struct {
	Path string   // of the file; empty is Args[0] looked up in PATH
	Args []string // the first is the name it gets
	Env  []string // nil is the caller's
}

// Getenv returns a variable of the task's environment.
func (t *Task) Getenv(name string) string {
	for i := len(t.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(t.Env[i], name); ok && strings.HasPrefix(v, "=") {
			return v[1:]
		}
	}
	return ""
}

// Bytewise reports whether the locale is C, in which characters are bytes.
func (t *Task) Bytewise() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := t.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// Lookup finds a program as execvp does: a name without a slash in the
// directories of path. ENOENT is none; EACCES is one that cannot be executed.
func (t *Task) Lookup(name, path string) (string, error) {
	if name == "" {
		return "", linux.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, t.executable(name)
	}
	result := error(linux.ENOENT)
	for _, dir := range strings.Split(path, ":") {
		file := name
		if dir != "" {
			file = strings.TrimRight(dir, "/") + "/" + name
		}
		err := t.executable(file)
		if err == nil {
			return file, nil
		}
		if err == linux.EACCES {
			result = err
		}
	}
	return "", result
}

func (t *Task) executable(file string) error {
	i, err := t.View.Stat(file)
	switch {
	case err != nil:
		return err
	case !i.IsRegular():
		return linux.EACCES
	}
	return t.View.Access(file, 1)
}

// maxInterpreters is how many "#!" lines may lead to each other, as in Linux.
const maxInterpreters = 4

// resolve finds what a file runs: a program, and its arguments.
func (t *Task) resolve(file string, args []string) (Program, []string, error) {
	for range maxInterpreters + 1 {
		if err := t.executable(file); err != nil {
			return nil, nil, err
		}
		head, err := t.head(file)
		if err != nil {
			return nil, nil, err
		}
		if name, ok := strings.CutPrefix(head, Marker); ok {
			name, _, _ = strings.Cut(name, "\n")
			p, ok := t.K.Programs(name)
			if !ok {
				return nil, nil, linux.ENOEXEC
			}
			return p, args, nil
		}
		line, ok := strings.CutPrefix(head, "#!")
		if !ok {
			first, _, _ := strings.Cut(head, "\n")
			if strings.IndexByte(first, 0) >= 0 {
				return nil, nil, linux.ENOEXEC
			}
			return nil, nil, &Script{file}
		}
		line, _, _ = strings.Cut(line, "\n")
		interpreter, arg, _ := strings.Cut(strings.Trim(line, " \t"), " ")
		if interpreter == "" {
			return nil, nil, &Script{file}
		}
		next := []string{interpreter}
		if arg = strings.Trim(arg, " \t"); arg != "" {
			next = append(next, arg)
		}
		args = append(append(next, file), args[min(1, len(args)):]...)
		if err := t.executable(interpreter); err != nil {
			return nil, nil, &Interpreter{interpreter, err}
		}
		file = interpreter
	}
	return nil, nil, linux.ELOOP
}

// An Interpreter error is a "#!" line that names none.
type Interpreter struct {
	Path string
	Err  error
}

func (e *Interpreter) Error() string {
	return fmt.Sprintf("%s: bad interpreter: %s", e.Path, vfs.Message(e.Err))
}

// Unwrap returns the cause.
func (e *Interpreter) Unwrap() error { return e.Err }

func (t *Task) head(file string) (string, error) {
	f, err := t.View.Open(file, linux.O_RDONLY, 0)
	if errors.Is(err, linux.EACCES) {
		return "", linux.EACCES
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 256)
	n, _ := f.ReadAt(b, 0) // nothing to read is an empty script
	return string(b[:n]), nil
}

// Exec turns t into another program and runs it to its end; the caller
// returns the status. The error is a program that cannot be started; t is
// unchanged then.
func (t *Task) Exec(c Command) (int, error) {
	p, err := t.prepare(&c)
	if err != nil {
		return 0, err
	}
	t.become(c)
	return p(t), nil
}

// Load finds a program for a task that has not run yet; the caller gives it to
// [Task.Go].
//
// It is execve, not execvp: a file without a "#!" line is ENOEXEC.
func (t *Task) Load(c Command) (Program, error) {
	p, err := t.find(&c)
	if err != nil {
		return nil, err
	}
	return func(t *Task) int {
		t.become(c)
		return p(t)
	}, nil
}

// Call starts a program and waits for its end, on the caller's goroutine.
func (t *Task) Call(c Command) (Status, error) {
	child, p, err := t.spawn(c)
	if err != nil {
		return Status{}, err
	}
	child.Nest = t.Nest
	s := child.Do(p)
	t.Check()
	return s, nil
}

// Spawn starts a program that runs beside the caller.
func (t *Task) Spawn(c Command, prepare func(child *Task) error) (*Task, error) {
	child, p, err := t.spawn(c)
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(child); err != nil {
			child.Abandon()
			return nil, err
		}
	}
	child.Go(p)
	return child, nil
}

func (t *Task) spawn(c Command) (*Task, Program, error) {
	p, err := t.prepare(&c)
	if err != nil {
		return nil, nil, err
	}
	if err := t.Flush(); err != nil {
		return nil, nil, err
	}
	child, err := t.Fork()
	if err != nil {
		return nil, nil, err
	}
	child.become(c)
	return child, p, nil
}

// prepare fills in what c leaves out and finds its program. A script without
// a "#!" line runs by sh, as execvp does.
func (t *Task) prepare(c *Command) (Program, error) {
	p, err := t.find(c)
	if script := (*Script)(nil); errors.As(err, &script) {
		sh, ok := t.K.Programs("sh")
		if !ok {
			return nil, err
		}
		c.Args = append([]string{"sh", c.Path}, c.Args[1:]...)
		return sh, nil
	}
	return p, err
}

// maxArgument is how long one argument may be, as in Linux.
const maxArgument = 128 << 10

func (t *Task) find(c *Command) (Program, error) {
	if len(c.Args) == 0 {
		return nil, linux.ENOENT
	}
	if c.Env == nil {
		c.Env = t.Env
	}
	size := 0
	for _, a := range c.Args {
		if len(a) >= maxArgument {
			return nil, linux.E2BIG
		}
		size += len(a) + 1
	}
	for _, e := range c.Env {
		size += len(e) + 1
	}
	if int64(size) > t.K.Limits.Arguments {
		return nil, linux.E2BIG
	}
	if int64(t.Depth) >= t.K.Limits.Shells {
		_ = t.Must(&budget.Exceeded{Name: "shells", Limit: t.K.Limits.Shells})
	}
	if c.Path == "" {
		file, err := t.Lookup(c.Args[0], t.path())
		if err != nil {
			return nil, err
		}
		c.Path = file
	}
	p, args, err := t.resolve(c.Path, c.Args)
	if err != nil {
		return nil, err
	}
	c.Args = args
	return p, nil
}

func (t *Task) path() string {
	if p := t.Getenv("PATH"); p != "" {
		return p
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// become makes t the task of another program: caught signals are back to
// their defaults, descriptors that are to be closed are.
func (t *Task) become(c Command) {
	t.Args, t.Env = slices.Clone(c.Args), c.Env
	t.Depth++
	t.publish()
	t.out, t.in = nil, nil
	t.caught = 0
	for i := range t.action {
		if t.action[i] == Catch {
			t.action[i] = Default
		}
	}
	for fd := range t.fds {
		if t.fds[fd].cloexec {
			_ = t.CloseFD(fd)
		}
	}
	t.unkeep()
	t.Command()
}
