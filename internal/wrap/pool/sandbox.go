package pool

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A birth is the time when a sandbox was handed out, which is its creation for the caller.
type birth struct {
	at   time.Time
	wall time.Duration // Usage.Wall at that time
}

// amend subtracts the time on the shelf from a status.
func (b *birth) amend(st *paddock.Status) {
	st.Created = b.at
	if st.Usage.Wall >= 0 {
		st.Usage.Wall = max(0, st.Usage.Wall-max(0, b.wall))
	}
}

// A sandbox is a handed-out sandbox. Everything but its age is the driver's.
type sandbox struct {
	paddock.Sandbox
	p    *Pool
	born *birth

	first *paddock.Status // status at the handover; nil for an opened sandbox
}

func (s *sandbox) Born() (paddock.Status, bool) {
	if s.first == nil {
		return paddock.Status{}, false
	}
	return s.first.Clone(), true
}

func (s *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	if err == nil {
		s.born.amend(&st)
	}
	return st, err
}

func (s *sandbox) Remove(ctx context.Context) error {
	if err := s.Sandbox.Remove(ctx); err != nil {
		return err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.given[s.ID()] == s.born { // the name may belong to another by now
		delete(s.p.given, s.ID())
	}
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
