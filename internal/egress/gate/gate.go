// Package gate is the owner's side of a gateway, and what both sides say to each
// other. The gateway is a process of its own for each sandbox, a child of the
// owner. The owner distrusts it: what it says is bounded and cleaned, and where
// it ends the sandbox has no way out.
package gate

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/report"
)

// What gateways say.
type (
	Event    = report.Event
	Question = report.Question
	Answer   = report.Answer
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

	// Ask says that the owner has Ask: without it, what no rule allows is denied
	// at once. Start sets it.
	Ask bool `json:"ask,omitempty"`

	// UID and GID are who the gateway becomes where the owner is root; 0 is 65534.
	UID int `json:"uid,omitempty"`
	GID int `json:"gid,omitempty"`
}

// An Owner is told what a gateway does. Its functions may be nil. They are
// called one after another but Ask, and after Close has returned never again.
type Owner struct {
	Event func(Event)                            // must not block for long
	Ask   func(context.Context, Question) Answer // ctx ends when nobody waits any more; several at once
	Ended func(error)                            // once, when the gateway has gone by itself
}

// A Ready is what a gateway says of itself when it has begun.
type Ready struct {
	Findings []paddock.Finding `json:"findings,omitempty"` // of its own confinement: what is not enforced, and why
}

// A Gate is a gateway process, seen by its owner.
type Gate struct{}

// Start starts a gateway and does not wait for it: what is asked of it before it
// is ready waits. exe is the program, which the caller may close afterwards. The
// gateway lives until Close, or the owner's end, not until ctx's.
func Start(ctx context.Context, exe *os.File, c Config, o Owner) (*Gate, error) {
	return nil, errors.New("not yet")
}

// Ready waits until the gateway has begun, or could not.
func (g *Gate) Ready(ctx context.Context) (Ready, error) { return Ready{}, errors.New("not yet") }

// Link hands over the host's end of the sandbox's link: a TUN device or a socket
// of packets. The caller may close f afterwards. A link takes the place of an
// earlier one. It does not wait for the gateway.
func (g *Gate) Link(f *os.File) error { return errors.New("not yet") }

// Dial connects to a host by the sandbox's rules, as if the sandbox had. What is
// not allowed is Denied, with the reason.
func (g *Gate) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	return nil, errors.New("not yet")
}

// Channel gives a file for another process, which may dial through it with a
// Dialer and do nothing else.
func (g *Gate) Channel() (*os.File, error) { return nil, errors.New("not yet") }

// Update puts other rules in place of the present ones, at once and whole. What
// they no longer allow is cut.
func (g *Gate) Update(ctx context.Context, p paddock.NetworkPolicy) error {
	return errors.New("not yet")
}

// Names lists the names that have addresses in the sandbox, for the Config of
// its next gateway.
func (g *Gate) Names(ctx context.Context) ([]string, error) { return nil, errors.New("not yet") }

// Done is closed when the gateway has gone.
func (g *Gate) Done() <-chan struct{} { return nil }

// PID is the gateway's process.
func (g *Gate) PID() int { return 0 }

// Close ends the gateway, cuts what it carries and waits until it has gone. A
// second Close does nothing.
func (g *Gate) Close() error { return nil }

// A Dialer dials through a file that Gate.Channel gave.
type Dialer struct{}

// NewDialer makes f a Dialer, which owns it.
func NewDialer(f *os.File) (*Dialer, error) { return nil, errors.New("not yet") }

// Dial is Gate's Dial.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	return nil, errors.New("not yet")
}

// Close ends the channel. Connections go on.
func (d *Dialer) Close() error { return nil }
