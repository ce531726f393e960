// Package fake provides a driver without any isolation, for tests of the command line.
package fake

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
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Fake is a driver whose sandboxes start programs on this machine, without any isolation. It is
// for tests of the command line, not of a boundary. Status and Info return what the test sets.
type Fake struct {
	About   paddock.Info
	Refused []paddock.Refusal
	Amend   func(*paddock.Exit)
	Measure func(*paddock.Status) // amends each status
	Refuse  error                 // of Create
	Unable  error                 // of Info

	mu      sync.Mutex
	spec    paddock.Spec // guarded by mu; of the last Create
	Created int          // guarded by mu
	Removed int          // guarded by mu
}

// Info implements paddock.Driver.
func (f *Fake) Info(context.Context, paddock.Tier) (paddock.Info, error) { return f.About, f.Unable }

// Create implements paddock.Driver.
func (f *Fake) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if f.Refuse != nil {
		return nil, f.Refuse
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spec = spec
	f.Created++
	return &fakeSandbox{f: f, spec: spec}, nil
}

// Open implements paddock.Driver.
func (f *Fake) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return nil, paddock.NotFound
}

// List implements paddock.Driver.
func (f *Fake) List(context.Context) ([]paddock.Status, error) { return nil, nil }

// RemoveSnapshot implements paddock.Driver.
func (f *Fake) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return nil }

// Close implements paddock.Driver.
func (f *Fake) Close() error { return nil }

// Made returns the spec of the last Create.
func (f *Fake) Made() paddock.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spec
}

type fakeSandbox struct {
	f    *Fake
	spec paddock.Spec

	mu   sync.Mutex
	proc *Process // guarded by mu
}

func (s *fakeSandbox) ID() paddock.ID { return "fake-1" }

func (*fakeSandbox) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (s *fakeSandbox) Status(context.Context) (paddock.Status, error) {
	st := paddock.Status{
		ID: s.ID(), Tier: s.spec.Tier, State: paddock.Ready, Refused: s.f.Refused,
		Enforced: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Absent, Cause: "a fake"}},
	}
	if s.f.Measure != nil {
		s.f.Measure(&st)
	}
	return st, nil
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
	c.Env = append(c.Env, "PATH="+os.Getenv("PATH")) //nolint:forbidigo // programs of a fake are found as its caller finds them
	p := &Process{c: c, exited: make(chan struct{}), amend: s.f.Amend}
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
		_ = theirs.Close() // the program has its own now
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
	s.f.Removed++
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

// A Process is a program of this machine, started without any isolation.
type Process struct {
	c        *exec.Cmd
	in       io.WriteCloser
	exited   chan struct{}
	amend    func(*paddock.Exit)
	timedOut flag

	Mu      sync.Mutex
	Signals []syscall.Signal // guarded by mu; that were sent
}

// flag is a boolean for two goroutines.
type flag struct {
	mu sync.Mutex
	on bool // guarded by mu
}

func (f *flag) Store(on bool) { f.mu.Lock(); f.on = on; f.mu.Unlock() }
func (f *flag) Load() bool    { f.mu.Lock(); defer f.mu.Unlock(); return f.on }

// ID implements paddock.Process.
func (p *Process) ID() paddock.PID { return paddock.PID(p.c.Process.Pid) }

// Input implements paddock.Process.
func (p *Process) Input() io.WriteCloser { return p.in }

// Release does nothing, because the process has nothing to release.
func (p *Process) Release() {}

// Resize implements paddock.Process.
func (p *Process) Resize(context.Context, paddock.Size) error {
	return paddock.Conflict
}

// Wait implements paddock.Process.
func (p *Process) Wait(context.Context) (paddock.Exit, error) {
	<-p.exited
	state := p.c.ProcessState
	exit := paddock.Exit{Code: state.ExitCode(), Cause: paddock.Exited}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
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

// Signal implements paddock.Process.
func (p *Process) Signal(_ context.Context, sig syscall.Signal) error {
	select {
	case <-p.exited:
		return paddock.NotFound
	default:
	}
	p.Mu.Lock()
	p.Signals = append(p.Signals, sig)
	p.Mu.Unlock()
	return syscall.Kill(-p.c.Process.Pid, sig)
}

// GoodInfo returns the Info of an available jail with one control.
func GoodInfo() paddock.Info {
	return paddock.Info{
		Tier: paddock.Jail, Available: true, Version: runtime.GOOS,
		Controls: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Full, How: "a filter"}},
		Defaults: paddock.Limits{Memory: 1 << 30, PIDs: 512},
	}
}

// Slow is a driver whose Create waits until it is cancelled.
type Slow struct{ Fake }

// Create implements paddock.Driver.
func (s *Slow) Create(ctx context.Context, _ paddock.Spec) (paddock.Sandbox, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("create: %w: %w", ctx.Err(), paddock.Canceled)
}
