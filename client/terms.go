package client

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// What is done with a sandbox whose time is over.
const (
	RemoveAtEnd = ""
	PauseAtEnd  = api.AtEndPause // it is kept until it is extended or renewed
)

// Terms say how long a sandbox lives. The zero Terms ask for nothing: it stays
// until it is removed. Each time is a second at least.
type Terms struct {
	// Deadline is a moment on the server's clock, Lifetime a time from the
	// creation. Where both are set the sooner one counts.
	Deadline time.Time     `json:"deadline,omitzero"`
	Lifetime time.Duration `json:"lifetime,omitempty"`

	// KeepAlive is within what time someone is to call [Driver.Renew], again and
	// again.
	KeepAlive time.Duration `json:"keep_alive,omitempty"`

	// OnEnd is what is done at the deadline, and where nobody renewed:
	// [RemoveAtEnd] or [PauseAtEnd].
	OnEnd string `json:"on_end,omitempty"`

	// IdlePause pauses what was idle this long, IdleRemove removes it, paused or
	// not. The second is longer, where both are set.
	IdlePause  time.Duration `json:"idle_pause,omitempty"`
	IdleRemove time.Duration `json:"idle_remove,omitempty"`

	// Wake has a call resume what was paused for being idle.
	Wake bool `json:"wake,omitempty"`

	// IgnoreProcesses says that a process that runs is no activity, unless
	// someone is attached to its output.
	IgnoreProcesses bool `json:"ignore_processes,omitempty"`
}

// A Lease is how a sandbox stands to its terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`     // its deadline; zero is none
	Renew   time.Time `json:"renew,omitzero"`    // until when it is to be renewed; zero is never
	Idle    time.Time `json:"idle,omitzero"`     // since when it is; zero is not
	Paused  string    `json:"paused,omitempty"`  // what paused it: "person", "deadline", "lease" or "idle"; empty is nothing
	Failure string    `json:"failure,omitempty"` // what its terms could not do the last time; empty is nothing
}

func leaseOf(l api.Lease) Lease {
	return Lease{Terms: Terms(l.Terms), Created: l.Created, Ends: l.Ends, Renew: l.Renew, Idle: l.Idle, Paused: l.Paused, Failure: l.Failure}
}

// CreateWith is Create, with these terms and no others. A server whose sandboxes
// have none answers paddock.Unsupported, and makes nothing.
func (d *Driver) CreateWith(ctx context.Context, spec paddock.Spec, t Terms) (paddock.Sandbox, error) {
	w := api.Terms(t)
	return d.make(ctx, spec, &w)
}

// Terms tells how a sandbox stands to its terms.
func (d *Driver) Terms(ctx context.Context, id paddock.ID) (Lease, error) {
	return d.terms(ctx, id, "terms", call{method: "GET", path: "/terms", repeat: true})
}

// Change gives a sandbox other terms, all of them. Its lifetime still counts from
// its creation; what is to be renewed is as if it had been.
func (d *Driver) Change(ctx context.Context, id paddock.ID, t Terms) (Lease, error) {
	return d.terms(ctx, id, "change terms", call{method: "PUT", path: "/terms", body: api.Terms(t), repeat: true})
}

// Extend moves a sandbox's deadline by a time that is more than nothing: from
// where it is, or from now where it has passed. What was paused at its deadline
// goes on. Without a deadline it is a paddock.Conflict.
func (d *Driver) Extend(ctx context.Context, id paddock.ID, by time.Duration) (Lease, error) {
	return d.terms(ctx, id, "extend", call{method: "POST", path: "/extend", body: api.Extension{By: by}})
}

// Renew says that a sandbox is still wanted. What was paused since nobody had said
// so goes on. Where nothing is to be renewed it is a paddock.Conflict.
func (d *Driver) Renew(ctx context.Context, id paddock.ID) (Lease, error) {
	return d.terms(ctx, id, "renew", call{method: "POST", path: "/renew", repeat: true})
}

func (d *Driver) terms(ctx context.Context, id paddock.ID, what string, c call) (Lease, error) {
	if !id.Valid() {
		return Lease{}, fmt.Errorf("%s: sandbox %q: not a name: %w", what, string(id), paddock.Invalid)
	}
	var l api.Lease
	c.answer = &l
	if err := (&sandbox{d: d, id: id}).call(ctx, what, c); err != nil {
		return Lease{}, err
	}
	return leaseOf(l), nil
}
