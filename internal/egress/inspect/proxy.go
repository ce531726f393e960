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

// A Backend decides about requests and dials their destinations. Its methods are called concurrently.
type Backend interface {
	// Request judges one request by the present rules. It may wait, for a person for example, until ctx ends.
	Request(ctx context.Context, f decide.Flow, q decide.Request) Decision
	// Dial connects to the destination of f, through the upstream proxy at the URL via unless that is empty. It does
	// not begin TLS. The guest sees the reason of an error that is a *Refusal.
	Dial(ctx context.Context, f decide.Flow, via string) (net.Conn, error)
	// Secrets returns the secrets bound to f, or nil. It is called only where the proxy terminates TLS.
	Secrets(f decide.Flow) *secret.Set
	// Use is called before secrets with these names are put into a request to f. An error, such as a *Refusal, keeps the
	// request back. It may wait until ctx ends.
	Use(ctx context.Context, f decide.Flow, names []string) error
	// Login is asked about each request over TLS before it is sent, and again with the body if the answer wants it. An error,
	// such as a *Refusal, keeps the request back. It may wait until ctx ends.
	Login(ctx context.Context, f decide.Flow, r LoginRequest) (LoginAnswer, error)
	// Failed records a connection or request that could not be judged. reason says why, for example that the program
	// does not accept the certificate. f is zero if a client of the proxy did not name a destination.
	Failed(f decide.Flow, reason string)
}

// A Meter counts the bytes of requests, answers and tunnels, and delays them to keep a limit. Its error ends the
// transfer, and the guest sees it if no part of the answer was sent yet. Two goroutines use it.
type Meter interface {
	Sent(ctx context.Context, n int) error     // n bytes are about to go to the destination
	Received(ctx context.Context, n int) error // n bytes are about to go to the guest
}

// A Decision is the backend's verdict on one request.
type Decision struct {
	decide.Verdict

	Rule  paddock.NetworkRule // that allows it; the proxy takes headers, answer and upstream proxy from it
	Meter Meter               // may be nil
	Done  func(Outcome)       // may be nil; called once when the request is over, even if it was denied

	// Cut is closed when the request is no longer allowed, and ends the transfer. A nil Cut never does.
	Cut <-chan struct{}
}

// An Outcome is the result of one request.
type Outcome struct {
	Status         int // of the answer that the guest got; 0 if none
	Sent, Received int64
	Secrets        []string // names of the secrets used
	Note           string   // what the proxy left undone, for people; may be empty
	Err            error    // holds no secret
}

// Options configure a Proxy.
type Options struct {
	Backend   Backend
	Authority *authority.CA
	Roots     *x509.CertPool // verify the destinations' certificates; nil uses the system's
}

// A Proxy carries inspected connections. It is safe for concurrent use.
type Proxy struct {
	o        Options
	sessions tls.ClientSessionCache // with destinations, because a guest makes many connections to few
	much     slots                  // large answers with a queue
}

// sessionsMax is the number of cached sessions.
const sessionsMax = 64

// New makes a Proxy.
func New(o Options) *Proxy { return &Proxy{o: o, sessions: tls.NewLRUClientSessionCache(sessionsMax)} }

// A Connector judges CONNECT to f and returns the function that carries the tunnel. The proxy calls carry with the
// guest's connection after it answered 200, and carry closes it. The guest sees an error: a *Refusal with its status
// and reason, any other as 502.
type Connector func(ctx context.Context, f decide.Flow) (carry func(net.Conn) error, err error)

// A Refusal is a verdict as an error, of kind Denied.
type Refusal struct {
	Status int // of HTTP; zero is 403
	decide.Verdict
}

// A Failure is the error of an Outcome if the proxy refused to carry an allowed request: its destination has
// an address that must not be dialled, or a certificate that is not valid, or a limit was reached.
type Failure struct {
	Reason string // holds no secret
	Rule   int    // index of the rule that decided; -1 if none
	Hint   string // how to allow it; may be empty
	Kind   paddock.Kind
}

// Error returns the reason and the kind.
func (f *Failure) Error() string { return f.Reason + ": " + f.Kind.Error() }

// Unwrap returns the kind.
func (f *Failure) Unwrap() error { return f.Kind }

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns paddock.Denied.
func (r *Refusal) Unwrap() error { return paddock.Denied }
