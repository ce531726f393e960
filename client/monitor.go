package client

import (
	"context"
	"net/url"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// MonitorQuestions implements paddock.Monitored.
func (s *sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	var list api.Questions
	query := url.Values{}
	if wait {
		query.Set("wait", "true")
	}
	if err := s.call(ctx, "questions of the monitor", call{method: "GET", path: "/questions", query: query, answer: &list, repeat: true}); err != nil {
		return nil, err
	}
	return list.Questions, nil
}

// AnswerMonitor is not repeated if the connection breaks: a question that was answered does not wait any more.
func (s *sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	return s.call(ctx, "answer the monitor", call{method: "POST", path: "/questions/" + url.PathEscape(question), body: api.AnswerOf(allow)})
}
