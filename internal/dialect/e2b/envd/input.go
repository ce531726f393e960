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

// A piece is input on its way.
type piece struct {
	in   *envdpb.ProcessInput // empty is the end of it
	done chan<- error         // has room for the result
}

// pump writes what arrives for the input, in its order, until the process ends.
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

// put writes to a process's input, behind what was put before, and answers when the
// process's pipe has taken it. What is being written when ctx ends is written still.
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
	case err := <-done: // it comes, also where the process ends meanwhile
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fits checks that an input is of the kind that the process has.
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

// SendInput writes to a process's input.
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

// CloseStdin is the end of a process's input.
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

// StreamInput writes a series of inputs. The first message names the process. A
// stream that is only cut off has written what came.
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
