package sys

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestTheProcessorTimeOfAnotherProcessIsItsOwn(t *testing.T) {
	begun := time.Now()
	idle := exec.CommandContext(t.Context(), "sleep", "1000")
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	for _, c := range []*exec.Cmd{idle, busy} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
	}
	read := func(pid int) time.Duration {
		had, err := ProcessorTime(pid)
		if err != nil {
			t.Fatal(err)
		}
		return had
	}
	const much = 200 * time.Millisecond
	for read(busy.Process.Pid) < much {
		if time.Since(begun) > 5*time.Minute {
			t.Fatalf("it has had %v", read(busy.Process.Pid))
		}
	}
	if had := read(idle.Process.Pid); had >= much {
		t.Errorf("a process that sleeps has had %v", had)
	}
	if had := read(os.Getpid()); had <= 0 {
		t.Errorf("this process has had %v", had)
	}
	if had, err := ProcessorTime(1 << 22); err == nil {
		t.Errorf("a process that there is not has had %v", had)
	}
}
