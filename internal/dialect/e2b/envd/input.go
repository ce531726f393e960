package envd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// maxPiece bounds the bytes of a piece. Of an input whose client has gone, no more than one
// piece is kept.
const maxPiece = 32 << 10

// A piece is a part of an input that pump has not written yet.
type piece struct {
	data  []byte
	end   bool         // end of input, in place of data
	done  chan<- error // has room for the result
	share *share       // counts data
}

// A share counts the bytes of a piece until neither its call nor pump needs them. The call
// may end first.
type share struct {
	held
	users atomic.Int32
}

// newShare counts n bytes for its caller.
func (b *Box) newShare(n int) (*share, error) {
	k := &share{held: held{b: b}}
	k.users.Store(1)
	return k, k.set(int64(n))
}

// drop ends the use of one user.
func (k *share) drop() {
	if k.users.Add(-1) == 0 {
		_ = k.set(0) // a smaller count is never refused
	}
}

// pump writes the pieces in order, until the process ends.
func (p *process) pump(w io.WriteCloser) {
	for {
		select {
		case next := <-p.input:
			var err error
			if next.end {
				err = w.Close()
			} else {
				_, err = w.Write(next.data)
			}
			next.data = nil
			next.share.drop()
			next.done <- err
		case <-p.ended:
			return
		}
	}
}

// put writes to the input of a process, after earlier inputs. It returns when the pipe of
// the process has accepted all of it. If ctx ends, a piece in progress is still written, the
// rest is dropped, and put returns an error.
func (p *process) put(ctx context.Context, in *envdpb.ProcessInput) error {
	if p.input == nil {
		if p.hasEnded() {
			return unknownPID(p.pid)
		}
		return refuse(http.StatusConflict, connect.CodeFailedPrecondition, fmt.Sprintf("process %d was started without stdin", p.pid))
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.ended:
		return unknownPID(p.pid)
	case <-ctx.Done():
		return p.b.over(ctx)
	}
	data, end := bytesOf(in)
	k, err := p.b.newShare(min(len(data), maxPiece))
	if err != nil {
		return err
	}
	defer k.drop()
	for n := 0; ; {
		// A copy, because a piece may remain longer than the message that it is a part of.
		part := bytes.Clone(data[n:min(n+maxPiece, len(data))])
		if err := p.hand(ctx, piece{data: part, end: end, share: k}); err != nil {
			return stoppedAt(err, n, len(data))
		}
		if n += len(part); n == len(data) {
			return nil
		}
	}
}

// bytesOf returns the bytes of an input, or that it is the end of input.
func bytesOf(in *envdpb.ProcessInput) (data []byte, end bool) {
	switch v := in.GetInput().(type) {
	case *envdpb.ProcessInput_Stdin:
		return v.Stdin, false
	case *envdpb.ProcessInput_Pty:
		return v.Pty, false
	}
	return nil, true
}

// hand gives a piece to pump and waits until it is written.
func (p *process) hand(ctx context.Context, c piece) error {
	done := make(chan error, 1)
	c.done = done
	c.share.users.Add(1)
	select {
	case p.input <- c:
	case <-p.ended:
		c.share.drop()
		return unknownPID(p.pid)
	case <-ctx.Done():
		c.share.drop()
		return p.b.over(ctx)
	}
	select {
	case err := <-done: // always sent, even if the process ends
		return err
	case <-ctx.Done():
		return p.b.over(ctx)
	}
}

// stoppedAt adds to an error how much of an input was accepted before it.
func stoppedAt(err error, n, all int) error {
	if n == 0 {
		return err
	}
	words := fmt.Sprintf("at least %d of %d bytes of input were accepted", n, all)
	var own *refusal
	if errors.As(err, &own) {
		return refuse(own.code, own.rpc, own.message+"; "+words)
	}
	var c *connect.Error
	if errors.As(err, &c) {
		return connect.NewError(c.Code(), fmt.Errorf("%w; %s", c.Unwrap(), words))
	}
	return fmt.Errorf("%w; %s", err, words)
}

// fits checks that input matches the kind of the process: terminal or pipe.
func (p *process) fits(in *envdpb.ProcessInput) error {
	switch in.GetInput().(type) {
	case *envdpb.ProcessInput_Stdin:
		if p.pty {
			return refuse(http.StatusConflict, connect.CodeFailedPrecondition, fmt.Sprintf("process %d has a terminal, and no stdin", p.pid))
		}
	case *envdpb.ProcessInput_Pty:
		if !p.pty {
			return refuse(http.StatusConflict, connect.CodeFailedPrecondition, fmt.Sprintf("process %d has no terminal", p.pid))
		}
	default:
		return invalid("an input is for stdin or for a terminal")
	}
	return nil
}

// SendInput writes to the input of a process.
func (s processService) SendInput(ctx context.Context, r *connect.Request[envdpb.SendInputRequest]) (*connect.Response[envdpb.SendInputResponse], error) {
	p, err := s.b.selected(ctx, r.Msg.GetProcess())
	if err == nil {
		err = p.fits(r.Msg.GetInput())
	}
	if err == nil {
		err = p.put(ctx, r.Msg.GetInput())
	}
	return answered(ctx, s.b, &envdpb.SendInputResponse{}, err)
}

// CloseStdin closes the input of a process.
func (s processService) CloseStdin(ctx context.Context, r *connect.Request[envdpb.CloseStdinRequest]) (*connect.Response[envdpb.CloseStdinResponse], error) {
	p, err := s.b.selected(ctx, r.Msg.GetProcess())
	if err == nil && p.pty {
		err = invalid("a terminal has no stdin to be closed")
	}
	if err == nil {
		err = p.put(ctx, &envdpb.ProcessInput{})
	}
	return answered(ctx, s.b, &envdpb.CloseStdinResponse{}, err)
}

// StreamInput writes several inputs. The first message names the process. If the stream is
// cut, the inputs that the process accepted before are written.
func (s processService) StreamInput(ctx context.Context, in *connect.ClientStream[envdpb.StreamInputRequest]) (*connect.Response[envdpb.StreamInputResponse], error) {
	err := s.b.streamed(ctx, in)
	return answered(ctx, s.b, &envdpb.StreamInputResponse{}, err)
}

func (b *Box) streamed(ctx context.Context, in *connect.ClientStream[envdpb.StreamInputRequest]) error {
	var p *process
	for in.Receive() {
		var err error
		switch v := in.Msg().GetEvent().(type) {
		case *envdpb.StreamInputRequest_Start_:
			p, err = b.selected(ctx, v.Start.GetProcess())
		case *envdpb.StreamInputRequest_Data_:
			if p == nil {
				return invalid("the first message of a stream of input names the process")
			}
			if err = p.fits(v.Data.GetInput()); err == nil {
				err = p.put(ctx, v.Data.GetInput())
			}
		case *envdpb.StreamInputRequest_Keepalive:
		default:
			return invalid("a message of a stream of input is empty")
		}
		if err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if p == nil {
		return invalid("a stream of input ended before it named a process")
	}
	return nil
}
