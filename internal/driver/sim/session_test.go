package sim_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

func session(t testing.TB) (*sim.Session, paddock.Sandbox) {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.OpenSession(t.Context(), sb, paddock.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	return s, sb
}

func run(t testing.TB, s *sim.Session, text string) (string, paddock.Exit) {
	t.Helper()
	var out bytes.Buffer
	exit, err := s.Run(t.Context(), sim.Script{Text: text, Stdout: &out, Stderr: &out, Stdin: strings.NewReader("given\n")})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String(), exit
}

func TestASessionKeepsItsStateFromScriptToScript(t *testing.T) {
	s, _ := session(t)
	for _, row := range []struct {
		script, out string
		code        int
	}{
		{"x=1; f() { echo f$x; }; cd /tmp; set -o noglob", "", 0},
		{"x=$((x+1)); f; pwd; echo *", "f2\n/tmp\n*\n", 0},
		{"read line; echo $line; false", "given\n", 1},
		{"exec > >(sed s/^/x/); echo hi", "xhi\n", 0},
		{"echo again > >(cat; echo end)", "again\nend\n", 0},
		{"false", "", 1},
		{"echo $?; exec 5>kept; echo to five >&5", "1\n", 0},
		{"cat kept; trap 'echo bye' EXIT; nonsense", "to five\nbash: line 1: nonsense: command not found\n", 127},
		{"exit 3", "bye\n", 3},
	} {
		if out, exit := run(t, s, row.script); out != row.out || exit.Code != row.code || exit.Cause != paddock.Exited {
			t.Errorf("%s: %q, %+v", row.script, out, exit)
		}
	}
	if _, err := s.Run(t.Context(), sim.Script{Text: "echo x"}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("after exit: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestEachScriptOfASessionHasLimitsToItself(t *testing.T) {
	s, sb := session(t)
	for range 3 { // together they would be over the limit
		if out, exit := run(t, s, "i=0; while [ $i -lt 900000 ]; do i=$((i+1)); done; echo $i"); out != "900000\n" || exit.Cause != paddock.Exited {
			t.Fatalf("%q %+v", out, exit)
		}
	}
	if _, exit := run(t, s, "while :; do :; done"); exit.Cause != paddock.OutOfBudget || !strings.Contains(exit.Reason, "iterations") {
		t.Errorf("%+v", exit)
	}
	if _, err := s.Run(t.Context(), sim.Script{Text: "echo x"}); !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), "iterations") {
		t.Errorf("afterwards: %v", err)
	}
	again, err := sim.OpenSession(t.Context(), sb, paddock.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := again.Run(t.Context(), sim.Script{Text: "sleep 100", Timeout: 50 * time.Millisecond})
	if err != nil || exit.Cause != paddock.TimedOut {
		t.Errorf("%+v %v", exit, err)
	}
}

func TestASessionMayWaitForItsNextScript(t *testing.T) {
	t.Parallel()
	const wall = 2 * time.Second
	d, err := sim.New(sim.Options{Limits: budget.Limits{Wall: wall}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.OpenSession(t.Context(), sb, paddock.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-time.After(wall + wall/4)
		if out, exit := run(t, s, "trap 'sleep 100' EXIT; echo hi"); out != "hi\n" || exit.Cause != paddock.Exited {
			t.Errorf("%q %+v", out, exit)
		}
	}
	if err := s.Close(); err != nil { // the trap has the limit
		t.Error(err)
	}
}

func TestAReaderThatNeverAnswersHoldsUpNothing(t *testing.T) {
	s, sb := session(t)
	never, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	exit, err := s.Run(t.Context(), sim.Script{Text: "read -t 0.01 x; echo $? >code; cat", Stdin: never, Timeout: 100 * time.Millisecond})
	if err != nil || exit.Cause != paddock.TimedOut {
		t.Errorf("%+v %v", exit, err)
	}
	again, err := sim.OpenSession(t.Context(), sb, paddock.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, again, "cat code"); out != "142\n" {
		t.Errorf("read -t: %q", out)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkEchoInASession(b *testing.B) {
	s, _ := session(b)
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if _, err := s.Run(b.Context(), sim.Script{Text: "echo hi", Stdout: &out}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewAndEcho(b *testing.B) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	b.ReportAllocs()
	for b.Loop() {
		sb, err := d.Create(b.Context(), paddock.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		p, err := sb.Start(b.Context(), paddock.Cmd{Args: []string{"bash", "-c", "echo hi"}, Output: paddock.Output{Stdout: &out}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil || out.String() != "hi\n" {
			b.Fatal(err, out.String())
		}
		if err := sb.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A script of a session has a run of its own, which ends for the same reason as others when the sandbox is removed.
func TestAScriptThatRunsWhenItsSandboxIsRemovedSaysSo(t *testing.T) {
	s, sb := session(t)
	r, w := io.Pipe()
	ended := make(chan paddock.Exit, 1)
	go func() {
		exit, err := s.Run(t.Context(), sim.Script{Text: "echo runs; sleep 600", Stdout: w})
		if err != nil {
			t.Error(err)
		}
		ended <- exit
	}()
	if _, err := io.ReadFull(r, make([]byte, len("runs\n"))); err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit := <-ended; exit.Cause != paddock.SandboxGone {
		t.Errorf("it ended by %+v", exit)
	}
}
