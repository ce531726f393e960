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

// besideKey is of the context value that brings a request through a handler beside.
type besideKey struct{}

// A besided request is one of another API at the server's address.
type besided struct {
	Request
	account string // whose it turned out to be
}

// Beside has a handler of another API answer within the bounds of this one: its
// requests are waited for by Drain and ended by Close, have an ID ([RequestOf] tells
// it) and one record in the log each, in which its routes are called name and the
// pattern of its mux. Whose a request is, it says by [Server.Enter].
func (s *Server) Beside(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler) // as in ServeHTTP
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

// A Place is one of those that a caller's requests have. It is given back by Leave.
type Place struct {
	a      *account
	bodies []*metered
}

// Enter counts a request that came in beside the API as one of a caller's, with those
// that the caller makes of the API itself. It is Exhausted where there are too many,
// and Unavailable while the server is being stopped.
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

// Body counts what is read with what is held of the caller's bodies, until Leave.
func (p *Place) Body(r io.Reader) io.Reader {
	m := &metered{r: r, b: &p.a.bodies}
	p.bodies = append(p.bodies, m)
	return m
}

// A Room is where bytes count that are held of what a caller sends beside the API, with
// those that are held of what it sends to the API itself.
type Room struct{ b *budget }

// InputRoom is that of messages to sandboxes of the caller's, with the input that their
// processes have not taken.
func (s *Server) InputRoom(caller string) *Room { return &Room{&s.accountOf(caller).inputHeld} }

// Take counts n bytes, and answers whether there was room for them.
func (r *Room) Take(n int64) bool {
	got, _ := r.b.take(n)
	if got < n {
		r.b.give(got)
		return false
	}
	return true
}

// Give counts n bytes no more.
func (r *Room) Give(n int64) { r.b.give(n) }

// Leave gives the place back.
func (p *Place) Leave() {
	for _, m := range p.bodies {
		m.done()
	}
	p.bodies = nil
	p.a.leave()
}
