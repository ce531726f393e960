package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// bare is a driver without any boundary: commands run on the host with all rights of the
// caller, and file names are followed naively. The attacks must succeed on it, otherwise
// they prove nothing elsewhere.
type bare struct{}

func (bare) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	return paddock.Info{Tier: "bare", Available: true}, nil
}

func (bare) Create(_ context.Context, s paddock.Spec) (paddock.Sandbox, error) {
	return &bareBox{files: s.Limits.Files}, nil
}

func (bare) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return nil, paddock.NotFound
}
func (bare) List(context.Context) ([]paddock.Status, error)           { return nil, nil }
func (bare) RemoveSnapshot(context.Context, paddock.SnapshotID) error { return paddock.Unsupported }
func (bare) Close() error                                             { return nil }

type bareBox struct {
	files int
}

func (*bareBox) ID() paddock.ID { return "bare" }

func (*bareBox) Born() (paddock.Status, bool) { return paddock.Status{}, false }
func (*bareBox) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{State: paddock.Ready}, nil
}

// Start runs the command in the caller's session, with its terminal and all its
// descriptors.
func (b *bareBox) Start(_ context.Context, c paddock.Cmd) (paddock.Process, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = os.Environ()
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &out, &errs
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, &paddock.StartError{Path: c.Args[0], Code: 127, Err: err}
	}
	return &bareProcess{cmd: cmd, out: &out, errs: &errs, to: c.Output}, nil
}

func (*bareBox) Attach(context.Context, paddock.PID, paddock.Output) (paddock.Process, error) {
	return nil, paddock.Unsupported
}
func (*bareBox) Processes(context.Context) ([]paddock.ProcessInfo, error) { return nil, nil }
func (*bareBox) FS() paddock.FS                                           { return naive{} }
func (*bareBox) Dial(context.Context, int) (net.Conn, error)              { return nil, paddock.Unsupported }
func (*bareBox) Update(context.Context, paddock.Update) error             { return paddock.Unsupported }
func (*bareBox) Snapshot(context.Context, paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	return "", paddock.Unsupported
}
func (*bareBox) Pause(context.Context) error  { return paddock.Unsupported }
func (*bareBox) Resume(context.Context) error { return paddock.Unsupported }
func (*bareBox) Remove(context.Context) error { return nil }

type bareProcess struct {
	cmd       *exec.Cmd
	out, errs *bytes.Buffer
	to        paddock.Output
}

func (p *bareProcess) ID() paddock.PID       { return paddock.PID(p.cmd.Process.Pid) }
func (p *bareProcess) Input() io.WriteCloser { return nil }
func (p *bareProcess) Wait(context.Context) (paddock.Exit, error) {
	err := p.cmd.Wait()
	if p.to.Stdout != nil {
		_, _ = p.to.Stdout.Write(p.out.Bytes())
	}
	if p.to.Stderr != nil {
		_, _ = p.to.Stderr.Write(p.errs.Bytes())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return paddock.Exit{}, err
	}
	return paddock.Exit{Code: p.cmd.ProcessState.ExitCode(), Cause: paddock.Exited}, nil
}
func (p *bareProcess) Signal(_ context.Context, s syscall.Signal) error {
	return p.cmd.Process.Signal(s)
}
func (p *bareProcess) Resize(context.Context, paddock.Size) error { return paddock.Conflict }
func (p *bareProcess) Release()                                   {}

// naive follows every name on the host.
type naive struct{}

func (naive) Open(_ context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	return os.Open(name)
}

func (naive) Create(_ context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if o.Append {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	return os.OpenFile(name, flags, 0o644)
}

func (naive) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	_, err := os.Stat(name)
	return paddock.FileInfo{Name: name}, err
}

func (naive) List(_ context.Context, name string, _ int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		err := filepath.WalkDir(name+"/", func(p string, _ iofs.DirEntry, err error) error {
			if err == nil && !yield(paddock.FileInfo{Name: p}, nil) {
				return iofs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(paddock.FileInfo{}, err)
		}
	}
}

func (naive) Mkdir(_ context.Context, name string, _ paddock.MkdirOptions) error {
	return os.MkdirAll(name, 0o755)
}
func (naive) Rename(_ context.Context, from, to string) error { return os.Rename(from, to) }
func (naive) Remove(_ context.Context, name string, all bool) error {
	if all {
		return os.RemoveAll(name)
	}
	return os.Remove(name)
}
func (naive) Chmod(_ context.Context, name string, mode iofs.FileMode) error {
	return os.Chmod(name, mode)
}
func (naive) Symlink(_ context.Context, target, name string) error { return os.Symlink(target, name) }
func (naive) Watch(context.Context, string, paddock.WatchOptions) (paddock.Watcher, error) {
	return nil, fmt.Errorf("watch: %w", paddock.Unsupported)
}
