package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Create says what sandbox to make: a spec, and the terms that it is kept on.
// Without terms they are the server's.
type Create struct {
	paddock.Spec
	Terms *Terms `json:"terms,omitempty"`
}

// Terms say how long a sandbox lives. The zero Terms ask for nothing.
type Terms struct {
	Deadline        time.Time     `json:"deadline,omitzero"`
	Lifetime        time.Duration `json:"lifetime,omitempty"`
	KeepAlive       time.Duration `json:"keep_alive,omitempty"`
	OnEnd           string        `json:"on_end,omitempty"` // AtEndRemove, which empty is too, or AtEndPause
	IdlePause       time.Duration `json:"idle_pause,omitempty"`
	IdleRemove      time.Duration `json:"idle_remove,omitempty"`
	Wake            bool          `json:"wake,omitempty"`
	IgnoreProcesses bool          `json:"ignore_processes,omitempty"`
}

// What is done with a sandbox whose time is over.
const (
	AtEndRemove = "remove"
	AtEndPause  = "pause"
)

// A Lease is how a sandbox stands to its terms.
type Lease struct {
	Terms   Terms     `json:"terms"`
	Created time.Time `json:"created"`
	Ends    time.Time `json:"ends,omitzero"`    // zero is never
	Renew   time.Time `json:"renew,omitzero"`   // until when it is to be renewed; zero is never
	Idle    time.Time `json:"idle,omitzero"`    // since when it is; zero is not
	Paused  string    `json:"paused,omitempty"` // what paused it: person, deadline, lease or idle
	Failure string    `json:"failure,omitempty"`
}

// An Extension says by how long a deadline is moved.
type Extension struct {
	By time.Duration `json:"by"`
}
