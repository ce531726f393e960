package owner

import (
	"math"

	"github.com/paddock-sandbox/paddock"
)

// Traffic returns the bytes that the gateway carried so far, also after its end. The two processes share the memory of
// the counters, so a gateway that is killed loses no count.
func (g *Process) Traffic() paddock.Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.countLocked()
	return g.carried
}

// countLocked reads what was counted. A gateway that is no longer itself can write
// what it likes there, but not take back what it has written. The caller holds mu.
func (g *Process) countLocked() {
	if g.counters == nil {
		return
	}
	for i, to := range map[int]*int64{CountReceived: &g.carried.In, CountSent: &g.carried.Out} {
		*to = max(*to, int64(min(g.counters.Load(i), math.MaxInt64)))
	}
}

// settle reads for the last time what was counted: the process has gone.
func (g *Process) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.countLocked()
	if g.counters != nil {
		_ = g.counters.Close() // it is memory of this process alone now
		g.counters = nil
	}
}
