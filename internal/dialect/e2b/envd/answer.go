package envd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Bounds of messages from and to a client.
const (
	maxMessage = 1 << 20  // one message of a client
	maxInput   = 16 << 20 // one message with input of a process
	maxAnswer  = 64 << 20 // one message to a client
	maxArgs    = 64 << 10
	maxEnv     = 16 << 10
	maxName    = 4096 // bytes of a path, as in Linux
	maxTag     = 1024
)

// stall is how long a client may read nothing before it is cut.
const stall = time.Minute

// An answer is a response that is cut when its client reads nothing for some time.
type answer struct {
	http.ResponseWriter
	b     *Box // its end ends every wait
	alone bool // no other request uses the connection
	begun atomic.Bool

	buf   []byte // for the content of a file; nil makes one
	held  int    // bytes held for the answer; only the request's goroutine uses it
	after func() // called once the answer was sent; nil does nothing

	mu   sync.Mutex
	over bool // guarded by mu; the connection may belong to another request
	torn bool // guarded by mu; it was cut
	late bool // guarded by mu; it was cut after it had begun
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

type answerKey struct{}

// answering returns the answer of a request, or nil outside of one.
func answering(ctx context.Context) *answer {
	a, _ := ctx.Value(answerKey{}).(*answer)
	return a
}

// small is the size of answers that are not counted.
const small = 16 << 10

// hold makes n the number of bytes that are held for the answer until it was sent. They count in
// the sum of the Box, and in the room of several Boxes.
func (a *answer) hold(n int) error {
	if a == nil {
		return nil
	}
	if n <= small {
		n = 0
	}
	more, room := int64(n-a.held), a.b.o.Answers
	all := a.b.answers.Add(more)
	switch {
	case more > 0 && all > maxHeld, more > 0 && room != nil && !room.Take(more):
		a.b.answers.Add(-more)
		return fmt.Errorf("the answers that wait for their clients are too large in total: %w", paddock.Exhausted)
	case more < 0 && room != nil:
		room.Give(-more)
	}
	a.held = n
	return nil
}

// lend gives the answer a buffer for the content of a file, and reports whether there is one.
func (a *answer) lend() bool {
	if a == nil || a.b.o.Buffer == nil {
		return true
	}
	buf, done, err := a.b.o.Buffer()
	if err != nil {
		return false
	}
	a.buf, a.after = buf, done
	return true
}

// buffer returns a buffer for the content of a file.
func (a *answer) buffer() []byte {
	if a == nil || a.buf == nil {
		return make([]byte, chunk)
	}
	return a.buf
}

// sent gives back what was held for the answer.
func (a *answer) sent() {
	_ = a.hold(0) // a smaller count is never refused
	if a.after != nil {
		a.after()
		a.after = nil
	}
}

// begin notes that the answer begins.
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

// leave makes the connection close after the answer. Package http takes an aborted read for
// a client that has gone, and would report that for each later request on the connection.
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
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(stall)) // HTTP/2 sets its own
	// Check after setting the deadline, because Close sets a nearer one.
	if a.b.ctx.Err() != nil {
		return 0, errGone
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom copies in large pieces, because each write has a deadline of its own.
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{a}, struct{ io.Reader }{r}, a.buffer())
}

// Flush sends the buffered bytes.
func (a *answer) Flush() {
	a.begin()
	_ = http.NewResponseController(a.ResponseWriter).Flush() // the next write reports a client that has gone
}

// release removes the deadline of the connection. If the answer was cut after it had begun,
// release aborts the connection.
func (a *answer) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.late && a.alone {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Time{}) // HTTP/2 sets its own
}

// whole protects a short answer from being cut.
func (a *answer) whole() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// cut ends reads and writes that wait for the client. An answer that has not begun can
// still be sent.
func (a *answer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.torn, a.late = true, a.begun.Load()
	control := http.NewResponseController(a.ResponseWriter)
	_ = control.SetReadDeadline(time.Unix(1, 0)) // HTTP/2 sets its own
	if a.late {
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// A refusal is an error with the codes that E2B's clients expect.
type refusal struct {
	code    int // HTTP status
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

// rpcError encodes an error for the Connect protocol.
func rpcError(err error) error {
	var own *refusal
	if errors.As(err, &own) {
		return connect.NewError(own.rpc, errors.New(jsonbody.Short(own.message)))
	}
	var c *connect.Error
	if errors.As(err, &c) {
		return err
	}
	var code connect.Code
	if code.UnmarshalText([]byte(paddock.KindOf(err).Translate().Connect)) != nil {
		code = connect.CodeInternal
	}
	return connect.NewError(code, errors.New(jsonbody.Short(err.Error())))
}

// fail answers an HTTP request with an error.
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
	writeJSON(w, code, map[string]any{"code": code, "message": jsonbody.Short(err.Error())})
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
