package guestclient

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// A stream is what a process's events come over.
type stream = connect.ServerStreamForClient[guestpb.ProcessEvent]

// Start runs a command, as paddock.Sandbox.Start.
func (g *Guest) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	req, err := g.request(cmd)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	p := g.process(cmd.Output, time.Duration(req.Timeout))
	p.fresh = true
	err = p.open(ctx, opening{
		check:    events{next: cmd.Output.From},
		fresh:    true,
		followed: !cmd.Output.Detached,
		call: func(ctx context.Context) (*stream, error) {
			return g.rpc.Start(ctx, connect.NewRequest(req))
		},
	})
	var start *paddock.StartError
	if errors.As(err, &start) {
		start.Path = cmd.Args[0]
		return nil, start
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Args[0], err)
	}
	return p, nil
}

// Attach joins a process, as paddock.Sandbox.Attach.
func (g *Guest) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	if pid < 1 || pid > maxPID {
		return nil, fmt.Errorf("attach to process %d: %w", pid, paddock.NotFound)
	}
	if out.From < 0 {
		return nil, fmt.Errorf("attach to process %d: offset %d: %w", pid, out.From, paddock.Invalid)
	}
	p := g.process(out, g.o.Lifetime)
	p.asked = true
	if err := p.attach(ctx, pid, out.Detached); err != nil {
		return nil, fmt.Errorf("attach to process %d: %w", pid, err)
	}
	return p, nil
}

// attach opens a stream to a process that is there. A silent one tells only
// the exit.
func (p *process) attach(ctx context.Context, pid paddock.PID, silent bool) error {
	req := &guestpb.AttachRequest{Pid: int32(pid), From: p.out.From, Detached: silent}
	return p.open(ctx, opening{
		check:    events{pid: req.Pid, next: req.From, silent: silent},
		followed: true,
		call: func(ctx context.Context) (*stream, error) {
			return p.guest().attach(ctx, req)
		},
	})
}

// attach asks the guest for the events of a process.
func (g *Guest) attach(ctx context.Context, req *guestpb.AttachRequest) (*stream, error) {
	if req.GetDetached() {
		ctx = silently(ctx)
	}
	return g.rpc.Attach(ctx, connect.NewRequest(req))
}

// request checks a command and writes it for the wire.
func (g *Guest) request(cmd paddock.Cmd) (*guestpb.StartRequest, error) {
	switch {
	case len(cmd.Args) == 0 || cmd.Args[0] == "":
		return nil, fmt.Errorf("a command needs a program: %w", paddock.Invalid)
	case cmd.Timeout < 0:
		return nil, fmt.Errorf("timeout %v: %w", cmd.Timeout, paddock.Invalid)
	case cmd.Output.From < 0:
		return nil, fmt.Errorf("offset %d: %w", cmd.Output.From, paddock.Invalid)
	case !utf8.ValidString(cmd.User):
		return nil, fmt.Errorf("user %q: %w", cmd.User, paddock.Invalid)
	}
	timeout := cmd.Timeout
	if l := g.o.Lifetime; l > 0 && (timeout == 0 || l < timeout) {
		timeout = l
	}
	req := &guestpb.StartRequest{
		Dir: []byte(cmd.Dir), Input: cmd.Input, Timeout: int64(timeout), User: cmd.User,
		Detached: cmd.Output.Detached, From: cmd.Output.From,
	}
	for _, a := range cmd.Args {
		req.Args = append(req.Args, []byte(a))
	}
	if len(cmd.Env) > 0 {
		req.Env = make(map[string][]byte, len(cmd.Env))
	}
	for k, v := range cmd.Env {
		if !utf8.ValidString(k) {
			return nil, fmt.Errorf("environment variable %q is not text: %w", k, paddock.Invalid)
		}
		req.Env[k] = []byte(v)
	}
	if t := cmd.Terminal; t != nil {
		req.Terminal = &guestpb.Size{Rows: uint32(t.Rows), Cols: uint32(t.Cols)}
	}
	return req, nil
}

