package microvm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A limiter bounds the memory of commands in the machine, and that of the machine on the
// host.
type limiter struct{ guestkernel.Limiter }

// Update implements box.Limiter. For a change of memory it also asks the machine.
func (l limiter) Update(ctx context.Context, b *box.Box, limits paddock.Limits) error {
	return guestkernel.UpdatePIDs(ctx, b, limits, func() error { return updateHost(ctx, b, limits) })
}

// updateHost bounds the box on the host and the commands in the machine. On an error,
// nothing is changed.
func updateHost(ctx context.Context, b *box.Box, l paddock.Limits) error {
	host := func() error { return b.UpdateGroup(l) }
	if l.Memory == 0 {
		return host()
	}
	if most := made(b); l.Memory > most {
		return fmt.Errorf("change limits: the machine was made for %d MiB of memory, and cannot get more: %w", most>>20, paddock.Unsupported)
	}
	return resize(ctx, b.Limits().Memory, l.Memory, resizing{
		inside: func(ctx context.Context, n int64) error { return boundMemory(ctx, b, n) },
		host:   host, ended: b.Ended(), reason: b.Reason,
	})
}

// Measure implements box.Limiter. It adds the machine's own figures to those of the host.
// If the machine does not answer, it uses only those of the host.
func (limiter) Measure(ctx context.Context, b *box.Box, m *box.Measure) {
	if m.State != paddock.Ready {
		return
	}
	i, err := b.Inspect(ctx)
	if err != nil {
		m.Silent = true
		return
	}
	believe(m, i, made(b))
}

// believe adds the machine's figures, limited to possible values, because a hostile machine
// may send anything. Its memory figure is used only if the host cannot measure it.
func believe(m *box.Measure, i boxinit.Inspection, made int64) {
	const most = 1 << 30 // bound of a count
	m.Kills += min(max(i.Kills, 0), most)
	m.Usage.PIDs = min(max(i.PIDs, 0), most)
	if i.Memory > 0 {
		memory := min(i.Memory, made)
		peak := min(max(i.Peak, memory), made)
		m.Peak = peak
		if m.Usage.Memory < 0 {
			m.Usage.Memory, m.Usage.MemoryPeak = memory, peak
		}
	}
}

// A resizing is what bounds the memory of a machine.
type resizing struct {
	inside func(ctx context.Context, n int64) error // bounds the commands
	host   func() error                             // sets the host's limits; Conflict if more is in use
	ended  <-chan struct{}
	reason func() string // why it ended
}

// resize changes the memory of a machine's commands from was to n. The limit inside is set
// first, and the host's limits last: a machine that does not answer, or answers after the
// caller has left, gets nothing of the host. To reduce it, the machine must first return
// unused memory. If it does not do so in time, it keeps its limit and resize returns an
// error. No process is killed to reach the limit.
func resize(ctx context.Context, was, n int64, r resizing) error {
	err := r.inside(ctx, n)
	if err == nil {
		err = r.await(ctx)
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), guestkernel.BoundTime)
		defer cancel()
		return errors.Join(err, r.inside(undo, was))
	}
	return nil
}

// giveBackTime bounds the time for a machine to return unused memory. It reports free
// memory every two seconds.
const giveBackTime = 30 * time.Second

// await sets the host's limits as soon as the memory in use is below.
func (r resizing) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackTime)
	defer cancel()
	err := ctx.Err()
	if err != nil {
		return fmt.Errorf("change limits: %w: %w", err, box.EndKind(err))
	}
	for {
		err = r.host()
		if !errors.Is(err, paddock.Conflict) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.ended:
			return fmt.Errorf("change limits: %s: %w", r.reason(), paddock.Unavailable)
		case <-ctx.Done():
			return fmt.Errorf("change limits: the machine does not return its memory, and keeps its limit: %w", err)
		}
	}
}

// boundMemory sets the memory limit of commands in the machine.
func boundMemory(ctx context.Context, b *box.Box, n int64) error {
	if err := guestkernel.Bound(ctx, b, boxinit.OpMemory, binary.LittleEndian.AppendUint64(nil, uint64(n))); err != nil {
		return fmt.Errorf("bound the memory: %w", err)
	}
	return nil
}

// asMade returns the limits at the creation of a machine with the present limits l.
func asMade(k *boxinit.GuestKernelConfig, l paddock.Limits) paddock.Limits {
	if k != nil && k.Made > 0 {
		l.Memory = k.Made
	}
	return l
}
