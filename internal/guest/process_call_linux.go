package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/outputring"
)

// alreadyEnded says that a process has ended, or never was.
func alreadyEnded(pid int) error {
	return fmt.Errorf("process %d has ended: %w", pid, paddock.NotFound)
}

func (h *handler) Hello(ctx context.Context, _ *connect.Request[guestpb.HelloRequest]) (*connect.Response[guestpb.HelloResponse], error) {
	if err := h.s.probe(ctx); err != nil {
		return nil, err
	}
	_, dir := h.s.settings()
	return connect.NewResponse(&guestpb.HelloResponse{
		Protocol: protocol, User: h.s.o.User.Name, Home: h.s.o.User.Home, Dir: dir,
	}), nil
}

// A sender is the stream of events of one process.
type sender func(*guestpb.ProcessEvent) error

func (h *handler) Start(ctx context.Context, req *connect.Request[guestpb.StartRequest], stream *connect.ServerStream[guestpb.ProcessEvent]) error {
	c, err := h.s.command(ctx, req.Msg)
	if err != nil {
		return err
	}
	p, r, err := h.s.start(ctx, c, !req.Msg.GetDetached(), req.Msg.GetFrom(), false)
	if err != nil {
		return err
	}
	if r != nil {
		defer p.out.Leave(r)
	}
	if err := errors.Join(ctx.Err(), stream.Send(p.startedEvent())); err != nil {
		// Nobody has learned its number, so nobody could ever end it.
		p.kill()
		return err
	}
	if r == nil {
		return nil
	}
	return p.follow(ctx, r, stream.Send)
}

// Attach with detached set gives no output, and holds none back: it only tells
// the exit.
func (h *handler) Attach(ctx context.Context, req *connect.Request[guestpb.AttachRequest], stream *connect.ServerStream[guestpb.ProcessEvent]) error {
	p, err := h.s.processes.find(int(req.Msg.GetPid()))
	if err != nil {
		return err
	}
	if req.Msg.GetFrom() < 0 {
		return fmt.Errorf("offset %d: %w", req.Msg.GetFrom(), paddock.Invalid)
	}
	if req.Msg.GetDetached() {
		if err := stream.Send(p.startedEvent()); err != nil {
			return err
		}
		select {
		case <-p.ended:
			return stream.Send(p.exitedEvent(0))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r := p.out.Join(req.Msg.GetFrom())
	defer p.out.Leave(r)
	if err := stream.Send(p.startedEvent()); err != nil {
		return err
	}
	return p.follow(ctx, r, stream.Send)
}

// follow sends output and then the exit. It holds a buffer only while there is
// something to send.
func (p *process) follow(ctx context.Context, r *outputring.Reader, send sender) error {
	out := &guestpb.Output{}
	event := &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Output{Output: out}}
	for {
		if err := p.out.Wait(ctx, r); err != nil {
			return err
		}
		buf := p.s.processes.buffer()
		n, stderr, offset, err := p.out.Take(r, *buf)
		if n > 0 {
			out.Data, out.Stderr, out.Offset = (*buf)[:n], stderr, offset
			err = send(event)
		}
		p.s.processes.buffers.Put(buf)
		switch {
		case err == io.EOF:
			select {
			case <-p.ended:
				return send(p.exitedEvent(p.out.Missed(r)))
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case err != nil:
			return err
		}
	}
}

func (p *process) startedEvent() *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Started{Started: &guestpb.Started{
		Pid: int32(p.pid), Terminal: p.cmd.terminal != nil, Input: p.in != nil, Killed: p.killed,
	}}}
}

func (p *process) exitedEvent(dropped int64) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Exited{Exited: p.exited(dropped)}}
}

// Input answers when everything was written.
func (h *handler) Input(ctx context.Context, stream *connect.ClientStream[guestpb.InputRequest]) (*connect.Response[guestpb.InputResponse], error) {
	var p *process
	var written int64
	for stream.Receive() {
		m := stream.Msg()
		if p == nil {
			var err error
			if p, err = h.s.processes.find(int(m.GetPid())); err != nil {
				return nil, err
			}
			if p.in == nil {
				return nil, fmt.Errorf("process %d was started without input: %w", p.pid, paddock.Conflict)
			}
		}
		if len(m.GetData()) > 0 {
			n, err := p.in.write(ctx, m.GetData())
			written += int64(n)
			if err != nil {
				return nil, err
			}
		}
		if m.GetClose() {
			if err := p.in.close(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.InputResponse{Written: written}), nil
}

func (h *handler) Signal(_ context.Context, req *connect.Request[guestpb.SignalRequest]) (*connect.Response[guestpb.SignalResponse], error) {
	p, err := h.s.processes.find(int(req.Msg.GetPid()))
	if err != nil {
		return nil, err
	}
	sig := req.Msg.GetSignal()
	if sig < 1 || sig > 64 {
		return nil, fmt.Errorf("signal %d: %w", sig, paddock.Invalid)
	}
	if err := p.signal(syscall.Signal(sig)); err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.SignalResponse{}), nil
}

func (h *handler) Resize(_ context.Context, req *connect.Request[guestpb.ResizeRequest]) (*connect.Response[guestpb.ResizeResponse], error) {
	p, err := h.s.processes.find(int(req.Msg.GetPid()))
	if err != nil {
		return nil, err
	}
	if p.cmd.terminal == nil {
		return nil, fmt.Errorf("process %d has no terminal: %w", p.pid, paddock.Conflict)
	}
	size, err := sizeOf(req.Msg.GetSize())
	if err != nil {
		return nil, err
	}
	if p.hasEnded() {
		return nil, alreadyEnded(p.pid)
	}
	if err := resize(p.in.f, &size); err != nil {
		if p.hasEnded() {
			return nil, alreadyEnded(p.pid)
		}
		return nil, err
	}
	return connect.NewResponse(&guestpb.ResizeResponse{}), nil
}

// argsBudget bounds the arguments in one list of processes; each process may
// have megabytes of them.
const argsBudget = 2 << 20

func (h *handler) Processes(context.Context, *connect.Request[guestpb.ProcessesRequest]) (*connect.Response[guestpb.ProcessesResponse], error) {
	list := h.s.processes.all()
	slices.SortFunc(list, func(a, b *process) int { return a.started.Compare(b.started) })
	out := &guestpb.ProcessesResponse{}
	for _, p := range list {
		first, next, _ := p.out.Bounds()
		out.Processes = append(out.Processes, &guestpb.Process{
			Pid: int32(p.pid), Args: shorten(p.cmd.args, argsBudget/len(list)), Dir: []byte(p.cmd.dir), User: p.owner(),
			Terminal: p.cmd.terminal != nil, Started: p.started.UnixNano(),
			Exited: p.exited(0), First: first, Next: next,
		})
	}
	return connect.NewResponse(out), nil
}

// shorten gives arguments up to a number of bytes; what is cut ends in "…".
func shorten(args []string, budget int) [][]byte {
	const each = 16 // what an empty argument costs
	out := make([][]byte, 0, min(len(args), budget/each+1))
	for _, a := range args {
		if budget -= each; budget < len(a) {
			return append(out, append([]byte(a[:max(budget, 0)]), "…"...))
		}
		budget -= len(a)
		out = append(out, []byte(a))
	}
	return out
}
