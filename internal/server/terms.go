package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// lessor returns the caller's driver as one whose sandboxes have terms.
func (c Caller) lessor() (lifetime.Lessor, error) {
	k, ok := paddock.As[lifetime.Lessor](c.Driver)
	if !ok {
		return nil, fmt.Errorf("sandboxes of this server have no terms and stay until they are removed: %w", paddock.Unsupported)
	}
	return k, nil
}

// create makes a sandbox with terms. Nil selects the server's default.
func (c Caller) create(ctx context.Context, spec paddock.Spec, t *api.Terms) (paddock.Sandbox, error) {
	if t == nil {
		return c.Driver.Create(ctx, spec)
	}
	k, err := c.lessor()
	if err != nil {
		return nil, err
	}
	terms, err := termsOf(*t)
	if err != nil {
		return nil, err
	}
	return k.CreateWith(ctx, spec, terms)
}

// termsOf decodes terms.
func termsOf(t api.Terms) (lifetime.Terms, error) {
	end := lifetime.Remove
	switch t.OnEnd {
	case "", api.AtEndRemove:
	case api.AtEndPause:
		end = lifetime.Pause
	default:
		return lifetime.Terms{}, fmt.Errorf("terms: on_end %.64q is neither %q nor %q: %w", t.OnEnd, api.AtEndRemove, api.AtEndPause, paddock.Invalid)
	}
	return lifetime.Terms{
		Deadline: t.Deadline, Lifetime: t.Lifetime, KeepAlive: t.KeepAlive, OnEnd: end,
		IdlePause: t.IdlePause, IdleRemove: t.IdleRemove, Wake: t.Wake, IgnoreProcesses: t.IgnoreProcesses, Budget: t.Budget,
	}, nil
}

// told encodes a lease.
func told(l lifetime.Lease) api.Lease {
	t := l.Terms
	if t.Timeout > 0 { // set by another API, for its own sandboxes
		t.Deadline = l.Ends
	}
	var spent *api.Spent
	if t.Budget.Bounds() {
		spent = &api.Spent{Use: l.Use, Cost: t.Budget.CostInWords(l.Use), Over: l.Over}
	}
	return api.Lease{
		Terms: api.Terms{
			Deadline: t.Deadline, Lifetime: t.Lifetime, KeepAlive: t.KeepAlive, OnEnd: string(t.OnEnd),
			IdlePause: t.IdlePause, IdleRemove: t.IdleRemove, Wake: t.Wake, IgnoreProcesses: t.IgnoreProcesses, Budget: t.Budget,
		},
		Created: l.Created, Ends: l.Ends, Renew: l.Renew, Idle: l.Idle, Paused: string(l.Paused), Failure: l.Failure, Spent: spent,
	}
}

// terms handles GET /v1/sandboxes/{id}/terms.
func (q *request) terms() error {
	return q.keep("", func(lifetime.Lessor, paddock.ID) error { return nil })
}

// setTerms handles PUT /v1/sandboxes/{id}/terms. It replaces all terms.
func (q *request) setTerms() error {
	var asked api.Terms
	if err := q.body(&asked); err != nil {
		return err
	}
	t, err := termsOf(asked)
	if err != nil {
		return err
	}
	return q.keep(api.Updated, func(k lifetime.Lessor, id paddock.ID) error { return k.Change(q.Context(), id, t) })
}

// extend handles POST /v1/sandboxes/{id}/extend.
func (q *request) extend() error {
	var by api.Extension
	if err := q.body(&by); err != nil {
		return err
	}
	return q.keep(api.Updated, func(k lifetime.Lessor, id paddock.ID) error { return k.Extend(q.Context(), id, by.By) })
}

// renew handles POST /v1/sandboxes/{id}/renew.
func (q *request) renew() error {
	return q.keep("", func(k lifetime.Lessor, id paddock.ID) error { return k.Renew(q.Context(), id) })
}

// raise handles POST /v1/sandboxes/{id}/budget.
func (q *request) raise() error {
	var by allowance.Raise
	if err := q.body(&by); err != nil {
		return err
	}
	return q.keep(api.Updated, func(k lifetime.Lessor, id paddock.ID) error { return k.Raise(q.Context(), id, by) })
}

// keep runs an operation on a sandbox's terms, and answers with the new state. If news is
// not empty, it is published.
func (q *request) keep(news api.NewsKind, do func(lifetime.Lessor, paddock.ID) error) error {
	id, err := q.sandboxID()
	if err != nil {
		return err
	}
	k, err := q.caller.lessor()
	if err != nil {
		return err
	}
	if err := do(k, id); err != nil {
		return err
	}
	if news != "" {
		q.account.news.tell(news, id)
	}
	l, err := k.Terms(q.Context(), id)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, told(l))
}
