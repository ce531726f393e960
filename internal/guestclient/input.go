package guestclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

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
	ctx   context.Context // of writes; ends with Close, with Release, and after the process
	abort context.CancelFunc
	life  context.Context // of every call; ends with Release
	end   context.CancelFunc
	turn  chan struct{} // holds one: whoever has it may write

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (in *input) init(p *process, has bool) {
	in.p, in.has, in.turn = p, has, make(chan struct{}, 1)
	in.life, in.end = context.WithCancel(context.Background())
	in.ctx, in.abort = context.WithCancel(in.life)
}

// finish ends writes, because the process has ended or can no longer be followed. A write that waits for the guest gets
// a little time for the answer, which may be on its way: a process often ends when it has read its last input.
func (in *input) finish(grace time.Duration) {
	select {
	case in.turn <- struct{}{}:
		in.abort()
		<-in.turn
	default:
		time.AfterFunc(grace, in.abort)
	}
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
		if in.over() {
			return written, in.ended()
		}
		n, err := in.send(in.ctx, &guestpb.InputRequest{Pid: int32(in.p.pid), Data: piece})
		if err == nil && n != int64(len(piece)) {
			err = broken("%d of %d bytes of input written", n, len(piece))
		}
		if err != nil {
			if in.ctx.Err() != nil {
				return written, in.ended()
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
	if in.life.Err() != nil {
		return in.ended()
	}
	ctx, cancel := in.p.guest().bound(in.life)
	defer cancel()
	_, err := in.send(ctx, &guestpb.InputRequest{Pid: int32(in.p.pid), Close: true})
	if err != nil && in.life.Err() != nil {
		return in.ended()
	}
	if err != nil && paddock.KindOf(err) != paddock.NotFound {
		return fmt.Errorf("close input of process %d: %w", in.p.pid, err)
	}
	return nil
}

// check tells why nothing can be written.
func (in *input) check() error {
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	switch {
	case !in.has:
		return fmt.Errorf("process %d was started without input: %w", in.p.pid, paddock.Conflict)
	case closed:
		return in.ended()
	}
	return nil
}

// over reports whether the process has ended, or can no longer be followed.
func (in *input) over() bool {
	select {
	case <-in.p.done:
		return true
	default:
		return false
	}
}

// ended tells why a write ended early: by Close or Release, or with the process.
func (in *input) ended() error {
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	if !closed && in.life.Err() == nil && in.over() {
		switch p := in.p; {
		case p.err != nil:
			return fmt.Errorf("input of process %d: %w", p.pid, p.err)
		case p.exit.Cause == paddock.SandboxGone:
			return fmt.Errorf("input of process %d: %s: %w", p.pid, p.exit.Reason, paddock.Unavailable)
		default:
			return fmt.Errorf("input of process %d, which has ended: %w", p.pid, paddock.NotFound)
		}
	}
	return fmt.Errorf("input of process %d: %w: %w", in.p.pid, paddock.Canceled, io.ErrClosedPipe)
}

// send makes one call.
func (in *input) send(ctx context.Context, m *guestpb.InputRequest) (int64, error) {
	g := in.p.guest()
	m.Data = bytes.Clone(m.GetData()) // the caller's, which the call may outlast
	written, err := within(ctx, func() (int64, error) {
		s := g.rpc.Input(ctx)
		_ = s.Send(m) // what went wrong is told by the answer
		res, err := s.CloseAndReceive()
		if err != nil {
			return 0, err
		}
		return res.Msg.GetWritten(), nil
	}, nil)
	if err != nil {
		return 0, g.failure(ctx, err)
	}
	return written, nil
}
