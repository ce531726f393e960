package keyagent

import (
	"sync"
	"time"
)

// refusalPause is the shortest time between two reports of equal refusals.
const refusalPause = time.Second

// refusals counts refusals until they are reported. Its keys are pairs of fixed texts, so there are few.
type refusals struct {
	mu      sync.Mutex
	pending map[string]*pendingRefusal // guarded by mu
}

type pendingRefusal struct {
	count int
	told  time.Time
}

// due counts a refusal, and returns how many are to be reported now.
func (r *refusals) due(key string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[string]*pendingRefusal{}
	}
	p := r.pending[key]
	if p == nil {
		p = &pendingRefusal{}
		r.pending[key] = p
	}
	p.count++
	if now.Sub(p.told) < refusalPause {
		return 0
	}
	n := p.count
	p.count, p.told = 0, now
	return n
}

// rest returns what was counted and not reported, and forgets it.
func (r *refusals) rest() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := map[string]int{}
	for key, p := range r.pending {
		if p.count > 0 {
			rest[key] = p.count
			p.count = 0
		}
	}
	return rest
}
