package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/ingress/access"
	"github.com/paddock-sandbox/paddock/internal/server"
)

// A service is the HTTP handler of a server: its APIs, its health, and the time of its last request.
type service struct {
	api    *server.Server
	driver paddock.Driver
	caller func(*http.Request) (server.Caller, error)
	log    *slog.Logger
	access *access.Control // of ports inside sandboxes; nil is none
	e2b    *e2b.Handler    // nil does not speak E2B's API
	other  []dialectOf     // APIs of others, under the API's supervision
	mcp    *toolEndpoint   // nil offers no tools

	mu       sync.Mutex
	draining bool          // guarded by mu
	calls    int           // guarded by mu; under way
	last     time.Time     // guarded by mu; of the end of the last one
	changed  chan struct{} // of one place: something of this changed
}

func newService(d paddock.Driver, caller func(*http.Request) (server.Caller, error), log *slog.Logger, g *access.Control) (*service, error) {
	o := server.Options{Caller: caller, Log: log}
	if g != nil {
		o.Ports = recordedPorts{g}
	}
	api, err := server.New(o)
	if err != nil {
		return nil, err
	}
	return &service{api: api, driver: d, caller: caller, log: log, access: g, last: time.Now(), changed: make(chan struct{}, 1)}, nil
}

// A speaker answers the requests of an API of others that it takes.
type speaker interface {
	http.Handler
	Takes(r *http.Request) bool
	Close() error
}

// A dialectOf is a speaker, and how it is called.
type dialectOf struct {
	speaker
	supervised http.Handler
}

// speak makes the service answer an API of others too.
func (s *service) speak(name string, h speaker) {
	if of, ok := h.(*e2b.Handler); ok {
		s.e2b = of
	}
	s.other = append(s.other, dialectOf{h, s.api.Supervise(name, h)})
}

// known tells whether a request shows a good key, in either of the headers that
// clients send one in.
func (s *service) known(r *http.Request) bool {
	if text := r.Header.Get("X-Api-Key"); text != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+text)
	}
	_, err := s.caller(r)
	return err == nil
}

// dialect returns what answers a request that is for an API of others.
func (s *service) dialect(r *http.Request) (http.Handler, bool) {
	for _, d := range s.other {
		if d.Takes(r) {
			return d.supervised, true
		}
	}
	return nil, false
}

// ServeHTTP passes a request to the first of these that it is for: a port of a sandbox (access), an API of others, the
// server's health, the server's own API. Ports come first, because at the host of a port every path belongs to the
// sandbox. The hosts of E2B's API and of its sandboxes are below the same domain, and are the only ones there that
// belong to no port. Questions about the server's health do not count as use of the server.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of the connection's request before; what has none has its own
	hurry(w, r)
	defer hurry(w, r)
	if s.access != nil && (s.e2b == nil || !s.e2b.Hosts(r.Host)) && s.access.Take(w, r) {
		return
	}
	if h, ok := s.dialect(r); ok {
		s.count(1)
		defer s.count(-1)
		h.ServeHTTP(w, r)
		return
	}
	switch r.URL.Path {
	case toolPath:
		if s.mcp != nil {
			s.count(1)
			defer s.count(-1)
			s.mcp.handler.ServeHTTP(w, r)
			return
		}
	case "/healthz":
		answer(w, http.StatusOK, "it lives\n")
		return
	case "/readyz":
		s.mu.Lock()
		draining := s.draining
		s.mu.Unlock()
		if draining {
			answer(w, http.StatusServiceUnavailable, "it ends\n")
			return
		}
		answer(w, http.StatusOK, "it takes calls\n")
		return
	}
	s.count(1)
	defer s.count(-1)
	s.api.ServeHTTP(w, r)
}

// strangerTime is what a body gets to arrive until it is known who sends it, and what is
// left of one behind its answer, which package http reads.
const strangerTime = 30 * time.Second

// hurry bounds how long the rest of a body may take, where the connection is the
// request's alone. Whoever finds out who calls takes that back.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangerTime)) // what has none has its own
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // who went away does not need it
}

func (s *service) count(n int) {
	s.mu.Lock()
	s.calls += n
	s.last = time.Now()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// end takes no more calls, and gives those under way some time. Who reads output
// then reads on at the next server. A call that a sandbox keeps even when it is cut
// ends with the driver.
func (s *service) end(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := s.api.Drain(ctx); err != nil {
		s.log.Info("calls are cut", "why", err)
	}
	if s.access != nil {
		s.access.Close() // what goes through it has no end of its own
	}
	return s.cut()
}

// cut ends the calls under way. It waits for them, but not for longer than cutTime.
func (s *service) cut() error {
	errs := make([]error, len(s.other)) // each is written by one goroutine
	var apiErr error
	var cuts sync.WaitGroup
	for i, d := range s.other {
		cuts.Go(func() { errs[i] = d.Close() })
	}
	cuts.Go(func() { apiErr = s.api.Close() })
	if s.mcp != nil {
		cuts.Go(s.mcp.close)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		cuts.Wait()
	}()
	late := time.NewTimer(cutTime)
	defer late.Stop()
	select {
	case <-done:
		return errors.Join(errors.Join(errs...), apiErr)
	case <-late.C:
		s.log.Warn("calls are still under way, because their sandboxes do not answer", "after", cutTime)
		return nil
	}
}

// quiet tells since when there is no call; false while there is one.
func (s *service) quiet() (since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.calls == 0
}

// leave waits until nobody has called for so long and there is no sandbox. It
// answers false when ctx ended before. It looks for sandboxes only when there was
// no call for that long, and again after as long.
func (s *service) leave(ctx context.Context, idle time.Duration) bool {
	t := time.NewTimer(idle)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.changed:
			t.Reset(idle)
			continue
		case <-t.C:
		}
		since, ok := s.quiet()
		if !ok {
			continue // its end changes something
		}
		if left := time.Until(since.Add(idle)); left > 0 {
			t.Reset(left)
			continue
		}
		list, err := s.driver.List(ctx)
		if err != nil {
			s.log.Warn("is there a sandbox?", "error", err)
		}
		if now, ok := s.quiet(); err == nil && len(list) == 0 && ok && now.Equal(since) {
			return true
		}
		t.Reset(idle)
	}
}
