package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

// A Create describes a sandbox to make: a spec, and terms. Nil terms select the server's
// default.
type Create struct {
	paddock.Spec
	Terms *Terms `json:"terms,omitempty"`
}

// Terms define how long a sandbox lives. The zero Terms set no bound.
type Terms struct {
	Deadline        time.Time     `json:"deadline,omitzero"`
	Lifetime        time.Duration `json:"lifetime,omitempty"`
	KeepAlive       time.Duration `json:"keep_alive,omitempty"`
	OnEnd           string        `json:"on_end,omitempty"` // AtEndRemove (also if empty) or AtEndPause
	IdlePause       time.Duration `json:"idle_pause,omitempty"`
	IdleRemove      time.Duration `json:"idle_remove,omitempty"`
	Wake            bool          `json:"wake,omitempty"`
	IgnoreProcesses bool          `json:"ignore_processes,omitempty"`

	Budget allowance.Budget `json:"budget,omitzero"`
}

// What happens to a sandbox at its deadline.
const (
	AtEndRemove = "remove"
	AtEndPause  = "pause"
)

// A Lease is the state of a sandbox's terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`    // zero means never
	Renew   time.Time `json:"renew,omitzero"`   // renew before this time; zero means never
	Idle    time.Time `json:"idle,omitzero"`    // idle since; zero means not idle
	Paused  string    `json:"paused,omitempty"` // what paused it: person, deadline, lease, idle or budget
	Failure string    `json:"failure,omitempty"`

	Spent *Spent `json:"spent,omitempty"` // of a sandbox with a budget
}

// A Spent is what a sandbox with a budget used.
type Spent struct {
	allowance.Use
	Cost string `json:"cost,omitempty"` // rounded to a millionth; empty without prices
	Over string `json:"over,omitempty"` // which budget is used up: cpu, network or cost
}

// An Extension is the duration by which to move a deadline.
type Extension struct {
	By time.Duration `json:"by"`
}
