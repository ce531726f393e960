package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A request is one call: who makes it, and the way to answer.
type request struct {
	*http.Request
	w       *recorder
	s       *Server
	id      string
	caller  Caller
	account *account
}

// A recorder remembers what was answered, for the log.
type recorder struct {
	http.ResponseWriter
	code    int
	written int64
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 || r.code < 200 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p) //nolint:gosec // passed on as it is: types are set, and nosniff
	r.written += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, w: &recorder{ResponseWriter: w}, s: s, id: strings.ToLower(rand.Text())}
	w.Header().Set(api.RequestHeader, q.id)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// The connection may have carried another request, whose deadline it still has.
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // what has none has its own
	// Package http reads what is left of a body, without a deadline: as it answers,
	// and behind the handler. Until it is known who calls, and then again at the
	// end, the body has to arrive in time.
	q.hurry()
	defer q.hurry()
	if !s.enter() {
		panic(http.ErrAbortHandler) // as if it were not there: clients come back, perhaps to the next one
	}
	defer s.leave()
	began := time.Now()
	_, pattern := s.mux.Handler(r)
	defer func() {
		if cause := recover(); cause != nil {
			q.panicked(cause)
		}
		s.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("id", q.id), slog.String("caller", q.caller.Name), slog.String("route", pattern),
			slog.Int("code", q.w.code), slog.Int64("bytes", q.w.written), slog.Duration("took", time.Since(began)))
	}()
	if pattern == "" {
		q.unrouted()
		return
	}
	s.mux.ServeHTTP(q.w, r.WithContext(q.mark(r.Context())))
}

// hurry bounds how long the rest of the body may take, where there may be one and
// the connection is the request's alone.
func (q *request) hurry() {
	if q.ContentLength != 0 && q.ProtoMajor == 1 && q.w.code != http.StatusSwitchingProtocols {
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(q.s.bodyTime)) // what has none has its own
	}
}

// patient takes that back.
func (q *request) patient() {
	if q.ContentLength != 0 && q.ProtoMajor == 1 {
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Time{}) // what has none has its own
	}
}

// requestKey is of the context value that brings a request through the mux.
type requestKey struct{}

// A Request is what a driver may be told of the request that a call is made for.
type Request struct {
	ID     string
	From   string // address of the client
	Caller Caller
}

// mark has a context tell of this request, whose own does already, and of all that
// the request's own tells of: what is begun for a request is a part of it for who
// observes calls, though it may outlive it.
func (q *request) mark(ctx context.Context) context.Context {
	return context.WithValue(borrowed{ctx, context.WithoutCancel(q.Context())}, requestKey{}, q)
}

// A borrowed context ends as one does, and tells of another's values where it has none.
type borrowed struct {
	context.Context
	from context.Context
}

func (b borrowed) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.from.Value(key)
}

// MarkRequest has a context tell of a request that came in beside the API, to a port.
func MarkRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf gives the request of a call's context, if a server made the call.
func RequestOf(ctx context.Context) (Request, bool) {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r, true
	}
	q, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return Request{}, false
	}
	return Request{ID: q.id, From: q.RemoteAddr, Caller: q.caller}, true
}

// panicked answers a fault of the server's own. Where an answer has begun, the
// connection is cut, so that nobody takes it for whole.
func (q *request) panicked(cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	q.s.log.Error("panic", "id", q.id, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if q.w.code != 0 {
		panic(http.ErrAbortHandler)
	}
	q.fail(fmt.Errorf("a fault of the server: %w", paddock.Internal))
}

// unrouted answers what no route takes.
func (q *request) unrouted() {
	probe := &probe{header: http.Header{}}
	h, _ := q.s.mux.Handler(q.Request)
	h.ServeHTTP(probe, q.Request)
	if probe.code == http.StatusMethodNotAllowed {
		q.w.Header().Set("Allow", probe.header.Get("Allow"))
		q.failAs(http.StatusMethodNotAllowed, fmt.Errorf("%s is not for this path: %w", q.Method, paddock.Invalid))
		return
	}
	q.failAs(http.StatusNotFound, fmt.Errorf("no such path: %w", paddock.NotFound))
}

// A probe takes an answer of the mux's own.
type probe struct {
	header http.Header
	code   int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(code int)        { p.code = code }

// A handler answers a request; its error is the answer where none was given.
type handler func(q *request) error

// open is a route that anyone may call.
func (s *Server) open(h handler) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		q, ok := r.Context().Value(requestKey{}).(*request)
		if !ok {
			panic("a route was called past ServeHTTP")
		}
		q.Request = r
		if err := h(q); err != nil {
			q.fail(err)
		}
	}
}

