package actionlog

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Caller is who makes a call.
type Caller struct {
	Who     string // whose key, or which user; never the key
	Tenant  string
	From    string // address
	Request string // ID
	Rule    string // what allowed the call
}

// Options say where actions are told.
type Options struct {
	Sink audit.Sink

	// Caller says who makes the call of a context; nil is nobody known.
	Caller func(ctx context.Context) Caller

	// Failed is closed when the sink keeps nothing any more, as
	// [audit.Lines.Failed] is; nil is never.
	Failed <-chan struct{}
}

// A Driver records actions. Make one with [New].
type Driver struct {
	inner paddock.Driver
	o     Options
}

// New records what is done through it. The driver is the new one's from here
// on, and is closed with it; the sink is not.
func New(d paddock.Driver, o Options) (*Driver, error) {
	if o.Sink == nil {
		return nil, fmt.Errorf("actions are to be recorded nowhere: %w", paddock.Invalid)
	}
	return &Driver{d, o}, nil
}

// A deed is an action that is being done.
type deed struct {
	sandbox paddock.ID
	what    string
	target  string
	args    []string
	dir     string
}

// ready refuses what could not be recorded.
func (d *Driver) ready() error {
	select {
	case <-d.o.Failed:
		return fmt.Errorf("actions cannot be recorded any more, so none is done; see to the disk of the record: %w", paddock.Unavailable)
	default:
		return nil
	}
}

// do does and records something.
func (d *Driver) do(ctx context.Context, what deed, call func() error) error {
	if err := d.ready(); err != nil {
		return err
	}
	err := call()
	d.tell(ctx, what, err)
	return err
}

// Do does and records an action that is none of the driver's, such as of a server on the
// ports of a sandbox. What cannot be recorded is not done.
func (d *Driver) Do(ctx context.Context, id paddock.ID, what, target string, call func() error) error {
	return d.do(ctx, deed{sandbox: id, what: what, target: target}, call)
}

// Record tells an action that is none of the driver's, such as of a server on
// its keys; err is how it went.
func (d *Driver) Record(ctx context.Context, id paddock.ID, what, target string, err error) {
	d.tell(ctx, deed{sandbox: id, what: what, target: target}, err)
}

func (d *Driver) tell(ctx context.Context, what deed, err error) {
	var c Caller
	if d.o.Caller != nil {
		c = d.o.Caller(ctx)
	}
	a := audit.Action{
		Who: c.Who, Tenant: c.Tenant, From: c.From, Request: c.Request, Rule: c.Rule,
		What: what.what, Target: what.target, Result: "ok",
	}
	if err != nil {
		a.Result, a.Reason = paddock.KindOf(err).Error(), err.Error()
	}
	d.o.Sink.Record(audit.Event{Time: time.Now(), Sandbox: string(what.sandbox), Kind: audit.Did, Args: what.args, Dir: what.dir, Action: &a})
}

// Create implements paddock.Driver.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.create(ctx, spec, d.inner.Create)
}

func (d *Driver) create(ctx context.Context, spec paddock.Spec, create func(context.Context, paddock.Spec) (paddock.Sandbox, error)) (sb paddock.Sandbox, err error) {
	if err := d.ready(); err != nil {
		return nil, err
	}
	id := spec.ID
	if sb, err = create(ctx, spec); err == nil {
		id = sb.ID()
	}
	d.tell(ctx, deed{sandbox: id, what: "sandbox.create"}, err)
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d}, nil
}

// Info is the driver's.
func (d *Driver) Info(ctx context.Context) (paddock.Info, error) { return d.inner.Info(ctx) }

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) { return d.inner.List(ctx) }

// Close closes the driver.
func (d *Driver) Close() error { return d.inner.Close() }

// Open implements paddock.Driver.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.inner.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d}, nil
}

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return d.do(ctx, deed{what: "snapshot.remove", target: string(id)}, func() error { return d.inner.RemoveSnapshot(ctx, id) })
}
