package lifetime

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// wake resumes a sandbox that nobody asked to resume by name. What its monitor has paused is left alone: only a person has that go
// on.
func wake(ctx context.Context, sb paddock.Sandbox) error {
	st, err := sb.Status(ctx)
	if err != nil {
		return err
	}
	if m := st.Monitor; m != nil && m.Paused != "" && st.State == paddock.Paused {
		return fmt.Errorf("sandbox %s is paused by its monitor, and goes on when somebody resumes it: %s: %w", sb.ID(), m.Paused, paddock.Conflict)
	}
	return sb.Resume(ctx)
}

// MonitorQuestions implements paddock.Monitored. It is no activity, and resumes nothing: a sandbox that is paused asks nothing.
func (s *sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	list, err := paddock.MonitorQuestions(ctx, s.Sandbox, wait)
	return list, s.e.told(err)
}

// AnswerMonitor implements paddock.Monitored. It is no activity, as above.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	return paddock.AnswerMonitor(ctx, s.Sandbox, question, allow) // which question is not there is no news of the sandbox
}
