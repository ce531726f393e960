package envd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// processService implements process.Process.
type processService struct{ b *Box }

// silence is the default interval of keepalive events in a stream without other events.
const silence = 90 * time.Second

// pings returns the interval of keepalive events.
func pings(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Keepalive-Ping-Interval"))
	if err != nil || n < 1 || n > 3600 {
		return silence
	}
	return time.Duration(n) * time.Second
}

// answered makes the answer of a call, or encodes its error.
func answered[T any](ctx context.Context, b *Box, m *T, err error) (*connect.Response[T], error) {
	if err != nil {
		b.alive(ctx, err)
		return nil, rpcError(err)
	}
	return connect.NewResponse(m), nil
}

// List returns every running process.
func (s processService) List(ctx context.Context, _ *connect.Request[envdpb.ListRequest]) (*connect.Response[envdpb.ListResponse], error) {
	list, err := s.b.running(ctx)
	return answered(ctx, s.b, &envdpb.ListResponse{Processes: list}, err)
}

func (b *Box) running(ctx context.Context) ([]*envdpb.ProcessInfo, error) {
	infos, err := b.o.Sandbox.Processes(ctx)
	if err != nil {
		return nil, err
	}
	var list []*envdpb.ProcessInfo
	for _, i := range infos {
		pid := uint32(i.PID)
		if i.Exit != nil {
			continue
		}
		if p := b.processes.get(pid); p == nil {
			list = append(list, &envdpb.ProcessInfo{Config: configOf(i), Pid: pid})
		} else if info := p.info(i); info != nil {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b *envdpb.ProcessInfo) int { return int(a.GetPid()) - int(b.GetPid()) })
	return list, nil
}

// configOf returns the config of a process that another Box started, as far as it is known.
func configOf(i paddock.ProcessInfo) *envdpb.ProcessConfig {
	c := &envdpb.ProcessConfig{}
	for n, a := range i.Args {
		a = strings.ToValidUTF8(a, "\ufffd")
		if n == 0 {
			c.Cmd = a
			continue
		}
		c.Args = append(c.Args, a)
	}
	if dir := strings.ToValidUTF8(i.Dir, "\ufffd"); dir != "" {
		c.Cwd = &dir
	}
	return c
}

// Start runs a command and streams its events.
func (s processService) Start(ctx context.Context, r *connect.Request[envdpb.StartRequest], out *connect.ServerStream[envdpb.StartResponse]) error {
	if err := s.b.take(readerCost); err != nil {
		return rpcError(err)
	}
	defer s.b.give(readerCost)
	reader := newReader()
	p, err := s.b.start(ctx, r.Header(), r.Msg, reader)
	if err != nil {
		s.b.alive(ctx, err)
		return rpcError(err)
	}
	defer p.leave(reader)
	t := teller{b: s.b, p: p, r: reader, every: pings(r.Header()), own: true, send: func(e *envdpb.ProcessEvent) error {
		return out.Send(&envdpb.StartResponse{Event: e})
	}}
	return t.tell(ctx)
}

// Connect streams the events of a process from now on.
func (s processService) Connect(ctx context.Context, r *connect.Request[envdpb.ConnectRequest], out *connect.ServerStream[envdpb.ConnectResponse]) error {
	p, err := s.b.selected(ctx, r.Msg.GetProcess())
	if err != nil {
		s.b.alive(ctx, err)
		return rpcError(err)
	}
	if err := s.b.take(readerCost); err != nil {
		return rpcError(err)
	}
	defer s.b.give(readerCost)
	reader := newReader()
	p.join(reader)
	defer p.leave(reader)
	t := teller{b: s.b, p: p, r: reader, every: pings(r.Header()), send: func(e *envdpb.ProcessEvent) error {
		return out.Send(&envdpb.ConnectResponse{Event: e})
	}}
	return t.tell(ctx)
}

