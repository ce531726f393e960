package inspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// A Backend decides and dials. Its methods are called from many goroutines.
type Backend interface {
	// Request decides about one request by the rules of now. It may wait (for a
	// person, for example) as long as ctx lasts.
	Request(ctx context.Context, f decide.Flow, q decide.Request) Decision
	// Dial connects to where f leads, through the upstream proxy at the URL via
	// where it is not empty. TLS is not begun. An error that is a *Refusal is told
	// to the guest as such.
	Dial(ctx context.Context, f decide.Flow, via string) (net.Conn, error)
	// Secrets gives those bound to f; nil is none. It is asked only where TLS
	// is ended here.
	Secrets(f decide.Flow) *secret.Set
	// Failed is told of what was no request that could be judged: reason says why
	// in words, for example that the program does not accept the certificate. f is
	// zero where a proxy's client did not say where to.
	Failed(f decide.Flow, reason string)
}

// A Meter counts the bytes of requests, answers and tunnels, and holds them up as a
// limit wants. An error of it ends the transfer, and is told to the guest where
// nothing of the answer was given yet. It is used from two goroutines.
type Meter interface {
	Sent(ctx context.Context, n int) error     // n bytes are about to go to the destination
	Received(ctx context.Context, n int) error // n bytes are about to go to the guest
}

// A Decision is about one request.
type Decision struct {
	decide.Verdict

	Rule  paddock.NetworkRule // that allows it: headers, answer and proxy are taken from it
	Meter Meter               // nil is none
	Done  func(Outcome)       // nil is nobody; called once, when the request is over, also of those not allowed

	// Cut ends the transfer when it is closed: the request is no longer allowed.
	// nil is never.
	Cut <-chan struct{}
}

// An Outcome is what became of a request.
type Outcome struct {
	Status         int // of the answer that the guest got; 0 is none
	Sent, Received int64
	Secrets        []string // names of those used
	Note           string   // what was not done, in words; empty is nothing
	Err            error    // in words that hold no secret
}

// Options make a Proxy.
type Options struct {
	Backend   Backend
	Authority *authority.CA
	Roots     *x509.CertPool // the destinations' certificates are checked by; nil is the system's
}

// A Proxy carries connections that must be looked into. It may be used from many
// goroutines.
type Proxy struct {
	o        Options
	sessions tls.ClientSessionCache // with destinations: a guest makes many connections to few
	much     slots                  // large answers that have a queue
}

// sessionsMax is how many of those are kept.
const sessionsMax = 64

// New makes a Proxy.
func New(o Options) *Proxy { return &Proxy{o: o, sessions: tls.NewLRUClientSessionCache(sessionsMax)} }

// A Connector decides about CONNECT to f and, where it is allowed, gives what carries
// the tunnel: carry is called with the guest's connection after it was told 200,
// and closes it. An error is told to the guest in words: a *Refusal with what it
// says, another one as 502.
type Connector func(ctx context.Context, f decide.Flow) (carry func(net.Conn) error, err error)

// A Refusal is a verdict as an error.
type Refusal struct {
	Status int // of HTTP; zero is 403
	decide.Verdict
}

// Error gives the reason.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap gives Denied.
func (r *Refusal) Unwrap() error { return paddock.Denied }
