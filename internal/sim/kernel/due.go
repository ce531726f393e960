package kernel

import "github.com/paddock-sandbox/paddock/internal/sim/linux"

// Due reports whether the task is to end at its next checkpoint. Unlike other
// methods it may be called from any goroutine, by whoever watches an engine
// that cannot reach checkpoints itself, while that engine runs and the task
// changes nothing about its signals.
func (t *Task) Due() bool {
	if t.Run.cause.Load() != nil {
		return true
	}
	p := t.pending.Load()
	for sig := linux.Signal(1); p != 0 && sig < maxSignal; sig++ {
		if p&bit(sig) == 0 {
			continue
		}
		switch sig {
		case linux.SIGCHLD, linux.SIGURG, linux.SIGWINCH, linux.SIGCONT, linux.SIGSTOP, linux.SIGTSTP, linux.SIGTTIN, linux.SIGTTOU:
		default:
			if t.action[sig] == Default {
				return true
			}
		}
	}
	return false
}