// A teller sends the events of a process to one client.
type teller struct {
	b     *Box
	p     *process
	r     *reader
	every time.Duration
	own   bool // this stream started the process and set its timeout
	send  func(*envdpb.ProcessEvent) error
}

// tell sends events until the process ends or the client goes.
func (t *teller) tell(ctx context.Context) error {
	if err := t.send(&envdpb.ProcessEvent{Event: &envdpb.ProcessEvent_Start_{Start: &envdpb.ProcessEvent_Start{Pid: t.p.pid}}}); err != nil {
		return err
	}
	alive := time.NewTicker(t.every)
	defer alive.Stop()
	for {
		select {
		case data := <-t.r.data:
			if err := t.data(data); err != nil {
				return err
			}
			alive.Reset(t.every)
		case <-t.p.ended:
			return t.end(ctx)
		case <-alive.C:
			if err := t.send(&envdpb.ProcessEvent{Event: &envdpb.ProcessEvent_Keepalive{Keepalive: &envdpb.ProcessEvent_KeepAlive{}}}); err != nil {
				return err
			}
		case <-ctx.Done():
			return t.b.over(ctx)
		}
	}
}

func (t *teller) data(d *envdpb.ProcessEvent_Data) error {
	return t.send(&envdpb.ProcessEvent{Event: &envdpb.ProcessEvent_Data_{Data: d}})
}

// end sends the remaining output and the end.
func (t *teller) end(ctx context.Context) error {
	for more := true; more; {
		select {
		case data := <-t.r.data:
			if err := t.data(data); err != nil {
				return err
			}
		default:
			more = false
		}
	}
	end := t.p.ending()
	switch {
	case errors.Is(end.err, errLetGo), errors.Is(end.err, errGone):
		panic(errGone)
	case end.err != nil:
		t.b.alive(ctx, end.err)
		return rpcError(end.err)
	case end.late && t.own:
		return connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded)
	}
	return t.send(&envdpb.ProcessEvent{Event: &envdpb.ProcessEvent_End_{End: end.event}})
}

// over returns the error for a stream that ends early.
func (b *Box) over(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded)
	}
	if b.ctx.Err() != nil {
		panic(errGone) // the API was closed, so for the client the sandbox is gone
	}
	return connect.NewError(connect.CodeCanceled, context.Canceled)
}

// start checks a request and runs its command.
func (b *Box) start(ctx context.Context, h http.Header, m *envdpb.StartRequest, r *reader) (*process, error) {
	cmd, err := b.command(ctx, h, m)
	if err != nil {
		return nil, err
	}
	if err := b.reserve(); err != nil {
		return nil, err
	}
	p := b.newProcess(m.GetProcess(), m.Tag, m.GetPty() != nil)
	p.join(r)
	cmd.Output = p.output()
	run, err := b.o.Sandbox.Start(ctx, cmd)
	if err == nil {
		if err = b.track(p, run, cmd.Input); err == nil {
			return p, nil
		}
		_ = run.Signal(ctx, syscall.SIGKILL) // an agent that gave such a number may do anything
		run.Release()
	}
	b.free()
	var not *paddock.StartError
	switch {
	case errors.As(err, &not):
		return b.notStarted(p, not), nil
	case err != nil && cmd.User != "" && paddock.KindOf(err) == paddock.Unsupported:
		return nil, unknownUser(cmd.User, b.only(ctx, "commands run as"))
	case err != nil && cmd.User != "" && paddock.KindOf(err) == paddock.NotFound:
		b.alive(ctx, err)
		return nil, unknownUser(cmd.User, "")
	}
	return nil, err
}

