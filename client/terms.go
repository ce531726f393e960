package client

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// What happens to a sandbox at its deadline.
const (
	RemoveAtEnd = ""
	PauseAtEnd  = api.AtEndPause // it is kept until somebody extends or renews it
)

// Terms define how long a sandbox lives. With zero Terms it stays until it is removed. Each
// time is at least a second.
type Terms struct {
	// Deadline is a time on the server's clock, and Lifetime a duration since the creation.
	// If both are set, the earlier one applies.
	Deadline time.Time     `json:"deadline,omitzero"`
	Lifetime time.Duration `json:"lifetime,omitempty"`

	// KeepAlive is the longest time between two calls of [Driver.Renew].
	KeepAlive time.Duration `json:"keep_alive,omitempty"`

	// OnEnd is the action at the deadline, and after a missed renewal: [RemoveAtEnd] or
	// [PauseAtEnd].
	OnEnd string `json:"on_end,omitempty"`

	// IdlePause pauses a sandbox that was idle this long. IdleRemove removes it, paused or
	// not. If both are set, IdleRemove must be longer.
	IdlePause  time.Duration `json:"idle_pause,omitempty"`
	IdleRemove time.Duration `json:"idle_remove,omitempty"`

	// Wake makes a call resume a sandbox that was paused because it was idle.
	Wake bool `json:"wake,omitempty"`

	// IgnoreProcesses makes a running process not count as activity, unless somebody is
	// attached to its output.
	IgnoreProcesses bool `json:"ignore_processes,omitempty"`

	// Budget bounds what the sandbox uses in all. When it is used up the sandbox is paused, and nothing runs in it until
	// [Driver.Raise]. Terms that are nothing but a budget leave those of the server in force.
	Budget Budget `json:"budget,omitzero"`
}

// A Budget bounds what a sandbox uses in all: processor time, bytes of the network in both directions together, and the
// cost of both and of memory by prices of the caller's, which have no currency.
type Budget = allowance.Budget

// Prices are what a cost is computed by. What is empty costs nothing. They are decimal numbers.
type Prices = allowance.Prices

// A Raise changes a budget: it adds to what there is, or sets it.
type Raise = allowance.Raise

// A Spent is what a sandbox with a budget used. Memory is in bytes times seconds.
type Spent = api.Spent

// A Lease is the state of a sandbox's terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`     // the deadline; zero means none
	Renew   time.Time `json:"renew,omitzero"`    // renew before this time; zero means never
	Idle    time.Time `json:"idle,omitzero"`     // idle since; zero means not idle
	Paused  string    `json:"paused,omitempty"`  // "person", "deadline", "lease", "idle" or "budget"; empty if nothing paused it
	Failure string    `json:"failure,omitempty"` // the last failure to apply the terms; empty means none
	Spent   *Spent    `json:"spent,omitempty"`   // nil if there is no budget
}

func leaseOf(l api.Lease) Lease {
	return Lease{Terms: Terms(l.Terms), Created: l.Created, Ends: l.Ends, Renew: l.Renew, Idle: l.Idle, Paused: l.Paused, Failure: l.Failure, Spent: l.Spent}
}

// CreateWith is Create with these terms instead of the server's. If the server has no
// terms, it returns paddock.Unsupported and makes nothing.
func (d *Driver) CreateWith(ctx context.Context, spec paddock.Spec, t Terms) (paddock.Sandbox, error) {
	w := api.Terms(t)
	return d.make(ctx, spec, &w)
}

// Terms returns the terms of a sandbox and their state.
func (d *Driver) Terms(ctx context.Context, id paddock.ID) (Lease, error) {
	return d.terms(ctx, id, "terms", call{method: "GET", path: "/terms", repeat: true})
}

// Change replaces all terms of a sandbox. Lifetime still counts from the creation. The
// change counts as a renewal.
func (d *Driver) Change(ctx context.Context, id paddock.ID, t Terms) (Lease, error) {
	return d.terms(ctx, id, "change terms", call{method: "PUT", path: "/terms", body: api.Terms(t), repeat: true})
}

// Extend moves the deadline of a sandbox by a positive duration: from the present deadline,
// or from now if it has passed. A sandbox that was paused at its deadline resumes. Without
// a deadline, Extend returns paddock.Conflict.
func (d *Driver) Extend(ctx context.Context, id paddock.ID, by time.Duration) (Lease, error) {
	return d.terms(ctx, id, "extend", call{method: "POST", path: "/extend", body: api.Extension{By: by}})
}

// Renew extends the lease of a sandbox by KeepAlive. A sandbox that was paused after a
// missed renewal resumes. Without KeepAlive, Renew returns paddock.Conflict.
func (d *Driver) Renew(ctx context.Context, id paddock.ID) (Lease, error) {
	return d.terms(ctx, id, "renew", call{method: "POST", path: "/renew", repeat: true})
}

// Raise raises the budget of a sandbox, or sets it. A sandbox that was paused because of its budget resumes. If the
// budget is used up even so, Raise returns paddock.Conflict and changes nothing.
func (d *Driver) Raise(ctx context.Context, id paddock.ID, by Raise) (Lease, error) {
	return d.terms(ctx, id, "raise the budget", call{method: "POST", path: "/budget", body: by})
}

func (d *Driver) terms(ctx context.Context, id paddock.ID, what string, c call) (Lease, error) {
	if !id.Valid() {
		return Lease{}, fmt.Errorf("%s: sandbox %q: invalid name: %w", what, string(id), paddock.Invalid)
	}
	var l api.Lease
	c.answer = &l
	if err := (&sandbox{d: d, id: id}).call(ctx, what, c); err != nil {
		return Lease{}, err
	}
	return leaseOf(l), nil
}
