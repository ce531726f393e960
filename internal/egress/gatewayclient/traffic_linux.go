package gatewayclient

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

// countLocked reads the counters. A compromised gateway can write any number, but cannot
// reduce a count that was read. The caller holds mu.
func (g *Process) countLocked() {
	if g.counters == nil {
		return
	}
	for i, to := range map[int]*int64{CountReceived: &g.carried.In, CountSent: &g.carried.Out} {
		*to = max(*to, int64(min(g.counters.Load(i), math.MaxInt64)))
	}
}

// settle reads the counters after the end of the process.
func (g *Process) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.countLocked()
	if g.counters != nil {
		_ = g.counters.Close() // now only this process maps the memory
		g.counters = nil
	}
}
