package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Page is a part of a list of sandboxes.
type Page struct {
	Sandboxes []paddock.Status `json:"sandboxes"`
	Next      string           `json:"next,omitempty"` // cursor of the next page; empty after the last
}

// A Snapshot names one.
type Snapshot struct {
	ID paddock.SnapshotID `json:"id"`
}

// A Fork says what to make of a sandbox. Root is the server's to fill; tier, each
// limit, labels, user and directory that are zero are those of the source. The
// policy is not: what is zero there is the safest.
type Fork struct {
	Spec paddock.Spec `json:"spec,omitzero"`
	// Memory asks for processes and memory too: with all that is in it, also what
	// was never written to a file.
	Memory bool `json:"memory,omitempty"`
	// Terms are the fork's; without them they are the server's, not the source's.
	Terms *Terms `json:"terms,omitempty"`
}

// A Forked is what a fork made.
type Forked struct {
	Sandbox paddock.Status `json:"sandbox"`
	Memory  bool           `json:"memory"` // with processes and memory
}

// A NewsKind says what happened to a sandbox.
type NewsKind string

const (
	Created     NewsKind = "created"
	Updated     NewsKind = "updated" // labels, limits or policy
	Paused      NewsKind = "paused"
	Resumed     NewsKind = "resumed"
	Snapshotted NewsKind = "snapshotted"
	Removed     NewsKind = "removed"
)

// A News is something that happened to a sandbox by way of this server.
type News struct {
	Number  int64      `json:"number"` // counts up, by one
	Time    time.Time  `json:"time"`
	What    NewsKind   `json:"what"`
	Sandbox paddock.ID `json:"sandbox"`
	Lost    bool       `json:"lost,omitempty"` // some before this one were not kept
}
