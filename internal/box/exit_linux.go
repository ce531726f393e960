package box

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A sample is how many processes had been killed for lack of memory.
type sample struct {
	at    time.Time
	kills int64
}

// SampleKills remembers how many processes of the sandbox the host's kernel has killed for lack of
// memory so far, so that those of a command can be told from those before it.
func (s *Sandbox) SampleKills(ctx context.Context) {
	if kills, err := s.owner.kills(ctx); err == nil { // else it has ended, as Start tells
		s.sample(kills)
	}
}

// A MemoryRule says how the end of a command shows that memory of it was gone.
type MemoryRule struct {
	// Wait is how long the owner may be asked, after a command was killed, before it knows what
	// there was of memory.
	Wait time.Duration

	// Killed reports whether an end other than by SIGKILL means that, and corrects it. Nil is none.
	Killed func(exit *paddock.Exit) bool
}

// AmendMemory finds out whether a command ended because the sandbox's memory limit was reached, which
// only the host sees, and says so in exit.
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
		// It ended by itself; that may be why, or not.
		exit.Reason = fmt.Sprintf("meanwhile a process of the sandbox was killed, because the memory limit of %d bytes was reached", m.Limits.Memory)
		return
	}
	exit.Cause, exit.Limit, exit.Peak = paddock.OutOfMemory, m.Limits.Memory, m.Peak
	exit.Reason = fmt.Sprintf("the sandbox reached its memory limit of %d bytes, and a process of it was killed", m.Limits.Memory)
}

// measureWithin measures the sandbox. A box that is short of memory may have other things to do than
// to answer, and is asked again until that long has passed.
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

// measureTime is how long the end of a command may have to wait for what the host knows of it.
const measureTime = 5 * time.Second

// MeasureNow measures the sandbox as a command has ended, once.
func (s *Sandbox) MeasureNow() (Measure, error) {
	ctx, cancel := context.WithTimeout(context.Background(), measureTime)
	defer cancel()
	return s.owner.Measure(ctx)
}

// Inspect asks the box's init what it alone knows; see [Box.Inspect].
func (s *Sandbox) Inspect(ctx context.Context, st *paddock.Status) error {
	i, err := s.owner.Inspect(ctx)
	st.Refused, st.Usage.PIDs = i.Refusals, i.PIDs
	return err
}
