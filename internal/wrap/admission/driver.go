package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options bound the load of a machine.
type Options struct {
	// Sandboxes is the maximum number. Zero is 1,000.
	Sandboxes int

	// Memory is the bytes of memory for sandboxes. Zero is the machine's memory, as far as
	// control groups leave it to this process.
	Memory int64

	// Overcommit is the factor by which the sum of the memory limits may exceed Memory.
	// Zero is 1: every sandbox can use its whole limit at the same time.
	Overcommit float64

	// Reserve is the bytes of memory that must be free on the machine when a sandbox is
	// made. Zero is a twentieth of Memory, if the machine reports its free memory.
	Reserve int64

	// Dir is where the driver keeps its disk data. Empty means no check of a disk.
	// DiskReserve is the bytes that must be free there. Zero is 1 GiB.
	Dir         string
	DiskReserve int64

	// Creating is the maximum of concurrent creations. Zero is two for each processor.
	// Waiting is the maximum of waiting Creates. Zero is 256.
	Creating int
	Waiting  int

	// Key returns the key of a Create; keys take turns in the queue. Nil gives all the same
	// key.
	Key func(ctx context.Context, spec paddock.Spec) string

	// Besides returns the specs of further sandboxes, such as the ready ones of a pool
	// below. Nil returns none.
	Besides func() []paddock.Spec

	// Machine measures the host. Nil is this machine.
	Machine Machine
}

// A Driver refuses sandboxes for which the machine has no room.
type Driver struct {
	inner  paddock.Driver
	o      Options
	memory int64 // maximum sum of claims
	line   *line

	mu      sync.Mutex
	usual   map[paddock.Tier]int64 // guarded by mu; memory of a sandbox without a limit
	held    map[paddock.ID]holding // guarded by mu; claims of existing sandboxes
	claims  int                    // guarded by mu; sandboxes being made
	claimed int64                  // guarded by mu; memory of these claims, and of updates
	looking bool                   // guarded by mu; sandboxes are being listed

	updating map[paddock.ID]chan struct{} // guarded by mu; closed when the update of limits has ended

	looked  time.Time // guarded by mu; end of the last list of sandboxes
	refused uint64    // guarded by mu
}

// A holding is the claim of an existing sandbox.
type holding struct {
	tier   paddock.Tier
	limits paddock.Limits
	memory int64
}

// holds returns the claim of a sandbox with this status.
func (d *Driver) holds(st paddock.Status) holding {
	return holding{st.Tier, st.Limits, d.takes(st.Tier, st.Limits)}
}

// takes returns the memory of the host that a sandbox with these limits can take, which is at least its
// memory limit.
func (d *Driver) takes(tier paddock.Tier, l paddock.Limits) int64 {
	if bytes, known := paddock.HostMemory(d.inner, tier, l); known {
		return max(bytes, l.Memory)
	}
	return l.Memory
}

// New returns a Driver around d, and counts its sandboxes. The result owns d and closes it.
// After an error, d still belongs to the caller.
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
		held: make(map[paddock.ID]holding), usual: make(map[paddock.Tier]int64), looking: true,
		updating: make(map[paddock.ID]chan struct{}),
	}
	return a, a.look(ctx)
}

// blind is the Reserve on a machine that does not report its free memory, if no Reserve was
// configured.
const blind = -1

// fill checks the options and sets defaults.
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

// or sets a default.
func or[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Info returns the wrapped driver's Info.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return d.inner.Info(ctx, tier)
}

// HostMemory implements paddock.MemoryPlanner.
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return paddock.HostMemory(d.inner, tier, l)
}

// Create implements paddock.Driver. It returns Exhausted if there is no room.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	memory, err := d.asked(ctx, &spec)
	if err != nil {
		return nil, err
	}
	if memory < 0 {
		return d.inner.Create(ctx, spec) // the driver returns the error
	}
	if err := d.claim(ctx, 1, memory); err != nil {
		return nil, err
	}
	sb, err := d.make(ctx, spec)
	var born paddock.Status
	var has holding
	if err == nil {
		memory, has, born, err = d.weigh(ctx, sb, memory)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims--
	d.claimed -= memory
	if err != nil {
		return nil, err
	}
	d.held[sb.ID()] = has
	return &sandbox{sb, d, &born}, nil
}

