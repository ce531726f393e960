package emitter

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
)

// Register registers the sink in the process that becomes the sentry. Call it once, before
// the sentry starts.
func Register() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: Sink, New: func(_ map[string]any, end *fd.FD) (seccheck.Sink, error) {
		if end == nil {
			return nil, errors.New("a tap without a socket")
		}
		return &tap{end: end, now: time.Now, rates: map[pb.MessageType]*procevent.Bucket{}}, nil
	}})
}

// tap writes the events of trace points. Many goroutines call its methods, and each is a
// thread of the sandbox that waits for the call.
type tap struct {
	seccheck.SinkDefaults

	end  *fd.FD
	lost atomic.Uint32
	now  func() time.Time

	mu    sync.Mutex
	rates map[pb.MessageType]*procevent.Bucket // guarded by mu
}

func (*tap) Name() string { return Sink }

func (t *tap) Status() seccheck.SinkStatus {
	return seccheck.SinkStatus{DroppedCount: uint64(t.lost.Load())}
}

func (t *tap) Stop() { _ = t.end.Close() }

// Retries for an important packet when the socket is full, and the first delay. Each delay
// is twice the one before, 13 ms in all. The process of the event waits meanwhile.
const (
	tries     = 6
	firstWait = 200 * time.Microsecond
)

// admits reports whether the host records one more event of a kind. What it would not record, it would
// have to read all the same, and what it would read too much of must not push out another kind.
func (t *tap) admits(kind pb.MessageType) bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.rates[kind]
	if b == nil {
		b = &procevent.Bucket{}
		t.rates[kind] = b
	}
	return b.Take(now)
}

// send writes one packet. Only an important packet may wait for room, because some trace
// points hold locks of the sentry.
func (t *tap) send(kind pb.MessageType, message proto.Message, matters bool) {
	if !t.admits(kind) {
		t.lost.Add(1)
		return
	}
	const header = 8
	packet, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, header, 512), message)
	if err != nil { // impossible, because every text was repaired
		t.lost.Add(1)
		return
	}
	binary.LittleEndian.PutUint16(packet, header)
	binary.LittleEndian.PutUint16(packet[2:], uint16(kind))
	for wait, try := firstWait, 0; ; {
		binary.LittleEndian.PutUint32(packet[4:], t.lost.Load())
		_, err := syscall.Write(t.end.FD(), packet)
		switch {
		case err == nil:
			return
		case errors.Is(err, syscall.EINTR):
		case !matters || !errors.Is(err, syscall.EAGAIN) || try == tries:
			t.lost.Add(1)
			return
		default:
			<-time.After(wait)
			wait, try = 2*wait, try+1
		}
	}
}

// who returns the process of an event, with its texts repaired.
func who(c *pb.ContextData) *pb.ContextData {
	if c == nil {
		return nil
	}
	out := &pb.ContextData{
		ThreadGroupId: c.GetThreadGroupId(), ParentThreadGroupId: c.GetParentThreadGroupId(),
		ProcessName: audit.Text(c.GetProcessName(), audit.MaxWord), Cwd: audit.Text(c.GetCwd(), audit.MaxPath),
	}
	if cr := c.GetCredentials(); cr != nil {
		out.Credentials = &pb.Credentials{EffectiveUid: cr.GetEffectiveUid()}
	}
	return out
}

func (t *tap) Execve(_ context.Context, _ seccheck.FieldSet, i *pb.ExecveInfo) error {
	path := i.GetBinaryPath()
	if path == "" {
		path = i.GetExecfn()
	}
	t.send(pb.MessageType_MESSAGE_SENTRY_EXEC, &pb.ExecveInfo{
		ContextData: who(i.GetContextData()), BinaryPath: audit.Text(path, audit.MaxPath), Argv: audit.Arguments(i.GetArgv()),
	}, true)
	return nil
}

func (t *tap) Clone(_ context.Context, _ seccheck.FieldSet, i *pb.CloneInfo) error {
	if i.GetFlags()&syscall.CLONE_THREAD != 0 {
		return nil
	}
	t.send(pb.MessageType_MESSAGE_SENTRY_CLONE, &pb.CloneInfo{ContextData: who(i.GetContextData()), CreatedThreadGroupId: i.GetCreatedThreadGroupId()}, true)
	return nil
}

// ExitNotifyParent is called while a lock over all tasks is held, so its packet may not
// wait.
func (t *tap) ExitNotifyParent(_ context.Context, _ seccheck.FieldSet, i *pb.ExitNotifyParentInfo) error {
	t.send(pb.MessageType_MESSAGE_SENTRY_EXIT_NOTIFY_PARENT, &pb.ExitNotifyParentInfo{ContextData: who(i.GetContextData()), ExitStatus: i.GetExitStatus()}, false)
	return nil
}

func (t *tap) Syscall(_ context.Context, _ seccheck.FieldSet, c *pb.ContextData, kind pb.MessageType, m proto.Message) error {
	if m, ok := m.(*pb.Connect); ok {
		t.send(kind, &pb.Connect{ContextData: who(c), Address: m.GetAddress()[:min(len(m.GetAddress()), audit.MaxWord)]}, true)
	}
	return nil
}

func (t *tap) RawSyscall(ctx context.Context, _ seccheck.FieldSet, call *pb.Syscall) error {
	if open := opened(ctx, call); open != nil {
		t.send(pb.MessageType_MESSAGE_SYSCALL_OPEN, open, false)
	}
	return nil
}
