package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options bound what a machine has to bear.
type Options struct {
	// Sandboxes is how many there may be; zero is 1,000.
	Sandboxes int

	// Memory is how many bytes the machine has for sandboxes; zero is what it
	// tells itself, as far as control groups leave it to this process.
	Memory int64

	// Overcommit is how many times that memory the limits of all sandboxes may
	// sum up to; zero is 1, where each can use all of its limit at once.
	Overcommit float64

	// Reserve is how many bytes of memory must be left for the machine when a
	// sandbox is made; zero is a twentieth of it, where the machine tells what is
	// left.
	Reserve int64

	// Dir is where the driver keeps what is on disk; empty is nowhere, and no
	// look at a disk. DiskReserve is how many bytes must be left there; zero is
	// 1 GiB.
	Dir         string
	DiskReserve int64

	// Creating is how many sandboxes are made at once; zero is two for each
	// processor. Waiting is how many Creates wait in line; zero is 256.
	Creating int
	Waiting  int

	// Key says whose a Create is, for turns in line; nil is all of one.
	Key func(ctx context.Context, spec paddock.Spec) string

	// Besides gives the specs of what else is there, such as ready sandboxes of
	// a pool below; nil is nothing.
	Besides func() []paddock.Spec

	// Machine is what is asked; nil is this one.
	Machine Machine
}

// A Driver refuses what another has no room for. Make one with [New].
type Driver struct {
	inner  paddock.Driver
	o      Options
	memory int64 // how much may be promised
	line   *line

	mu      sync.Mutex
	usual   map[paddock.Tier]int64 // guarded by mu; memory of a sandbox that asks for none
	held    map[paddock.ID]int64   // guarded by mu; memory promised to what is there
	claims  int                    // guarded by mu; sandboxes that are being made
	claimed int64                  // guarded by mu; memory promised to these, and to updates
	looked  time.Time              // guarded by mu; when the driver was asked what is there
	refused uint64                 // guarded by mu
}

// New counts what d has. The driver is the new one's from here on, and is closed
// with it. Of an error it stays the caller's.
func New(ctx context.Context, d paddock.Driver, o Options) (*Driver, error) {
	o, err := o.fill()
	if err != nil {
		return nil, err
	}
	each := o.Waiting
	if o.Key != nil {
		each = (o.Waiting + 1) / 2
	}
	a := &Driver{
		inner: d, o: o, memory: int64(min(float64(o.Memory)*o.Overcommit, 1<<62)),
		line: &line{most: o.Waiting, each: each, keys: o.Key != nil, free: o.Creating, places: make(map[string][]*place)},
		held: make(map[paddock.ID]int64), usual: make(map[paddock.Tier]int64),
	}
	return a, a.look(ctx)
}

// blind is the Reserve of a machine that does not tell what is left, of which
// nobody asked to reserve anything.
const blind = -1

// fill checks the options, and gives what is zero its default.
func (o Options) fill() (Options, error) {
	if o.Sandboxes < 0 || o.Memory < 0 || !(o.Overcommit >= 0) || o.Reserve < 0 || o.DiskReserve < 0 || o.Creating < 0 || o.Waiting < 0 {
		return o, fmt.Errorf("a bound that is negative: %w", paddock.Invalid)
	}
	if o.Machine == nil {
		o.Machine = Host(os.DirFS("/"))
	}
	total, _, err := o.Machine.Memory()
	switch {
	case err == nil:
		or(&o.Memory, total)
		or(&o.Reserve, o.Memory/20)
	case o.Memory == 0 || o.Reserve > 0:
		return o, err
	default:
		o.Reserve = blind
	}
	if o.Dir != "" {
		if _, err := o.Machine.Disk(o.Dir); err != nil {
			return o, err
		}
	}
	or(&o.Sandboxes, 1000)
	or(&o.Overcommit, 1)
	or(&o.DiskReserve, 1<<30)
	or(&o.Creating, 2*runtime.GOMAXPROCS(0))
	or(&o.Waiting, 256)
	return o, nil
}

