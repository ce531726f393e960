package api

import "time"

// A Port describes how a port of a sandbox is reached from outside.
type Port struct {
	Port   int    `json:"port"`
	Public bool   `json:"public"`        // anyone may connect
	URL    string `json:"url,omitempty"` // the port's URL; empty if the server has no domain for ports
}

// A Link describes a signed URL to make.
type Link struct {
	Lifetime time.Duration `json:"lifetime,omitempty"` // zero is an hour
	Path     string        `json:"path,omitempty"`     // the URL is valid below this path; empty is the whole port
}

// A Linked is a signed URL.
type Linked struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}
