package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// journal calls do with the journal of the sandbox that the path names, which may be gone. do answers only if it succeeds.
func (q *request) journal(do func(paddock.Journal) error) error {
	err := q.with(func(sb paddock.Sandbox) error {
		j, err := paddock.JournalOf(sb)
		if err != nil {
			return err
		}
		return do(j)
	})
	if !errors.Is(err, paddock.NotFound) {
		return err
	}
	if _, open := q.sandbox(); !errors.Is(open, paddock.NotFound) { // the step is what there is not
		return err
	}
	j, past := paddock.PastJournal(q.Context(), q.caller.Driver, paddock.ID(q.PathValue("id")))
	switch {
	case errors.Is(past, paddock.NotFound) || errors.Is(past, paddock.Unsupported):
		return err
	case past != nil:
		return past
	}
	return do(j)
}

// stepNumber reads the number of the step that the path names.
func (q *request) stepNumber() (int64, error) {
	text := q.PathValue("step")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("step %.40q is not the number of a step: %w", text, paddock.Invalid)
	}
	return n, nil
}

// positive reads a parameter that is a number from 1, or zero if it is missing.
func (q *request) positive(name string) (int64, error) {
	text := q.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s: %.40q is not a number from 1: %w", name, text, paddock.Invalid)
	}
	return n, nil
}

// steps handles GET /v1/sandboxes/{id}/steps: the newest steps, or those before one.
func (q *request) steps() error {
	f := paddock.StepFilter{Last: defaultPage}
	limit, err := q.positive("limit")
	if err != nil {
		return err
	}
	if limit > maxPage {
		return fmt.Errorf("limit: %d is more than %d: %w", limit, maxPage, paddock.Invalid)
	}
	if limit > 0 {
		f.Last = int(limit)
	}
	if f.Before, err = q.positive("before"); err != nil {
		return err
	}
	return q.journal(func(j paddock.Journal) error {
		f.Last++ // which tells whether there are more
		list, err := j.Steps(q.Context(), f)
		if err != nil {
			return err
		}
		page := api.Steps{Steps: []api.Step{}}
		if len(list) == f.Last {
			list = list[1:]
			page.Before = list[0].Number
		}
		size := int64(0)
		for i := range list {
			size += sizeOfStep(&list[i])
		}
		if err := q.out.hold(size); err != nil {
			return err
		}
		for i := range list {
			page.Steps = append(page.Steps, api.FromStep(&list[i]))
		}
		return q.json(http.StatusOK, page)
	})
}

// sizeOfStep estimates the memory of a step with its encoded form.
func sizeOfStep(s *paddock.Step) (n int64) {
	const one, entry = 1024, 128
	n = one
	for _, list := range [][]string{s.Command, s.Refused, s.Hosts, s.Secrets} {
		for _, text := range list {
			n += entry + 2*int64(len(text))
		}
	}
	for i := range s.Changes {
		c := &s.Changes[i]
		n += entry + 2*int64(len(c.Path)+len(c.From)+len(c.Why))
	}
	for i := range s.Left {
		n += entry + 2*int64(len(s.Left[i].Path)+len(s.Left[i].Why))
	}
	return n
}

// step handles GET /v1/sandboxes/{id}/steps/{step}.
func (q *request) step() error {
	n, err := q.stepNumber()
	if err != nil {
		return err
	}
	return q.journal(func(j paddock.Journal) error {
		one, err := j.Step(q.Context(), n)
		if err != nil {
			return err
		}
		if err := q.out.hold(sizeOfStep(&one)); err != nil {
			return err
		}
		return q.json(http.StatusOK, api.FromStep(&one))
	})
}

// stepDiff handles GET /v1/sandboxes/{id}/steps/{step}/diff, with the parameters to, the last of several steps, and path.
func (q *request) stepDiff() error {
	first, err := q.stepNumber()
	if err != nil {
		return err
	}
	last, err := q.positive("to")
	if err != nil {
		return err
	}
	last = max(last, first)
	return q.journal(func(j paddock.Journal) error {
		list, err := j.Diff(q.Context(), first, last, q.URL.Query()["path"])
		if err != nil {
			return err
		}
		size := int64(0)
		for i := range list {
			size += 256 + 2*int64(len(list[i].Path)+len(list[i].From)+len(list[i].Text)+len(list[i].Why))
		}
		if err := q.out.hold(size); err != nil {
			return err
		}
		answer := api.StepDiffs{Differences: make([]api.StepDiff, len(list))}
		for i := range list {
			answer.Differences[i] = api.FromStepDiff(list[i])
		}
		return q.json(http.StatusOK, answer)
	})
}

// undo handles POST /v1/sandboxes/{id}/undo.
func (q *request) undo() error {
	var asked api.Undo
	if err := q.body(&asked); err != nil {
		return err
	}
	return q.journal(func(j paddock.Journal) error {
		done, err := j.Undo(q.Context(), paddock.Undo{Steps: asked.Steps, To: asked.To, Paths: api.Unpack(asked.Paths)})
		if err != nil {
			return err
		}
		size := int64(0)
		for _, list := range [][]paddock.UndonePath{done.Restored, done.Conflicts} {
			for i := range list {
				size += 256 + 2*int64(len(list[i].Path)+len(list[i].Note)+len(list[i].Why)+len(list[i].Remedy))
			}
		}
		if err := q.out.hold(size); err != nil {
			return err
		}
		return q.json(http.StatusOK, api.FromUndone(&done))
	})
}
