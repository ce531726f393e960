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

// A request is one HTTP request with its caller and its answer.
type request struct {
	*http.Request
	w       *recorder
	s       *Server
	id      string
	caller  Caller
	account *account
	bodies  []*metered // decoded, and still needed
	out     reply      // the answer, while it is sent
}

// A recorder notes the status and size of the answer, for the log.
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

// Unwrap implements the interface that http.ResponseController needs.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, w: &recorder{ResponseWriter: w}, s: s, id: strings.ToLower(rand.Text())}
	w.Header().Set(api.RequestHeader, q.id)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// Clear the write deadline of an earlier request on the same connection.
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // HTTP/2 sets its own
	// Package http reads the rest of a body without a deadline, during the answer and after
	// the handler. So the body has a deadline until the caller is known, and again at the
	// end.
	q.hurry()
	defer q.hurry()
	if !s.enter() {
		panic(http.ErrAbortHandler) // answer nothing: the client retries, perhaps at the server's successor
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

// hurry sets a deadline for the rest of the body, if there may be one and the connection
// serves no other request.
func (q *request) hurry() {
	if q.ContentLength != 0 && q.ProtoMajor == 1 && q.w.code != http.StatusSwitchingProtocols {
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(q.s.bodyTime)) // HTTP/2 sets its own
	}
}

// patient removes the deadline of hurry.
func (q *request) patient() {
	if q.ContentLength != 0 && q.ProtoMajor == 1 {
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Time{}) // HTTP/2 sets its own
	}
}

// requestKey is the key of the context value that carries a request through the mux.
type requestKey struct{}

// A Request describes the request that made a call, for a driver that logs it.
type Request struct {
	ID     string
	From   string // address of the client
	Caller Caller
}

// mark returns ctx with this request and all values of the request's own context. Observers
// of calls then attribute work to the request that began it, even if the work outlives the
// request.
func (q *request) mark(ctx context.Context) context.Context {
	return context.WithValue(borrowed{ctx, context.WithoutCancel(q.Context())}, requestKey{}, q)
}

// A borrowed context has the end of one context, and also the values of another.
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

// MarkRequest returns ctx with a request that came to a port rather than to the API.
func MarkRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf returns the request that made a call, from the call's context. It reports false
// if no server made the call.
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

// panicked answers with an internal error after a panic. If an answer has begun, it cuts
// the connection, so that the client does not mistake the answer for complete.
func (q *request) panicked(cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	q.s.log.Error("panic", "id", q.id, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if q.w.code != 0 {
		panic(http.ErrAbortHandler)
	}
	q.fail(fmt.Errorf("internal error of the server: %w", paddock.Internal))
}

// unrouted answers a request without a route.
func (q *request) unrouted() {
	probe := &probe{header: http.Header{}}
	h, _ := q.s.mux.Handler(q.Request)
	h.ServeHTTP(probe, q.Request)
	if probe.code == http.StatusMethodNotAllowed {
		q.w.Header().Set("Allow", probe.header.Get("Allow"))
		q.failAs(http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed for this path: %w", q.Method, paddock.Invalid))
		return
	}
	q.failAs(http.StatusNotFound, fmt.Errorf("no such path: %w", paddock.NotFound))
}

// A probe receives the mux's own answer.
type probe struct {
	header http.Header
	code   int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(code int)        { p.code = code }

// A handler answers a request. If it returns an error without having answered, the error
// becomes the answer.
type handler func(q *request) error

// open makes a route that anyone may call.
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

// known makes a route for identified callers.
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
			return fmt.Errorf("this key is read-only: %w", paddock.Denied)
		}
		a, err := s.account(caller.Name)
		if err != nil {
			return err
		}
		q.account, q.out.b = a, &a.answers
		defer a.leave()
		defer q.settle()
		defer q.out.done()
		q.patient()
		return h(q)
	})
}

// looks reports whether a request changes nothing and connects to nothing inside. A
// read-only caller may also acknowledge and end its own attachments; see allowed.
func (q *request) looks() bool {
	if strings.HasPrefix(q.Pattern, "POST /v1/attachments/") || strings.HasPrefix(q.Pattern, "DELETE /v1/attachments/") {
		return true
	}
	return q.Method == http.MethodGet && !strings.HasSuffix(q.Pattern, "/ports/{port}") && !strings.HasPrefix(q.Pattern, "GET /v1/leases/")
}

// unknown answers a caller who is not identified or not permitted.
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
		return // the answer has begun, so the handler has to end it
	}
	e := api.FromError(err)
	e.Request = q.id
	if code >= 500 {
		q.s.log.Warn("failed", "id", q.id, "error", e.Message)
	}
	data, err := json.Marshal(api.Failure{Error: e})
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":{"kind":"internal","message":"the answer is not JSON"}}`)
	}
	q.write(code, append(data, '\n'))
}

// json answers with a body in JSON. If the caller's answers that are not sent yet are too large, it
// returns an error instead.
func (q *request) json(code int, v any) error {
	data, err := q.account.encode(&q.out, v)
	if err != nil {
		return err
	}
	q.write(code, data)
	return nil
}

func (q *request) write(code int, data []byte) {
	q.w.Header().Set("Content-Type", "application/json")
	q.deadline(stall)
	q.w.WriteHeader(code)
	// An error means that the client has gone, and then it needs no answer.
	_, _ = q.w.Write(data)
}

// none answers without a body.
func (q *request) none() error {
	q.deadline(stall)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// body decodes a body in JSON.
func (q *request) body(v any) error {
	if kind := q.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("the body is %q, not application/json: %w", kind, paddock.Invalid)
	}
	control := http.NewResponseController(q.w)
	_ = control.SetReadDeadline(time.Now().Add(q.s.bodyTime)) // HTTP/2 sets its own
	defer q.cutAtEnd()()
	body := &metered{r: q.Body, b: &q.account.bodies}
	q.bodies = append(q.bodies, body)
	err := api.Decode(body, maxBody, v, body.hold)
	_ = control.SetReadDeadline(time.Time{})
	return err
}

// settle stops to count the bodies that were decoded. A request that goes on for long calls it when
// it does not need its body any more. Others count theirs up to their end, because a guest that does
// not answer can hold them up.
func (q *request) settle() {
	settle(q.bodies)
	q.bodies = nil
}

// deadline sets a deadline for the next write. It ignores an error, because HTTP/2 sets its
// own deadlines.
func (q *request) deadline(d time.Duration) {
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(d))
}

func (q *request) flush() error { return http.NewResponseController(q.w).Flush() }
