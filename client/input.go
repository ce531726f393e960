package client

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// maxInput is the largest piece of input in one request.
const maxInput = 256 << 10

// An input writes to the standard input of a process. Each piece is a request, which the
// server answers when the pipe of the process has accepted it. A request whose connection
// broke is repeated with the same offset, so that the server knows which bytes it already
// has.
type input struct {
	p      *process
	writer string
	ctx    context.Context // ends with Close and Release
	abort  context.CancelFunc
	turn   chan struct{} // holds one element; its sender may write
	next   int64         // owned by the holder of turn

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (in *input) init(p *process) {
	in.p, in.writer, in.turn = p, token(), make(chan struct{}, 1)
	in.ctx, in.abort = context.WithCancel(p.s.d.ctx)
	context.AfterFunc(p.ctx, func() {
		select {
		case <-p.released:
			in.abort()
		default: // the output has ended; the server refuses a later write
		}
	})
}

func (in *input) Write(b []byte) (int, error) {
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	if closed || in.ctx.Err() != nil {
		return 0, in.ended()
	}
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-in.ctx.Done():
		return 0, in.ended()
	}
	written := 0
	for written < len(b) {
		data := b[written:min(written+maxInput, len(b))]
		if err := in.send(in.ctx, data, false); err != nil {
			if in.ctx.Err() != nil {
				err = in.ended()
			}
			return written, fmt.Errorf("write input of process %d: %w", in.p.pid, err)
		}
		written += len(data)
	}
	return written, nil
}

// Close sends the end of file. It cancels a pending write. A second Close does nothing, and
// closing the input of an ended process is not an error.
func (in *input) Close() error {
	in.mu.Lock()
	again := in.closed
	in.closed = true
	in.mu.Unlock()
	if again {
		return nil
	}
	select {
	case <-in.p.released:
		return in.ended()
	default:
	}
	in.abort()
	in.turn <- struct{}{} // a pending Write gives the turn back, because its context has ended
	defer func() { <-in.turn }()
	ctx, cancel := context.WithTimeout(in.p.s.d.ctx, 2*time.Minute)
	defer cancel()
	if err := in.send(ctx, nil, true); err != nil && paddock.KindOf(err) != paddock.NotFound {
		return fmt.Errorf("close input of process %d: %w", in.p.pid, err)
	}
	return nil
}

func (in *input) ended() error {
	return fmt.Errorf("input of process %d: %w: %w", in.p.pid, paddock.Canceled, io.ErrClosedPipe)
}

// send makes a request until the server answers.
func (in *input) send(ctx context.Context, data []byte, end bool) error {
	d := in.p.s.d
	query := url.Values{"writer": {in.writer}, "offset": {strconv.FormatInt(in.next, 10)}}
	if end {
		query.Set("close", "true")
	}
	tries := d.tries()
	for {
		var took api.Accepted
		err := d.call(ctx, call{method: "POST", path: in.p.path("/input"), query: query, raw: append([]byte{}, data...), answer: &took})
		if err == nil {
			in.next = max(in.next, took.Next)
			return nil
		}
		if !broken(err) || ctx.Err() != nil || !tries.again(ctx) {
			return err
		}
		query.Set("again", "true")
	}
}
