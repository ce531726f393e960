package envd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what a client may send and is sent.
const (
	maxMessage = 1 << 20  // one message of a client
	maxInput   = 16 << 20 // one that is input of a process
	maxAnswer  = 64 << 20 // one message to it
	maxArgs    = 64 << 10
	maxEnv     = 16 << 10
	maxName    = 4096 // bytes of a path, as Linux has it
	maxTag     = 1024
)

// stall is how long a client may take nothing.
const stall = time.Minute

// An answer is a response that is cut when its client takes nothing for a while.
type answer struct {
	http.ResponseWriter
	end   context.Context //nolint:containedctx // the Box's life, which ends every wait
	alone bool            // the connection is the request's alone
	begun atomic.Bool

	mu   sync.Mutex
	over bool // guarded by mu; the connection may be another request's
	torn bool // guarded by mu; it was cut
	late bool // guarded by mu; it was cut when it had begun
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// begin notes that there is an answer.
func (a *answer) begin() {
	if a.begun.Swap(true) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.torn {
		a.leave()
	}
}

// leave has the connection end with the answer, before that has begun: package http
// takes a reading that was cut for a client that has gone, and would tell so of each
// later request.
func (a *answer) leave() {
	if a.alone {
		a.Header().Set("Connection", "close")
	}
}

func (a *answer) WriteHeader(code int) {
	a.begin()
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(stall)) // what has none has its own
	if a.end.Err() != nil {                                                                  // asked after the deadline was set: what ends the Box set a nearer one
		return 0, errGone
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom copies in large pieces: each is a write with a bound of its own.
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{a}, struct{ io.Reader }{r}, make([]byte, chunk))
}

// Flush sends what was written.
func (a *answer) Flush() {
	a.begin()
	_ = http.NewResponseController(a.ResponseWriter).Flush() // a client that has gone is met by the next write
}

// release gives the connection back without a deadline, or ends it where it was cut and
// that could not be said.
func (a *answer) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.late && a.alone {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Time{}) // what has none has its own
}

// whole has an answer that is short, and made at once, not cut any more.
func (a *answer) whole() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// cut ends what waits for the client. An answer that has not begun can still be given.
func (a *answer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.torn, a.late = true, a.begun.Load()
	control := http.NewResponseController(a.ResponseWriter)
	_ = control.SetReadDeadline(time.Unix(1, 0)) // what has none has its own
	if a.late {
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// A refusal is an error with the code that E2B's clients expect.
type refusal struct {
	code    int // of HTTP
	rpc     connect.Code
	message string
}

func (e *refusal) Error() string { return e.message }

func refuse(code int, rpc connect.Code, message string) error {
	return &refusal{code, rpc, message}
}

func invalid(message string) error {
	return refuse(http.StatusBadRequest, connect.CodeInvalidArgument, message)
}

func missing(message string) error {
	return refuse(http.StatusNotFound, connect.CodeNotFound, message)
}

// rpcError says an error in the words of the Connect protocol.
func rpcError(err error) error {
	var own *refusal
	if errors.As(err, &own) {
		return connect.NewError(own.rpc, own)
	}
	var c *connect.Error
	if errors.As(err, &c) {
		return err
	}
	var code connect.Code
	if code.UnmarshalText([]byte(paddock.KindOf(err).Translate().Connect)) != nil {
		code = connect.CodeInternal
	}
	return connect.NewError(code, err)
}

// fail answers a request of HTTP with an error.
func fail(w http.ResponseWriter, err error) {
	code := paddock.KindOf(err).Translate().HTTP
	var own *refusal
	switch {
	case errors.As(err, &own):
		code = own.code
	case paddock.KindOf(err) == paddock.Exhausted:
		code = http.StatusInsufficientStorage
	}
	w.Header().Del("Content-Encoding")
	w.Header().Del("Content-Disposition")
	writeJSON(w, code, map[string]any{"code": code, "message": err.Error()})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client may have gone
}
