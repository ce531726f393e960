package box

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A sample is the number of processes that had been killed for lack of memory.
type sample struct {
	at    time.Time
	kills int64
}

// SampleKills records how many processes of the sandbox the host's kernel has killed so far
// for lack of memory, so that those of a command can be distinguished from earlier ones.
func (s *Sandbox) SampleKills(ctx context.Context) {
	if kills, err := s.owner.kills(ctx); err == nil { // otherwise it has ended, as Start reports
		s.sample(kills)
	}
}

// A MemoryRule says how to detect that a command ended for lack of memory.
type MemoryRule struct {
	// Wait is how long to ask the owner after a command was killed, until the owner knows
	// the state of the memory.
	Wait time.Duration

	// Killed reports whether an end other than by SIGKILL has that cause, and corrects it.
	// It may be nil.
	Killed func(exit *paddock.Exit) bool
}

// AmendMemory finds out whether a command ended because the sandbox's memory limit was
// reached, which only the host sees, and records it in exit.
func (s *Sandbox) AmendMemory(start guestclient.Start, exit *paddock.Exit, rule MemoryRule) {
	if exit.Code == 0 || exit.Cause != paddock.Exited && exit.Cause != paddock.Signaled {
		return
	}
	before := start.Killed
	if before < 0 {
		before = s.killsBefore(start.At)
	}
	killed := exit.Signal == syscall.SIGKILL || exit.Code == 128+int(syscall.SIGKILL)
	most := measureTime
	if killed {
		most = max(most, rule.Wait)
	}
	m, err := s.measureWithin(most)
	if err != nil || m.Kills <= before {
		return
	}
	s.sample(m.Kills)
	if !killed && rule.Killed != nil {
		killed = rule.Killed(exit)
	}
	if !killed {
		// It ended by itself; whether that was the cause is unknown.
		exit.Limit, exit.Peak = m.Limits.Memory, m.Peak
		exit.Reason = fmt.Sprintf("meanwhile a process of the sandbox was killed, because the memory limit of %d bytes was reached", m.Limits.Memory)
		return
	}
	exit.Cause, exit.Limit, exit.Peak = paddock.OutOfMemory, m.Limits.Memory, m.Peak
	exit.Reason = fmt.Sprintf("the sandbox reached its memory limit of %d bytes, and a process of it was killed", m.Limits.Memory)
}

// measureWithin measures the sandbox. A box that is short of memory may answer late, so it
// is asked repeatedly until the time is over.
func (s *Sandbox) measureWithin(most time.Duration) (Measure, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for {
		m, err := s.owner.Measure(ctx)
		if err != nil || !m.Silent {
			return m, err
		}
		select {
		case <-ctx.Done():
			return m, nil
		case <-time.After(againTime):
		}
	}
}

// measureTime is how long the end of a command may be delayed by the question to the host.
const measureTime = 5 * time.Second

// MeasureNow measures the sandbox once after the end of a command.
func (s *Sandbox) MeasureNow() (Measure, error) {
	ctx, cancel := context.WithTimeout(context.Background(), measureTime)
	defer cancel()
	return s.owner.Measure(ctx)
}

// Inspect asks the box's init for what only it knows; see [Box.Inspect].
func (s *Sandbox) Inspect(ctx context.Context, st *paddock.Status) error {
	i, err := s.owner.Inspect(ctx)
	st.Refused, st.Usage.PIDs = i.Refusals, i.PIDs
	return err
}
