package drivertest

import (
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func timeoutPromises() []group {
	return []group{{promises: []promise{
		{"a timeout ends the command, and the exit says why", timesOut},
		{"a timeout kills the background children too, also those that ignore SIGTERM", timeoutKillsGroup},
		{"the sandbox stays usable after a timeout", usableAfterTimeout},
		{"a command that ends in time is not touched", inTime},
		{"a timeout counts also while nobody listens", timeoutDetached},
		{"the sandbox's lifetime bounds every command, and a shorter timeout wins", lifetime},
	}}}
}

// shortly is a time in which an emulated machine also starts a command.
const shortly = time.Second

func wantTimedOut(t testing.TB, exit paddock.Exit) {
	t.Helper()
	if exit.Cause != paddock.TimedOut || exit.Reason == "" || exit.Code != 128+int(exit.Signal) ||
		(exit.Signal != syscall.SIGKILL && exit.Signal != syscall.SIGTERM) {
		t.Errorf("%+v, want it timed out with a reason", exit)
	}
	if exit.Usage.Wall < shortly*9/10 {
		t.Errorf("it was ended after %v, before its time", exit.Usage.Wall)
	}
}

func (b box) timed(t testing.TB, script string) result {
	t.Helper()
	cmd := b.shell(script)
	cmd.Timeout = shortly
	return b.run(t, cmd)
}

func timesOut(t *testing.T, s *suite) {
	b := s.box(t)
	r := b.timed(t, "echo before; sleep 1000; echo after")
	wantTimedOut(t, r.exit)
	if r.out != "before\n" {
		t.Errorf("output %q", r.out)
	}
}

func timeoutKillsGroup(t *testing.T, s *suite) {
	b := s.box(t)
	r := b.timed(t, `trap '' TERM HUP INT
(trap '' TERM; while :; do sleep 1000; done) & echo $! > child
(trap '' TERM; exec sleep 1000) & echo $! >> child
echo $$ >> child
while :; do sleep 1000; done`)
	wantTimedOut(t, r.exit)
	b.gone(t, b.in("child"))
}

func usableAfterTimeout(t *testing.T, s *suite) {
	b := s.own(t)
	wantTimedOut(t, b.timed(t, "sleep 1000 & sleep 1000").exit)
	if got := b.must(t, "echo again"); got != "again\n" {
		t.Errorf("%q", got)
	}
	b.put(t, b.in("file"), []byte("x"), 0)
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("status %+v, %v", st, err)
	}
}

func inTime(t *testing.T, s *suite) {
	b := s.box(t)
	cmd := b.shell("exit 4")
	cmd.Timeout = patience
	if r := b.run(t, cmd); r.exit.Cause != paddock.Exited || r.exit.Code != 4 {
		t.Errorf("%+v", r.exit)
	}
}

func timeoutDetached(t *testing.T, s *suite) {
	b := s.box(t)
	cmd := b.shell("exec sleep 1000")
	cmd.Timeout = shortly
	cmd.Output = paddock.Output{Detached: true}
	p := b.start(t, cmd)
	p.Release()
	until(t, "it has ended", func() bool { return b.info(t, p.ID()).Exit != nil })
	wantTimedOut(t, *b.info(t, p.ID()).Exit)
}

func lifetime(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Lifetime = 2 * shortly })
	for range 2 { // the timeout ends each command, not the sandbox
		r := b.sh(t, "sleep 1000")
		wantTimedOut(t, r.exit)
	}
	r := b.timed(t, "sleep 1000")
	wantTimedOut(t, r.exit)
	cmd := b.shell("sleep 1000")
	cmd.Timeout = patience
	if r := b.run(t, cmd); r.exit.Cause != paddock.TimedOut {
		t.Errorf("a longer timeout won: %+v", r.exit)
	}
	st, err := b.Status(bounded(t))
	if err != nil || st.State != paddock.Ready || st.Limits.Lifetime != 2*shortly {
		t.Errorf("status %+v, %v", st, err)
	}
}
