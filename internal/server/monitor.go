package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// questions handles GET /v1/sandboxes/{id}/questions, with the parameter wait.
func (q *request) questions() error {
	wait := false
	switch text := q.URL.Query().Get("wait"); text {
	case "", "false":
	case "true":
		wait = true
	default:
		return fmt.Errorf("wait: %.40q is neither true nor false: %w", text, paddock.Invalid)
	}
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	defer context.AfterFunc(q.s.ctx, cancel)()
	return q.with(func(sb paddock.Sandbox) error {
		list, err := paddock.MonitorQuestions(ctx, sb, wait)
		if err != nil {
			return err
		}
		if list == nil {
			list = []paddock.MonitorQuestion{}
		}
		return q.json(http.StatusOK, api.Questions{Questions: list})
	})
}

// Asked adds the event that the monitor of a caller's sandbox asks something. Other events come from requests.
func (s *Server) Asked(caller string, id paddock.ID) { s.accountOf(caller).news.tell(api.Asked, id) }

// answerQuestion handles POST /v1/sandboxes/{id}/questions/{question}.
func (q *request) answerQuestion() error {
	var a api.Answer
	if err := q.body(&a); err != nil {
		return err
	}
	allow, err := a.Allows()
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		if err := paddock.AnswerMonitor(q.Context(), sb, q.PathValue("question"), allow); err != nil {
			return err
		}
		q.account.news.tell(api.Answered, sb.ID())
		return q.none()
	})
}
