package kernel

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// half is a computer with half of a processor, and its first task, which has not run.
func half(t *testing.T, patience time.Duration) (*Kernel, *Task) {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	k := New(Options{FS: fs, CPUs: 0.5, Patience: patience, Programs: func(string) (Program, bool) { return nil, false }})
	task, err := k.NewRun().NewTask(vfs.View{FS: fs, Dir: vfs.Root, Umask: 0o022}, []string{"/usr/bin/first"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, task
}

func TestWhatATaskHadBeforeItWaitsIsADebtOfTheComputer(t *testing.T) {
	k, task := half(t, 0)
	c := k.clock()
	c.start()
	c.since = c.since.Add(-time.Hour) // without a checkpoint
	c.stop(task.Run)
	if owed := k.share.owed(0); owed < time.Hour {
		t.Errorf("an hour was had of half a processor, and %v are waited for", owed)
	}
}

func TestATaskBeginsWhenNothingIsOwed(t *testing.T) {
	k, task := half(t, 0)
	if k.share.owed(100*time.Millisecond) <= 0 {
		t.Fatal("nothing is owed")
	}
	var owed time.Duration
	task.Go(func(*Task) int {
		owed = k.share.owed(0)
		return 0
	})
	<-task.Done()
	if owed > 0 {
		t.Errorf("it began while %v were to be waited for", owed)
	}
}

func TestCloseTellsWhatItCannotEnd(t *testing.T) {
	k, task := half(t, time.Millisecond)
	running, release := make(chan struct{}), make(chan struct{})
	task.Go(func(*Task) int {
		close(running)
		<-release
		return 0
	})
	<-running
	if err := k.Close(); !errors.Is(err, ErrStuck) {
		t.Errorf("%v", err)
	}
	close(release)
	<-task.Done()
	k.Patience = time.Hour
	if err := k.Close(); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestATaskIsOverdueThatWasToEndAndReachesNoCheckpoint(t *testing.T) {
	for name, doom := range map[string]func(*Task){
		"killed":  func(t *Task) { t.Signal(linux.SIGKILL) },
		"limited": func(t *Task) { t.Run.Stop(&budget.Exceeded{Name: "steps", Limit: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			k, task := half(t, 0)
			running, release := make(chan struct{}), make(chan struct{})
			task.Go(func(*Task) int {
				close(running)
				<-release
				return 0
			})
			<-running
			overdue := func(seconds int) string { return k.Overdue(time.Duration(seconds)*time.Second, 10*time.Second) }
			if late := overdue(1) + overdue(100); late != "" {
				t.Errorf("%s is overdue, and was not to end", late)
			}
			doom(task)
			if late := overdue(101) + overdue(111); late != "" {
				t.Errorf("%s is overdue too early", late)
			}
			if late := overdue(112); late != "first" {
				t.Errorf("%q is overdue", late)
			}
			close(release)
			<-task.Done()
			if late := overdue(200); late != "" {
				t.Errorf("%s is overdue after its end", late)
			}
		})
	}
}

func TestALimitOfTimeEndsARunThatReachesNoCheckpoint(t *testing.T) {
	_, task := half(t, 0)
	release := task.EndAfter("script_time", time.Millisecond)
	defer release()
	for task.Run.Cause() == nil {
		<-task.wake
	}
	var e *budget.Exceeded
	if !errors.As(task.Run.Cause(), &e) || e.Name != "script_time" {
		t.Errorf("%v", task.Run.Cause())
	}
}
