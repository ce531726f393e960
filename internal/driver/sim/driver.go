package sim

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/inventory"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/fetch"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
	"github.com/paddock-sandbox/paddock/tool"
)

// Options say how the driver's computers are made.
type Options struct {
	// Limits bound each computer, and each run on it; a zero field is its
	// default. What a spec asks for wins.
	Limits budget.Limits

	// Commands are added to the built-in ones; one of the same name wins.
	Commands []command.Command

	// Tools are functions of the caller's: a command for the first word of
	// each, and `tools` in JavaScript; nil is none.
	Tools *tool.Set

	// Python is a directory that python.Install has filled; empty is no Python.
	Python string

	// Private lists the caller's files that no computer may see.
	Private private.Files

	// Snapshots is the directory in which snapshots are kept; empty keeps
	// them in memory, as long as the driver lives.
	Snapshots string

	// Roots gives the authorities that curl and wget believe, when they need
	// them; nil is none.
	Roots func() *x509.CertPool

	// Dial reaches what the rules of a computer allow, by its name as the
	// computer has it; nil is no network. The rules are obeyed before it is
	// called, as far as hosts and ports go; others are refused at Create. It
	// must lead no name to addresses that the computer shall not reach.
	Dial Dial

	// Patience bounds how long a removal waits for commands that were killed; 0
	// is half a minute.
	Patience time.Duration

	// Walls are the controls around the process that the driver runs in.
	Walls []paddock.Finding
}

// Dial connects to a host, a name or an address. What it does not allow is
// [paddock.Denied].
type Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)

// A Driver makes simulated computers, in this process. Make one with [New].
type Driver struct {
	o        Options
	programs programs
	way      Dial                          // decides by itself; nil is none
	base     func() (*vfs.Snapshot, error) // made when it is first needed

	boxes inventory.Set[*box]

	mu    sync.Mutex
	limit budget.Limits // guarded by mu

	snapshots *snapshots
}

// New makes a driver.
func New(o Options) (*Driver, error) {
	d := &Driver{o: o, limit: o.Limits, programs: newPrograms(o)}
	d.base = sync.OnceValues(d.programs.base)
	var err error
	if d.snapshots, err = openSnapshots(o.Snapshots, d.base); err != nil {
		return nil, err
	}
	return d, nil
}

// Prepare does what the first Create would otherwise: it may be called at any
// time, and by another goroutine than Create.
func (d *Driver) Prepare() {
	_, _ = d.base() // who makes a computer is told what went wrong
}

// A Setup is what is not known yet where a driver is made ahead of time.
type Setup struct {
	Limits  budget.Limits
	Python  string
	Private private.Files
	Roots   func() *x509.CertPool
	Way     Dial // for computers with a list of rules, whose rules it obeys by itself; nil is none
}

// Configure changes what the driver was made with. It comes before the first
// Create.
func (d *Driver) Configure(s Setup) error {
	if _, err := d.base(); err != nil { // it reads the programs
		return err
	}
	d.way = s.Way
	if len(s.Private.Paths) > 0 {
		d.o.Private = s.Private
	}
	for _, c := range append(python.Commands(s.Python), fetch.Commands(s.Roots)...) {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			d.programs[name] = c
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = s.Limits
	return nil
}

// Info implements paddock.Driver.
func (d *Driver) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	return description.Info(tier, description.Facts{Limits: d.bounds(), Networked: d.networked(), Walls: d.o.Walls})
}

// Overhead is how many bytes of memory the process around a computer may hold beside what its limits of
// memory and disk count.
const Overhead = description.Overhead

// HostMemory implements paddock.MemoryPlanner.
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return description.Planned(d.bounds(), tier, l)
}

// Create implements paddock.Driver.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("create: %w", paddock.Canceled)
	}
	if spec.ID == "" {
		spec.ID = paddock.ID("sim-" + strings.ToLower(rand.Text()[:16]))
	}
	if err := d.check(&spec); err != nil {
		return nil, err
	}
	if err := d.boxes.Reserve(spec.ID); err != nil {
		return nil, err
	}
	b, err := d.make(spec)
	if err != nil {
		d.boxes.Forget(spec.ID)
		return nil, err
	}
	if err := d.boxes.Add(b); err != nil {
		return nil, errors.Join(err, b.end())
	}
	return b, nil
}

// Open implements paddock.Driver.
func (d *Driver) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	b, err := d.boxes.Open(id)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) { return d.boxes.List(ctx) }

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	if _, err := d.boxes.List(ctx); err != nil { // the driver is closed
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	if err := d.snapshots.remove(ctx, id); err != nil {
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	return nil
}

// Close removes every sandbox: none outlives the process it is made of.
func (d *Driver) Close() error { return errors.Join(d.boxes.Close(), d.snapshots.close()) }

// MostMemory is the most bytes of memory that the process may hold for its computers, with their present
// limits.
func (d *Driver) MostMemory() int64 {
	sum := int64(Overhead)
	for _, b := range d.boxes.All() {
		b.mu.Lock()
		sum += min(b.limits.Memory, math.MaxInt64-sum)
		sum += min(b.limits.Disk, math.MaxInt64-sum)
		b.mu.Unlock()
	}
	return sum
}

// An uncounted error stops runs whose process holds memory that no limit counts.
type uncounted struct{ held, most int64 } // bytes

func (e *uncounted) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("the process around the sandbox held %d MiB, and memory, disk and a reserve together are %d MiB: no limit counts the rest. More memory may not help; let the command do less at once, or in smaller pieces",
		e.held/mib, e.most/mib)
}

// OutOfMemory ends what runs on every computer, also what commands left behind: the process around them holds so many
// bytes, which is about to be more than it may, and which none of them counted.
func (d *Driver) OutOfMemory(held int64) {
	cause := &uncounted{held, d.MostMemory()}
	for _, b := range d.boxes.All() {
		b.kernel.Stop(cause)
	}
}

// stuckTime is how much processor time the process may have until a command that
// was to end has reached a checkpoint. The longest step of a tool takes less.
const stuckTime = 10 * time.Second

// Stuck returns the program of a command that was to end and does not stop
// computing, or nothing. It is asked every now and then. No means of this
// process ends such a command. The name is guest data.
func (d *Driver) Stuck() string {
	ran := processorTime()
	for _, b := range d.boxes.All() {
		if name := b.kernel.Overdue(ran, stuckTime); name != "" {
			return name
		}
	}
	return ""
}
