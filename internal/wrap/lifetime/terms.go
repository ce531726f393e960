package lifetime

import (
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

// Terms define how long a sandbox lives. The zero Terms set no bound.
type Terms struct {
	// Deadline is a time on the wall clock, Lifetime a duration since the creation, and
	// Timeout a duration since these terms were set, by the creation or by Change. The
	// earliest applies.
	Deadline time.Time     `json:"deadline,omitzero"`
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`

	// KeepAlive is a lease: the longest time between the creation and a renewal, or between
	// two renewals.
	KeepAlive time.Duration `json:"keep_alive,omitempty"`

	// OnEnd is the action at the deadline, and after a missed renewal.
	OnEnd End `json:"on_end,omitempty"`

	// IdlePause pauses a sandbox that was idle this long. IdleRemove removes it, paused or
	// not, whatever paused it. If both are set, IdleRemove must be longer.
	IdlePause  time.Duration `json:"idle_pause,omitempty"`
	IdleRemove time.Duration `json:"idle_remove,omitempty"`

	// Wake makes a call resume a sandbox that was paused because it was idle.
	Wake bool `json:"wake,omitempty"`

	// IgnoreProcesses makes a running process not count as activity, unless somebody is
	// attached to its output.
	IgnoreProcesses bool `json:"ignore_processes,omitempty"`

	// Budget bounds what the sandbox uses in all. When it is used up the sandbox is paused, until [Driver.Raise].
	Budget allowance.Budget `json:"budget,omitzero"`
}

// An End is an action at the end of a sandbox's time.
type End string

const (
	Remove End = ""      // it is removed
	Pause  End = "pause" // paused, and kept until it is extended or renewed
)

// pauses reports whether the terms may pause a sandbox.
func (t Terms) pauses() bool {
	return t.IdlePause > 0 || t.Budget.Bounds() || t.OnEnd == Pause && (!t.Deadline.IsZero() || t.Lifetime > 0 || t.Timeout > 0 || t.KeepAlive > 0)
}

// unpaused returns the terms without the idle pause.
func (t Terms) unpaused() Terms {
	t.IdlePause, t.Wake = 0, false
	return t
}

// shortest is the minimum of every time in terms.
const shortest = time.Second

// check refuses terms that are invalid in themselves.
func (t Terms) check() error {
	for _, d := range []struct {
		name string
		time time.Duration
	}{{"lifetime", t.Lifetime}, {"timeout", t.Timeout}, {"keep-alive", t.KeepAlive}, {"idle pause", t.IdlePause}, {"idle removal", t.IdleRemove}} {
		if d.time != 0 && d.time < shortest {
			return fmt.Errorf("terms: %s of %v, which is less than %v: %w", d.name, d.time, shortest, paddock.Invalid)
		}
	}
	if err := t.Budget.Check(); err != nil {
		return fmt.Errorf("terms: %w", err)
	}
	switch {
	case t.OnEnd != Remove && t.OnEnd != Pause:
		return fmt.Errorf("terms: on_end is %.64q, which is neither %q nor empty: %w", t.OnEnd, Pause, paddock.Invalid)
	case t.Wake && t.IdlePause == 0:
		return fmt.Errorf("terms: wake needs an idle pause: %w", paddock.Invalid)
	case t.IdlePause > 0 && t.IdleRemove > 0 && t.IdleRemove <= t.IdlePause:
		return fmt.Errorf("terms: removed after %v idle, which is not longer than the %v to a pause: %w", t.IdleRemove, t.IdlePause, paddock.Invalid)
	}
	return nil
}

// deadline returns the end of a sandbox by its terms, or zero, and whether it is by the
// wall clock. created is the creation, and now the time at which the terms are set.
func (t Terms) deadline(created, now time.Time, longest time.Duration) (end time.Time, wall bool) {
	if t.Lifetime > 0 {
		end = created.Add(t.Lifetime)
	}
	if t.Timeout > 0 && (end.IsZero() || end.After(now.Add(t.Timeout))) {
		end = now.Add(t.Timeout)
	}
	if longest > 0 && (end.IsZero() || end.After(created.Add(longest))) {
		end = created.Add(longest)
	}
	if !t.Deadline.IsZero() && (end.IsZero() || t.Deadline.Before(end)) {
		return t.Deadline, true
	}
	return end, false
}

// A Why is the cause of a pause or removal.
type Why string

const (
	ByPerson   Why = "person"
	ByDeadline Why = "deadline"
	ByLease    Why = "lease" // missed renewal
	ByIdle     Why = "idle"
	ByBudget   Why = "budget" // it is used up
)

// A Lease is the state of a sandbox's terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`    // the deadline; zero means none
	Renew   time.Time `json:"renew,omitzero"`   // renew before this time; zero means never
	Idle    time.Time `json:"idle,omitzero"`    // idle since; zero means not idle
	Paused  Why       `json:"paused,omitempty"` // cause of the pause; empty if not paused
	Failure string    `json:"failure,omitempty"`

	Use  allowance.Use `json:"use,omitzero"`  // counted if there is a budget
	Over string        `json:"over,omitzero"` // the budget that is used up: "cpu", "network" or "cost"
}

// words returns the text after "removed" or "paused" for a cause.
func (r Record) words(why Why) string {
	words := r.cause(why)
	switch {
	case why != r.Ending:
	case r.Stubborn:
		words += fmt.Sprintf(", where it could not be paused for %v", stubborn)
	case r.Hindered:
		words += fmt.Sprintf(", where this host could not save it for %v", hindered)
	}
	return words
}

func (r Record) cause(why Why) string {
	switch why {
	case ByDeadline:
		return "at its deadline of " + r.Deadline.UTC().Format(time.RFC3339)
	case ByLease:
		return fmt.Sprintf("because its lease was not renewed within %v", r.Terms.KeepAlive)
	case ByIdle:
		return fmt.Sprintf("because it was idle for %v", r.Terms.IdleRemove)
	case ByBudget:
		return "because its budget is used up"
	case ByPerson:
		return "by request"
	}
	return "for an unknown reason"
}
