package kernel

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Doomed reports whether a signal that kills is on its way to the task, or its
// run was stopped. Unlike other methods it may be called from any goroutine.
func (t *Task) Doomed() bool {
	const kill = 1<<uint(linux.SIGKILL) | 1<<uint(linux.SIGTERM) | 1<<uint(linux.SIGINT) | 1<<uint(linux.SIGHUP)
	return t.Run.cause.Load() != nil || t.pending.Load()&kill != 0
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
