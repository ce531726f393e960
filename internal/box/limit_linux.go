package box

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// pause stops everything. It needs a control group, because nothing else stops
// a process that is just being made.
func (b *box) pause(ctx context.Context) error {
	if b.group == nil {
		return fmt.Errorf("pause: no control group: %w", paddock.Unsupported)
	}
	if err := b.group.Freeze(ctx); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	b.mu.Lock()
	b.paused = true
	b.mu.Unlock()
	return nil
}

func (b *box) resume() error {
	if b.group == nil {
		return nil
	}
	if err := b.group.Thaw(); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	b.mu.Lock()
	b.paused = false
	b.mu.Unlock()
	return nil
}

// update changes limits of the living box.
func (b *box) update(ctx context.Context, l paddock.Limits) error {
	if b.group == nil {
		return fmt.Errorf("change limits: no control group: %w", paddock.Unsupported)
	}
	if l.PIDs > b.first && !b.nested {
		return fmt.Errorf("change limits: commands inherit the limit of %d processes that the sandbox was made with, so it cannot be raised above: %w", b.first, paddock.Unsupported)
	}
	was := b.bounds()
	if b.nested && l.PIDs > 0 {
		if err := b.bound(l.PIDs); err != nil {
			return err
		}
	}
	if err := b.updateHost(ctx, was, l); err != nil {
		if b.nested && l.PIDs > 0 {
			err = errors.Join(err, b.bound(was.PIDs))
		}
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Memory > 0 {
		b.limits.Memory = l.Memory
	}
	if l.CPUs > 0 {
		b.mostCPUs = max(b.mostCPUs, b.limits.CPUs)
		b.limits.CPUs = l.CPUs
	}
	if l.PIDs > 0 {
		b.limits.PIDs = l.PIDs
	}
	if l.IO > 0 {
		b.limits.IO = l.IO
	}
	return nil
}

// updateHost has the host bound the box, all or nothing. A machine's memory is the
// machine's matter too.
func (b *box) updateHost(ctx context.Context, was, l paddock.Limits) error {
	if !b.machine || l.Memory == 0 {
		return b.group.Update(b.hosted(l))
	}
	rest := l
	rest.Memory = 0
	if err := b.group.Update(b.hosted(rest)); err != nil {
		return err
	}
	err := b.resize(ctx, was.Memory, l.Memory)
	if err != nil {
		was.Memory = 0
		err = errors.Join(err, b.group.Update(b.hosted(was)))
	}
	return err
}

// bounds are the limits that hold now.
func (b *box) bounds() paddock.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits
}

// A standing is whether a box goes, and if not, why.
type standing struct {
	State  paddock.State `json:"state"`
	Reason string        `json:"reason,omitempty"`
}

// A measure is what the owner knows of a box at a moment.
type measure struct {
	standing
	Usage  paddock.Usage  `json:"usage"`
	Limits paddock.Limits `json:"limits"`
	Kills  int64          `json:"kills"` // for lack of memory
	Peak   int64          `json:"peak"`
	Silent bool           `json:"silent,omitempty"` // its machine did not tell what it knows
	CPUs   float64        `json:"cpus,omitempty"`   // processors that the host has given it at most; 0 is no bound

	Traffic *paddock.Traffic `json:"traffic,omitempty"` // nil where nobody counts it

	about *about // as the keeper has it at the moment; nil where it is this process that has it
}

func (b *box) measure() measure {
	m := measure{Usage: paddock.Usage{CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1}, Peak: -1}
	if b.meter != nil {
		if u, err := b.meter.Usage(); err == nil {
			m.Usage = u
			if u.PIDs >= 0 { // not the agent's own, which may be some more for a while
				m.Usage.PIDs = min(max(u.PIDs-boxinit.AgentThreads, 0), b.most())
			}
		}
		if kills, peak, err := b.meter.OOM(); err == nil {
			m.Kills, m.Peak = kills, peak
		}
	}
	m.Usage.Wall = time.Since(b.created)
	b.mu.Lock()
	defer b.mu.Unlock()
	m.standing = b.standLocked()
	m.Limits = b.limits
	if b.group != nil {
		m.CPUs = max(b.mostCPUs, b.limits.CPUs)
	}
	return m
}

func (b *box) stand() standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.standLocked()
}

// standLocked is stand for who holds mu.
func (b *box) standLocked() standing {
	select {
	case <-b.ended:
		return standing{paddock.Dead, b.why}
	default:
	}
	if b.paused {
		return standing{State: paddock.Paused}
	}
	return standing{State: paddock.Ready}
}

// kills tells how many processes were killed for lack of memory.
func (b *box) kills(ctx context.Context) (int64, error) {
	switch {
	case b.machine: // which counts its own
		m := b.measure()
		b.tell(ctx, &m)
		return m.Kills, nil
	case b.group != nil:
		return b.group.Kills()
	case b.meter == nil:
		return 0, nil
	}
	n, _, err := b.meter.OOM()
	return n, err
}

// most is how many processes and threads commands may have.
func (b *box) most() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits.PIDs
}
