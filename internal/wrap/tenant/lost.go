package tenant

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A lost sandbox is one that the driver does not know any more. Its status is dead, with
// the cause, and it can be removed.
type lost struct {
	ts *Set
	b  store.Sandbox
}

func (l *lost) ID() paddock.ID { return l.b.ID }

func (*lost) Born() (paddock.Status, bool) { return paddock.Status{}, false }

// told returns the status of a lost sandbox.
func told(b store.Sandbox) paddock.Status {
	return paddock.Status{
		ID: b.ID, Tier: b.Tier, State: paddock.Dead, Created: b.Created, Labels: b.Labels, Limits: b.Limits,
		Reason: "it no longer existed when the server restarted",
		Usage:  paddock.Usage{Wall: -1, CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1},
	}
}

func (l *lost) Status(context.Context) (paddock.Status, error) { return told(l.b), nil }

// gone returns the error of all other calls.
func (l *lost) gone() error {
	return fmt.Errorf("sandbox %s is lost: %s: %w", l.b.ID, told(l.b).Reason, paddock.Unavailable)
}

func (l *lost) Start(context.Context, paddock.Cmd) (paddock.Process, error) { return nil, l.gone() }

func (l *lost) Attach(context.Context, paddock.PID, paddock.Output) (paddock.Process, error) {
	return nil, l.gone()
}

func (l *lost) Processes(context.Context) ([]paddock.ProcessInfo, error) { return nil, l.gone() }

func (l *lost) FS() paddock.FS { return lostFiles{l} }

func (l *lost) Dial(context.Context, int) (net.Conn, error) { return nil, l.gone() }

func (l *lost) Update(context.Context, paddock.Update) error { return l.gone() }

func (l *lost) Snapshot(context.Context, paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	return "", l.gone()
}

func (l *lost) Pause(context.Context) error { return l.gone() }

func (l *lost) Resume(context.Context) error { return l.gone() }

func (l *lost) Remove(ctx context.Context) error {
	return l.ts.forget(ctx, l.b)
}

// lostFiles are the files of a lost sandbox; every call fails.
type lostFiles struct{ l *lost }

func (f lostFiles) Open(context.Context, string, paddock.OpenOptions) (io.ReadCloser, error) {
	return nil, f.l.gone()
}

func (f lostFiles) Create(context.Context, string, paddock.CreateOptions) (io.WriteCloser, error) {
	return nil, f.l.gone()
}

func (f lostFiles) Stat(context.Context, string) (paddock.FileInfo, error) {
	return paddock.FileInfo{}, f.l.gone()
}

func (f lostFiles) List(context.Context, string, int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) { yield(paddock.FileInfo{}, f.l.gone()) }
}

func (f lostFiles) Mkdir(context.Context, string, paddock.MkdirOptions) error { return f.l.gone() }

func (f lostFiles) Rename(context.Context, string, string) error { return f.l.gone() }

func (f lostFiles) Remove(context.Context, string, bool) error { return f.l.gone() }

func (f lostFiles) Chmod(context.Context, string, fs.FileMode) error { return f.l.gone() }

func (f lostFiles) Symlink(context.Context, string, string) error { return f.l.gone() }

func (f lostFiles) Watch(context.Context, string, paddock.WatchOptions) (paddock.Watcher, error) {
	return nil, f.l.gone()
}
