package kernel

import "github.com/paddock-sandbox/paddock/internal/sim/budget"

// Renew counts anew what is counted of one run, because a person at a terminal
// has typed the next command: a session is as long as they like, and each
// command is bounded.
func (r *Run) Renew() {
	for _, c := range []*budget.Counter{r.commands, r.iterations, r.output, r.steps, r.traversal} {
		_ = c.Add(-c.Used()) // giving back never fails
	}
}
