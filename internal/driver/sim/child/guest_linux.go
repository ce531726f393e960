package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// inside answers the host's calls with a sandbox of this process.
type inside struct {
	guestpb.UnimplementedGuestHandler
	sb paddock.Sandbox
}

// chunk is how much of a file travels in one message.
const chunk = 256 << 10

func (h *inside) Hello(ctx context.Context, _ *connect.Request[guestpb.HelloRequest]) (*connect.Response[guestpb.HelloResponse], error) {
	st, err := h.sb.Status(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.HelloResponse{Protocol: guest.Protocol, User: st.User, Dir: st.Dir}), nil
}

type sender func(*guestpb.ProcessEvent) error

func (h *inside) Start(ctx context.Context, req *connect.Request[guestpb.StartRequest], stream *connect.ServerStream[guestpb.ProcessEvent]) error {
	m := req.Msg
	cmd := paddock.Cmd{
		Env: map[string]string{}, Dir: string(m.GetDir()), User: m.GetUser(), Input: m.GetInput(),
		Timeout: time.Duration(m.GetTimeout()), Output: paddock.Output{Detached: m.GetDetached(), Stdout: sim.Hold{}, From: m.GetFrom()},
	}
	for _, a := range m.GetArgs() {
		cmd.Args = append(cmd.Args, string(a))
	}
	for name, value := range m.GetEnv() {
		cmd.Env[name] = string(value)
	}
	if s := m.GetTerminal(); s != nil {
		size, err := sizeOf(s)
		if err != nil {
			return err
		}
		cmd.Terminal = &size
	}
	p, err := h.sb.Start(ctx, cmd)
	if err != nil {
		return err
	}
	defer p.Release()
	started := &guestpb.Started{Pid: int32(p.ID()), Terminal: cmd.Terminal != nil, Input: cmd.Input || cmd.Terminal != nil}
	if err := stream.Send(&guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Started{Started: started}}); err != nil {
		// Nobody has learned its number, so nobody could ever end it.
		_ = p.Signal(context.WithoutCancel(ctx), syscall.SIGKILL)
		return err
	}
	if m.GetDetached() {
		return nil
	}
	return follow(ctx, p, m.GetFrom(), stream.Send)
}

func (h *inside) Attach(ctx context.Context, req *connect.Request[guestpb.AttachRequest], stream *connect.ServerStream[guestpb.ProcessEvent]) error {
	pid := paddock.PID(req.Msg.GetPid())
	p, err := h.sb.Attach(ctx, pid, paddock.Output{Detached: req.Msg.GetDetached(), Stdout: sim.Hold{}, From: req.Msg.GetFrom()})
	if err != nil {
		return err
	}
	defer p.Release()
	i, err := h.info(ctx, pid)
	if err != nil {
		return err
	}
	started := &guestpb.Started{Pid: int32(pid), Terminal: i.Terminal, Input: sim.HasInput(p)}
	if err := stream.Send(&guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Started{Started: started}}); err != nil {
		return err
	}
	if req.Msg.GetDetached() {
		exit, err := p.Wait(ctx)
		if err != nil {
			return err
		}
		return stream.Send(exited(exit))
	}
	return follow(ctx, p, req.Msg.GetFrom(), stream.Send)
}

func (h *inside) info(ctx context.Context, pid paddock.PID) (paddock.ProcessInfo, error) {
	all, err := h.sb.Processes(ctx)
	if err != nil {
		return paddock.ProcessInfo{}, err
	}
	for _, i := range all {
		if i.PID == pid {
			return i, nil
		}
	}
	return paddock.ProcessInfo{}, fmt.Errorf("process %d: %w", pid, paddock.NotFound)
}

// follow sends a process's output and then its exit.
func follow(ctx context.Context, p paddock.Process, from int64, send sender) error {
	f, ok := p.(sim.Follower)
	if !ok {
		return fmt.Errorf("the process has no offsets: %w", paddock.Internal)
	}
	out := &guestpb.Output{}
	event := &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Output{Output: out}}
	var failed error
	dropped := f.Follow(ctx, from, func(stderr bool, offset int64, b []byte) error {
		out.Stderr, out.Offset, out.Data = stderr, offset, b
		failed = send(event)
		return failed
	})
	if failed != nil {
		return failed
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	exit.Dropped = dropped
	return send(exited(exit))
}