// known is a route for callers that are known.
func (s *Server) known(h handler) http.HandlerFunc {
	return s.open(func(q *request) error {
		caller, err := s.o.Caller(q.Request)
		if err != nil {
			return q.unknown(err)
		}
		if caller.Driver == nil {
			return fmt.Errorf("the caller has no driver: %w", paddock.Internal)
		}
		q.caller = caller
		if caller.ReadOnly && !q.looks() {
			return fmt.Errorf("this key may only look: %w", paddock.Denied)
		}
		a, err := s.account(caller.Name)
		if err != nil {
			return err
		}
		q.account = a
		defer a.leave()
		q.patient()
		return h(q)
	})
}

// looks tells whether a request changes nothing, and connects to nothing inside.
// Who looks at output says how far, and when it is enough: see allowed.
func (q *request) looks() bool {
	if strings.HasPrefix(q.Pattern, "POST /v1/attachments/") || strings.HasPrefix(q.Pattern, "DELETE /v1/attachments/") {
		return true
	}
	return q.Method == http.MethodGet && !strings.HasSuffix(q.Pattern, "/ports/{port}") && !strings.HasPrefix(q.Pattern, "GET /v1/leases/")
}

// unknown answers a caller who is not known, or may not.
func (q *request) unknown(err error) error {
	if errors.Is(err, paddock.Denied) && q.Header.Get("Authorization") == "" {
		q.w.Header().Set("WWW-Authenticate", "Bearer")
		q.failAs(http.StatusUnauthorized, err)
		return nil
	}
	return err
}

func (q *request) fail(err error) { q.failAs(paddock.KindOf(err).Translate().HTTP, err) }

func (q *request) failAs(code int, err error) {
	if q.w.code != 0 {
		return // the answer has begun; whoever began it says how it ends
	}
	e := api.FromError(err)
	e.Request = q.id
	if code >= 500 {
		q.s.log.Warn("failed", "id", q.id, "error", err.Error())
	}
	q.write(code, api.Failure{Error: e})
}

// json answers with a body.
func (q *request) json(code int, v any) error {
	q.write(code, v)
	return nil
}

func (q *request) write(code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":{"kind":"internal","message":"the answer is not JSON"}}`)
	}
	q.w.Header().Set("Content-Type", "application/json")
	q.deadline(stall)
	q.w.WriteHeader(code)
	// A client that is gone needs no answer.
	_, _ = q.w.Write(append(data, '\n'))
}

// none answers without a body.
func (q *request) none() error {
	q.deadline(stall)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// body reads a body in JSON.
func (q *request) body(v any) error {
	if kind := q.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("the body is %q, not application/json: %w", kind, paddock.Invalid)
	}
	control := http.NewResponseController(q.w)
	_ = control.SetReadDeadline(time.Now().Add(q.s.bodyTime)) // what has none has its own
	defer q.cutAtEnd()()
	body := &metered{r: q.Body, b: &q.account.bodies}
	defer body.done()
	err := api.Decode(body, maxBody, v)
	_ = control.SetReadDeadline(time.Time{})
	return err
}

// deadline bounds the next write. What has no deadlines has its own.
func (q *request) deadline(d time.Duration) {
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(d))
}

func (q *request) flush() error { return http.NewResponseController(q.w).Flush() }
