package guest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/outputring"
)

// A command is a checked request to start a process.
type command struct {
	args     []string
	env      []string
	path     string // PATH of env
	dir      string
	user     *User // nil is the sandbox's own
	input    bool
	terminal *paddock.Size
	timeout  time.Duration
}

// command checks a request.
func (s *Server) command(ctx context.Context, r *guestpb.StartRequest) (command, error) {
	wrong := func(what string) (command, error) {
		return command{}, fmt.Errorf("%s: %w", what, paddock.Invalid)
	}
	c := command{dir: string(r.GetDir()), input: r.GetInput(), timeout: time.Duration(r.GetTimeout())}
	if len(r.GetArgs()) == 0 || len(r.GetArgs()[0]) == 0 {
		return wrong("a command needs a program")
	}
	for _, a := range r.GetArgs() {
		c.args = append(c.args, string(a))
	}
	base, dir := s.settings()
	if c.dir == "" {
		c.dir = dir
	}
	if slices.ContainsFunc(append(c.args, c.dir), holdsNUL) {
		return wrong("an argument or the directory holds a NUL byte")
	}
	if c.dir != "" && c.dir[0] != '/' {
		return wrong(fmt.Sprintf("directory %q is not absolute", c.dir))
	}
	if c.timeout < 0 || r.GetFrom() < 0 {
		return wrong("a timeout or offset is negative")
	}
	if u := r.GetUser(); u != "" && u != s.o.User.Name && u != strconv.Itoa(s.o.User.UID) {
		var err error
		if err = s.turns.do(ctx, func() (err error) { c.user, err = s.another(u); return err }); err != nil {
			return command{}, err
		}
	}
	if t := r.GetTerminal(); t != nil {
		size, err := sizeOf(t)
		if err != nil {
			return command{}, err
		}
		c.terminal, c.input = &size, true
	}
	env := make(map[string]string, len(base)+len(r.GetEnv()))
	maps.Copy(env, base)
	if u := c.user; u != nil {
		env["USER"], env["LOGNAME"], env["HOME"] = u.Name, u.Name, u.Home
	}
	for k, v := range r.GetEnv() {
		if k == "" || strings.ContainsAny(k, "=\x00") || holdsNUL(string(v)) {
			return wrong(fmt.Sprintf("environment variable %q cannot be set", k))
		}
		env[k] = string(v)
	}
	c.path = env["PATH"]
	c.env = make([]string, 0, len(env))
	for k, v := range env {
		c.env = append(c.env, k+"="+v)
	}
	slices.Sort(c.env)
	return c, nil
}

// another gives a user of the sandbox's /etc/passwd, by name or by number.
func (s *Server) another(name string) (*User, error) {
	if s.o.Signal == nil {
		return nil, fmt.Errorf("commands run as %s here, not as %q: %w", s.o.User.Name, name, paddock.Unsupported)
	}
	u, ok := parseUser(read(&files{names: &s.names}, "/etc/passwd"), name)
	if !ok {
		return nil, fmt.Errorf("the sandbox's /etc/passwd has no user %q: %w", name, paddock.NotFound)
	}
	return &u, nil
}

func holdsNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func sizeOf(t *guestpb.Size) (paddock.Size, error) {
	if t.GetRows() > 1<<16-1 || t.GetCols() > 1<<16-1 {
		return paddock.Size{}, fmt.Errorf("a terminal of %d rows and %d columns: %w", t.GetRows(), t.GetCols(), paddock.Invalid)
	}
	return paddock.Size{Rows: uint16(t.GetRows()), Cols: uint16(t.GetCols())}, nil
}

// start starts a command. Where attach is set its output goes to the reader
// from the first byte on.
func (s *Server) start(ctx context.Context, c command, attach bool, from int64, hidden bool) (*process, *outputring.Reader, error) {
	var path string
	err := s.turns.do(ctx, func() (err error) { path, err = lookup(c); return err })
	if err != nil {
		return nil, nil, err
	}
	for wait := time.Millisecond; ; wait *= 2 {
		p, r, err := s.try(c, path, attach, from, hidden)
		if !errors.Is(err, syscall.ETXTBSY) {
			return p, r, err
		}
		if wait > busyTime/2 {
			return nil, nil, explain(c, path, err)
		}
		select {
		case <-time.After(wait):
		case <-s.stop:
			return nil, nil, errEnds
		}
	}
}

// busyTime is about how long, in all, a program is tried again that is open for
// writing: one that was just written stays so for a moment in any child that
// was forked meanwhile, until that child executes its own program.
const busyTime = 256 * time.Millisecond

var errEnds = fmt.Errorf("the agent ends: %w", paddock.Unavailable)

