// Package server offers any paddock.Driver over HTTP. It knows no tier, and keeps no keys
// and no state on disk. [Options.Caller] returns the caller of a request and the driver
// for that caller; tenants, quotas and lifetimes are drivers around a driver. Package api
// has the messages; openapi.yaml and docs/reference/api.md describe them.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A Caller is who makes a request, and what may be done with it.
type Caller struct {
	// Name tells callers apart: what is kept between requests (streams, leases,
	// events) is kept by name, so two tenants never have the same.
	Name string

	// Who is written into records of what was done: a key's ID, a user; never a key.
	Who string

	// Driver makes and finds the caller's sandboxes, and no other's. It is the
	// same value, and one that can be compared, in each request of one caller.
	Driver paddock.Driver

	// Trusted may name what is the host's: directories, mounts, its network,
	// proxies and private addresses, and give controls up. Anyone else is Denied.
	Trusted bool

	// ReadOnly may look: at states, processes, output and files. Anything that
	// makes, changes or connects is Denied.
	ReadOnly bool

	// Usage adds up what the caller's sandboxes used, and nobody else's; nil is
	// that nobody counts.
	Usage func(ctx context.Context, q api.UsageQuery) ([]api.UsageLine, error)

	// Keys are the caller's tenant's, if the caller may see to them; else nil.
	Keys Keys
}

// Options is what a server needs.
type Options struct {
	// Caller says who makes a request, by whatever it carries. Its error is the
	// answer: Denied is 403, or 401 where the request carries no Authorization.
	// It must be given.
	Caller func(*http.Request) (Caller, error)

	// Ports says who may reach ports from outside, without this API; nil is that
	// there is no such way.
	Ports Ports

	// Log gets one record for each request; nil is none.
	Log *slog.Logger

	// Streams bounds how many requests of one caller may be under way, most of
	// which are streams. Zero is 4096.
	Streams int
}

// Bounds of what clients may make the server hold or wait for.
const (
	defaultStreams = 4096
	maxBody        = 8 << 20          // of a body in JSON
	bodyTime       = 30 * time.Second // in which one has to arrive
	aliveEvery     = 15 * time.Second // of streams that have nothing to say
	stall          = time.Minute      // a client that takes nothing for so long is cut
	fileStall      = 10 * time.Minute // the same of files, which are not taken up again
)

// A Server is an http.Handler. Its methods are safe for many goroutines.
type Server struct {
	o   Options
	log *slog.Logger
	mux *http.ServeMux

	bodyTime time.Duration // the constant, but for tests

	output, bodies, inputHeld, files budget // what is held for all callers
	results                          *interpreter.Room

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // what the server started itself

	mu       sync.Mutex
	closed   bool                // guarded by mu
	draining bool                // guarded by mu
	live     int                 // guarded by mu; requests under way
	idle     chan struct{}       // guarded by mu; closed when live is zero, nil if nobody waits
	accounts map[string]*account // guarded by mu; by Caller.Name
}

// New makes a server. It starts one goroutine, which Close ends.
func New(o Options) (*Server, error) {
	if o.Caller == nil {
		return nil, fmt.Errorf("server: Options.Caller is missing: %w", paddock.Invalid)
	}
	if o.Streams < 0 {
		return nil, fmt.Errorf("server: Options.Streams is negative: %w", paddock.Invalid)
	}
	if o.Streams == 0 {
		o.Streams = defaultStreams
	}
	s := &Server{o: o, log: o.Log, bodyTime: bodyTime, results: interpreter.NewRoom(allResults, nil), accounts: map[string]*account{}}
	s.output.max, s.bodies.max, s.inputHeld.max, s.files.max = allOutput, allBodies, allInputHeld, allFiles
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux = s.routes()
	s.wg.Go(s.sweep)
	return s, nil
}

// HTTP gives a server of package http around s, with the bounds that s counts on:
// of headers, of idle connections, of HTTP/2, with and without TLS.
func (s *Server) HTTP() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000, SendPingTimeout: 30 * time.Second, PingTimeout: 30 * time.Second},
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Drain refuses what would begin something new, and waits until no request is
// under way, or ctx ends. What streams goes on: clients come back elsewhere when
// Close cuts them.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	if s.live == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain: requests are still under way: %w", paddock.Timeout)
	}
}

// Close ends every request and waits for its end. Processes go on, kept
// sandboxes stay, and ephemeral ones of its clients are removed. The drivers are
// the caller's to close. Closing twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed, s.draining = true, true
	accounts := make([]*account, 0, len(s.accounts))
	for _, a := range s.accounts {
		accounts = append(accounts, a)
	}
	s.mu.Unlock()
	s.cancel()
	var errs []error
	for _, a := range accounts {
		errs = append(errs, a.close())
	}
	err := s.Drain(context.Background())
	s.wg.Wait()
	return errors.Join(append(errs, err)...)
}

// enter counts a request; false is that the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.live++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live--
	if s.live == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// fresh tells whether something new may begin.
func (s *Server) fresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return fmt.Errorf("the server is being stopped: %w", paddock.Unavailable)
	}
	return nil
}

// sweep lets go of what no client came back for.
func (s *Server) sweep() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			accounts := make([]*account, 0, len(s.accounts))
			for _, a := range s.accounts {
				accounts = append(accounts, a)
			}
			s.mu.Unlock()
			for _, a := range accounts {
				a.sweep(now)
			}
		}
	}
}
