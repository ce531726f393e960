package actionlog

import (
	"context"

	"github.com/paddock-sandbox/paddock"
)

// MonitorQuestions implements paddock.Monitored. To look at questions is no action.
func (s *sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	return paddock.MonitorQuestions(ctx, s.Sandbox, wait)
}

// AnswerMonitor implements paddock.Monitored. Who answered what is recorded, with the rule that asked and what it was about.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	what := "monitor.deny"
	if allow {
		what = "monitor.allow"
	}
	return s.d.Do(ctx, s.ID(), what, s.asked(ctx, question), func() error {
		return paddock.AnswerMonitor(ctx, s.Sandbox, question, allow)
	})
}

// asked tells what a question asks, as far as it still waits.
func (s *sandbox) asked(ctx context.Context, question string) string {
	list, _ := paddock.MonitorQuestions(ctx, s.Sandbox, false) // the answer says what is wrong
	for _, q := range list {
		if q.ID == question {
			return question + ": " + q.Rule + ": " + q.About
		}
	}
	return question
}
