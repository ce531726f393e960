package drivertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func pausePromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanPause}, promises: []promise{
		{"nothing runs in a paused sandbox, and nothing is lost", pauses},
		{"a paused sandbox says so, and a command in it is a conflict", pausedConflict},
		{"pausing and resuming twice is fine", pauseTwice},
		{"a paused sandbox can be removed", removePaused},
	}}, {can: []paddock.Capability{paddock.CanSnapshotFiles}, promises: []promise{
		{"a snapshot of files has a name", snapshotNamed},
	}}}
}

func pauses(t *testing.T, s *suite) {
	b := s.own(t)
	var out syncBuffer
	cmd := b.shell("i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done")
	cmd.Output = paddock.Output{Stdout: &out}
	p := b.start(t, cmd)
	count := func() int {
		text := out.String()
		return strings.Count(text, "\n")
	}
	until(t, "it counts", func() bool { return count() > 5 })
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	// What was on its way arrives; then it stands still: fifty times as long
	// as one step takes.
	settled := count()
	until(t, "it stands still", func() bool {
		before := settled
		steady := !eventually(500*time.Millisecond, func() bool { settled = count(); return settled != before })
		return steady
	})
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	until(t, "it counts on", func() bool { return count() > settled+5 })
	kill(t, p)
	if exit := wait(t, p); exit.Dropped != 0 || exit.Cause != paddock.Signaled {
		t.Errorf("%+v", exit)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	b.must(t, "echo usable")
}

func pausedConflict(t *testing.T, s *suite) {
	b := s.own(t)
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	st, err := b.Status(bounded(t))
	if err != nil || st.State != paddock.Paused {
		t.Errorf("%+v, %v", st, err)
	}
	_, err = b.Start(bounded(t), b.shell("true"))
	wantKind(t, "start", err, paddock.Conflict)
	_, err = b.FS().Stat(bounded(t), "/etc/passwd")
	wantKind(t, "stat", err, paddock.Conflict)
	if s.info.Can(paddock.CanOutlive) {
		sb, err := s.fresh(t).Open(bounded(t), b.ID())
		if err != nil {
			t.Fatalf("open by another driver: %v", err)
		}
		if st, err := sb.Status(bounded(t)); err != nil || st.State != paddock.Paused {
			t.Errorf("another driver sees %+v, %v", st, err)
		}
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("%+v, %v", st, err)
	}
	b.must(t, "echo usable")
}

func pauseTwice(t *testing.T, s *suite) {
	b := s.own(t)
	if err := b.Resume(bounded(t)); err != nil {
		t.Errorf("resume what runs: %v", err)
	}
	for range 2 {
		if err := b.Pause(bounded(t)); err != nil {
			t.Fatalf("pause: %v", err)
		}
	}
	for range 2 {
		if err := b.Resume(bounded(t)); err != nil {
			t.Fatalf("resume: %v", err)
		}
	}
	b.must(t, "echo usable")
}

func removePaused(t *testing.T, s *suite) {
	b := s.own(t)
	p := b.start(t, b.shell("exec sleep 1000"))
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatalf("pause: %v", err)
	}
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if exit, err := p.Wait(bounded(t)); err == nil && exit.Cause != paddock.SandboxGone || err != nil && !ending(err) {
		t.Errorf("%+v, %v", exit, err)
	}
	_, err := s.driver.Open(bounded(t), b.ID())
	wantKind(t, "open", err, paddock.NotFound)
}

func snapshotNamed(t *testing.T, s *suite) {
	b := s.own(t)
	b.put(t, b.in("file"), []byte("kept"), 0)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Name: "first"})
	if err != nil || id == "" {
		t.Errorf("%q, %v", id, err)
	}
	b.must(t, "cat file")
}
