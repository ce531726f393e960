package server

import (
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// questions handles GET /v1/sandboxes/{id}/questions.
func (q *request) questions() error {
	return q.with(func(sb paddock.Sandbox) error {
		list, err := paddock.MonitorQuestions(q.Context(), sb)
		if err != nil {
			return err
		}
		if list == nil {
			list = []paddock.MonitorQuestion{}
		}
		return q.json(http.StatusOK, api.Questions{Questions: list})
	})
}

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
