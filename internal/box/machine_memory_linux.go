package box

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// tell adds what a machine says of itself to what the host sees of it. Of one that
// does not answer the host knows that.
func (b *box) tell(ctx context.Context, m *measure) {
	if !b.machine || m.State != paddock.Ready {
		return
	}
	i, err := b.inspect(ctx)
	if err != nil {
		m.Silent = true
		return
	}
	m.believe(i, b.made)
}

// believe takes what a machine says that was made with so much memory: it may say
// anything, and is believed what can be. What it has of the host's memory, the host
// knows, and asks it only where that cannot be measured.
func (m *measure) believe(i boxinit.Inspection, made int64) {
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
func (b *box) resize(ctx context.Context, was, n int64) error {
	if n > b.made {
		return fmt.Errorf("change limits: the machine was made for %d MiB of memory, and cannot get more: %w", b.made>>20, paddock.Unsupported)
	}
	host := func(n int64) error { return b.group.Update(b.hosted(paddock.Limits{Memory: n})) }
	if n >= was {
		if err := host(n); err != nil {
			return err
		}
		if err := b.boundMemory(ctx, n); err != nil {
			return errors.Join(err, host(was))
		}
		return nil
	}
	err := b.boundMemory(ctx, n)
	if err == nil {
		err = b.await(ctx, func() error { return host(n) })
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), boundTime)
		defer cancel()
		return errors.Join(err, b.boundMemory(undo, was))
	}
	return nil
}

// giveBackTime bounds how long a machine may take to give back what it has no use
// for. It reports that every two seconds.
const giveBackTime = 30 * time.Second

// await calls bound until there is as little memory in use as that allows.
func (b *box) await(ctx context.Context, bound func() error) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackTime)
	defer cancel()
	for {
		err := bound()
		if !errors.Is(err, paddock.Conflict) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-b.ended:
			return fmt.Errorf("change limits: %s: %w", b.reason(), paddock.Unavailable)
		case <-ctx.Done():
			return fmt.Errorf("change limits: the machine does not give back the memory that it has, and keeps its limit: %w", err)
		}
	}
}

// boundMemory has a machine bound the memory of commands.
func (b *box) boundMemory(ctx context.Context, n int64) error {
	f, err := b.ask(boxinit.OpMemory, binary.LittleEndian.AppendUint64(nil, uint64(n)))
	if err != nil {
		return fmt.Errorf("bound the memory: %w", err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, boundTime)
	defer cancel()
	return b.report(ctx, f)
}

// asMade gives the limits that a machine was made with, which has these now.
func asMade(k *boxinit.KernelConfig, l paddock.Limits) paddock.Limits {
	if k != nil && k.Made > 0 {
		l.Memory = k.Made
	}
	return l
}

// hosted is a limit of the box's, as the host has to bound it: a machine has
// memory of its own beside what commands may have.
func (l *layout) hosted(limits paddock.Limits) paddock.Limits {
	if limits.PIDs > 0 {
		limits.PIDs = hostPIDs(limits.PIDs, l.nested)
	}
	if limits.Memory > 0 {
		limits.Memory += l.overhead()
	}
	return limits
}

// overhead is what a machine takes beside the limit, in bytes: as it is supplied,
// while the rest of the layout is still to be worked out, or as it was then.
func (l *layout) overhead() int64 {
	switch {
	case l.supply != nil:
		return l.supply.Overhead
	case l.config.Kernel != nil:
		return l.config.Kernel.Overhead
	}
	return 0
}
