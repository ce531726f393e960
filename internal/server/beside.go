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

// besideKey is the key of the context value that carries a request through the handler of
// another API.
type besideKey struct{}

// A besided is a request to another API at the server's address.
type besided struct {
	Request
	account string // the caller, once it is known
}

// Beside wraps the handler of another API, so that the rules of this API apply to its
// requests: Drain waits for them and Close ends them. Each request has an ID, which
// [RequestOf] returns, and one record in the log. There the route is called name followed
// by the pattern of its mux. The handler reports the caller of a request by [Server.Enter].
func (s *Server) Beside(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler) // see ServeHTTP
		}
		defer s.leave()
		w := &recorder{ResponseWriter: rw}
		q := &besided{Request: Request{ID: strings.ToLower(rand.Text()), From: r.RemoteAddr}}
		w.Header().Set(api.RequestHeader, q.ID)
		ctx, cancel := context.WithCancel(context.WithValue(context.WithValue(r.Context(), requestKey{}, q.Request), besideKey{}, q))
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

// A Place is a request's share of its caller's maximum. Leave returns it.
type Place struct {
	a      *account
	bodies []*metered
}

// Enter counts a request to another API as a request of a caller, together with the
// caller's requests to this API. It returns Exhausted if there are too many, and
// Unavailable while the server is stopping.
func (s *Server) Enter(ctx context.Context, caller string) (*Place, error) {
	if q, ok := ctx.Value(besideKey{}).(*besided); ok {
		q.account = cmp.Or(q.account, caller)
	}
	if err := s.fresh(); err != nil {
		return nil, err
	}
	a, err := s.account(caller)
	if err != nil {
		return nil, err
	}
	return &Place{a: a}, nil
}

// Body counts the bytes read from r as body bytes held for the caller, until Leave.
func (p *Place) Body(r io.Reader) io.Reader {
	m := &metered{r: r, b: &p.a.bodies}
	p.bodies = append(p.bodies, m)
	return m
}

// A Room counts the bytes held of a caller's requests to another API, together with those
// of its requests to this API.
type Room struct{ b *budget }

// InputRoom returns the room for messages to the caller's sandboxes. It is shared with
// input that processes have not accepted yet.
func (s *Server) InputRoom(caller string) *Room { return &Room{&s.accountOf(caller).inputHeld} }

// Take counts n bytes and reports whether there was room for them.
func (r *Room) Take(n int64) bool {
	got, _ := r.b.take(n)
	if got < n {
		r.b.give(got)
		return false
	}
	return true
}

// Give stops counting n bytes.
func (r *Room) Give(n int64) { r.b.give(n) }

// Leave returns the place.
func (p *Place) Leave() {
	for _, m := range p.bodies {
		m.done()
	}
	p.bodies = nil
	p.a.leave()
}
