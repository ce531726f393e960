package gatewayclient

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
)

// Argv0 is the first argument of a gateway process, by which a program knows that it is one.
const Argv0 = "paddock-gateway"

// A Config is all that a gateway knows of its sandbox. It holds the values of secrets, so it goes to the process over a
// descriptor and is stored nowhere else.
type Config struct {
	Sandbox   string                `json:"sandbox"`
	Policy    paddock.NetworkPolicy `json:"policy"`
	Names     []string              `json:"names,omitempty"`     // that an earlier gateway of the sandbox gave addresses to
	Seed      []byte                `json:"seed,omitempty"`      // of placeholders: the same seed gives the same ones
	Authority []byte                `json:"authority,omitempty"` // PEM: certificate and key
	Roots     []byte                `json:"roots,omitempty"`     // PEM: trusted upstream besides the system's

	// Hosts gives addresses of names that are not to be resolved. The gateway checks them like any other addresses
	// before it dials.
	Hosts map[string][]netip.Addr `json:"hosts,omitempty"`

	// Ask says that the owner answers questions. Without it the gateway denies at once what no rule allows.
	// StartProcess sets it.
	Ask bool `json:"ask,omitempty"`

	// Judge says that the owner judges what is allowed: each first connection to a host and port, and each first use of a
	// secret there. StartProcess sets it.
	Judge bool `json:"judge,omitempty"`

	// Login lists hosts with ports whose requests the owner is asked about; see [Login]. StartProcess sets it.
	Login []string `json:"login,omitempty"`

	// UID and GID are the user and group of the gateway where the owner is root. Zero picks a number that no other
	// process has.
	UID int `json:"uid,omitempty"`
	GID int `json:"gid,omitempty"`
}

// Callbacks receive what a gateway reports. Each may be nil. None is called after Close has returned.
type Callbacks struct {
	// Event receives decisions, one after another. It should not block, because the gateway waits for it.
	Event func(Event)
	// Ask answers a question where no rule decides. It is called concurrently. ctx ends when the answer is no longer
	// needed.
	Ask func(context.Context, Question) Answer
	// Judge answers a question about what is allowed. It is called concurrently. ctx ends as for Ask.
	Judge func(context.Context, Question) Judgement
	// Login answers about requests to its hosts.
	Login Login
	// Ended is called once if the gateway ends by itself, with the reason.
	Ended func(error)
}

// A Ready is a gateway's report that it has started.
type Ready struct {
	Findings []paddock.Finding `json:"findings,omitempty"` // of its own confinement: what is enforced, and what is not and why
}
