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

// A Caller is the client that makes a request, with its rights.
type Caller struct {
	// Name distinguishes callers. State between requests (streams, leases, events) is kept
	// by name, so two tenants must never have the same.
	Name string

	// Who identifies the caller in logs: the ID of a key, or a user. It is never the key
	// itself.
	Who string

	// Driver makes and finds the caller's sandboxes, and no others. It must be comparable,
	// and the same value in each request of one caller.
	Driver paddock.Driver

	// Trusted callers may use resources of the host (directories, mounts, its network,
	// proxies and private addresses) and accept missing controls. Others get Denied.
	Trusted bool

	// ReadOnly callers may read states, processes, output and files. A request that makes,
	// changes or connects anything gets Denied.
	ReadOnly bool

	// Usage returns the usage of the caller's own sandboxes. Nil means that usage is not
	// counted.
	Usage func(ctx context.Context, q api.UsageQuery) ([]api.UsageLine, error)

	// Images has the images that the caller's sandboxes may begin with. Nil means that there are none.
	Images Images

	// Keys manages the keys of the caller's tenant. It is nil if the caller may not manage
	// them.
	Keys Keys
}

// Options are the dependencies and limits of a server.
type Options struct {
	// Caller identifies the caller of a request. It is required. Its error is the answer:
	// Denied becomes 403, or 401 if the request has no Authorization header.
	Caller func(*http.Request) (Caller, error)

	// Ports manages access to ports from outside, without this API. Nil means that there is
	// no such access.
	Ports Ports

	// Log gets one record for each request. Nil discards them.
	Log *slog.Logger

	// Streams bounds the requests in progress of one caller, most of which are streams.
	// Zero is 4096.
	Streams int
}

// Bounds of what clients may make the server hold or wait for.
const (
	defaultStreams = 4096
	maxBody        = 8 << 20          // bytes of a body in JSON
	bodyTime       = 30 * time.Second // time for the body to arrive
	aliveEvery     = 15 * time.Second // interval of alive messages in idle streams
	stall          = time.Minute      // a client that reads nothing for this long is cut
	fileStall      = 10 * time.Minute // the same for files, whose transfer cannot be resumed
)

// A Server is an http.Handler. Its methods are safe for concurrent use.
type Server struct {
	o   Options
	log *slog.Logger
	mux *http.ServeMux

	bodyTime time.Duration // the constant, except in tests

	output, bodies, inputHeld, files, answers budget // bytes held for all callers
	sentAhead                                 budget // bytes that all sandboxes can send ahead
	results                                   *interpreter.Room

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines of the server

	mu       sync.Mutex
	closed   bool                // guarded by mu
	draining bool                // guarded by mu
	live     int                 // guarded by mu; requests in progress
	idle     chan struct{}       // guarded by mu; closed when live is zero; nil if nothing waits
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
	s := &Server{o: o, log: o.Log, bodyTime: bodyTime, results: interpreter.NewRoom(allResults, 0, nil), accounts: map[string]*account{}}
	s.output.max, s.bodies.max, s.inputHeld.max, s.files.max, s.answers.max = allOutput, allBodies, allInputHeld, allFiles, allAnswers
	s.sentAhead.max = allAhead
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux = s.routes()
	s.wg.Go(s.sweep)
	return s, nil
}

// HTTP returns an http.Server for s, with the bounds that s relies on: of headers, of idle
// connections and of HTTP/2, with and without TLS.
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

// Drain refuses new work, and waits until no request is in progress or ctx ends. Streams
// continue. When Close cuts them, clients reconnect elsewhere.
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
		return fmt.Errorf("drain: requests are still in progress: %w", paddock.Timeout)
	}
}

// Close ends every request and waits for its end. Processes and kept sandboxes continue.
// Ephemeral sandboxes of the server's clients are removed. The caller closes the drivers. A
// second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed, s.draining = true, true
	accounts := make([]*account, 0, len(s.accounts))
	for _, a := range s.accounts {
		accounts = append(accounts, a)
	}
	s.mu.Unlock()
	s.cancel()
	errs := make([]error, len(accounts))
	var closing sync.WaitGroup
	for n, a := range accounts { // none waits for a sandbox of another
		closing.Go(func() { errs[n] = a.close() })
	}
	closing.Wait()
	err := s.Drain(context.Background())
	s.wg.Wait()
	return errors.Join(errors.Join(errs...), err)
}

// enter counts a request. It reports false if the server is closed.
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

// fresh returns an error if new work is refused.
func (s *Server) fresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return fmt.Errorf("the server is stopping: %w", paddock.Unavailable)
	}
	return nil
}

// sweep releases expired state at intervals.
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
