package box

import (
	"context"

	"github.com/paddock-sandbox/paddock"
)

// watchOver makes the monitor of the sandbox, if its order asks for one. A sandbox that is resumed was let go on by whoever
// resumed it.
func (k *keeper) watchOver(o *Order) {
	if o.About.Monitor == nil {
		return
	}
	how := *o.About.Monitor
	how.Paused = ""
	k.mu.Lock()
	k.about.Monitor = &how
	k.mu.Unlock()
	var secrets []paddock.Secret
	if o.Gateway != nil {
		secrets = o.Gateway.Policy.Secrets
	}
	k.life.guardedBy(newGuard(o.ID, how.Tier, &how, secrets, k.life.plan.Audit), nil)
	k.life.guard.halt = k.halt
}

// follows reports whether a request waits for what happens.
func (q *request) follows() bool { return q.Op == "verdicts" || q.Await }

// halt pauses the sandbox for its monitor, and notes why.
func (k *keeper) halt(ctx context.Context, why string) error {
	if err := k.noteHalt(why); err != nil {
		return err
	}
	if err := k.pause(ctx); err != nil {
		return err
	}
	if k.life.image() != nil { // a saved sandbox needs no keeper
		k.finish()
	}
	return nil
}

// noteHalt notes why the monitor has paused the sandbox, or that it has not any more.
func (k *keeper) noteHalt(why string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.about.Monitor == nil || k.about.Monitor.Paused == why {
		return nil
	}
	how := *k.about.Monitor
	how.Paused = why
	k.about.Monitor = &how
	return k.writeLocked()
}
