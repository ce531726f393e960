package tenant

import (
	"context"

	"github.com/paddock-sandbox/paddock"
)

// MonitorQuestions implements paddock.Monitored. It first looks whether the sandbox is still this tenant's.
func (s *sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	if err := s.there(ctx); err != nil {
		return nil, err
	}
	return paddock.MonitorQuestions(ctx, s.Sandbox, wait)
}

// AnswerMonitor implements paddock.Monitored, as above. A question is named by a random word, so an answer that meets another
// sandbox all the same answers nothing.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	if err := s.there(ctx); err != nil {
		return err
	}
	return paddock.AnswerMonitor(ctx, s.Sandbox, question, allow)
}
