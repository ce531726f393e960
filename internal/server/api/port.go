package api

import "time"

// A Port is how a port of a sandbox is reached from outside.
type Port struct {
	Port   int    `json:"port"`
	Public bool   `json:"public"`        // by anyone
	URL    string `json:"url,omitempty"` // where a browser finds it; empty where the server has no domain for ports
}

// A Link asks for a signed URL.
type Link struct {
	Lifetime time.Duration `json:"lifetime,omitempty"` // zero is an hour
	Path     string        `json:"path,omitempty"`     // below which it holds; empty is everything
}

// A Linked is a signed URL.
type Linked struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}