// or gives what is zero a default.
func or[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Info is the driver's.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

// Create implements paddock.Driver; what there is no room for is Exhausted.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	memory, err := d.asked(ctx, &spec)
	if err != nil {
		return nil, err
	}
	if memory < 0 {
		return d.inner.Create(ctx, spec) // which says what is wrong with it
	}
	if err := d.claim(ctx, 1, memory); err != nil {
		return nil, err
	}
	sb, err := d.make(ctx, spec)
	var born paddock.Status
	if err == nil {
		memory, born, err = d.weigh(ctx, sb, memory)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims--
	d.claimed -= memory
	if err != nil {
		return nil, err
	}
	d.held[sb.ID()] = memory
	return &sandbox{sb, d, &born}, nil
}

// asked is the memory that a spec asks for. What a tier gives to those that ask for
// none is found out when it is first needed: it may try a sandbox to tell.
func (d *Driver) asked(ctx context.Context, spec *paddock.Spec) (int64, error) {
	if spec.Limits.Memory != 0 {
		return spec.Limits.Memory, nil
	}
	d.mu.Lock()
	usual, ok := d.usual[spec.Tier]
	d.mu.Unlock()
	if ok {
		return usual, nil
	}
	info, err := d.inner.Info(ctx, spec.Tier)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usual[spec.Tier] = info.Defaults.Memory
	return info.Defaults.Memory, nil
}

// weigh claims what a sandbox got beyond what was asked for: a snapshot brings its
// own limits, and each tier has its defaults. It gives what is claimed in all, and how
// the sandbox is. What
// there is no room for is removed.
func (d *Driver) weigh(ctx context.Context, sb paddock.Sandbox, memory int64) (int64, paddock.Status, error) {
	st, err := paddock.FirstStatus(ctx, sb)
	more := max(0, st.Limits.Memory-memory)
	if err == nil {
		err = d.claim(ctx, 0, more)
	}
	if err != nil {
		late, done := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer done()
		return memory, st, errors.Join(err, sb.Remove(late))
	}
	return memory + more, st, nil
}

// removeTime bounds how long the removal of what there is no room for may take.
const removeTime = time.Minute

// make makes a sandbox in turn.
func (d *Driver) make(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	key := ""
	if d.o.Key != nil {
		key = d.o.Key(ctx, spec)
	}
	if err := d.line.enter(ctx, key); err != nil {
		return nil, d.count(err)
	}
	defer d.line.leave()
	if err := d.left(); err != nil {
		return nil, d.count(err)
	}
	return d.inner.Create(ctx, spec)
}

// count counts a refusal.
func (d *Driver) count(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused++
	return err
}

// Open implements paddock.Driver.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.inner.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &sandbox{sb, d, nil}, nil
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) { return d.inner.List(ctx) }

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return d.inner.RemoveSnapshot(ctx, id)
}

// Close closes the driver.
func (d *Driver) Close() error { return d.inner.Close() }

// A sandbox is one whose claim is noted.
type sandbox struct {
	paddock.Sandbox
	d *Driver

	born *paddock.Status // how it was when it was made; nil of one that was opened
}

func (s *sandbox) Born() (paddock.Status, bool) {
	if s.born == nil {
		return paddock.Status{}, false
	}
	return s.born.Clone(), true
}

func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if u.Limits == nil || u.Limits.Memory <= 0 {
		return s.Sandbox.Update(ctx, u)
	}
	s.d.mu.Lock()
	more := max(0, u.Limits.Memory-s.d.held[s.ID()])
	s.d.mu.Unlock()
	if err := s.d.claim(ctx, 0, more); err != nil {
		return err
	}
	err := s.Sandbox.Update(ctx, u)
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.claimed -= more
	if _, there := s.d.held[s.ID()]; there && err == nil {
		s.d.held[s.ID()] = u.Limits.Memory
	}
	return err
}

func (s *sandbox) Remove(ctx context.Context) error {
	if err := s.Sandbox.Remove(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	delete(s.d.held, s.ID())
	return nil
}
