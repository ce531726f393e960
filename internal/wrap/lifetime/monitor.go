package lifetime

import (
	"context"

	"github.com/paddock-sandbox/paddock"
)

// MonitorQuestions implements paddock.Monitored. It is no activity, and resumes nothing: a sandbox that is paused asks nothing.
func (s *sandbox) MonitorQuestions(ctx context.Context) ([]paddock.MonitorQuestion, error) {
	list, err := paddock.MonitorQuestions(ctx, s.Sandbox)
	return list, s.e.told(err)
}

// AnswerMonitor implements paddock.Monitored. It is no activity, as above.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	return paddock.AnswerMonitor(ctx, s.Sandbox, question, allow) // which question is not there is no news of the sandbox
}
