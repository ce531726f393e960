// Package egress joins the parts of a sandbox's way out: what the guest sends
// over its link is decided by rules, dialled by address checks, carried or looked
// into, and told.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/report"
)

// What a gateway says.
type (
	Event    = report.Event
	Question = report.Question
	Answer   = report.Answer
)

// Options make a gateway. The zero Options allow nothing.
type Options struct {
	Sandbox string
	Policy  paddock.NetworkPolicy
	Names   []string // that have addresses already, in order
	Seed    []byte   // of the placeholders; random where it is empty

	Roots *x509.CertPool // trusted upstream besides the system's

	Event func(Event)                            // told every decision; must not block
	Ask   func(context.Context, Question) Answer // nil denies
}

// A Gateway is one sandbox's way out.
type Gateway struct{}

// New makes a gateway. Rules that cannot be followed are Invalid or Unsupported,
// and the error names them.
func New(o Options) (*Gateway, error) { return nil, errors.New("not yet") }

// Open serves a link until it is closed, and returns at once. The link belongs
// to the gateway. A second one takes the place of the first.
func (g *Gateway) Open(f *os.File) error { return errors.New("not yet") }

// Dial gives the guest's end of a connection that is treated as one that came
// over the link to that name. What is not allowed is Denied.
func (g *Gateway) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	return nil, errors.New("not yet")
}

// Update puts other rules in place of the present ones, at once and whole, and
// cuts what they no longer allow. What the sandbox's authority does not cover is
// Unsupported, and nothing changes then.
func (g *Gateway) Update(p paddock.NetworkPolicy) error { return errors.New("not yet") }

// Names lists the names that have addresses, in order.
func (g *Gateway) Names() []string { return nil }

// Environment gives the placeholders of secrets by the names of their variables.
func (g *Gateway) Environment() map[string]string { return nil }

// Close cuts everything and waits until nothing of it is left.
func (g *Gateway) Close() error { return nil }