// asked returns the memory that a spec asks for; it is negative if the spec is invalid. Where
// the driver cannot tell what a tier takes, the default of the tier is found out at its first
// use, because that may make a trial sandbox.
func (d *Driver) asked(ctx context.Context, spec *paddock.Spec) (int64, error) {
	if spec.Limits.Memory < 0 || spec.Limits.Disk < 0 {
		return -1, nil
	}
	if bytes, known := paddock.HostMemory(d.inner, spec.Tier, spec.Limits); known {
		return bytes, nil
	}
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

// weigh claims the memory that a new sandbox has beyond the request, because a snapshot has
// its own limits and each tier its defaults. It returns the whole claim, what the sandbox
// holds of it, and the status. If there is no room, the sandbox is removed.
func (d *Driver) weigh(ctx context.Context, sb paddock.Sandbox, memory int64) (int64, holding, paddock.Status, error) {
	st, err := paddock.FirstStatus(ctx, sb)
	has := d.holds(st)
	if _, known := paddock.HostMemory(d.inner, st.Tier, st.Limits); !known {
		has.memory = max(has.memory, memory)
	}
	more := max(0, has.memory-memory)
	if err == nil {
		err = d.claim(ctx, 0, more)
	}
	if err != nil {
		late, done := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer done()
		return memory, has, st, errors.Join(err, sb.Remove(late))
	}
	return memory + more, has, st, nil
}

// removeTime bounds the removal of a sandbox without room.
const removeTime = time.Minute

// make makes a sandbox in its turn.
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

// A sandbox is a sandbox with a claim.
type sandbox struct {
	paddock.Sandbox
	d *Driver

	born *paddock.Status // status from Create; nil for an opened sandbox
}

func (s *sandbox) Born() (paddock.Status, bool) {
	if s.born == nil {
		return paddock.Status{}, false
	}
	return s.born.Clone(), true
}

// Update claims what new limits take beyond the present ones, before they apply. A limit of zero keeps the present one.
// A change that failed may have changed something, and after the error Unavailable of a sandbox that lives it may still
// be made: then the whole claim is kept.
func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if u.Limits == nil {
		return s.Sandbox.Update(ctx, u)
	}
	done, err := s.d.updates(ctx, s.ID())
	if err != nil {
		return err
	}
	defer done()
	has, err := s.has(ctx)
	if err != nil {
		return err
	}
	stays := has
	stays.limits.Memory, stays.limits.Disk = cmp.Or(u.Limits.Memory, has.limits.Memory), cmp.Or(u.Limits.Disk, has.limits.Disk)
	stays.memory = s.d.takes(has.tier, stays.limits)
	more := max(0, stays.memory-has.memory)
	if err := s.d.claim(ctx, 0, more); err != nil {
		return err
	}
	err = s.Sandbox.Update(ctx, u)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	st, unknown := s.Status(late)
	switch {
	case unknown != nil, errors.Is(err, paddock.Unavailable) && st.State != paddock.Dead:
		stays = s.d.both(has, stays)
	case err != nil && st.Limits.Memory == has.limits.Memory && st.Limits.Disk == has.limits.Disk:
		stays = has
	default:
		stays = s.d.holds(st)
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.claimed -= more
	if _, there := s.d.held[s.ID()]; there {
		s.d.held[s.ID()] = stays
	}
	return err
}

// both returns the claim of a sandbox that may have either of two limits.
func (d *Driver) both(a, b holding) holding {
	a.limits.Memory, a.limits.Disk = max(a.limits.Memory, b.limits.Memory), max(a.limits.Disk, b.limits.Disk)
	a.memory = max(a.memory, b.memory, d.takes(a.tier, a.limits))
	return a
}

// updates waits until no other update of the sandbox's limits is in progress: what that found would be noted later,
// and be wrong. done ends this one.
func (d *Driver) updates(ctx context.Context, id paddock.ID) (done func(), err error) {
	for {
		d.mu.Lock()
		busy := d.updating[id]
		if busy == nil {
			ours := make(chan struct{})
			d.updating[id] = ours
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.updating, id)
				close(ours)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another update of the sandbox: %w", paddock.Canceled)
		}
	}
}

// has returns what the sandbox holds.
func (s *sandbox) has(ctx context.Context) (holding, error) {
	s.d.mu.Lock()
	has, there := s.d.held[s.ID()]
	s.d.mu.Unlock()
	if there {
		return has, nil
	}
	st, err := s.Status(ctx)
	return s.d.holds(st), err
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

// Spec implements paddock.Specified.
func (s *sandbox) Spec(ctx context.Context) (paddock.Spec, error) {
	return paddock.SpecOf(ctx, s.Sandbox)
}

// Journal implements paddock.Journaled.
func (s *sandbox) Journal() paddock.Journal {
	j, err := paddock.JournalOf(s.Sandbox)
	if err != nil {
		return nil
	}
	return j
}

// MonitorQuestions implements paddock.Monitored.
func (s *sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	return paddock.MonitorQuestions(ctx, s.Sandbox, wait)
}

// AnswerMonitor implements paddock.Monitored.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	return paddock.AnswerMonitor(ctx, s.Sandbox, question, allow)
}
