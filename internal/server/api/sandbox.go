package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Page is a part of the list of sandboxes.
type Page struct {
	Sandboxes []paddock.Status `json:"sandboxes"`
	Next      string           `json:"next,omitempty"` // cursor of the next page; empty after the last
}

// A Snapshot is the answer to a request to make a snapshot.
type Snapshot struct {
	ID paddock.SnapshotID `json:"id"`
}

// A Fork describes a sandbox to make from another one. The server fills in Root. A zero
// tier, limit, label set, user or directory is inherited from the source. A zero policy is
// not inherited: it is the safest policy.
type Fork struct {
	Spec paddock.Spec `json:"spec,omitzero"`
	// Memory also copies the processes and their memory, including data that was never
	// written to a file.
	Memory bool `json:"memory,omitempty"`
	// Terms are the terms of the fork. Nil selects the server's default, not the terms of
	// the source.
	Terms *Terms `json:"terms,omitempty"`
}

// A Forked is the answer to a fork.
type Forked struct {
	Sandbox paddock.Status `json:"sandbox"`
	Memory  bool           `json:"memory"` // processes and memory were copied
}

// An Escalation moves a sandbox to another tier, as a new sandbox with its files.
type Escalation struct {
	Tier paddock.Tier `json:"tier"`
	// ID is that of the new sandbox. Empty lets the server choose one.
	ID paddock.ID `json:"id,omitempty"`
	// End accepts that processes which run now end: none goes along.
	End bool `json:"end,omitempty"`
	// Weaker permits a tier that isolates less than the present one.
	Weaker bool `json:"weaker,omitempty"`
}

// An Escalated is the answer to an escalation.
type Escalated struct {
	Sandbox paddock.Status `json:"sandbox"`
	// Left says why the former sandbox could not be removed; it is to be removed by a further call. Empty is the usual case.
	Left string `json:"left,omitempty"`
}

// From is the label with the ID of the sandbox that an escalated one was before.
const From = "paddock.from"

// A NewsKind is the kind of an event of a sandbox.
type NewsKind string

const (
	Created     NewsKind = "created"
	Updated     NewsKind = "updated" // labels, limits or policy changed
	Paused      NewsKind = "paused"
	Resumed     NewsKind = "resumed"
	Snapshotted NewsKind = "snapshotted"
	Removed     NewsKind = "removed"
	Asked       NewsKind = "asked"    // its monitor has a question, or is about to
	Answered    NewsKind = "answered" // a question of its monitor was answered
)

// A News is an event of a sandbox that this server caused, but for Asked.
type News struct {
	Number  int64      `json:"number"` // consecutive number
	Time    time.Time  `json:"time"`
	What    NewsKind   `json:"what"`
	Sandbox paddock.ID `json:"sandbox"`
	Lost    bool       `json:"lost,omitempty"` // earlier events were dropped
}
