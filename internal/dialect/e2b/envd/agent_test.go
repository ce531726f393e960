package envd

import (
	"math"
	"net/http"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// box returns a Box of an agent.
func (a *agent) box(t *testing.T) *Box {
	t.Helper()
	b, err := New(Options{Sandbox: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// run starts a process by a Box.
func run(t *testing.T, b *Box) (*process, error) {
	t.Helper()
	return b.start(t.Context(), http.Header{}, &envdpb.StartRequest{Process: &envdpb.ProcessConfig{Cmd: "x"}}, newReader())
}

func TestAnAgentThatStartsProcessesWithoutEndIsBounded(t *testing.T) {
	a := &agent{pid: func(n int) paddock.PID { return paddock.PID(100 + n) }}
	b := a.box(t)
	var last *process
	for i := range maxRunning {
		p, err := run(t, b)
		if err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		last = p
	}
	if _, err := run(t, b); paddock.KindOf(err) != paddock.Exhausted || len(a.all()) != maxRunning {
		t.Errorf("%v, after %d were started", err, len(a.all()))
	}
	close(a.all()[maxRunning-1].end)
	<-last.ended
	if _, err := run(t, b); err != nil {
		t.Errorf("in place of one that ended: %v", err)
	}
	if n := len(b.processes.all()); n > maxRunning+1 {
		t.Errorf("%d are known", n)
	}
}

func TestProcessesThatCannotBeStartedTakeNoPlaceOfRunningOnes(t *testing.T) {
	b, err := New(Options{Sandbox: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxRunning + 1 {
		if _, err := run(t, b); err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if b.processes.running != 0 {
		t.Errorf("%d run", b.processes.running)
	}
}

func TestTwoRunningProcessesHaveNoCommonNumber(t *testing.T) {
	a := &agent{pid: func(int) paddock.PID { return 7 }}
	b := a.box(t)
	first, err := run(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, b); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("a number of a running process: %v", err)
	}
	if b.processes.get(7) != first {
		t.Error("the first one was replaced")
	}
	refused := a.all()[1]
	select {
	case <-refused.released:
	default:
		t.Error("the refused one is followed")
	}
	if refused.killed.Load() != 1 {
		t.Error("the refused one was not killed")
	}
	close(a.all()[0].end)
	<-first.ended
	if second, err := run(t, b); err != nil || b.processes.get(7) != second {
		t.Errorf("the number of a process that ended: %v", err)
	}
}

func TestNumbersThatNoProcessHasAreRefused(t *testing.T) {
	for _, id := range []paddock.PID{0, -1, noPID, noPID + 1, math.MaxUint32 + 8} {
		a := &agent{pid: func(int) paddock.PID { return id }}
		b := a.box(t)
		if _, err := run(t, b); paddock.KindOf(err) != paddock.Unavailable || len(b.processes.all()) != 0 {
			t.Errorf("%d: %v, and known are %d", id, err, len(b.processes.all()))
		}
	}
}
