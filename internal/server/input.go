package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

const (
	maxInput   = 1 << 20          // bytes of one request
	maxInputs  = 2048             // writers of one caller
	inputGrace = 10 * time.Minute // a writer without a request for this long is dropped
	muteGrace  = time.Minute      // the same, if its last request was cut off while it waited
)

// An inputKey identifies a writer. A process may have several.
type inputKey struct {
	box    handleKey
	pid    paddock.PID
	writer string
}

// An input is a writer to a process. It counts the accepted bytes, so that a repeated
// request writes nothing twice.
type input struct {
	process paddock.Process
	turn    chan struct{} // holds one element; its sender may write

	mu       sync.Mutex
	next     int64     // guarded by mu; offset of the next byte
	closed   bool      // guarded by mu
	gone     bool      // guarded by mu; the sandbox was removed
	requests int       // guarded by mu; in progress
	cut      bool      // guarded by mu; the last request ended before its answer
	used     time.Time // guarded by mu
}

func (in *input) late(now time.Time) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	grace := inputGrace
	if in.cut || in.closed { // a repeated close comes soon
		grace = muteGrace
	}
	return in.requests == 0 && now.Sub(in.used) > grace
}

func (in *input) release() { in.process.Release() }

// lose notes that the sandbox was removed. A pending write then ends for this reason.
func (in *input) lose() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.gone = true
}

func (in *input) enter() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.requests++
	in.cut = false
}

func (in *input) leave(cut bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.requests--
	in.cut = cut
	in.used = time.Now()
}

// input handles POST /v1/sandboxes/{id}/processes/{pid}/input. The offset counts the bytes
// of this writer. Bytes that were accepted before are skipped.
func (q *request) input() error {
	pid, err := q.pid()
	if err != nil {
		return err
	}
	offset, err := q.number("offset")
	if err != nil {
		return err
	}
	end, err := q.flag("close")
	if err != nil {
		return err
	}
	again, err := q.flag("again")
	if err != nil {
		return err
	}
	body := &metered{r: q.Body, b: &q.account.inputHeld}
	defer body.done()
	data, err := q.bytes(body)
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		in, release, err := q.writer(sb, pid, offset, again)
		if err != nil {
			return err
		}
		defer release()
		defer context.AfterFunc(q.s.ctx, in.release)()
		in.enter()
		// A write that waits for the process cannot be undone. When the client goes, it
		// continues here, and sweep drops the writer if the client does not return.
		stop := context.AfterFunc(q.Context(), func() { in.leave(true) })
		defer func() {
			if stop() {
				in.leave(false)
			}
		}()
		next, err := in.write(q.Context(), offset, data)
		if err == nil && end {
			err = in.close()
		}
		if err != nil {
			return err
		}
		return q.json(http.StatusOK, api.Accepted{Next: next})
	})
}

// bytes reads the whole body before any of it is used, because a repeated request would
// write a partial body twice.
func (q *request) bytes(body io.Reader) ([]byte, error) {
	control := http.NewResponseController(q.w)
	_ = control.SetReadDeadline(time.Now().Add(q.s.bodyTime)) // HTTP/2 sets its own
	defer q.cutAtEnd()()
	data, err := io.ReadAll(io.LimitReader(body, maxInput+1))
	_ = control.SetReadDeadline(time.Time{})
	if errors.Is(err, paddock.Exhausted) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read the body: %w: %w", err, paddock.Canceled)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("more than %d bytes of input at once: %w", maxInput, paddock.Exhausted)
	}
	return data, nil
}

// writer returns a writer, and makes it if needed. A writer without a name lives for this
// request only.
func (q *request) writer(sb paddock.Sandbox, pid paddock.PID, offset int64, again bool) (*input, func(), error) {
	name := q.URL.Query().Get("writer")
	if name != "" && !api.Token(name) {
		return nil, nil, fmt.Errorf("writer: not a token: %w", paddock.Invalid)
	}
	key := inputKey{handleKey{q.caller.Driver, sb.ID()}, pid, name}
	a := q.account
	if name != "" {
		a.mu.Lock()
		in, many := a.inputs[key], len(a.inputs)
		a.mu.Unlock()
		if in != nil {
			return in, func() {}, nil
		}
		if again && offset > 0 {
			return nil, nil, fmt.Errorf("the server no longer knows how much input was accepted: %w", paddock.Conflict)
		}
		if many >= maxInputs {
			return nil, nil, tooManyInputs(many)
		}
	}
	p, err := sb.Attach(q.Context(), pid, paddock.Output{Detached: true})
	if err != nil {
		return nil, nil, err
	}
	in := &input{process: p, turn: make(chan struct{}, 1), next: offset, used: time.Now()}
	if name == "" { // without a name the client cannot return
		stop := context.AfterFunc(q.Context(), in.release)
		return in, func() {
			stop()
			in.release()
		}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if other := a.inputs[key]; other != nil {
		p.Release()
		return other, func() {}, nil
	}
	if many := len(a.inputs); many >= maxInputs { // others came meanwhile
		p.Release()
		return nil, nil, tooManyInputs(many)
	}
	a.inputs[key] = in
	return in, func() {}, nil
}

func tooManyInputs(n int) error {
	return fmt.Errorf("too many writers of input (%d): %w", n, paddock.Exhausted)
}

// write writes the new part of data, and returns the next offset.
func (in *input) write(ctx context.Context, offset int64, data []byte) (int64, error) {
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("write: %w", paddock.Canceled)
	}
	in.mu.Lock()
	next := in.next
	in.mu.Unlock()
	if offset > next {
		return next, fmt.Errorf("input at %d: the next byte is %d: %w", offset, next, paddock.Conflict)
	}
	if offset+int64(len(data)) <= next {
		return next, nil
	}
	n, err := in.process.Input().Write(data[next-offset:])
	in.mu.Lock()
	in.next += int64(n)
	next = in.next
	gone := in.gone
	in.mu.Unlock()
	if err != nil && gone {
		err = fmt.Errorf("the sandbox is gone: %w", paddock.Unavailable)
	}
	return next, err
}

// close sends the end of file, once.
func (in *input) close() error {
	in.mu.Lock()
	again := in.closed
	in.closed = true
	in.mu.Unlock()
	if again {
		return nil
	}
	if err := in.process.Input().Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}