func exited(x paddock.Exit) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Exited{Exited: exitOf(x)}}
}

func exitOf(x paddock.Exit) *guestpb.Exited {
	causes := map[paddock.Cause]guestpb.Cause{
		paddock.Exited: guestpb.Cause_CAUSE_EXITED, paddock.Signaled: guestpb.Cause_CAUSE_SIGNALED,
		paddock.TimedOut: guestpb.Cause_CAUSE_TIMED_OUT, paddock.OutOfMemory: guestpb.Cause_CAUSE_OUT_OF_MEMORY,
		paddock.OutOfBudget: guestpb.Cause_CAUSE_OUT_OF_BUDGET, paddock.SandboxGone: guestpb.Cause_CAUSE_KILLED_BY_POLICY,
		paddock.KilledByPolicy: guestpb.Cause_CAUSE_KILLED_BY_POLICY,
	}
	reason := x.Reason
	if len(reason) > 500 {
		reason = reason[:500]
	}
	return &guestpb.Exited{
		Cause: causes[x.Cause], Code: int32(x.Code), Signal: int32(x.Signal), Dropped: x.Dropped, Wall: int64(x.Usage.Wall),
		Cpu: int64(x.Usage.CPU), MemoryPeak: x.Usage.MemoryPeak, Reason: reason, Limit: x.Limit, Peak: x.Peak,
	}
}

