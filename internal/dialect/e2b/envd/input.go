package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// A piece is input that was not written yet.
type piece struct {
	in   *envdpb.ProcessInput // empty for the end of input
	done chan<- error         // has room for the result
}

// pump writes the input pieces in order, until the process ends.
func (p *process) pump(w io.WriteCloser) {
	for {
		select {
		case next := <-p.input:
			var err error
			switch v := next.in.GetInput().(type) {
			case *envdpb.ProcessInput_Stdin:
				_, err = w.Write(v.Stdin)
			case *envdpb.ProcessInput_Pty:
				_, err = w.Write(v.Pty)
			default:
				err = w.Close()
			}
			next.done <- err
		case <-p.ended:
			return
		}
	}
}

// put writes to the input of a process, after earlier pieces. It returns when the pipe of
// the process has accepted the piece. If ctx ends, a piece in progress is still written.
func (p *process) put(ctx context.Context, in *envdpb.ProcessInput) error {
	if p.input == nil {
		if p.hasEnded() {
			return unknownPID(p.pid)
		}
		return refuse(http.StatusConflict, connect.CodeFailedPrecondition, fmt.Sprintf("process %d was started without stdin", p.pid))
	}
	done := make(chan error, 1)
	select {
	case p.input <- piece{in, done}:
	case <-p.ended:
		return unknownPID(p.pid)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done: // always sent, even if the process ends
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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

// StreamInput writes several pieces of input. The first message names the process. If the
// stream is cut, the pieces that arrived are written.
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