// An opening is how a stream begins.
type opening struct {
	call     func(context.Context) (*stream, error)
	check    events
	fresh    bool // the call makes the process
	followed bool // the stream goes on after Started
}

// open makes the call whose stream outlives ctx, and waits until the guest
// says Started. From then on p follows the stream.
func (p *process) open(ctx context.Context, o opening) error {
	g := p.guest()
	leave := func() {}
	if o.fresh {
		var err error
		if leave, err = g.enter(ctx, g.starts); err != nil {
			return err
		}
	}
	bound, done := g.bound(ctx)
	defer done()
	own, cancel := context.WithCancel(context.Background())
	var s *stream
	begun := make(chan error, 1)
	go func() {
		var err error
		s, err = o.begin(own, cancel)
		leave()
		begun <- err
	}()
	select {
	case err := <-begun:
		if err != nil {
			cancel()
			return g.failure(bound, err)
		}
	case <-bound.Done():
		if !o.fresh {
			cancel()
			return g.failure(bound, nil)
		}
		// Nobody else will learn the number of what may just have started.
		go func() {
			defer cancel()
			late := time.AfterFunc(answerTime, cancel)
			defer late.Stop()
			if <-begun == nil {
				p.begin(o.check.pid, s.Msg().GetStarted(), cancel)
				_ = p.Signal(own, syscall.SIGKILL)
				cancel()
				_ = s.Close()
			}
		}()
		return g.failure(bound, nil)
	}
	p.begin(o.check.pid, s.Msg().GetStarted(), cancel)
	if !o.followed {
		cancel()
		go func() { _ = s.Close() }() // it may wait for the connection's turn
		return nil
	}
	p.follow(s, o.check)
	return nil
}

// enter waits until there is a place for one more call, and gives how to leave. A guest on a slow
// machine answers each start in time when it is not asked for hundreds at once.
func (g *Guest) enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, stopped(ctx)
	case <-g.Done():
		return nil, g.failure(ctx, nil)
	}
}

// begin makes the call and takes its first event.
func (o *opening) begin(ctx context.Context, cancel func()) (*stream, error) {
	s, err := o.call(ctx)
	if err != nil {
		return nil, err
	}
	if s.Receive() {
		err = o.check.check(s.Msg())
	} else if err = s.Err(); err == nil {
		err = broken("an end before the start")
	}
	if err != nil {
		cancel() // else Close waits for the end of what the guest sends
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Processes lists processes, as paddock.Sandbox.Processes.
func (g *Guest) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	leave, err := g.enter(ctx, g.lists)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer leave()
	all, err := ask(ctx, g.rpc.Processes, &guestpb.ProcessesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", g.failure(ctx, err))
	}
	list := make([]paddock.ProcessInfo, 0, len(all.GetProcesses()))
	for _, m := range all.GetProcesses() {
		info, err := processInfo(m)
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		list = append(list, info)
	}
	return list, nil
}

func processInfo(m *guestpb.Process) (paddock.ProcessInfo, error) {
	if m.GetPid() < 1 || m.GetPid() > maxPID || m.GetFirst() < 0 || m.GetNext() < m.GetFirst() || m.GetNext() > maxTime {
		return paddock.ProcessInfo{}, broken("process %d with output from %d to %d", m.GetPid(), m.GetFirst(), m.GetNext())
	}
	info := paddock.ProcessInfo{
		PID: paddock.PID(m.GetPid()), Dir: string(m.GetDir()), User: text(m.GetUser()), Terminal: m.GetTerminal(),
		Started: time.Unix(0, m.GetStarted()), First: m.GetFirst(), Next: m.GetNext(),
	}
	for _, a := range m.GetArgs() {
		info.Args = append(info.Args, string(a))
	}
	if e := m.GetExited(); e != nil {
		if err := checkExit(e); err != nil {
			return paddock.ProcessInfo{}, err
		}
		exit := exitOf(e, 0)
		info.Exit = &exit
	}
	return info, nil
}
