package owner

import (
	"context"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
)

// Argv0 is the name by which a program knows that it is a gateway.
const Argv0 = "paddock-gateway"

// A Config is all that a gateway knows of its sandbox. It holds the values of
// secrets: it goes to the process over a descriptor and stands nowhere else.
type Config struct {
	Sandbox   string                `json:"sandbox"`
	Policy    paddock.NetworkPolicy `json:"policy"`
	Names     []string              `json:"names,omitempty"`     // that an earlier gateway of the sandbox gave addresses to
	Seed      []byte                `json:"seed,omitempty"`      // of placeholders: the same gives the same ones
	Authority []byte                `json:"authority,omitempty"` // PEM: certificate and key
	Roots     []byte                `json:"roots,omitempty"`     // PEM: trusted upstream besides the system's

	// Hosts are addresses of names, which are then not looked up. Whether they
	// may be dialled is judged like that of any others.
	Hosts map[string][]netip.Addr `json:"hosts,omitempty"`

	// Ask says that the owner has Ask: without it, what no rule allows is denied
	// at once. Start sets it.
	Ask bool `json:"ask,omitempty"`

	// UID and GID are who the gateway is where the owner is root; 0 is a number that
	// nobody else has.
	UID int `json:"uid,omitempty"`
	GID int `json:"gid,omitempty"`
}

// An Callbacks is told what a gateway does. Its functions may be nil. None is called
// after Close has returned.
type Callbacks struct {
	// Event is told decisions, one after another. It should not block: the
	// gateway waits for it.
	Event func(Event)
	// Ask is asked where no rule decides, several questions at once. ctx ends
	// when nobody waits for the answer any more.
	Ask func(context.Context, Question) Answer
	// Ended is told once that the gateway has gone by itself, and why.
	Ended func(error)
}

// A Ready is what a gateway says of itself when it has begun.
type Ready struct {
	Findings []paddock.Finding `json:"findings,omitempty"` // of its own confinement: what is enforced, and what is not and why
}
