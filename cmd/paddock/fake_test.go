package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A fake is a driver without any isolation: its "sandbox" starts programs on
// this machine. It stands in where a test is about the command line and not
// about a boundary. What it says in Status and Info is what the test gives it.
type fake struct {
	info    paddock.Info
	refused []paddock.Refusal
	amend   func(*paddock.Exit)
	refuse  error // of Create

	mu      sync.Mutex
	spec    paddock.Spec // guarded by mu; of the last Create
	created int          // guarded by mu
	removed int          // guarded by mu
}

func (f *fake) tier(name paddock.Tier) tier {
	return tier{name: name, about: "a fake", open: func(gear) (paddock.Driver, error) { return f, nil }}
}

func (f *fake) Info(context.Context) (paddock.Info, error) { return f.info, nil }

func (f *fake) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spec = spec
	f.created++
	return &fakeSandbox{f: f, spec: spec}, nil
}

func (f *fake) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return nil, paddock.NotFound
}
func (f *fake) List(context.Context) ([]paddock.Status, error)           { return nil, nil }
func (f *fake) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return nil }
func (f *fake) Close() error                                             { return nil }

func (f *fake) made() paddock.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spec
}

type fakeSandbox struct {
	f    *fake
	spec paddock.Spec

	mu   sync.Mutex
	proc *fakeProcess // guarded by mu
}

func (s *fakeSandbox) ID() paddock.ID { return "fake-1" }

func (s *fakeSandbox) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{
		ID: s.ID(), Tier: s.spec.Tier, State: paddock.Ready, Refused: s.f.refused,
		Enforced: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Absent, Cause: "a fake"}},
	}, nil
}

func (s *fakeSandbox) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	path := cmd.Args[0]
	if filepath.Base(path) == path {
		var err error
		if path, err = exec.LookPath(path); err != nil {
			return nil, &paddock.StartError{Path: cmd.Args[0], Code: 127, Err: paddock.NotFound}
		}
	}
	c := exec.Command(path, cmd.Args[1:]...)
	c.Dir = s.spec.Dir
	c.Stdout, c.Stderr = cmd.Output.Stdout, cmd.Output.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for name, value := range s.spec.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
	p := &fakeProcess{c: c, exited: make(chan struct{}), amend: s.f.amend}
	var theirs *os.File
	if cmd.Input {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		c.Stdin, theirs, p.in = r, r, w
	}
	if err := c.Start(); err != nil {
		code := 126
		if errors.Is(err, os.ErrNotExist) {
			code = 127
		}
		return nil, &paddock.StartError{Path: path, Code: code, Err: fmt.Errorf("%w: %w", err, paddock.Invalid)}
	}
	if theirs != nil {
		theirs.Close()
	}
	var limit *time.Timer
	if s.spec.Limits.Lifetime > 0 {
		limit = time.AfterFunc(s.spec.Limits.Lifetime, func() {
			p.timedOut.Store(true)
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		})
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	go func() {
		_ = c.Wait()
		if limit != nil {
			limit.Stop()
		}
		close(p.exited)
	}()
	return p, nil
}

func (s *fakeSandbox) Remove(context.Context) error {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p != nil {
		_ = syscall.Kill(-p.c.Process.Pid, syscall.SIGKILL)
		<-p.exited
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.removed++
	return nil
}

func (s *fakeSandbox) Attach(context.Context, paddock.PID, paddock.Output) (paddock.Process, error) {
	return nil, paddock.Unsupported
}
func (s *fakeSandbox) Processes(context.Context) ([]paddock.ProcessInfo, error) {
	return nil, paddock.Unsupported
}
func (s *fakeSandbox) FS() paddock.FS { return nil }
func (s *fakeSandbox) Dial(context.Context, int) (net.Conn, error) {
	return nil, paddock.Unsupported
}
func (s *fakeSandbox) Update(context.Context, paddock.Update) error { return paddock.Unsupported }
func (s *fakeSandbox) Snapshot(context.Context, paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	return "", paddock.Unsupported
}
func (s *fakeSandbox) Pause(context.Context) error  { return paddock.Unsupported }
func (s *fakeSandbox) Resume(context.Context) error { return paddock.Unsupported }

type fakeProcess struct {
	c        *exec.Cmd
	in       io.WriteCloser
	exited   chan struct{}
	amend    func(*paddock.Exit)
	timedOut flag

	mu      sync.Mutex
	signals []syscall.Signal // guarded by mu; that were sent
}

// flag is a boolean for two goroutines.
type flag struct {
	mu sync.Mutex
	on bool // guarded by mu
}

func (f *flag) Store(on bool) { f.mu.Lock(); f.on = on; f.mu.Unlock() }
func (f *flag) Load() bool    { f.mu.Lock(); defer f.mu.Unlock(); return f.on }

func (p *fakeProcess) ID() paddock.PID       { return paddock.PID(p.c.Process.Pid) }
func (p *fakeProcess) Input() io.WriteCloser { return p.in }
func (p *fakeProcess) Release()              {}
func (p *fakeProcess) Resize(context.Context, paddock.Size) error {
	return paddock.Conflict
}

func (p *fakeProcess) Wait(context.Context) (paddock.Exit, error) {
	<-p.exited
	state := p.c.ProcessState
	exit := paddock.Exit{Code: state.ExitCode(), Cause: paddock.Exited}
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		exit.Signal, exit.Cause = ws.Signal(), paddock.Signaled
		exit.Code = 128 + int(exit.Signal)
	}
	if p.timedOut.Load() {
		exit.Cause = paddock.TimedOut
	}
	if p.amend != nil {
		p.amend(&exit)
	}
	return exit, nil
}

func (p *fakeProcess) Signal(_ context.Context, sig syscall.Signal) error {
	select {
	case <-p.exited:
		return paddock.NotFound
	default:
	}
	p.mu.Lock()
	p.signals = append(p.signals, sig)
	p.mu.Unlock()
	return syscall.Kill(-p.c.Process.Pid, sig)
}

func goodInfo() paddock.Info {
	return paddock.Info{
		Tier: paddock.Jail, Available: true, Version: runtime.GOOS,
		Controls: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Full, How: "a filter"}},
		Defaults: paddock.Limits{Memory: 1 << 30, PIDs: 512},
	}
}

// An invocation is the program run inside a test.
type invocation struct {
	app            *app
	stdout, stderr strings.Builder
	signals        chan os.Signal
}

func invoke(dir string, env map[string]string, tiers []tier, args ...string) *invocation {
	v := &invocation{signals: make(chan os.Signal, 8)}
	v.app = &app{
		args: args, stdin: strings.NewReader(""), stdout: &v.stdout, stderr: &v.stderr, tiers: tiers,
		lookup: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		dir:    func() (string, error) { return dir, nil },
		data:   func() (string, error) { return filepath.Join(dir, ".data"), nil },
		tty:    func() (*os.File, error) { return nil, os.ErrNotExist },
		notify: func(...os.Signal) (<-chan os.Signal, func()) { return v.signals, func() {} },
	}
	return v
}

func (v *invocation) run(ctx context.Context) int { return v.app.execute(ctx) }

// slow is a driver whose Create ends only when it is cancelled.
type slow struct{ fake }

func (s *slow) Create(ctx context.Context, _ paddock.Spec) (paddock.Sandbox, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("create: %w: %w", ctx.Err(), paddock.Canceled)
}