// command checks a request and returns its command.
func (b *Box) command(ctx context.Context, h http.Header, m *envdpb.StartRequest) (paddock.Cmd, error) {
	c := m.GetProcess()
	if err := sane(m); err != nil {
		return paddock.Cmd{}, err
	}
	user, err := b.runner(ctx, h)
	if err != nil {
		return paddock.Cmd{}, err
	}
	dir, err := b.workDir(ctx, c.GetCwd())
	if err != nil {
		return paddock.Cmd{}, err
	}
	cmd := paddock.Cmd{
		Args: append([]string{c.GetCmd()}, c.GetArgs()...), Env: b.environment(c.GetEnvs()), Dir: dir, User: user,
		Input: m.Stdin == nil || m.GetStdin(), // the first clients left stdin out and got an input
	}
	if size := m.GetPty(); size != nil {
		s, err := sizeOf(size)
		if err != nil {
			return paddock.Cmd{}, err
		}
		cmd.Terminal, cmd.Input = &s, true
	}
	if at, ok := ctx.Deadline(); ok {
		cmd.Timeout = max(time.Until(at), time.Millisecond)
	}
	return cmd, nil
}

// sane checks the bounds of a request.
func sane(m *envdpb.StartRequest) error {
	c := m.GetProcess()
	switch {
	case c.GetCmd() == "":
		return invalid("a process needs a command")
	case len(c.GetArgs()) > maxArgs, len(c.GetEnvs()) > maxEnv:
		return invalid("too many arguments or variables")
	case len(m.GetTag()) > maxTag:
		return invalid("a tag is too long")
	}
	for _, a := range append([]string{c.GetCmd()}, c.GetArgs()...) {
		if strings.IndexByte(a, 0) >= 0 {
			return invalid("an argument holds a NUL byte")
		}
	}
	for k, v := range c.GetEnvs() {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.IndexByte(v, 0) >= 0 {
			return invalid(fmt.Sprintf("variable %q cannot be set", k))
		}
	}
	return nil
}

func (b *Box) environment(own map[string]string) map[string]string {
	env := map[string]string{"E2B_SANDBOX": "true"}
	if b.o.SandboxID != "" {
		env["E2B_SANDBOX_ID"] = b.o.SandboxID
	}
	if b.o.TemplateID != "" {
		env["E2B_TEMPLATE_ID"] = b.o.TemplateID
	}
	maps.Copy(env, b.o.Env)
	maps.Copy(env, own)
	return env
}

// workDir makes the directory of a command absolute, and checks that it exists.
func (b *Box) workDir(ctx context.Context, name string) (string, error) {
	if name == "" {
		return b.o.Dir, nil // empty is the sandbox's own directory
	}
	dir, err := b.resolve(ctx, name)
	if err != nil {
		return "", err
	}
	info, err := b.o.Sandbox.FS().Stat(ctx, dir)
	switch {
	case err != nil && paddock.KindOf(err) == paddock.NotFound:
		b.alive(ctx, err)
		return "", invalid(fmt.Sprintf("cwd '%s' does not exist", name))
	case err != nil:
		return "", err
	case info.Mode.IsRegular():
		return "", invalid(fmt.Sprintf("cwd '%s' is not a directory", name))
	}
	return dir, nil
}

// notStarted returns an ended process with the exit code of a shell for a missing program,
// as E2B's agent does.
func (b *Box) notStarted(p *process, err *paddock.StartError) *process {
	b.processes.add(p)
	words := fmt.Sprintf("%s: No such file or directory\n", path.Base(err.Path))
	if err.Code != 127 {
		words = fmt.Sprintf("%s: %v\n", path.Base(err.Path), err.Err)
	}
	if p.pty {
		p.emit(terminal([]byte(words)))
	} else {
		p.emit(stderr([]byte(words)))
	}
	p.finish(endOf(paddock.Exit{Code: err.Code, Cause: paddock.Exited}))
	if b.tasks.begin() {
		go func() {
			defer b.tasks.end()
			p.linger()
		}()
	}
	return p
}

