package guestkernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Options are a tier's own part in the process that owns a box.
type Options struct {
	Argv0    string                                                                  // see box.Runtime
	Receive  func(events *os.File, sandbox string, sink audit.Sink) error            // see box.Runtime
	Diagnose func(s *box.Surroundings, says func(words ...string) bool) *box.Failure // see box.Runtime
	Limiter  box.Limiter                                                             // see box.Runtime and Limiter

	// Configure adds the tier's own files; it may be nil.
	Configure func(b *box.Box, c *box.Configuration) error

	Saver Saver
}

// NewRuntime returns the tier's part in the process that owns a box.
func NewRuntime(o Options) *box.Runtime {
	return &box.Runtime{
		Argv0: o.Argv0, Capabilities: sys.StartCaps(), Receive: o.Receive, Diagnose: o.Diagnose, Limiter: o.Limiter, Pauser: o.Saver,
		Configure: func(b *box.Box, c *box.Configuration) error {
			if err := configure(b, c); err != nil || o.Configure == nil {
				return err
			}
			return o.Configure(b, c)
		},
	}
}

// configure adds what every guest kernel gets: its program, the end of a socket for events,
// and a saved box that is to be resumed.
func configure(b *box.Box, c *box.Configuration) error {
	p, k := b.Plan(), c.Layout.Config.GuestKernel
	c.Layout.Config.PIDs = p.Limits.PIDs // may have changed since the layout was made
	if err := showProgram(c, p.Programs.One(box.FileInit)); err != nil {
		return b.Impossible(err)
	}
	if k.ImageFile {
		if err := b.Impossible(show(c, p.Root.Path, boxinit.ImageFile)); err != nil {
			return err
		}
	}
	if p.Runtime.Receive != nil {
		events, err := b.Listen()
		if err != nil {
			return err
		}
		c.Own(events)
		c.Files.Add(boxinit.FileEvents, events)
	}
	if p.Audit == nil {
		k.Audit = nil
	}
	for i, f := range p.Files.All() {
		if name := p.Files.Names()[i]; name != box.FileImageLock {
			c.Files.Add(name, f)
		}
	}
	if err := b.Impossible(addSaved(c, &p.First)); err != nil {
		return err
	}
	image := p.First.Of(boxinit.FileImage)
	k.Memory = len(image) == len(memoryParts)
	k.Layered = k.Layered || len(image) == len(fileParts)
	return nil
}

// addSaved adds the files with which a box begins. Parts of a saved box that have names are mounted read-only for a box
// whose user owns them: other boxes begin with them too, and whoever took over the box's init could open a descriptor
// again for writing, by its name in /proc. The parts of a paused ephemeral sandbox have no names and are nobody else's.
func addSaved(c *box.Configuration, first *boxinit.Files) error {
	c.Layout.Config.GuestKernel.SavedParts = 0
	for i, f := range first.All() {
		name := first.Names()[i]
		if parts := &c.Layout.Config.GuestKernel.SavedParts; name == boxinit.FileImage && !c.Layout.ID.Root {
			switch shown, err := ShowFile(c, f, boxinit.SavedPart(*parts)); {
			case err != nil:
				return err
			case shown:
				*parts++
				continue
			case *parts > 0:
				return fmt.Errorf("a part of the saved sandbox was removed meanwhile; begin again: %w", paddock.Unavailable)
			}
		}
		c.Files.Add(name, f)
	}
	return nil
}

// A Limiter makes the guest kernel bound the processes of commands, because the host cannot
// distinguish them from the kernel's own.
type Limiter struct{}

// HostLimits implements box.Limiter. A guest kernel has threads of its own, and would end
// if it could not make one. It bounds commands itself. gVisor has two threads of the host
// for an address space, one more for a task that runs, and frees them later than the task's
// place in its limit. With the default limit, fork bombs had up to 4.7 for each task.
func (Limiter) HostLimits(l *box.Layout, limits paddock.Limits) paddock.Limits {
	if limits.PIDs > 0 {
		limits.PIDs = 5*limits.PIDs + 1024
	}
	if limits.Memory > 0 {
		limits.Memory += Reserve(l)
	}
	return limits
}

// Reserve returns how much memory the host allows in addition to the limit, in bytes.
func Reserve(l *box.Layout) int64 {
	if k := l.Config.GuestKernel; k != nil && l.Reserve == 0 {
		return k.Overhead
	}
	return l.Reserve
}

// Update implements box.Limiter.
func (Limiter) Update(ctx context.Context, b *box.Box, l paddock.Limits) error {
	return UpdatePIDs(ctx, b, l, func() error { return b.UpdateGroup(l) })
}

// UpdatePIDs changes the process limit, if it is not zero, and then the other limits by
// host, either all or nothing. If ctx ends before host is called, it changes nothing: the
// guest decides how long the first part takes, and the caller may have left.
func UpdatePIDs(ctx context.Context, b *box.Box, l paddock.Limits, host func() error) error {
	var inside func(n int) error
	if l.PIDs > 0 {
		inside = func(n int) error { return boundPIDs(b, n) }
	}
	return updatePIDs(ctx, b.Limits().PIDs, l.PIDs, inside, host)
}

// updatePIDs is UpdatePIDs for a guest that inside tells its limit. Without a limit, inside
// is nil.
func updatePIDs(ctx context.Context, was, n int, inside func(n int) error, host func() error) error {
	if inside != nil {
		if err := inside(n); err != nil {
			return err
		}
	}
	err := ctx.Err()
	if err != nil {
		err = fmt.Errorf("change limits: %w: %w", err, box.EndKind(err))
	} else {
		err = host()
	}
	if err != nil && inside != nil {
		err = errors.Join(err, inside(was))
	}
	return err
}

// Measure implements box.Limiter. The host's figures suffice.
func (Limiter) Measure(context.Context, *box.Box, *box.Measure) {}

// boundPIDs makes the guest kernel bound its processes.
func boundPIDs(b *box.Box, n int) error {
	if err := Bound(context.Background(), b, boxinit.OpBound, binary.LittleEndian.AppendUint32(nil, uint32(n))); err != nil {
		return fmt.Errorf("bound the processes: %w", err)
	}
	return nil
}

// Bound makes the box's init change a limit that the guest kernel enforces.
func Bound(ctx context.Context, b *box.Box, op boxinit.Op, arg []byte) error {
	f, err := b.Ask(op, arg)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, BoundTime)
	defer cancel()
	return b.Report(ctx, f)
}

// BoundTime is how long a box's init may take to change a limit. It is longer than the
// init's own timeout for the guest kernel.
const BoundTime = 3 * time.Minute
