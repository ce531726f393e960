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

// A limiter has the machine bound the memory of commands, and the host that of the machine.
type limiter struct{ guestkernel.Limiter }

// Update implements box.Limiter. A machine's memory is the machine's matter too.
func (l limiter) Update(ctx context.Context, b *box.Box, limits paddock.Limits) error {
	return guestkernel.UpdatePIDs(b, limits, func() error { return updateHost(ctx, b, limits) })
}

// updateHost has the host bound the box, and the machine its commands, all or nothing.
func updateHost(ctx context.Context, b *box.Box, l paddock.Limits) error {
	if l.Memory == 0 {
		return b.UpdateGroup(l)
	}
	was, rest := b.Limits(), l
	rest.Memory = 0
	if err := b.UpdateGroup(rest); err != nil {
		return err
	}
	err := resize(ctx, b, was.Memory, l.Memory)
	if err != nil {
		was.Memory = 0
		err = errors.Join(err, b.UpdateGroup(was))
	}
	return err
}

// Measure implements box.Limiter: it adds what a machine says of itself to what the host sees of it. Of
// one that does not answer the host knows that.
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

// believe takes what a machine says that was made with so much memory: it may say
// anything, and is believed what can be. What it has of the host's memory, the host
// knows, and asks it only where that cannot be measured.
func believe(m *box.Measure, i boxinit.Inspection, made int64) {
	const most = 1 << 30 // of what can only be counted
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

// resize changes how much memory the commands of a machine may have, which is was
// now. Less is bounded inside first: the machine then gives back what it has no use
// for, and when it has, the host bounds it. One that does not give it back keeps its
// limit, which is an error: it is not the machine that decides, but only whether
// its processes are ended to get there, and they are not.
func resize(ctx context.Context, b *box.Box, was, n int64) error {
	most := made(b)
	if n > most {
		return fmt.Errorf("change limits: the machine was made for %d MiB of memory, and cannot get more: %w", most>>20, paddock.Unsupported)
	}
	host := func(n int64) error { return b.UpdateGroup(paddock.Limits{Memory: n}) }
	if n >= was {
		if err := host(n); err != nil {
			return err
		}
		if err := boundMemory(ctx, b, n); err != nil {
			return errors.Join(err, host(was))
		}
		return nil
	}
	err := boundMemory(ctx, b, n)
	if err == nil {
		err = await(ctx, b, func() error { return host(n) })
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), guestkernel.BoundTime)
		defer cancel()
		return errors.Join(err, boundMemory(undo, b, was))
	}
	return nil
}

// giveBackTime bounds how long a machine may take to give back what it has no use
// for. It reports that every two seconds.
const giveBackTime = 30 * time.Second

// await calls bound until there is as little memory in use as that allows.
func await(ctx context.Context, b *box.Box, bound func() error) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackTime)
	defer cancel()
	for {
		err := bound()
		if !errors.Is(err, paddock.Conflict) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-b.Ended():
			return fmt.Errorf("change limits: %s: %w", b.Reason(), paddock.Unavailable)
		case <-ctx.Done():
			return fmt.Errorf("change limits: the machine does not give back the memory that it has, and keeps its limit: %w", err)
		}
	}
}

// boundMemory has a machine bound the memory of commands.
func boundMemory(ctx context.Context, b *box.Box, n int64) error {
	if err := guestkernel.Bound(ctx, b, boxinit.OpMemory, binary.LittleEndian.AppendUint64(nil, uint64(n))); err != nil {
		return fmt.Errorf("bound the memory: %w", err)
	}
	return nil
}

// asMade gives the limits that a machine was made with, which has these now.
func asMade(k *boxinit.GuestKernelConfig, l paddock.Limits) paddock.Limits {
	if k != nil && k.Made > 0 {
		l.Memory = k.Made
	}
	return l
}
