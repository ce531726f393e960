package kernel

import (
	"errors"
	"testing"
)

// A program that gives back more than it took would have memory that nobody counts.
func TestATaskThatGivesBackMoreThanItTookIsBroken(t *testing.T) {
	k, task := alone(t)
	if err := k.Heap().Add(1000); err != nil { // of another
		t.Fatal(err)
	}
	task.Go(func(task *Task) int {
		task.Grow(100)
		task.Shrink(60)
		task.Shrink(60)
		task.Check()
		return 0
	})
	<-task.Done()
	var b *Broken
	if !errors.As(task.Run.Cause(), &b) || b.Program != "/usr/bin/first" {
		t.Errorf("the run ended by %v", task.Run.Cause())
	}
	if used := k.Heap().Used(); used != 1000 {
		t.Errorf("%d bytes are counted", used)
	}
}
