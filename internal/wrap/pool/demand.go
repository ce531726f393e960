package pool

import (
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// calmTime is the time without an empty shelf after which the target decreases by one.
const calmTime = time.Minute

// A Count has the counters of a shelf since the pool was made.
type Count struct {
	Ready  int // ready sandboxes now
	Target int // present target

	Hits    uint64 // Creates that took a ready sandbox
	Misses  uint64 // Creates with the shelf's spec that went to the driver
	Made    uint64 // sandboxes put on the shelf
	Failed  uint64 // failed creations
	Expired uint64 // removed because of their age
	Spoiled uint64 // could not be handed out
}

// Counts returns the counters of every shelf, in the order of Options.
func (p *Pool) Counts() []Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]Count, len(p.stocks))
	for i, s := range p.stocks {
		counts[i] = s.count
		counts[i].Ready, counts[i].Target = len(s.ready), s.target
	}
	return counts
}

// Ready returns the specs of all ready sandboxes, for a count of the machine's load. The
// caller must not change them.
func (p *Pool) Ready() []paddock.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []paddock.Spec
	for _, s := range p.stocks {
		for range s.ready {
			all = append(all, s.spec)
		}
	}
	return all
}

// missed raises the target after a miss. mu is held.
func (s *stock) missed(now time.Time) {
	s.count.Misses++
	s.calm = now
	if len(s.ready) == 0 && s.lost == nil {
		s.target = min(s.most, s.target+1)
	}
}

// tidy discards sandboxes that are too old or too many. mu is held.
func (p *Pool) tidy(s *stock, now time.Time, due func(time.Time) bool) {
	for s.target > s.size && due(s.calm.Add(calmTime)) {
		s.target--
		s.calm = s.calm.Add(calmTime)
		if len(s.ready) > s.target {
			p.discard(s)
		}
	}
	p.expire(s, now)
	if s.ttl > 0 && len(s.ready) > 0 {
		due(s.ready[0].made.Add(s.ttl))
	}
}

// expire discards sandboxes that are too old. mu is held.
func (p *Pool) expire(s *stock, now time.Time) {
	for s.ttl > 0 && len(s.ready) > 0 && !s.ready[0].made.Add(s.ttl).After(now) {
		s.count.Expired++
		p.discard(s)
	}
}

// discard makes the worker remove the oldest sandbox of a shelf. mu is held.
func (p *Pool) discard(s *stock) {
	p.doomed = append(p.doomed, &doomed{sandbox: s.ready[0].Sandbox})
	s.ready = slices.Delete(s.ready, 0, 1)
	p.tell()
}
