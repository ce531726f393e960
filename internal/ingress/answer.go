package ingress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// An answer is on its way to a client. What the guest says does not take away
// what was said before, and a client that takes nothing is cut.
type answer struct {
	w      http.ResponseWriter
	header http.Header // until it is sent
	own    bool
	wrote  bool
	taken  bool // the connection was taken over
}

func (a *answer) Header() http.Header {
	if a.wrote {
		return a.w.Header() // of trailers
	}
	return a.header
}

// WriteHeader passes early hints on, and of other interim answers nothing: the
// server says by itself when it wants a body.
func (a *answer) WriteHeader(code int) {
	if code < 200 && code != http.StatusSwitchingProtocols {
		if links := a.header["Link"]; code == http.StatusEarlyHints && a.own && len(links) > 0 {
			a.w.Header()["Link"] = links
			a.w.WriteHeader(code)
			a.w.Header().Del("Link")
		}
		return
	}
	if a.wrote {
		return
	}
	a.wrote = true
	for name, values := range a.header {
		a.w.Header()[name] = append(a.w.Header()[name], values...)
	}
	a.bound(func() error { a.w.WriteHeader(code); return nil })
}

func (a *answer) Write(p []byte) (n int, err error) {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	a.bound(func() error { n, err = a.w.Write(p); return err })
	return n, err
}

// FlushError is for http.ResponseController.
func (a *answer) FlushError() (err error) {
	a.bound(func() error { err = http.NewResponseController(a.w).Flush(); return err })
	return err
}

// Hijack is for the same.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.w).Hijack()
	if err == nil {
		a.taken = true
	}
	return conn, rw, err
}

// rest gives what is left of a body some time to arrive behind the answer. Package http would
// read it too late: after it has begun to wait for the next request.
func (a *answer) rest(body io.Closer) {
	if a.taken {
		return
	}
	_ = http.NewResponseController(a.w).SetReadDeadline(time.Now().Add(restTime))
	if a.wrote {
		_ = a.FlushError() // the client may wait for the answer before it says more
	}
	_ = body.Close() // what is too much closes the connection
}

// bound gives the client some time to take something. What has no deadlines has its own.
func (a *answer) bound(do func() error) {
	control := http.NewResponseController(a.w)
	_ = control.SetWriteDeadline(time.Now().Add(stall))
	if do() == nil {
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// Refuse answers with an error, in plain words.
func Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	kind := paddock.KindOf(err)
	code, text := kind.Translate().HTTP, err.Error()
	switch kind {
	case paddock.Unavailable:
		code = http.StatusBadGateway
	case paddock.Internal:
		text = "a fault of the server"
	default:
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // who went away does not need it
}
