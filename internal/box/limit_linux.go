package box

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Freeze stops every process of the box. It needs a control group, because nothing else
// stops a process that is just being created.
func (b *Box) Freeze(ctx context.Context) error {
	if b.Group == nil {
		return fmt.Errorf("pause: no control group: %w", paddock.Unsupported)
	}
	if err := b.Group.Freeze(ctx); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	b.mu.Lock()
	b.paused = true
	b.mu.Unlock()
	return nil
}

// Thaw undoes Freeze.
func (b *Box) Thaw() error {
	if b.Group == nil {
		return nil
	}
	if err := b.Group.Thaw(); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	b.mu.Lock()
	b.paused = false
	b.mu.Unlock()
	return nil
}

// update changes limits of the living box.
func (b *Box) update(ctx context.Context, l paddock.Limits) error {
	if b.Group == nil {
		return fmt.Errorf("change limits: no control group: %w", paddock.Unsupported)
	}
	if err := b.plan.Runtime.Limiter.Update(ctx, b, l); err != nil {
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
	if b.sizes != nil {
		_ = boxinit.SizesOf(b.limits).Write(b.sizes) // otherwise commands see the earlier limits
	}
	return nil
}

// showSizes sends the box's init what commands see as the memory and the processors of the machine: the
// limits, which only this process writes and nobody here reads, and files of the control group that tell
// what it uses. The group's other files stay here, because some of them set limits.
func (b *Box) showSizes(c *Configuration) error {
	if c.Layout.Config.GuestKernel != nil { // a guest kernel shows what it has
		return nil
	}
	f, err := sys.SizedMemory("sizes", boxinit.SizesLen)
	if err != nil {
		return err
	}
	b.mu.Lock()
	err = boxinit.SizesOf(b.limits).Write(f)
	select {
	case <-b.ended:
		c.Own(f)
	default:
		b.sizes = f
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	c.Files.Add(boxinit.FileSizes, f)
	if b.Group == nil {
		return nil
	}
	for name, record := range map[string]cgroup.Record{
		boxinit.FileMemoryUsed: cgroup.MemoryUsed, boxinit.FileMemoryParts: cgroup.MemoryParts,
		boxinit.FilePIDsPeak: cgroup.PIDsPeak, boxinit.FilePIDsEvents: cgroup.PIDsEvents,
	} {
		f, err := b.Group.Open(record)
		if err != nil {
			return err
		}
		if f != nil {
			c.Own(f)
			c.Files.Add(name, f)
		}
	}
	return nil
}

// UpdateGroup changes those limits of the control group that are not zero, all or nothing.
func (b *Box) UpdateGroup(l paddock.Limits) error {
	return b.Group.Update(b.plan.Runtime.Limiter.HostLimits(b.plan.Layout, l))
}

// Limits returns the present limits.
func (b *Box) Limits() paddock.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits
}

// A Standing is the state of a box, with a reason.
type Standing struct {
	State  paddock.State `json:"state"`
	Reason string        `json:"reason,omitempty"`
}

// A Measure is the owner's knowledge of a box at one moment.
type Measure struct {
	Standing
	Usage  paddock.Usage  `json:"usage"`
	Limits paddock.Limits `json:"limits"`
	Kills  int64          `json:"kills"` // for lack of memory
	Peak   int64          `json:"peak"`
	Silent bool           `json:"silent,omitempty"` // its machine did not report its values
	CPUs   float64        `json:"cpus,omitempty"`   // highest processor limit of the host so far; 0 means none

	Traffic *paddock.Traffic  `json:"traffic,omitempty"` // nil if it is not counted
	Refused []paddock.Refusal `json:"refused,omitempty"` // of a box that has ended

	Unrecorded string `json:"unrecorded,omitempty"` // why steps are not recorded any more

	Monitor *paddock.Monitoring `json:"monitor,omitempty"` // nil without a monitor

	about *about // as the keeper has it now; nil if this process has it
}

// Measure returns what the host knows of the box.
func (b *Box) Measure() Measure {
	m := Measure{Usage: paddock.Usage{CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1}, Peak: -1}
	if b.meter != nil {
		if u, err := b.meter.Usage(); err == nil {
			m.Usage = u
			if u.PIDs >= 0 { // excluding the agent's own, which may be a few more for a while
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
	m.Standing = b.standLocked()
	m.Limits = b.limits
	if b.Group != nil {
		m.CPUs = max(b.mostCPUs, b.limits.CPUs)
	}
	return m
}

// Standing returns whether the box runs.
func (b *Box) Standing() Standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.standLocked()
}

// standLocked is like Standing. The caller holds mu.
func (b *Box) standLocked() Standing {
	select {
	case <-b.ended:
		return Standing{paddock.Dead, b.why}
	default:
	}
	if b.paused {
		return Standing{State: paddock.Paused}
	}
	return Standing{State: paddock.Ready}
}

// kills returns how many processes the host's kernel killed for lack of memory.
func (b *Box) kills() (int64, error) {
	switch {
	case b.Group != nil:
		return b.Group.Kills()
	case b.meter == nil:
		return 0, nil
	}
	n, _, err := b.meter.OOM()
	return n, err
}

// most returns the maximum number of the commands' processes and threads.
func (b *Box) most() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits.PIDs
}
