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

// maxInput is what one request carries.
const maxInput = 256 << 10

// An input is the way to a process's standard input. Each piece is a request that
// is answered when the process's pipe has taken it. A request that was cut is
// repeated with the same offset, so that the server knows what it took already.
type input struct {
	p      *process
	writer string
	ctx    context.Context // ends with Close and Release
	abort  context.CancelFunc
	turn   chan struct{} // holds one: whoever has it may write
	next   int64         // of whoever has the turn

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
		default: // the output has ended; a write is told so by the server
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

// Close is the end of file. A write under way is given up. Closing twice is fine,
// and so is closing the input of a process that has ended.
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
	in.turn <- struct{}{} // whoever has it gives it back: its context has ended
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

// send makes a request until it was answered.
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
