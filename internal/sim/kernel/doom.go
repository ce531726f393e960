package kernel

import (
	"context"
	"path"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Doomed reports whether a signal that kills is on its way to the task, or its
// run was stopped. Unlike other methods it may be called from any goroutine.
func (t *Task) Doomed() bool {
	const kill = 1<<uint(linux.SIGKILL) | 1<<uint(linux.SIGTERM) | 1<<uint(linux.SIGINT) | 1<<uint(linux.SIGHUP)
	return t.Run.cause.Load() != nil || t.pending.Load()&kill != 0
}

// Overdue returns the program of a task that was to end while the computer's
// process had more than patience of processor time, and reached no checkpoint
// in it. The argument ran is what the process has had so far. The answer is
// guest data, and empty if there is no such task.
func (k *Kernel) Overdue(ran, patience time.Duration) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.tasks {
		switch {
		case t.Run.cause.Load() == nil && t.pending.Load()&bit(linux.SIGKILL) == 0:
			t.late = 0
		case t.late == 0:
			t.late = max(ran, 1)
		case ran-t.late > patience:
			return t.program()
		}
	}
	return ""
}

// program returns the name of what the task runs.
func (t *Task) program() string {
	if args := t.known().args; len(args) > 0 {
		return path.Base(args[0])
	}
	return "a task"
}

// EndAfter ends the task's run by a limit of time, of which a program that
// reaches no checkpoint learns nothing. The caller calls release at its end.
func (t *Task) EndAfter(name budget.Name, limit time.Duration) (release func()) {
	run := t.Run
	timer := time.AfterFunc(limit, func() { run.Stop(&budget.Exceeded{Name: name, Limit: int64(limit / time.Second)}) })
	return func() { timer.Stop() }
}

// how often somebody looks whether a task is doomed.
const doomPeriod = 20 * time.Millisecond

// Bounded returns a context for a library that reaches no checkpoint: it ends
// when the task is doomed or the time is over. The caller calls release, which
// waits for what Bounded started.
func (t *Task) Bounded(limit time.Duration) (ctx context.Context, release func()) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(doomPeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if t.Doomed() {
					cancel()
				}
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}
