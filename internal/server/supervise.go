package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// supervisedKey is the key of the context value that carries a supervised request.
type supervisedKey struct{}

// A supervised request belongs to another API at the server's address.
type supervised struct {
	Request
	account string // the caller, once the other API's handler has called Enter
}

// Supervise returns a handler that answers with h, the handler of another API, under the supervision of this server.
// Drain waits for its requests and Close ends them. Each request has an ID (see [RequestOf]) and one record in the
// log, whose route is name followed by the pattern of h's mux. The handler h must call [Server.Enter] when it has
// identified the caller.
func (s *Server) Supervise(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler) // see ServeHTTP
		}
		defer s.leave()
		w := &recorder{ResponseWriter: rw}
		q := &supervised{Request: Request{ID: strings.ToLower(rand.Text()), From: r.RemoteAddr}}
		w.Header().Set(api.RequestHeader, q.ID)
		ctx, cancel := context.WithCancel(context.WithValue(context.WithValue(r.Context(), requestKey{}, q.Request), supervisedKey{}, q))
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		r = r.WithContext(ctx)
		began := time.Now()
		defer func() {
			cause := recover()
			if err, ok := cause.(error); cause != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
				s.log.Error("panic", "id", q.ID, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
				cause = http.ErrAbortHandler
			}
			s.log.LogAttrs(ctx, slog.LevelInfo, "request",
				slog.String("id", q.ID), slog.String("caller", q.account), slog.String("route", strings.TrimSpace(name+" "+r.Pattern)),
				slog.Int("code", w.code), slog.Int64("bytes", w.written), slog.Duration("took", time.Since(began)))
			if cause != nil {
				panic(cause)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// A Place is one of the requests that a caller may have at the same time. Leave gives it back.
type Place struct {
	a      *account
	bodies []*metered
	out    reply
}

// Enter counts a supervised request as a request of the caller, together with the caller's requests of this API. If
// the caller has too many requests, the error is Exhausted. While the server is being stopped, it is Unavailable.
func (s *Server) Enter(ctx context.Context, caller string) (*Place, error) {
	if q, ok := ctx.Value(supervisedKey{}).(*supervised); ok {
		q.account = cmp.Or(q.account, caller)
	}
	if err := s.fresh(); err != nil {
		return nil, err
	}
	a, err := s.account(caller)
	if err != nil {
		return nil, err
	}
	return &Place{a: a, out: reply{b: &a.answers}}, nil
}

// Body returns a reader of r. Until Leave, what it reads counts as memory that the caller's request bodies take.
func (p *Place) Body(r io.Reader) io.Reader {
	m := &metered{r: r, b: &p.a.bodies}
	p.bodies = append(p.bodies, m)
	return m
}

// Hold counts n more bytes of memory until Leave, which the decoded content of a body takes beside its text.
func (p *Place) Hold(n int64) error {
	m := &metered{b: &p.a.bodies}
	p.bodies = append(p.bodies, m)
	return m.hold(n)
}

// Encode returns v in JSON as a line. Until Leave, it counts as memory that the caller's answers take. If they take
// too much, the error is Exhausted.
func (p *Place) Encode(v any) ([]byte, error) { return p.a.encode(&p.out, v) }

// A Room counts the bytes that the server holds of one caller's data. Data of supervised requests and of this API's
// requests count together.
type Room struct{ b *budget }

// InputRoom returns the room for the caller's input to processes: the bytes that the processes have not read yet.
func (s *Server) InputRoom(caller string) *Room { return &Room{&s.accountOf(caller).inputHeld} }

// AnswerRoom returns the room for the caller's answers that were built and are not sent yet.
func (s *Server) AnswerRoom(caller string) *Room { return &Room{&s.accountOf(caller).answers} }

// FileBuffer returns a buffer for the content of a file on its way between the caller and a sandbox. It counts until
// done is called. If the caller has too many, the error is Exhausted.
func (s *Server) FileBuffer(caller string) (buf []byte, done func(), err error) {
	return s.accountOf(caller).piece()
}

// Take counts n bytes and reports whether there was room for them. If there was not, it counts none.
func (r *Room) Take(n int64) bool {
	got, _ := r.b.take(n)
	if got < n {
		r.b.give(got)
		return false
	}
	return true
}

// Give returns n bytes that Take has counted.
func (r *Room) Give(n int64) { r.b.give(n) }

// Leave returns the place.
func (p *Place) Leave() {
	settle(p.bodies)
	p.bodies = nil
	p.out.done()
	p.a.leave()
}
