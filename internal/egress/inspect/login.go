package inspect

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// loginBodyMax is the longest request that is handed over whole.
const loginBodyMax = 64 << 10

// A LoginRequest is a request as it is asked about.
type LoginRequest struct {
	Method, Path, Query string

	Whole                  bool // the rest is there
	ContentType, UserAgent string
	Body                   []byte
}

// A LoginAnswer says what becomes of a request. The zero LoginAnswer leaves it as it is.
type LoginAnswer struct {
	Tokens []secret.Token // to be put into it

	// Whole asks for the whole request, which its destination does not get. The next answer is given instead. Name is the
	// name of the login that is used for it.
	Whole bool
	Name  string

	Status      int
	ContentType string
	Body        []byte
}

// login asks about the request. It reports whether it answered the guest.
func (e *exchange) login() (answered bool, err error) {
	q := LoginRequest{Method: e.r.Method, Path: path(e.r), Query: e.r.URL.RawQuery}
	a, err := e.s.p.o.Backend.Login(e.ctx, e.flow, q)
	if err != nil {
		return true, e.failed(err)
	}
	e.tokens = a.Tokens
	if !a.Whole {
		return false, nil
	}
	if err := e.use(a.Name); err != nil {
		return true, e.failed(err)
	}
	if q.Body, err = io.ReadAll(io.LimitReader(e.r.Body, loginBodyMax+1)); err != nil {
		return true, e.failed(fmt.Errorf("read the body of the request: %w", err))
	}
	if len(q.Body) > loginBodyMax || len(e.r.Trailer) > 0 {
		return true, e.failed(&Refusal{Status: http.StatusRequestEntityTooLarge, Verdict: decide.Verdict{Rule: -1, Reason: "a request for tokens has at most 64 KiB, and no trailer"}})
	}
	q.Whole, q.ContentType, q.UserAgent = true, e.r.Header.Get("Content-Type"), e.r.Header.Get("User-Agent")
	if err := e.count(len(q.Body), true); err != nil {
		return true, e.failed(err)
	}
	if a, err = e.s.p.o.Backend.Login(e.ctx, e.flow, q); err != nil {
		return true, e.failed(err)
	}
	if err := a.checkStatus(); err != nil {
		return true, e.failed(err)
	}
	return true, e.give(e.head(a))
}

// head begins the answer to a whole request and returns its body.
func (e *exchange) head(a LoginAnswer) []byte {
	h := e.w.Header()
	clear(h)
	h.Set("Content-Type", a.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	e.status = a.Status
	e.w.WriteHeader(a.Status)
	return a.Body
}

// checkStatus reports whether a status can be given as the end of an exchange.
func (a LoginAnswer) checkStatus() error {
	if a.Status < http.StatusOK || a.Status > 599 {
		return fmt.Errorf("the login answered with the status %d: %w", a.Status, paddock.Unavailable)
	}
	return nil
}