func (h *inside) Input(ctx context.Context, stream *connect.ClientStream[guestpb.InputRequest]) (*connect.Response[guestpb.InputResponse], error) {
	var p paddock.Process
	var written int64
	for stream.Receive() {
		m := stream.Msg()
		if p == nil {
			var err error
			if p, err = h.sb.Attach(ctx, paddock.PID(m.GetPid()), paddock.Output{Detached: true}); err != nil {
				return nil, err
			}
			defer p.Release()
		}
		if len(m.GetData()) > 0 {
			n, err := p.Input().Write(m.GetData())
			written += int64(n)
			if err != nil {
				return nil, err
			}
		}
		if m.GetClose() {
			if err := p.Input().Close(); err != nil {
				return nil, err
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.InputResponse{Written: written}), nil
}

func (h *inside) Signal(ctx context.Context, req *connect.Request[guestpb.SignalRequest]) (*connect.Response[guestpb.SignalResponse], error) {
	p, err := h.sb.Attach(ctx, paddock.PID(req.Msg.GetPid()), paddock.Output{Detached: true})
	if err != nil {
		return nil, err
	}
	defer p.Release()
	return answer(&guestpb.SignalResponse{}, p.Signal(ctx, syscall.Signal(req.Msg.GetSignal())))
}

func (h *inside) Resize(ctx context.Context, req *connect.Request[guestpb.ResizeRequest]) (*connect.Response[guestpb.ResizeResponse], error) {
	p, err := h.sb.Attach(ctx, paddock.PID(req.Msg.GetPid()), paddock.Output{Detached: true})
	if err != nil {
		return nil, err
	}
	defer p.Release()
	size, err := sizeOf(req.Msg.GetSize())
	if err == nil {
		err = p.Resize(ctx, size)
	}
	return answer(&guestpb.ResizeResponse{}, err)
}

func sizeOf(s *guestpb.Size) (paddock.Size, error) {
	if s.GetRows() < 1 || s.GetRows() > 0xffff || s.GetCols() < 1 || s.GetCols() > 0xffff {
		return paddock.Size{}, fmt.Errorf("a terminal of %d rows and %d columns: %w", s.GetRows(), s.GetCols(), paddock.Invalid)
	}
	return paddock.Size{Rows: uint16(s.GetRows()), Cols: uint16(s.GetCols())}, nil
}

// argsBudget bounds the arguments in one list of processes.
const argsBudget = 2 << 20

func (h *inside) Processes(ctx context.Context, _ *connect.Request[guestpb.ProcessesRequest]) (*connect.Response[guestpb.ProcessesResponse], error) {
	all, err := h.sb.Processes(ctx)
	if err != nil {
		return nil, err
	}
	res := &guestpb.ProcessesResponse{}
	for _, i := range all {
		p := &guestpb.Process{
			Pid: int32(i.PID), Dir: []byte(i.Dir), User: i.User, Terminal: i.Terminal, Started: i.Started.UnixNano(), First: i.First, Next: i.Next,
		}
		left := argsBudget / len(all)
		for _, a := range i.Args {
			if left -= 16; left < len(a) {
				p.Args = append(p.Args, append([]byte(a[:max(left, 0)]), "…"...))
				break
			}
			left -= len(a)
			p.Args = append(p.Args, []byte(a))
		}
		if i.Exit != nil {
			p.Exited = exitOf(*i.Exit)
		}
		res.Processes = append(res.Processes, p)
	}
	return connect.NewResponse(res), nil
}

func (h *inside) Read(ctx context.Context, req *connect.Request[guestpb.ReadRequest], out *connect.ServerStream[guestpb.ReadResponse]) error {
	f, err := h.sb.FS().Open(ctx, string(req.Msg.GetName()), paddock.OpenOptions{Offset: req.Msg.GetOffset(), Length: req.Msg.GetLength()})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := out.Send(&guestpb.ReadResponse{}); err != nil {
		return err
	}
	buf := make([]byte, chunk)
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		if n > 0 {
			if err := out.Send(&guestpb.ReadResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (h *inside) Write(ctx context.Context, stream *connect.BidiStream[guestpb.WriteRequest, guestpb.WriteResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	o := first.GetOpen()
	f, err := h.sb.FS().Create(ctx, string(o.GetName()), paddock.CreateOptions{
		Mode: modeOf(o.GetMode()), Append: o.GetAppend(), Exclusive: o.GetExclusive(), Parents: o.GetParents(),
	})
	if err != nil {
		return err
	}
	if err := stream.Send(&guestpb.WriteResponse{}); err != nil {
		return errors.Join(err, f.Close())
	}
	var written int64
	for {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		n, err := f.Write(msg.GetData())
		written += int64(n)
		if err != nil {
			_ = f.Close() // tells the same
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return stream.Send(&guestpb.WriteResponse{Written: written})
}

// modeOf turns mode bits of Linux into Go's.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	if m&syscall.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if m&syscall.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&syscall.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&^0o7777 != 0 {
		mode |= fs.ModeIrregular
	}
	return mode
}

// bitsOf is the inverse, with the type of the file.
func bitsOf(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, b := range []struct {
		mode fs.FileMode
		bit  uint32
	}{
		{fs.ModeSticky, syscall.S_ISVTX}, {fs.ModeSetuid, syscall.S_ISUID}, {fs.ModeSetgid, syscall.S_ISGID},
	} {
		if m&b.mode != 0 {
			bits |= b.bit
		}
	}
	switch {
	case m.IsRegular():
		return bits | syscall.S_IFREG
	case m.IsDir():
		return bits | syscall.S_IFDIR
	case m&fs.ModeSymlink != 0:
		return bits | syscall.S_IFLNK
	case m&fs.ModeNamedPipe != 0:
		return bits | syscall.S_IFIFO
	case m&fs.ModeSocket != 0:
		return bits | syscall.S_IFSOCK
	case m&fs.ModeCharDevice != 0:
		return bits | syscall.S_IFCHR
	}
	return bits | syscall.S_IFBLK
}

func fileOf(i paddock.FileInfo) *guestpb.File {
	return &guestpb.File{
		Name: []byte(i.Name), Size: i.Size, Mode: bitsOf(i.Mode), ModTime: i.ModTime.UnixNano(), Link: []byte(i.Link),
		Uid: uint32(i.UID), Gid: uint32(i.GID), User: i.User, Group: i.Group,
	}
}

func (h *inside) Stat(ctx context.Context, req *connect.Request[guestpb.StatRequest]) (*connect.Response[guestpb.StatResponse], error) {
	i, err := h.sb.FS().Stat(ctx, string(req.Msg.GetName()))
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.StatResponse{File: fileOf(i)}), nil
}

func (h *inside) List(ctx context.Context, req *connect.Request[guestpb.ListRequest], out *connect.ServerStream[guestpb.ListResponse]) error {
	batch := &guestpb.ListResponse{}
	flush := func() error {
		if len(batch.Files) == 0 {
			return nil
		}
		err := out.Send(batch)
		batch.Files = nil
		return err
	}
	for i, err := range h.sb.FS().List(ctx, string(req.Msg.GetName()), int(req.Msg.GetDepth())) {
		if err != nil {
			return err
		}
		if batch.Files = append(batch.Files, fileOf(i)); len(batch.Files) == 128 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (h *inside) Mkdir(ctx context.Context, req *connect.Request[guestpb.MkdirRequest]) (*connect.Response[guestpb.MkdirResponse], error) {
	return answer(&guestpb.MkdirResponse{}, h.sb.FS().Mkdir(ctx, string(req.Msg.GetName()), paddock.MkdirOptions{Mode: modeOf(req.Msg.GetMode()), Parents: req.Msg.GetParents()}))
}

func (h *inside) Rename(ctx context.Context, req *connect.Request[guestpb.RenameRequest]) (*connect.Response[guestpb.RenameResponse], error) {
	return answer(&guestpb.RenameResponse{}, h.sb.FS().Rename(ctx, string(req.Msg.GetFrom()), string(req.Msg.GetTo())))
}

func (h *inside) Remove(ctx context.Context, req *connect.Request[guestpb.RemoveRequest]) (*connect.Response[guestpb.RemoveResponse], error) {
	return answer(&guestpb.RemoveResponse{}, h.sb.FS().Remove(ctx, string(req.Msg.GetName()), req.Msg.GetAll()))
}

func (h *inside) Chmod(ctx context.Context, req *connect.Request[guestpb.ChmodRequest]) (*connect.Response[guestpb.ChmodResponse], error) {
	return answer(&guestpb.ChmodResponse{}, h.sb.FS().Chmod(ctx, string(req.Msg.GetName()), modeOf(req.Msg.GetMode())))
}

func (h *inside) Symlink(ctx context.Context, req *connect.Request[guestpb.SymlinkRequest]) (*connect.Response[guestpb.SymlinkResponse], error) {
	return answer(&guestpb.SymlinkResponse{}, h.sb.FS().Symlink(ctx, string(req.Msg.GetTarget()), string(req.Msg.GetName())))
}

func (h *inside) Watch(ctx context.Context, req *connect.Request[guestpb.WatchRequest], out *connect.ServerStream[guestpb.WatchResponse]) error {
	w, err := h.sb.FS().Watch(ctx, string(req.Msg.GetName()), paddock.WatchOptions{Recursive: req.Msg.GetRecursive()})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := out.Send(&guestpb.WatchResponse{}); err != nil {
		return err
	}
	ops := map[paddock.EventOp]guestpb.FileOp{
		paddock.EventCreate: guestpb.FileOp_FILE_OP_CREATE, paddock.EventWrite: guestpb.FileOp_FILE_OP_WRITE,
		paddock.EventRemove: guestpb.FileOp_FILE_OP_REMOVE, paddock.EventRename: guestpb.FileOp_FILE_OP_RENAME,
		paddock.EventChmod: guestpb.FileOp_FILE_OP_CHMOD,
	}
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return err
		}
		event := &guestpb.FileEvent{Op: ops[e.Op], Name: []byte(e.Name), Lost: e.Lost}
		if err := out.Send(&guestpb.WatchResponse{Events: []*guestpb.FileEvent{event}}); err != nil {
			return err
		}
	}
}

func (h *inside) Dial(ctx context.Context, stream *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	_, err = h.sb.Dial(ctx, int(first.GetPort()))
	if err == nil {
		err = fmt.Errorf("a port of a simulated computer: %w", paddock.Unsupported)
	}
	return err
}

func (h *inside) Refusals(ctx context.Context, _ *connect.Request[guestpb.RefusalsRequest]) (*connect.Response[guestpb.RefusalsResponse], error) {
	st, err := h.sb.Status(ctx)
	if err != nil {
		return nil, err
	}
	res := &guestpb.RefusalsResponse{}
	for _, r := range st.Refused {
		res.Refusals = append(res.Refusals, &guestpb.Refusal{
			Time: r.Time.UnixNano(), What: r.What, Target: []byte(r.Target), Rule: r.Rule, Remedy: r.Remedy, Count: int64(r.Count),
		})
	}
	return connect.NewResponse(res), nil
}

func answer[M any](m *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(m), nil
}
