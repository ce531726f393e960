package actionlog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A Caller identifies who makes a call.
type Caller struct {
	Who     string // a key's ID or a user; never the key
	Tenant  string
	From    string // client address
	Request string // ID of the request
	Rule    string // what permitted the call
}

// Options configure the log.
type Options struct {
	Sink audit.Sink

	// Caller returns the caller of a context. Nil means that callers are unknown.
	Caller func(ctx context.Context) Caller

	// Failed is closed when the sink can no longer store events; see [audit.Lines.Failed].
	// Nil never is.
	Failed <-chan struct{}

	// Build returns the program that makes sandboxes, for the first event of each. Nil records no such event.
	Build func() audit.Build

	// Image returns "sha256:" and the digest of the image whose files are the root of a new sandbox, or an empty string.
	// Nil knows none.
	Image func(sb paddock.Sandbox, root paddock.Root) string
}

// A Recorder records actions other than those of the driver, for example a server's actions
// on its keys. [paddock.As] finds the Recorder of a driver made with [New].
type Recorder interface {
	// Do runs call and records it. It does not run call if it could not record it.
	Do(ctx context.Context, id paddock.ID, what, target string, call func() error) error

	// Record records a finished action. err is its result.
	Record(ctx context.Context, id paddock.ID, what, target string, err error)
}

// A driver records actions. It has no Unwrap, because no action may bypass the log.
type driver struct {
	inner paddock.Driver
	o     Options
}

var _ Recorder = (*driver)(nil)

// New returns a driver that records the calls to d. The result is also a [Recorder], and a
// [lifetime.Lessor] if d is one. It owns d and closes it. The caller closes the sink.
func New(d paddock.Driver, o Options) (paddock.Driver, error) {
	if o.Sink == nil {
		return nil, fmt.Errorf("there is no log to record actions in: %w", paddock.Invalid)
	}
	a := &driver{d, o}
	if k, ok := paddock.As[lifetime.Lessor](d); ok {
		return lessor{a, k}, nil
	}
	return a, nil
}

// A deed is an action in progress.
type deed struct {
	sandbox paddock.ID
	what    string
	target  string
	args    []string
	dir     string
	reason  string // if it succeeded
}

// ready returns an error if nothing can be recorded.
func (d *driver) ready() error {
	select {
	case <-d.o.Failed:
		return fmt.Errorf("actions cannot be recorded any more, so all are refused; check the disk of the record: %w", paddock.Unavailable)
	default:
		return nil
	}
}

// do runs and records an action.
func (d *driver) do(ctx context.Context, what deed, call func() error) error {
	if err := d.ready(); err != nil {
		return err
	}
	err := call()
	d.tell(ctx, what, err)
	return err
}

func (d *driver) Do(ctx context.Context, id paddock.ID, what, target string, call func() error) error {
	return d.do(ctx, deed{sandbox: id, what: what, target: target}, call)
}

func (d *driver) Record(ctx context.Context, id paddock.ID, what, target string, err error) {
	d.tell(ctx, deed{sandbox: id, what: what, target: target}, err)
}

func (d *driver) tell(ctx context.Context, what deed, err error) {
	var c Caller
	if d.o.Caller != nil {
		c = d.o.Caller(ctx)
	}
	a := audit.Action{
		Who: c.Who, Tenant: c.Tenant, From: c.From, Request: c.Request, Rule: c.Rule,
		What: what.what, Target: what.target, Result: "ok", Reason: what.reason,
	}
	if err != nil {
		a.Result, a.Reason = paddock.KindOf(err).Error(), err.Error()
	}
	d.keep(ctx, audit.Event{Time: time.Now(), Sandbox: string(what.sandbox), Kind: audit.Did, Args: what.args, Dir: what.dir, Action: &a})
}

func (d *driver) keep(ctx context.Context, e audit.Event) {
	if k, ok := d.o.Sink.(keeper); ok {
		// It waits for the disk, so that no flood of actions hides one. It fails only with the log, and then ready
		// refuses the next action.
		_ = k.Keep(context.WithoutCancel(ctx), e)
		return
	}
	d.o.Sink.Record(e)
}

// A keeper is a sink that can wait instead of losing an event.
type keeper interface {
	Keep(ctx context.Context, e audit.Event) error
}

// Create implements paddock.Driver.
func (d *driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.create(ctx, spec, d.inner.Create)
}

func (d *driver) create(ctx context.Context, spec paddock.Spec, create func(context.Context, paddock.Spec) (paddock.Sandbox, error)) (sb paddock.Sandbox, err error) {
	if err := d.ready(); err != nil {
		return nil, err
	}
	id := spec.ID
	if sb, err = create(ctx, spec); err == nil {
		id = sb.ID()
	}
	what := deed{sandbox: id, what: "sandbox.create"}
	if err == nil {
		what.reason = weaker(sb)
	}
	d.tell(ctx, what, err)
	if err != nil {
		return nil, err
	}
	d.started(ctx, sb, spec)
	return &sandbox{sb, d}, nil
}

// started records how a new sandbox began. A sandbox that cannot say so gets no such event.
func (d *driver) started(ctx context.Context, sb paddock.Sandbox, spec paddock.Spec) {
	if d.o.Build == nil {
		return
	}
	st, err := paddock.FirstStatus(ctx, sb)
	if err != nil {
		return
	}
	e := audit.StartOf(st, spec, d.o.Build())
	e.Time, e.Sandbox = time.Now(), string(sb.ID())
	e.Start.Kinds = nil // this log has actions only; what the policy names is recorded elsewhere
	if d.o.Caller != nil {
		e.Start.Tenant = d.o.Caller(ctx).Tenant
	}
	if d.o.Image != nil {
		e.Start.Image = d.o.Image(sb, spec.Root)
	}
	d.keep(ctx, e)
}

// weaker returns why a new sandbox has not got a stronger tier, if one was tried.
func weaker(sb paddock.Sandbox) string {
	st, _ := sb.Born()
	var list []string
	for _, p := range st.PassedOver {
		list = append(list, fmt.Sprintf("not on tier %s: %s", p.Tier, p.Cause))
	}
	return strings.Join(list, "; ")
}

// Info returns the wrapped driver's Info.
func (d *driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

// List implements paddock.Driver.
func (d *driver) List(ctx context.Context) ([]paddock.Status, error) { return d.inner.List(ctx) }

// Close closes the driver.
func (d *driver) Close() error { return d.inner.Close() }

// Open implements paddock.Driver.
func (d *driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.inner.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d}, nil
}

// RemoveSnapshot implements paddock.Driver.
func (d *driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return d.do(ctx, deed{what: "snapshot.remove", target: string(id)}, func() error { return d.inner.RemoveSnapshot(ctx, id) })
}
