package lease

import (
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Terms say how long a sandbox lives. The zero Terms ask for nothing.
type Terms struct {
	// Deadline is a moment on the wall clock, Lifetime a time from the creation, and
	// Timeout one from the moment when these terms are given: at the creation, or by
	// Change. The soonest counts.
	Deadline time.Time     `json:"deadline,omitzero"`
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`

	// KeepAlive is a lease: who wants the sandbox renews it within this time of
	// the creation and of each renewal.
	KeepAlive time.Duration `json:"keep_alive,omitempty"`

	// OnEnd is what is done at the deadline, and where the lease was not renewed.
	OnEnd End `json:"on_end,omitempty"`

	// IdlePause pauses what was idle this long, IdleRemove removes it, paused or
	// not, whoever paused it. The second is longer, where both are set.
	IdlePause  time.Duration `json:"idle_pause,omitempty"`
	IdleRemove time.Duration `json:"idle_remove,omitempty"`

	// Wake has a call resume what was paused for being idle.
	Wake bool `json:"wake,omitempty"`

	// IgnoreProcesses says that a process that runs is no activity, unless
	// someone is attached to its output.
	IgnoreProcesses bool `json:"ignore_processes,omitempty"`
}

// An End is what is done with a sandbox whose time is over.
type End string

const (
	Remove End = ""      // it is removed
	Pause  End = "pause" // it is paused, and kept until it is extended or renewed
)

// pauses tells whether the terms may pause a sandbox.
func (t Terms) pauses() bool {
	return t.IdlePause > 0 || t.OnEnd == Pause && (!t.Deadline.IsZero() || t.Lifetime > 0 || t.Timeout > 0 || t.KeepAlive > 0)
}

// unpaused are the terms without a pause for being idle.
func (t Terms) unpaused() Terms {
	t.IdlePause, t.Wake = 0, false
	return t
}

// shortest is the least that any time of the terms may be.
const shortest = time.Second

// check refuses terms that are wrong in themselves.
func (t Terms) check() error {
	for _, d := range []struct {
		name string
		time time.Duration
	}{{"lifetime", t.Lifetime}, {"timeout", t.Timeout}, {"keep-alive", t.KeepAlive}, {"idle pause", t.IdlePause}, {"idle removal", t.IdleRemove}} {
		if d.time != 0 && d.time < shortest {
			return fmt.Errorf("terms: %s of %v, which is less than %v: %w", d.name, d.time, shortest, paddock.Invalid)
		}
	}
	switch {
	case t.OnEnd != Remove && t.OnEnd != Pause:
		return fmt.Errorf("terms: at the end %q, which is neither %q nor empty: %w", t.OnEnd, Pause, paddock.Invalid)
	case t.Wake && t.IdlePause == 0:
		return fmt.Errorf("terms: nothing is to wake where nothing pauses: set an idle pause: %w", paddock.Invalid)
	case t.IdlePause > 0 && t.IdleRemove > 0 && t.IdleRemove <= t.IdlePause:
		return fmt.Errorf("terms: removed after %v idle, which is not longer than the %v to a pause: %w", t.IdleRemove, t.IdlePause, paddock.Invalid)
	}
	return nil
}

// deadline gives when a sandbox ends by its terms, and whether that is by the wall
// clock: one that was made then, and given them now. Zero is never.
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

// A Why says what a sandbox was paused or removed for.
type Why string

const (
	ByPerson   Why = "person"
	ByDeadline Why = "deadline"
	ByLease    Why = "lease" // that was not renewed
	ByIdle     Why = "idle"
)

// A Lease is how a sandbox stands to its terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`    // the deadline; zero is none
	Renew   time.Time `json:"renew,omitzero"`   // until when it is to be renewed; zero is never
	Idle    time.Time `json:"idle,omitzero"`    // since when it is; zero is not
	Paused  Why       `json:"paused,omitempty"` // what paused it; empty is nothing
	Failure string    `json:"failure,omitempty"`
}

// words say why a sandbox was removed or paused, to stand after "removed" and
// "paused".
func (r Record) words(why Why) string {
	switch why {
	case ByDeadline:
		return "at its deadline of " + r.Deadline.UTC().Format(time.RFC3339)
	case ByLease:
		return fmt.Sprintf("since its lease was not renewed within %v", r.Terms.KeepAlive)
	case ByIdle:
		return fmt.Sprintf("since it was idle for %v", r.Terms.IdleRemove)
	case ByPerson:
		return "by request"
	}
	return "for a reason that is not known here"
}
