package observe

import (
	"context"
	"net"

	"github.com/paddock-sandbox/paddock"
)

// An Op is an operation.
type Op string

// The operations of a driver, a sandbox and its files.
const (
	Create         Op = "create"
	Open           Op = "open"
	List           Op = "list"
	RemoveSnapshot Op = "remove-snapshot"

	Status    Op = "status"
	Start     Op = "start"
	Attach    Op = "attach"
	Processes Op = "processes"
	Dial      Op = "dial"
	Update    Op = "update"
	Snapshot  Op = "snapshot"
	Pause     Op = "pause"
	Resume    Op = "resume"
	Remove    Op = "remove"

	FileOpen    Op = "file-open"
	FileCreate  Op = "file-create"
	FileStat    Op = "file-stat"
	FileList    Op = "file-list"
	FileMkdir   Op = "file-mkdir"
	FileRename  Op = "file-rename"
	FileRemove  Op = "file-remove"
	FileChmod   Op = "file-chmod"
	FileSymlink Op = "file-symlink"
	FileWatch   Op = "file-watch"
)

// An Observer is called at the beginning of each call. It returns the context for the call,
// and a function to call at its end. It is called concurrently.
type Observer func(ctx context.Context, op Op, tier paddock.Tier) (context.Context, func(error))

// New returns a driver that reports the calls to d, which has one tier. The result owns d.
// The first observer is the outermost. Info and Close are not reported.
func New(d paddock.Driver, tier paddock.Tier, observers ...Observer) paddock.Driver {
	return &driver{d, &site{tier, observers}}
}

// A site is what all calls of a driver share.
type site struct {
	tier      paddock.Tier
	observers []Observer
}

func (s *site) begin(ctx context.Context, op Op) (context.Context, func(error)) {
	ends := make([]func(error), len(s.observers))
	for i, o := range s.observers {
		ctx, ends[i] = o(ctx, op, s.tier) //nolint:fatcontext // one for each observer
	}
	return ctx, func(err error) {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i](err)
		}
	}
}

// do makes a call that returns only an error.
func (s *site) do(ctx context.Context, op Op, call func(context.Context) error) error {
	ctx, end := s.begin(ctx, op)
	err := call(ctx)
	end(err)
	return err
}

// ask makes a call that returns a value.
func ask[T any](ctx context.Context, s *site, op Op, call func(context.Context) (T, error)) (T, error) {
	ctx, end := s.begin(ctx, op)
	v, err := call(ctx)
	end(err)
	return v, err
}

// A driver is an observed driver.
type driver struct {
	inner paddock.Driver
	s     *site
}

// Unwrap returns the observed driver.
func (d *driver) Unwrap() paddock.Driver { return d.inner }

func (d *driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

func (d *driver) Close() error { return d.inner.Close() }

func (d *driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.sandbox(ask(ctx, d.s, Create, func(ctx context.Context) (paddock.Sandbox, error) { return d.inner.Create(ctx, spec) }))
}

func (d *driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	return d.sandbox(ask(ctx, d.s, Open, func(ctx context.Context) (paddock.Sandbox, error) { return d.inner.Open(ctx, id) }))
}

func (d *driver) sandbox(sb paddock.Sandbox, err error) (paddock.Sandbox, error) {
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d.s}, nil
}

func (d *driver) List(ctx context.Context) ([]paddock.Status, error) {
	return ask(ctx, d.s, List, d.inner.List)
}

func (d *driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return d.s.do(ctx, RemoveSnapshot, func(ctx context.Context) error { return d.inner.RemoveSnapshot(ctx, id) })
}

// A sandbox is an observed sandbox.
type sandbox struct {
	inner paddock.Sandbox
	s     *site
}

func (b *sandbox) ID() paddock.ID { return b.inner.ID() }

func (b *sandbox) FS() paddock.FS { return &files{b.inner.FS(), b.s} }

// Unwrap returns the observed sandbox.
func (b *sandbox) Unwrap() paddock.Sandbox { return b.inner }

// Born calls no observer, because it makes no call.
func (b *sandbox) Born() (paddock.Status, bool) { return b.inner.Born() }

func (b *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	return ask(ctx, b.s, Status, b.inner.Status)
}

func (b *sandbox) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	return ask(ctx, b.s, Start, func(ctx context.Context) (paddock.Process, error) { return b.inner.Start(ctx, cmd) })
}

func (b *sandbox) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	return ask(ctx, b.s, Attach, func(ctx context.Context) (paddock.Process, error) { return b.inner.Attach(ctx, pid, out) })
}

func (b *sandbox) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	return ask(ctx, b.s, Processes, b.inner.Processes)
}

func (b *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return ask(ctx, b.s, Dial, func(ctx context.Context) (net.Conn, error) { return b.inner.Dial(ctx, port) })
}

func (b *sandbox) Update(ctx context.Context, u paddock.Update) error {
	return b.s.do(ctx, Update, func(ctx context.Context) error { return b.inner.Update(ctx, u) })
}

func (b *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	return ask(ctx, b.s, Snapshot, func(ctx context.Context) (paddock.SnapshotID, error) { return b.inner.Snapshot(ctx, o) })
}

func (b *sandbox) Pause(ctx context.Context) error { return b.s.do(ctx, Pause, b.inner.Pause) }

func (b *sandbox) Resume(ctx context.Context) error { return b.s.do(ctx, Resume, b.inner.Resume) }

func (b *sandbox) Remove(ctx context.Context) error { return b.s.do(ctx, Remove, b.inner.Remove) }