// selected returns a process by number or tag.
func (b *Box) selected(ctx context.Context, s *envdpb.ProcessSelector) (*process, error) {
	switch v := s.GetSelector().(type) {
	case *envdpb.ProcessSelector_Pid:
		if p := b.processes.get(v.Pid); p != nil {
			return p, nil
		}
		return b.adopt(ctx, v.Pid)
	case *envdpb.ProcessSelector_Tag:
		if p := b.tagged(v.Tag); p != nil {
			return p, nil
		}
		return nil, missing(fmt.Sprintf("process with tag %s not found", v.Tag))
	}
	return nil, invalid("a process is named by its pid or its tag")
}

// tagged returns a process by its tag. It prefers a running one.
func (b *Box) tagged(tag string) *process {
	var found *process
	for _, p := range b.processes.all() {
		if p.tag != nil && *p.tag == tag && (found == nil || found.hasEnded()) {
			found = p
		}
	}
	return found
}

// adopt attaches to a process that another Box started. Output begins from now on.
func (b *Box) adopt(ctx context.Context, pid uint32) (*process, error) {
	infos, err := b.o.Sandbox.Processes(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(infos, func(i paddock.ProcessInfo) bool { return uint32(i.PID) == pid && i.Exit == nil })
	if i < 0 {
		return nil, unknownPID(pid)
	}
	if err := b.reserve(); err != nil {
		return nil, err
	}
	p := b.newProcess(configOf(infos[i]), nil, infos[i].Terminal)
	o := p.output()
	o.From = infos[i].Next
	run, err := b.o.Sandbox.Attach(ctx, infos[i].PID, o)
	if err == nil {
		if err = b.track(p, run, true); err == nil {
			return p, nil
		}
		run.Release()
	}
	b.free()
	if again := b.processes.get(pid); again != nil { // another request attached first
		return again, nil
	}
	return nil, err
}

func sizeOf(p *envdpb.PTY) (paddock.Size, error) {
	rows, cols := p.GetSize().GetRows(), p.GetSize().GetCols()
	if rows > 1<<16-1 || cols > 1<<16-1 {
		return paddock.Size{}, invalid(fmt.Sprintf("a terminal of %d rows and %d columns", rows, cols))
	}
	return paddock.Size{Rows: uint16(rows), Cols: uint16(cols)}, nil
}

// Update changes the size of a terminal.
func (s processService) Update(ctx context.Context, r *connect.Request[envdpb.UpdateRequest]) (*connect.Response[envdpb.UpdateResponse], error) {
	err := s.b.resize(ctx, r.Msg)
	return answered(ctx, s.b, &envdpb.UpdateResponse{}, err)
}

func (b *Box) resize(ctx context.Context, m *envdpb.UpdateRequest) error {
	p, err := b.selected(ctx, m.GetProcess())
	if err != nil || m.GetPty() == nil {
		return err
	}
	size, err := sizeOf(m.GetPty())
	if err != nil {
		return err
	}
	if p.p == nil || p.hasEnded() {
		return unknownPID(p.pid)
	}
	return p.p.Resize(ctx, size)
}

// SendSignal sends SIGTERM or SIGKILL.
func (s processService) SendSignal(ctx context.Context, r *connect.Request[envdpb.SendSignalRequest]) (*connect.Response[envdpb.SendSignalResponse], error) {
	err := s.b.kill(ctx, r.Msg)
	return answered(ctx, s.b, &envdpb.SendSignalResponse{}, err)
}

func (b *Box) kill(ctx context.Context, m *envdpb.SendSignalRequest) error {
	var sig syscall.Signal
	switch m.GetSignal() {
	case envdpb.Signal_SIGNAL_SIGKILL:
		sig = syscall.SIGKILL
	case envdpb.Signal_SIGNAL_SIGTERM:
		sig = syscall.SIGTERM
	default:
		return refuse(http.StatusNotImplemented, connect.CodeUnimplemented, fmt.Sprintf("invalid signal: %d", m.GetSignal()))
	}
	p, err := b.selected(ctx, m.GetProcess())
	if err != nil {
		return err
	}
	return p.signal(ctx, sig)
}
