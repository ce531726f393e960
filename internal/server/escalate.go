package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// escalate handles POST /v1/sandboxes/{id}/escalate. Nothing of the sandbox changes before the new one can run commands.
// From then on the request is completed even if the client goes: a sandbox that was taken back then would take the files
// with it.
func (q *request) escalate() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var e api.Escalation
	if err := q.body(&e); err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		c, err := q.climb(sb, e)
		if err != nil {
			return fmt.Errorf("escalate: %w", err)
		}
		st, err := c.run(q.Context())
		if err != nil {
			return fmt.Errorf("escalate: the sandbox %s stays as it is: %w", sb.ID(), err)
		}
		answer := api.Escalated{Sandbox: st}
		// A partial removal helps nobody.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(q.Context()), 5*time.Minute)
		defer cancel()
		if err := sb.Remove(ctx); err != nil {
			answer.Left = err.Error()
		} else {
			q.account.removed(q.caller.Driver, sb.ID())
		}
		q.w.Header().Set("Location", "/v1/sandboxes/"+string(st.ID))
		return q.json(http.StatusCreated, answer)
	})
}

// A climb is an escalation whose beginning was checked.
type climb struct {
	q     *request
	from  paddock.Sandbox
	spec  paddock.Spec
	terms *api.Terms // nil is the server's default
}

// strength orders tiers by their isolation. A tier that is not in the list has none.
func strength(t paddock.Tier) int {
	return slices.Index([]paddock.Tier{paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM}, t)
}

// climb refuses what cannot be moved, before anything is made.
func (q *request) climb(sb paddock.Sandbox, e api.Escalation) (*climb, error) {
	st, err := sb.Status(q.Context())
	if err != nil {
		return nil, err
	}
	switch {
	case strength(e.Tier) < 0:
		return nil, fmt.Errorf("tier %.64q: name one of sim, jail, gvisor and microvm: %w", string(e.Tier), paddock.Invalid)
	case e.Tier == st.Tier:
		return nil, fmt.Errorf("the sandbox is of the tier %s already: %w", st.Tier, paddock.Invalid)
	case strength(e.Tier) < strength(st.Tier) && !e.Weaker:
		return nil, fmt.Errorf("the tier %s isolates less than %s, which the sandbox has; ask for it by --weaker (in the API: weaker) if that is meant: %w", e.Tier, st.Tier, paddock.Denied)
	case st.State != paddock.Ready:
		return nil, fmt.Errorf("the sandbox is %s; resume it first: %w", st.State, paddock.Conflict)
	}
	info, err := q.caller.Driver.Info(q.Context(), e.Tier)
	if err != nil {
		return nil, err
	}
	if !info.Available || !info.Can(paddock.CanRootSnapshot) {
		return nil, fmt.Errorf("the tier %s cannot make a sandbox with these files here; `paddock doctor` tells why: %w", e.Tier, paddock.Unsupported)
	}
	if err := q.processesMayEnd(sb, e.End); err != nil {
		return nil, err
	}
	c := &climb{q: q, from: sb}
	if c.spec, err = paddock.SpecOf(q.Context(), sb); err != nil {
		return nil, err
	}
	if c.spec.Ephemeral {
		return nil, fmt.Errorf("an ephemeral sandbox belongs to the client that made it: %w", paddock.Unsupported)
	}
	c.spec.ID, c.spec.Tier, c.spec.Labels = e.ID, e.Tier, maps.Clone(st.Labels)
	if c.spec.Labels == nil {
		c.spec.Labels = map[string]string{}
	}
	c.spec.Labels[api.From] = string(sb.ID())
	return c, c.keepTerms()
}

// processesMayEnd refuses a sandbox in which something runs, unless its end is accepted.
func (q *request) processesMayEnd(sb paddock.Sandbox, end bool) error {
	if end {
		return nil
	}
	list, err := sb.Processes(q.Context())
	if err != nil {
		return err
	}
	var words []string
	count := 0
	for _, p := range list {
		if p.Exit != nil {
			continue
		}
		if count++; len(words) < 5 {
			words = append(words, fmt.Sprintf("%d (%.64q)", p.PID, strings.Join(p.Args, " ")))
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d processes run, which would end, among them %s; accept that by --yes (in the API: end), or wait for them: %w", count, strings.Join(words, ", "), paddock.Conflict)
}

// keepTerms takes over the terms, as far as they are not used up.
func (c *climb) keepTerms() error {
	k, ok := paddock.As[lifetime.Lessor](c.q.caller.Driver)
	if !ok {
		return nil
	}
	l, err := k.Terms(c.q.Context(), c.from.ID())
	if err != nil {
		return err
	}
	if l.Over != "" {
		return fmt.Errorf("its budget of %s is used up; raise it first: %w", l.Over, paddock.Conflict)
	}
	lease := told(l)
	t := lease.Terms
	if !lease.Ends.IsZero() { // a lifetime would begin anew
		t.Deadline, t.Lifetime = lease.Ends, 0
	}
	if t.Budget.Cost != "" {
		return fmt.Errorf("its budget bounds a cost, and what was used of that cannot be taken along; take a snapshot, and begin another sandbox with it and a budget of its own: %w", paddock.Unsupported)
	}
	if t.Budget.CPU > 0 {
		t.Budget.CPU = max(t.Budget.CPU-l.Use.CPU, time.Second)
	}
	if t.Budget.Network > 0 {
		t.Budget.Network = max(t.Budget.Network-l.Use.Network, 1)
	}
	if t != (api.Terms{}) {
		c.terms = &t
	}
	return nil
}

// run makes the new sandbox. After an error there is none, and the former one is as it was.
func (c *climb) run(ctx context.Context) (st paddock.Status, err error) {
	id, err := c.from.Snapshot(ctx, paddock.SnapshotOptions{})
	if err != nil {
		return st, err
	}
	defer func() {
		if failed := c.q.caller.Driver.RemoveSnapshot(context.WithoutCancel(ctx), id); failed != nil {
			c.q.s.log.Error("remove the snapshot of an escalation", "id", c.q.id, "error", failed.Error())
		}
	}()
	c.spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	sb, st, err := c.q.build(ctx, c.spec, c.terms)
	if err != nil {
		return st, err
	}
	if ctx.Err() != nil { // the client cannot get the answer
		return st, c.q.account.undo(c.q.caller.Driver, sb, fmt.Errorf("the client went away: %w", paddock.Canceled))
	}
	return st, nil
}
