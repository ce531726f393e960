package guestclient

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// maxInput is what one message carries.
const maxInput = 64 << 10

// An input is the way to a process's standard input. Each piece is a call of
// its own that answers when the process's pipe has taken it: so a write that
// waits for the process holds up no other call of the connection, and tells at
// once what went wrong.
type input struct {
	p     *process
	has   bool
	ctx   context.Context // ends with Close and Release
	abort context.CancelFunc
	turn  chan struct{} // holds one: whoever has it may write

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (in *input) init(p *process, has bool) {
	in.p, in.has, in.turn = p, has, make(chan struct{}, 1)
	in.ctx, in.abort = context.WithCancel(context.Background())
}

func (in *input) Write(b []byte) (int, error) {
	if err := in.check(); err != nil {
		return 0, err
	}
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-in.ctx.Done():
		return 0, in.ended()
	}
	written := 0
	for {
		piece := b[written:min(written+maxInput, len(b))]
		if len(piece) == 0 {
			return written, nil
		}
		n, err := in.send(in.ctx, &guestpb.InputRequest{Pid: int32(in.p.pid), Data: piece})
		if err == nil && n != int64(len(piece)) {
			err = broken("%d of %d bytes of input written", n, len(piece))
		}
		if err != nil {
			if in.ctx.Err() != nil {
				err = in.ended()
			}
			return written, fmt.Errorf("write input of process %d: %w", in.p.pid, err)
		}
		written += len(piece)
	}
}

// Close is the end of file. A write under way is given up. Closing twice is
// fine, and so is closing the input of a process that has ended.
func (in *input) Close() error {
	if !in.has {
		return in.check()
	}
	in.mu.Lock()
	again := in.closed
	in.closed = true
	in.mu.Unlock()
	in.abort()
	if again {
		return nil
	}
	select {
	case <-in.p.released:
		return in.ended()
	default:
	}
	ctx, cancel := in.p.guest().bound(context.Background())
	defer cancel()
	_, err := in.send(ctx, &guestpb.InputRequest{Pid: int32(in.p.pid), Close: true})
	if err != nil && paddock.KindOf(err) != paddock.NotFound {
		return fmt.Errorf("close input of process %d: %w", in.p.pid, err)
	}
	return nil
}

// check tells why nothing can be written.
func (in *input) check() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case !in.has:
		return fmt.Errorf("process %d was started without input: %w", in.p.pid, paddock.Conflict)
	case in.closed:
		return in.ended()
	}
	return nil
}

func (in *input) ended() error {
	return fmt.Errorf("input of process %d: %w: %w", in.p.pid, paddock.Canceled, io.ErrClosedPipe)
}

// send makes one call.
func (in *input) send(ctx context.Context, m *guestpb.InputRequest) (int64, error) {
	s := in.p.guest().rpc.Input(ctx)
	_ = s.Send(m) // what went wrong is told by the answer
	res, err := s.CloseAndReceive()
	if err != nil {
		return 0, in.p.guest().failure(ctx, err)
	}
	return res.Msg.GetWritten(), nil
}