// try starts a command once. It makes all streams anew, because a terminal is
// hung up when the child dies that could not execute its program. ETXTBSY
// comes back as it is.
func (s *Server) try(c command, path string, attach bool, from int64, hidden bool) (*process, *outputring.Reader, error) {
	p := &process{s: s, cmd: c, hidden: hidden, ended: make(chan struct{}), out: outputring.New(s.o.Kept)}
	files, err := p.connect()
	defer closeAll(files)
	if err != nil {
		p.disconnect()
		return nil, nil, lacking(fmt.Errorf("start %s: %w", c.args[0], err))
	}
	var r *outputring.Reader
	if attach {
		r = p.out.Join(from)
	}
	if err := s.launch(p, path, files); err != nil {
		p.disconnect()
		return nil, nil, err
	}
	return p, r, nil
}

// launch executes the program and notes the process before anyone can wait
// for it.
func (s *Server) launch(p *process, path string, files []*os.File) error {
	t := &s.processes
	t.starting.Lock()
	defer t.starting.Unlock()
	if t.isClosed() {
		return errEnds
	}
	if s.o.Killed != nil {
		if n, err := s.o.Killed(); err == nil { // else it is not known
			p.killed = &n
		}
	}
	p.started = time.Now()
	pid, err := s.o.StartProcess(path, p.cmd.args, &ProcAttr{
		Dir: p.cmd.dir, Env: p.cmd.env, Files: files, Terminal: p.cmd.terminal != nil, User: p.cmd.user,
	})
	if errors.Is(err, syscall.ETXTBSY) {
		return err
	}
	if err != nil {
		return explain(p.cmd, path, err)
	}
	p.pid = pid
	if p.cmd.timeout > 0 {
		s.wg.Add(1)
		p.timer = time.AfterFunc(p.cmd.timeout, p.expire)
	}
	t.add(p)
	s.wg.Go(p.drain)
	s.watch(p)
	return nil
}

// connect makes the streams of a process: the agent's ends go into p, the
// command's are given.
func (p *process) connect() (files []*os.File, err error) {
	if p.cmd.terminal != nil {
		master, slave, err := openTerminal(p.cmd.terminal)
		if err != nil {
			return nil, err
		}
		p.in = newInput(master, true)
		files = []*os.File{slave, slave, slave}
		return files, p.outlets.open(master)
	}
	if p.cmd.input {
		ours, theirs, err := pipe(true)
		if err != nil {
			return files, err
		}
		p.in = newInput(ours, false)
		files = append(files, theirs)
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return files, err
		}
		files = append(files, null)
	}
	var ends []*os.File
	for range 2 {
		ours, theirs, err := pipe(false)
		if err != nil {
			closeAll(ends)
			return files, err
		}
		ends = append(ends, ours)
		files = append(files, theirs)
	}
	return files, p.outlets.open(ends...)
}

// disconnect closes the agent's ends of a process that did not start.
func (p *process) disconnect() {
	if p.in != nil {
		_ = p.in.f.Close()
	}
	p.outlets.close()
	p.outlets.closeFiles()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// forkExec is StartProcess where the tier has none of its own.
func forkExec(argv0 string, argv []string, attr *ProcAttr) (int, error) {
	fds := make([]uintptr, len(attr.Files))
	for i, f := range attr.Files {
		fds[i] = f.Fd()
	}
	return syscall.ForkExec(argv0, argv, &syscall.ProcAttr{
		Dir: attr.Dir, Env: attr.Env, Files: fds,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: attr.Terminal},
	})
}

// lookup finds the program of a command as execvp does, but for relative
// entries of PATH, which are ignored: they would make the meaning of a name
// depend on what lies in the directory.
func lookup(c command) (string, error) {
	name := c.args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	var refused error
	for dir := range strings.SplitSeq(c.path, ":") {
		if dir == "" || dir[0] != '/' {
			continue
		}
		path := strings.TrimSuffix(dir, "/") + "/" + name
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if err := access(path); err != nil {
			if refused == nil {
				refused = startError(c, 126, paddock.Denied, fmt.Sprintf("%s is not executable", path))
			}
			continue
		}
		return path, nil
	}
	if refused != nil {
		return "", refused
	}
	if c.path == "" {
		return "", startError(c, 127, paddock.NotFound, "there is no such program, because PATH is not set")
	}
	return "", startError(c, 127, paddock.NotFound, "there is no such program in PATH")
}

// access asks the kernel for the agent's right to execute a file or to search a
// directory.
func access(path string) error {
	const execute, eaccess, atFDCWD = 1, 0x200, -0x64
	return syscall.Faccessat(atFDCWD, path, execute, eaccess)
}

func startError(c command, code int, kind paddock.Kind, words string) error {
	return &paddock.StartError{Path: c.args[0], Code: code, Err: fmt.Errorf("%s: %w", words, kind)}
}

// lacking gives a kind to what the kernel lacks; nil where it is not that.
func lacking(err error) error {
	var words string
	switch {
	case errors.Is(err, syscall.EAGAIN):
		words = "the pids limit is reached"
	case errors.Is(err, syscall.ENOMEM):
		words = "the memory limit is reached"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		words = "the limit of open files is reached"
	case errors.Is(err, syscall.ENOSPC):
		words = "the limit of terminals is reached"
	default:
		return err
	}
	return fmt.Errorf("%s: %w: %w", words, err, paddock.Exhausted)
}
