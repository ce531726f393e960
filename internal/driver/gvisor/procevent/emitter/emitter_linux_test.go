package emitter

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// joined returns a tap and the host's end of its socket.
func joined(t *testing.T) (*tap, *os.File) {
	t.Helper()
	ours, theirs, err := sys.EventPair()
	if err != nil {
		t.Fatal(err)
	}
	end, err := fd.NewFromFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	noon := time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
	tp := &tap{end: end, now: func() time.Time { return noon }, rates: map[pb.MessageType]*procevent.Bucket{}}
	t.Cleanup(func() { tp.Stop(); ours.Close() })
	return tp, ours
}

// next decodes the next packet.
func next(t *testing.T, f *os.File) procevent.Packet {
	t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, procevent.MaxPacket+1)
	n, err := f.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b[:n]), "secret") {
		t.Error("the environment is in the packet")
	}
	p, err := procevent.Decode(b[:n])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNoTextHidesAnExec(t *testing.T) {
	tp, ours := joined(t)
	long := strings.Repeat("\xff", 1<<20)
	for _, row := range []struct {
		name string
		info *pb.ExecveInfo
	}{
		{"a variable that is not UTF-8", &pb.ExecveInfo{BinaryPath: "/bin/x", Env: []string{"A=secret\xff"}}},
		{"a large environment", &pb.ExecveInfo{BinaryPath: "/bin/x", Env: []string{"A=secret" + long}}},
		{"an argument that is not UTF-8", &pb.ExecveInfo{BinaryPath: "/bin/x", Argv: []string{"\xff"}}},
		{"large arguments", &pb.ExecveInfo{BinaryPath: "/bin/x", Argv: []string{long, long}}},
		{"many arguments", &pb.ExecveInfo{BinaryPath: "/bin/x", Argv: make([]string, 1<<20)}},
		{"a path that is not UTF-8", &pb.ExecveInfo{BinaryPath: "/bin/\xff"}},
		{"a path that is not known", &pb.ExecveInfo{Execfn: "/bin/x"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.info.ContextData = &pb.ContextData{ThreadGroupId: 7, ProcessName: "\xff", Cwd: long}
			if err := tp.Execve(nil, seccheck.FieldSet{}, row.info); err != nil {
				t.Fatal(err)
			}
			p := next(t, ours)
			if p.Event.Kind != audit.Exec || p.Event.Process.PID != 7 || !strings.HasPrefix(p.Event.Path, "/bin/") || p.Lost != 0 {
				t.Errorf("got %.200v", p)
			}
		})
	}
}

// The host has to read what it is sent, and would drop it.
func TestOnlyWhatTheHostRecordsIsSentAndOneKindDoesNotPushOutAnother(t *testing.T) {
	const most, more = 50_000, 1000
	tp, ours := joined(t)
	exit := &pb.ExitNotifyParentInfo{ContextData: &pb.ContextData{ThreadGroupId: 7}}
	sent := 0
	for range most + more {
		lost := tp.lost.Load()
		if err := tp.ExitNotifyParent(nil, seccheck.FieldSet{}, exit); err != nil {
			t.Fatal(err)
		}
		if tp.lost.Load() == lost {
			sent++
			next(t, ours)
		}
	}
	if sent != most {
		t.Errorf("%d of %d are sent", sent, most+more)
	}
	if err := tp.Execve(nil, seccheck.FieldSet{}, &pb.ExecveInfo{BinaryPath: "/bin/x", ContextData: &pb.ContextData{ThreadGroupId: 7}}); err != nil {
		t.Fatal(err)
	}
	if p := next(t, ours); p.Event.Kind != audit.Exec || p.Lost != more {
		t.Errorf("after the flood came %+v", p)
	}
}

func TestThreadsAreNoProcesses(t *testing.T) {
	tp, ours := joined(t)
	for _, flags := range []uint64{syscall.CLONE_THREAD, 0} {
		i := &pb.CloneInfo{ContextData: &pb.ContextData{ThreadGroupId: 7}, CreatedThreadGroupId: 8, Flags: flags}
		if err := tp.Clone(nil, seccheck.FieldSet{}, i); err != nil {
			t.Fatal(err)
		}
	}
	tp.Stop()
	if p := next(t, ours); p.Event.Child != 8 {
		t.Errorf("got %+v", p)
	}
	if n, err := ours.Read(make([]byte, 1)); n > 0 {
		t.Errorf("a thread was told too (%v)", err)
	}
}

func TestAFullSocketIsCountedAndDoesNotStop(t *testing.T) {
	tp, ours := joined(t)
	exit := &pb.ExitNotifyParentInfo{ContextData: &pb.ContextData{ThreadGroupId: 7}}
	for tp.lost.Load() < 3 {
		if err := tp.ExitNotifyParent(nil, seccheck.FieldSet{}, exit); err != nil {
			t.Fatal(err)
		}
	}
	if err := tp.Execve(nil, seccheck.FieldSet{}, &pb.ExecveInfo{ContextData: &pb.ContextData{ThreadGroupId: 7}}); err != nil {
		t.Fatal(err) // an error would fail the exec
	}
	next(t, ours)
	next(t, ours)
	if err := tp.ExitNotifyParent(nil, seccheck.FieldSet{}, exit); err != nil {
		t.Fatal(err)
	}
	tp.Stop()
	var last procevent.Packet
	b := make([]byte, procevent.MaxPacket)
	for {
		n, err := ours.Read(b)
		if err != nil {
			break
		}
		if last, err = procevent.Decode(b[:n]); err != nil {
			t.Fatal(err)
		}
	}
	if last.Lost != 4 || tp.Status().DroppedCount != 4 {
		t.Errorf("the last packet tells of %d, and the tap of %d; 4 were lost", last.Lost, tp.Status().DroppedCount)
	}
}

// Package sentry tests that every point is one of gVisor's.
func TestAKindThatIsNotKnownHasNoPoints(t *testing.T) {
	if _, err := Points([]audit.Kind{"everything"}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("an unknown kind: %v, want %v", err, paddock.Invalid)
	}
}
