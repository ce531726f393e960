package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

const (
	// creationGrace is how long a creation continues after its client has gone, because the
	// client may ask again.
	creationGrace = 5 * time.Second
	// creationKept is how long the answer of a creation is kept.
	creationKept = time.Minute
)

// A creation is a sandbox that is being made, or was made, for a client that may repeat or
// undo the request.
type creation struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when status and err are set

	status paddock.Status // set before done is closed
	err    error          // set before done is closed; see api.Keep

	// guarded by account.mu
	sb      paddock.Sandbox // nil before the creation and after a removal
	waiting int             // waiting requests
	left    time.Time
	undone  bool // the client undid it, or did not return
}

// late reports whether the answer has expired. It cancels an unfinished creation whose
// client has gone.
func (c *creation) late(now time.Time) bool {
	if c.waiting > 0 {
		return false
	}
	select {
	case <-c.done:
		return now.Sub(c.left) > creationKept
	default:
	}
	if now.Sub(c.left) > creationGrace {
		c.undone = true
		c.cancel()
	}
	return false
}

// create handles POST /v1/sandboxes.
func (q *request) create() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var asked api.Create
	if err := q.body(&asked); err != nil {
		return err
	}
	return q.made(func(ctx context.Context) (paddock.Sandbox, paddock.Status, error) {
		return q.build(ctx, asked.Spec, asked.Terms)
	}, func(st paddock.Status) error {
		q.w.Header().Set("Location", "/v1/sandboxes/"+string(st.ID))
		return q.json(http.StatusCreated, st)
	})
}

// build makes a sandbox if the caller may have it.
func (q *request) build(ctx context.Context, spec paddock.Spec, terms *api.Terms) (paddock.Sandbox, paddock.Status, error) {
	if err := q.caller.refuseSpec(spec); err != nil {
		return nil, paddock.Status{}, err
	}
	token := q.Header.Get(api.LeaseHeader)
	if spec.Ephemeral && !q.account.leased(token) {
		return nil, paddock.Status{}, fmt.Errorf("an ephemeral sandbox needs an open lease: %w", paddock.Conflict)
	}
	since, began := q.account.boxes.count(), time.Now()
	sb, err := q.caller.create(ctx, spec, terms)
	if err != nil {
		return nil, paddock.Status{}, err
	}
	if spec.ID != "" { // state of this name is of an earlier sandbox, removed without this server
		q.account.lost(q.caller.Driver, sb.ID())
	}
	if spec.Ephemeral {
		err = q.account.own(token, q.caller.Driver, sb)
	}
	var st paddock.Status
	if err == nil {
		st, err = paddock.FirstStatus(ctx, sb)
	}
	if err != nil {
		return nil, st, q.account.undo(q.caller.Driver, sb, err)
	}
	q.account.boxes.put(handleKey{q.caller.Driver, sb.ID()}, &handle{sb, began}, since)
	q.account.news.tell(api.Created, sb.ID())
	return sb, st, nil
}

// undo removes a sandbox that was just made.
func (a *account) undo(d paddock.Driver, sb paddock.Sandbox, err error) error {
	// Use a new context, because the call's may have ended.
	if failed := sb.Remove(context.Background()); failed != nil {
		return fmt.Errorf("%w; then remove it: %w", err, failed)
	}
	a.removed(d, sb.ID())
	return err
}

// made runs build once for all requests of one creation, and answers with its result.
func (q *request) made(build func(context.Context) (paddock.Sandbox, paddock.Status, error), answer func(paddock.Status) error) error {
	token := q.Header.Get(api.CreationHeader)
	if token == "" {
		sb, st, err := build(q.Context())
		if err != nil {
			return err
		}
		if q.Context().Err() != nil { // the client cannot get the answer
			return q.account.undo(q.caller.Driver, sb, paddock.Canceled)
		}
		return answer(st)
	}
	if !api.Token(token) {
		return fmt.Errorf("%s: not a token: %w", api.CreationHeader, paddock.Invalid)
	}
	c, began, err := q.account.creation(token, q.caller.Driver, q.bodies, func(ctx context.Context) (paddock.Sandbox, paddock.Status, error) { return build(q.mark(ctx)) })
	if err != nil {
		return err
	}
	if began { // the creation may outlive this request, with the decoded body
		q.bodies = nil
	}
	defer q.account.unwait(c)
	select {
	case <-c.done:
	case <-q.Context().Done():
		return fmt.Errorf("create: %w", paddock.Canceled)
	}
	if c.err != nil {
		return c.err
	}
	return answer(c.status)
}

// creation attaches to a creation, or begins it. A creation that it begins counts the bodies until build
// has returned.
func (a *account) creation(token string, d paddock.Driver, bodies []*metered, build func(context.Context) (paddock.Sandbox, paddock.Status, error)) (c *creation, began bool, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c = a.creations[token]; c != nil {
		if c.undone {
			return nil, false, fmt.Errorf("create: the client undid the creation: %w", paddock.Canceled)
		}
		c.waiting++
		return c, false, nil
	}
	if len(a.creations) >= maxCreations {
		return nil, false, fmt.Errorf("create: too many creations in progress: %w", paddock.Exhausted)
	}
	ctx, cancel := context.WithCancel(a.s.ctx)
	c = &creation{cancel: cancel, done: make(chan struct{}), waiting: 1}
	a.creations[token] = c
	// Close ends ctx, and it waits for the requests, so wg does not reach zero here.
	a.s.wg.Go(func() {
		defer cancel()
		defer close(c.done)
		defer settle(bodies)
		sb, st, err := build(ctx)
		c.status, c.err = st, api.Keep(err)
		a.mu.Lock()
		undone := c.undone
		if c.err == nil && !undone {
			c.sb = sb
		}
		a.mu.Unlock()
		if c.err == nil && undone {
			c.err = api.Keep(a.undo(d, sb, fmt.Errorf("create: the client undid the creation: %w", paddock.Canceled)))
		}
	})
	return c, true, nil
}

func (a *account) unwait(c *creation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.waiting--
	c.left = time.Now()
}

// uncreate handles DELETE /v1/creations/{token}. It answers when nothing of the creation is
// left.
func (q *request) uncreate() error {
	token := q.PathValue("token")
	if !api.Token(token) {
		return fmt.Errorf("creation: not a token: %w", paddock.Invalid)
	}
	a := q.account
	a.mu.Lock()
	c := a.creations[token]
	if c == nil { // tells a request that is still in progress
		c = &creation{cancel: func() {}, done: make(chan struct{}), undone: true, left: time.Now()}
		close(c.done)
		if len(a.creations) < maxCreations {
			a.creations[token] = c
		}
	}
	c.undone = true
	a.mu.Unlock()
	c.cancel()
	<-c.done
	a.mu.Lock()
	sb := c.sb
	a.mu.Unlock()
	if sb != nil {
		if err := sb.Remove(context.WithoutCancel(q.Context())); err != nil {
			return err
		}
		a.removed(q.caller.Driver, sb.ID())
	}
	return q.none()
}
